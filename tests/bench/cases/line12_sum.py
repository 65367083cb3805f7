"""Sums in the fixed order. The twin adds in the same order, so its bits are ours. What a launch costs around a sum of
1,000 is line 1's business: the reducer alone is measured by ``bench_accumulate``, as are its twin's bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import eagle
import numpy as np
from cases.chains import void
from cases.inputs import reals
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, TWIN, Bench, Bound, Form, Row
from programs import program_rows

LINE = 12
TITLE = "sum of 1e3, 1e6, 1e7 float64 in the fixed order"
COMPENSATED = "compensated, in process"


def form(name: str, session: Any, n: int, compensated: bool = False, exact: float | None = None) -> Form:
    x, out = session.asarray(reals(n)), session.zeros(1)
    g = eagle.Graph(session).add_node(eagle.reduce(x, out, compensated=compensated)).build()
    if exact is None:
        return Form(name, lambda: void(g.launch()), answer=lambda: [out])
    # Right to the last place, whatever the plain sum loses.
    near = lambda: [np.array([0.0 if abs(out[0] - exact) <= math.ulp(exact) else out[0] - exact])]  # noqa: E731
    return Form(name, lambda: void(g.launch()), kind=OTHER, answer=near)


def rows(bench: Bench) -> Iterator[Row]:
    alone = {"sum, executor aside": 0.15e-6, "compensated, executor aside": 1e-6}
    bounds = {"sum of 1000 float64": [Bound(name, most) for name, most in alone.items()]}
    yield from program_rows(bench, "bench_accumulate", "--threads", str(bench.threads), bounds=bounds)
    for full in (1_000_000, 10_000_000):
        n = bench.size(full, full // 1000)
        x, kept = reals(n), np.zeros(1)

        def twin(x: np.ndarray = x, kept: np.ndarray = kept) -> None:
            kept[0] = bench.twins.sum(x)

        forms = [Form(TWIN, twin, LIMIT, answer=lambda kept=kept: [kept])]
        forms += [form(name, session, n) for name, session in bench.sessions()]
        forms.append(Form("numpy, one thread", lambda x=x: void(x.sum()), OTHER))
        forms += bench.peers("sum", 1e-9, ("raptor-eagle", "jax"), n=n)
        yield Row(f"sum of {n:,}", forms, [Bound(name, 1.1, LIMIT) for name in (IN_PROCESS, DAEMON)])
        exact = math.fsum(x)
        right = form(COMPENSATED, bench.here, n, True, exact)
        plain = form(IN_PROCESS, bench.here, n)
        plain.answer = None
        bounds = [Bound(COMPENSATED, 1.25, IN_PROCESS)] if full == 10_000_000 else []
        zero = Form("nothing", lambda: None, OTHER, answer=lambda: [np.zeros(1)])
        yield Row(f"compensated sum of {n:,}", [zero, right, plain], bounds)
