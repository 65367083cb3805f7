"""The reverse derivative of one RK4 step of the two-body problem, by position and speed.

The limit is the derivative written by hand (``gradient_twin.cpp``), which knows that the acceleration's Jacobian is
symmetric. Ours is what ``eagle.diff.vjp`` makes of the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import eagle
import numpy as np
from cases.chains import void
from cases.inputs import J2_STEP, satellites
from eagle import Param, Vector, kernel
from frame import DAEMON, IN_PROCESS, LIMIT, TWIN, Bench, Bound, Form, Row

LINE = 17
TITLE = "vjp of a two-body RK4 step"
TOLERANCE = 1e-13


def acceleration(r):
    squared = eagle.math.dot(r, r)
    return -1.0 / (squared * math.sqrt(squared)) * r


@kernel
def step(r: Vector[3], v: Vector[3], h: Param) -> dict[str, Vector[3]]:
    k1r, k1v = v, acceleration(r)
    k2r, k2v = v + h / 2 * k1v, acceleration(r + h / 2 * k1r)
    k3r, k3v = v + h / 2 * k2v, acceleration(r + h / 2 * k2r)
    k4r, k4v = v + h * k3v, acceleration(r + h * k3r)
    return {
        "r1": r + h / 6 * (k1r + 2.0 * k2r + 2.0 * k3r + k4r),
        "v1": v + h / 6 * (k1v + 2.0 * k2v + 2.0 * k3v + k4v),
    }


def inputs(n: int) -> dict[str, np.ndarray]:
    start = satellites(n)
    return {"r": start["r"], "v": start["v"], "bar_r1": start["v"] + 0.5, "bar_v1": start["r"] - 0.25}


def form(name: str, session: Any, n: int, count: int) -> Form:
    arrays = {key: session.asarray(array) for key, array in inputs(n).items()}
    back = eagle.diff.vjp(step, wrt=["r", "v"])
    bound = eagle.plan(back).bind(session=session, h=J2_STEP, **arrays).launch()
    graph = bound._graph  # of this one kernel: a graph of the user takes no derivatives
    answer = [bound.planes["bar_r"], bound.planes["bar_v"]]
    return Form(name, lambda: void(graph.launch(count, {})), units=count, answer=lambda: answer, tolerance=TOLERANCE)


def twin(bench: Bench, n: int, count: int) -> Form:
    arrays = inputs(n)
    found = [np.zeros((3, n)), np.zeros((3, n))]
    return Form(
        TWIN,
        lambda: bench.twins.two_body_adjoint(arrays, found, J2_STEP, count),
        LIMIT,
        units=count,
        answer=lambda: found,
        tolerance=TOLERANCE,
    )


def rows(bench: Bench) -> Iterator[Row]:
    for size, count in ((65_536, 10), (4_096, 100)):
        n, count = bench.size(size, 256), bench.size(count, 2)
        forms = [twin(bench, n, count)]
        forms += [form(name, session, n, count) for name, session in bench.sessions()]
        forms += bench.peers("two_body_vjp", 1e-12, ("jax",), n=n, count=count)
        bounds = [Bound(name, 1.3, LIMIT) for name in (IN_PROCESS, DAEMON)]
        if any(made.name == "jax" for made in forms) and size == 65_536:
            bounds.append(Bound(IN_PROCESS, 1 / 3, "jax"))
        yield Row(f"{n:,} samples", forms, bounds)
