"""Small kernels that several tests use. A kernel is read from its source, so it lives in a file."""

from eagle import Mutable, Param, Scalar, Terminated, kernel


@kernel
def affine(x: Scalar, y: Mutable[Scalar], a: Param, b: Param):
    y = a * x + b


@kernel
def add_into(x: Scalar, y: Scalar, z: Mutable[Scalar]):
    z = x + y


@kernel
def count_up(x: Mutable[Scalar], step: Scalar, limit: Param, done: Terminated):
    x = x + step
    done = x >= limit
