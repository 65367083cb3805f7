"""One launch of one node. From Python in process and through the daemon, and from C++ through the daemon; the limit of
the daemon's forms is a bare ring between two processes around the same loop (``ring_twin.h``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import eagle
import numpy as np
from cases.chains import affine, void
from cases.inputs import chain_start
from frame import DAEMON, IN_PROCESS, OTHER, Bench, Bound, Form, Row
from programs import program_rows

LINE = 1
TITLE = "g.launch(), 1 node, N = 1,024"
A, B = 1.5, 0.25
PEERS = ("raptor-eagle", "numba", "warp", "jax")


def form(name: str, session: Any, n: int, count: int) -> Form:
    x, y = session.asarray(chain_start(n)), session.zeros(n)
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=y, a=A, b=B)).build()

    def run() -> None:
        for _ in range(count):
            g.launch()

    return Form(name, run, units=count, answer=lambda: [y])


def rows(bench: Bench) -> Iterator[Row]:
    n, count = bench.size(1024, 64), bench.size(2000, 3)
    x, y = chain_start(n), np.zeros(n)
    work = Form("the loop alone, C++", lambda: void(bench.twins.affine(x, y, A, B, count)), OTHER, count)
    work.answer = lambda: [y]
    forms = [work, *(form(name, session, n, count) for name, session in bench.sessions())]
    forms += bench.peers("launch", 1e-12, PEERS, n=n, count=count)
    bounds = [Bound(IN_PROCESS, 0.3, "raptor-eagle"), Bound(DAEMON, 0.5, "raptor-eagle")]
    yield Row("from Python", forms, bounds)
    title = "one node, 1,024 samples, from C++"
    in_cpp = "eagle from C++ through eagled"
    options = ("--daemon", bench.daemon.endpoint, "--seconds", "0.01" if bench.smoke else "0.2")
    yield from program_rows(bench, "bench_launches", *options, only=[title], bounds={title: [Bound(in_cpp, 1.5e-6)]})
