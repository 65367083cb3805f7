"""The tutorial of the graph model: build a graph, look at it, break it and repair it.

    python -m eagle.examples.graph_model [--local]

Prints every picture of the tutorial in docs/manual/graph_model.md. Through the daemon that ``eagle.connect()`` finds
or starts; with --local in this process.
"""

from __future__ import annotations

import sys

import numpy as np

import eagle
from eagle import Mutable, Param, Scalar, kernel
from eagle.graph import opaque


@kernel
def push(x: Mutable[Scalar], v: Scalar, dt: Param) -> None:
    """One step of explicit Euler."""
    x = x + dt * v


@kernel
def energy(v: Scalar, m: Scalar) -> Scalar:
    """Kinetic energy."""
    e = 0.5 * m * v * v
    return e


@kernel
def distance(x: Scalar, home: Param) -> Scalar:
    """How far from home."""
    d = abs(x - home)
    return d


def build_and_look(n: int = 1000) -> eagle.Graph:
    """A fork and join over kernels, and a callable at the end."""
    x, v, m = eagle.zeros(n), eagle.full(n, 2.0), eagle.full(n, 3.0)
    e, d, total = eagle.zeros(n), eagle.zeros(n), np.zeros(2)

    def sum_up() -> None:
        total[:] = e.sum(), d.sum()

    g = eagle.Graph(name="step")
    g.add(eagle.plan(push).bind(x=x, v=v, dt=0.5), name="push")
    g.add_group(
        [eagle.plan(energy).bind(v=v, m=m, e=e), eagle.plan(distance).bind(x=x, home=10.0, d=d)],
        names=["energy", "distance"],
    )
    g.add_node(opaque(sum_up, reads={"e": e, "d": d}, writes={"total": total}), name="sum")
    g.show()
    labels = g.node_labels()
    print()
    for edge in g.edges():
        print(labels[edge.src], "->", labels[edge.dst], edge.plane, edge.kind, edge.meaning)
    print()
    g.build().launch(10).show()
    print(f"\nenergy {total[0]}, distance {total[1]}\n")
    return g


def break_it(n: int = 1000) -> str:
    """Two branches that write one array."""
    x, v, m, e = eagle.zeros(n), eagle.zeros(n), eagle.zeros(n), eagle.zeros(n)
    broken = eagle.Graph(name="broken")
    broken.add_group(
        [eagle.plan(energy).bind(v=v, m=m, e=e), eagle.plan(distance).bind(x=x, home=0.0, d=e)],
        names=["energy", "distance"],
    )
    try:
        broken.build()
    except eagle.RacingSiblings as refused:
        print(f"refused: {refused}\n")
        return str(refused)
    raise AssertionError("a race was not refused")


def repair_it(n: int = 1000) -> eagle.Graph:
    """An array for each branch, a copy of a column, and a scratch plane between them."""
    rows, v, m, e, d = eagle.zeros((n, 2)), eagle.full(n, 2.0), eagle.full(n, 3.0), eagle.zeros(n), eagle.zeros(n)
    repaired = eagle.Graph(name="repaired")
    column = repaired.scratch(n, name="column")
    repaired.add_node(eagle.copy(rows[:, 1], column), name="column")
    repaired.add_group(
        [eagle.plan(energy).bind(v=v, m=m, e=e), eagle.plan(distance).bind(x=column, home=1.0, d=d)],
        names=["energy", "distance"],
    )
    repaired.build().launch().show()
    print(f"\nscratch: {repaired.report.scratch if repaired.report else ()}\n")
    return repaired


def now_and_then(n: int = 1000) -> eagle.Graph:
    """A loop that counts down, and a node that a flag skips."""
    x, v = eagle.zeros(n), eagle.full(n, 2.0)
    live, halted = eagle.full(1, 5, dtype=np.int64), eagle.zeros(1, dtype=np.int64)

    def tick() -> None:
        live[0] -= 1

    steps = [
        eagle.plan(push).bind(x=x, v=v, dt=-0.25),
        opaque(tick, reads={"live": live}, writes={"live": live}, name="tick"),
    ]
    loop = eagle.repeat_while(steps, eagle.SkipGuard.nonzero(live), 64)
    reset = eagle.skippable(opaque(lambda: x.fill(0.0), writes={"x": x}), eagle.SkipGuard.nonzero(halted))
    parts = eagle.Graph(name="parts").add_node(loop, name="shrink").add_node(reset, name="reset")
    parts.build().launch().show()
    print(f"\nthe loop ran {loop.iterations()} times, x is {x[0]}")
    return parts


def main(arguments: list[str]) -> None:
    """Runs the tutorial in a session of its own."""
    with eagle.local() if "--local" in arguments else eagle.connect():
        build_and_look()
        break_it()
        repair_it()
        now_and_then()


if __name__ == "__main__":
    main(sys.argv[1:])
