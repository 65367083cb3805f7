"""Satellites under gravity with the J2 term: true divisions and roots, RK4. The twin (``stepping_twin.cpp``) has the
same operations in the same order, one or two vectors at a time; the faster one is the limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import eagle
from cases.inputs import J2_STEP, satellites
from cases.oscillators import Planes
from eagle import Mutable, Param, Scalar, Terminated, Vector, kernel
from frame import DAEMON, IN_PROCESS, LIMIT, TWIN, Bench, Bound, Form, Row

LINE = 9
TITLE = "J2 two-body RK4, 1e4 x 1,000 steps"
MU, J2, R = 1.0, 1e-3, 0.9


def acceleration(r):
    squared = eagle.math.dot(r, r)
    distance = math.sqrt(squared)
    ratio = 5.0 * r[2] * r[2] / squared
    factor = 1.5 * J2 * MU * R * R / (squared * squared * distance)
    point = -MU / (squared * distance)
    return eagle.vector(
        point * r[0] + factor * r[0] * (ratio - 1.0),
        point * r[1] + factor * r[1] * (ratio - 1.0),
        point * r[2] + factor * r[2] * (ratio - 3.0),
    )


@kernel
def two_body(
    r: Mutable[Vector[3]], v: Mutable[Vector[3]], t: Mutable[Scalar], t_end: Scalar, h: Param, done: Terminated
):
    k1r, k1v = v, acceleration(r)
    k2r, k2v = v + h / 2 * k1v, acceleration(r + h / 2 * k1r)
    k3r, k3v = v + h / 2 * k2v, acceleration(r + h / 2 * k2r)
    k4r, k4v = v + h * k3v, acceleration(r + h * k3r)
    r = r + h / 6 * (k1r + 2.0 * k2r + 2.0 * k3r + k4r)
    v = v + h / 6 * (k1v + 2.0 * k2v + 2.0 * k3v + k4v)
    t = t + h
    done = t >= t_end


def form(name: str, session: Any, n: int) -> Form:
    planes = Planes(satellites(n), session)

    def run() -> None:
        result = eagle.simulate(two_body, max_steps=2000, session=session, h=J2_STEP, **planes.arrays)
        assert result.status == "finished", result.status

    return Form(name, run, reset=planes.reset, answer=lambda: [planes.arrays[k] for k in ("r", "v", "t")])


def twin(bench: Bench, n: int, copies: int) -> Form:
    planes = Planes(satellites(n))
    return Form(
        f"{TWIN}, {copies} at once",
        lambda: bench.twins.step_two_body(planes.arrays, J2_STEP, copies),
        LIMIT,
        reset=planes.reset,
        answer=lambda: [planes.arrays[k] for k in ("r", "v", "t")],
    )


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(10_000, 256)
    forms = [twin(bench, n, copies) for copies in (1, 2)]
    forms += [form(name, session, n) for name, session in bench.sessions()]
    forms += bench.peers("two_body", 1e-9, ("raptor-eagle", "numba", "jax"), n=n)
    yield Row(f"{n:,} satellites", forms, [Bound(name, 1.15, LIMIT) for name in (IN_PROCESS, DAEMON)])
