"""Small kernels that several tests use. A kernel is read from its source, so it lives in a file."""

from __future__ import annotations

import math

import eagle
from eagle import Accum, Index, Mutable, Param, Reduce, Scalar, Table, Terminated, kernel


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


@kernel
def mixed(x: Scalar, y: Scalar, k: Index, a: Param) -> tuple[Scalar, Scalar]:
    """Branches, a loop whose length differs by sample, division, roots, integers: what could go different ways."""
    u = x
    w = y
    steps = 0
    while eagle.bounded(40) and u * u < 9.0:
        u = u * 1.125 + a * w / (1.0 + x * x)
        w = w - u * 0.25
        if (steps + k) % 3 == 0:
            w = w + math.sqrt(u * u + 0.5)
        steps += 1
    return u, w + steps // (k * k - 4)


@kernel
def everything(
    x: Scalar, y: Scalar, k: Index, t: Table[Scalar], h: Accum[Scalar], a: Param
) -> tuple[Scalar, Reduce("sum"), Reduce("max"), Reduce("all")]:
    """What `mixed` has not: functions, random numbers, tables, and what samples make together."""
    u = eagle.math.exp(0.25 * x) * eagle.math.sin(1e3 * y) + eagle.math.pow(x * x + 0.5, 1.5 * y)
    u = u + eagle.random.normal(17, 4 * k, sd=a) + t.at(k) * eagle.math.atan2(y, x)
    h.add(u, at=k)
    h.add(eagle.random.uniform(5, k), at=2 * k)
    total = u * 1.0
    return u, total, abs(u), u < 1e30
