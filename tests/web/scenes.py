"""Clients that have something to show: graphs of several shapes, launched again and again."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import eagle
import numpy as np
from eagle import Mutable, Param, Scalar, kernel
from eagle.math import sin


@kernel
def drift(x: Mutable[Scalar], v: Scalar, dt: Param):
    x = x + dt * v


@kernel
def pull(x: Scalar, v: Mutable[Scalar], dt: Param):
    v = v - dt * sin(x)


@kernel
def kinetic(v: Scalar) -> Scalar:
    e = 0.5 * v * v
    return e  # noqa: RET504 - its name is the output's


@kernel
def potential(x: Scalar) -> Scalar:
    w = 0.5 * x * x
    return w  # noqa: RET504 - its name is the output's


@kernel
def both(e: Scalar, w: Scalar) -> Scalar:
    h = e + w
    return h  # noqa: RET504 - its name is the output's


def pendulum(session: eagle.Session, samples: int = 200_000, name: str = "pendulum") -> eagle.Graph:
    """Two steps, a fork and a join, and a copy of every second value."""
    x = session.asarray(np.linspace(0.0, 1.0, samples), name="x")
    v, e, w, h = (session.zeros(samples, name=name) for name in "vewh")
    kept = session.zeros(samples // 2, name="kept")
    g = eagle.Graph(session, name=name)
    g.add(eagle.plan(drift).bind(x=x, v=v, dt=0.01), name="drift")
    g.add(eagle.plan(pull).bind(x=x, v=v, dt=0.01), name="pull")
    g.add_group(
        [eagle.plan(kinetic).bind(v=v, e=e), eagle.plan(potential).bind(x=x, w=w)], names=["kinetic", "potential"]
    )
    g.add(eagle.plan(both).bind(e=e, w=w, h=h), name="total")
    g.add_node(eagle.copy(h[::2], kept), name="keep")
    return g.build()


@contextmanager
def working(graph: eagle.Graph) -> Iterator[None]:
    """Launches it until the end, on a thread of its own."""
    ending = threading.Event()

    def work() -> None:
        while not ending.wait(0.002):
            graph.launch(5)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
