"""One node over 1e7 samples: nothing but memory. The limit stores past the caches, so that a line is not read before
it is written; the loop that stores through them is shown beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import eagle
from cases.chains import affine, void
from cases.inputs import aligned, reals
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, TWIN, Bench, Bound, Form, Row

LINE = 11
TITLE = "y = a x + b, 1e7"
A, B = 3.0, 0.5


def form(name: str, session: Any, n: int) -> Form:
    x, y = session.asarray(reals(n)), session.zeros(n)
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=y, a=A, b=B)).build()
    return Form(name, lambda: void(g.launch()), answer=lambda: [y])


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(10_000_000, 4096)
    x, streamed, stored = reals(n), aligned(n), aligned(n)
    forms = [
        Form(TWIN, lambda: bench.twins.affine_streamed(x, streamed, A, B), LIMIT, answer=lambda: [streamed]),
        Form("C++ loop, cached", lambda: bench.twins.affine(x, stored, A, B, 1), OTHER, answer=lambda: [stored]),
    ]
    forms += [form(name, session, n) for name, session in bench.sessions()]
    forms += bench.peers("axpy", 1e-12, ("raptor-eagle", "numba", "jax"), n=n)
    yield Row(f"{n:,} samples", forms, [Bound(name, 1.1, LIMIT) for name in (IN_PROCESS, DAEMON)])
