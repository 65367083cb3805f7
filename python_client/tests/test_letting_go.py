"""Arrays that go while something else happens to their graphs."""

from __future__ import annotations

import threading

import numpy as np

import eagle
from eagle import Mutable, Param, Scalar, kernel


@kernel
def affine(x: Scalar, y: Mutable[Scalar], a: Param):
    y = a * x


class Looking(np.ndarray):
    """An array that does something as it goes."""

    last_words = None

    def __del__(self):
        if Looking.last_words is not None:
            Looking.last_words()


def test_an_array_that_a_rebind_lets_go_may_look_at_the_graph(session, monkeypatch):
    y = session.zeros(4)
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=session.full(4, 1.0), y=y, a=2.0)).build()
    seen = []

    def look():
        g._core.set_recorded(False)
        seen.append((g.schedule, len(g.edges()), g._core.scratch(), g._core.execution(), str(g)))

    g.rebind(x=session.full(4, 3.0).view(Looking))
    monkeypatch.setattr(Looking, "last_words", staticmethod(look))
    g.rebind(x=session.full(4, 5.0))  # nobody has the one before any more
    monkeypatch.setattr(Looking, "last_words", None)
    assert seen
    g.launch()
    assert y.tolist() == [10.0] * 4


def test_a_thread_may_look_at_a_graph_while_another_rebinds_it(session):
    y = session.zeros(4)
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=session.full(4, 1.0), y=y, a=2.0)).build()
    over = threading.Event()
    looks = []

    def look():
        while not over.is_set():
            looks.append((g._core.scratch(), g._core.execution(), g._core.set_recorded(False)))
            looks[:] = looks[-1:]

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for value in range(200):
            g.rebind(x=session.full(4, float(value)))
    finally:
        over.set()
        looking.join()
    g.launch()
    assert y.tolist() == [398.0] * 4
