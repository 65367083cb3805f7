"""Kernels of raptor-hawk that have no counterpart."""

import hawk
from hawk import Index, Int32, Matrix, Mutable, Scalar, Vector
from hawk import math as hm


@hawk.kernel
def counted(n: Int32, out: Mutable[Int32]):
    out = n + 1


@hawk.kernel
def solved(m: Matrix[3, 3], v: Vector[3], out: Mutable[Vector[3]]):
    solution, _info = hm.solve(m, v)
    out = solution


@hawk.kernel
def spaced(x: Scalar, out: Mutable[Scalar]):
    out = hm.spacing(x)


@hawk.kernel
def noisy(x: Scalar, y: Mutable[Scalar]):
    y = x + hm.random.uniform(7, 3)


@hawk.kernel
def placed(k: Index, x: Scalar, out: Mutable[Scalar]):
    hawk.scatter(out)[k] = x


@hawk.kernel
def share(x: Scalar, out: Mutable[Scalar]):
    out = x / hawk.sum(x)


@hawk.kernel
def both(x: Scalar, x_all: Scalar, out: Mutable[Scalar]):
    out = x + x_all + x.at(0)


def cases():
    """(kernel, what the refusal says)."""
    return [
        (counted, "kernel 'counted' has plane '(n|out)' of int32.*integers of kernels have 64 bits here"),
        (solved, "kernel 'solved' has operation '.*' of type .*, which has no counterpart here: write it with"),
        (spaced, r"kernel 'spaced' has operation 'spacing' of type .*: eagle has no spacing\(\)"),
        (placed, r"kernel 'placed' has stores by key into 'out'.*where each place has one sample, add to zeros"),
        (share, "kernel 'share' has operation 'reduce'.*write two kernels, of which the first stores it.*into a graph"),
        (both, "kernel 'both' has a read of other samples' 'x'.*rename 'x_all'"),
    ]
