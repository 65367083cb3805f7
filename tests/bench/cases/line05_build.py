"""What ``build()`` of large graphs takes, and how it grows. There is no twin: the table's bounds are milliseconds of
its machine, and an exponent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import eagle
import numpy as np
from eagle import Scalar, kernel
from eagle.graph import opaque
from frame import DAEMON, IN_PROCESS, Bench, Bound, Clock, Form, Row, WrongAnswer

LINE = 5
TITLE = "build() of 3,000 nodes (distinct arrays, columns) and of 1,000 in place"
ROWS = 64
SIZES = (100, 300, 1000, 3000, 10_000, 30_000)
# (graph that is not built, what tells whether a launch was right)
Made = tuple[eagle.Graph, Callable[[], bool]]


@kernel
def add_one(x: Scalar) -> Scalar:
    y = x + 1.0
    return y  # noqa: RET504  # it names the plane


def distinct(session: Any, nodes: int) -> Made:
    g = eagle.Graph(session)
    plan = eagle.plan(add_one)
    planes = [(session.zeros(8), session.zeros(8)) for _ in range(nodes)]
    for x, y in planes:
        g.add(plan.bind(x=x, y=y))
    return g, lambda: all(y[7] == 1.0 for _, y in planes)


def columns(session: Any, nodes: int) -> Made:
    matrix = session.zeros((ROWS, nodes))
    g = eagle.Graph(session)
    for i in range(nodes):
        column = matrix[:, i]
        g.add_node(opaque(lambda column=column: column.fill(1.0), writes={"column": column}))
    return g, lambda: bool(np.all(matrix == 1.0))


def in_place(session: Any, nodes: int) -> Made:
    x = session.zeros(8)
    g = eagle.Graph(session)
    bound = eagle.plan(add_one).bind(x=x, y=x)
    for _ in range(nodes):
        g.add(bound)
    return g, lambda: x[7] == float(nodes)


MAKERS: dict[str, tuple[Callable[[Any, int], Made], int, float]] = {
    "distinct arrays": (distinct, 3000, 10e-3),
    "columns of one matrix": (columns, 3000, 15e-3),
    "in place": (in_place, 1000, 5e-3),
}


def seconds_to_build(make: Callable[[Any, int], Made], session: Any, nodes: int, check: bool) -> float:
    g, right = make(session, nodes)
    begin = Clock.now()
    g.build()
    took = Clock.now() - begin
    if check:
        g.launch()
        if not right():
            raise WrongAnswer(f"{make.__name__}: {nodes} nodes: a launch gave another result")
    return took


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Of growth: the slope of the least-squares line through the logarithms."""
    slope, _ = np.polyfit([math.log(n) for n in sizes], [math.log(s) for s in seconds], 1)
    return float(slope)


def growth(make: Callable[[Any, int], Made], session: Any, sizes: list[int]) -> float:
    """Of the least of three builds, of one where a build is long."""
    least = []
    for n in sizes:
        builds = 3 if n <= 3000 else 1
        least.append(min(seconds_to_build(make, session, n, False) for _ in range(builds)))
    return exponent(sizes, least)


def rows(bench: Bench) -> Iterator[Row]:
    for title, (make, full, most) in MAKERS.items():
        nodes = bench.size(full, 30)
        for _, session in bench.sessions():
            seconds_to_build(make, session, nodes, True)
        forms = [
            Form(name, lambda session=session, make=make, nodes=nodes: seconds_to_build(make, session, nodes, False))
            for name, session in bench.sessions()
        ]
        peers = bench.peers("build", 0.0, ("raptor-eagle",), nodes=nodes, kind=title)
        bounds = [Bound(name, most) for name in (IN_PROCESS, DAEMON)]
        yield Row(f"{nodes:,} nodes, {title}", forms + peers, bounds)
    sizes = [bench.size(n, 10 * (i + 1)) for i, n in enumerate(SIZES)]
    for title, (make, _, _) in MAKERS.items():
        forms = [Form(name, lambda: None, values=[growth(make, session, sizes)]) for name, session in bench.sessions()]
        bounds = [Bound(name, 1.15) for name in (IN_PROCESS, DAEMON)]
        yield Row(f"growth of {title}, {sizes[0]} to {sizes[-1]:,}", forms, bounds, unit="exponent")
