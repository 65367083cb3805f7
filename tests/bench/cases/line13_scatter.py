"""Scatter-adds of 1e7 numbers, with the bits of the loop over the samples. Uniform keys: the limit is tiles of samples
whose additions the owner of each element makes, or the loop itself where that is quicker, as it is on one thread; the
table allows 20 ms over 16, and 40 over 31.5. Sorted keys, and all of them one: the limit is the loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import eagle
import numpy as np
from cases.chains import void
from cases.inputs import keys, reals
from eagle import Accum, Index, Scalar, kernel
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, Bench, Bound, Form, Row

LINE = 13
TITLE = "scatter-add of 1e7 into 1e3 / 1e6 bins, bits of sequential order"


@kernel
def scatter(x: Scalar, key: Index, h: Accum[Scalar]):
    h.add(x, at=key)


def form(name: str, session: Any, n: int, cells: int, kind: str) -> Form:
    x, key, h = session.asarray(reals(n)), session.asarray(keys(n, cells, kind)), session.zeros(cells)
    g = eagle.Graph(session).add(eagle.plan(scatter).bind(x=x, key=key, h=h)).build()
    return Form(name, lambda: void(g.launch()), reset=lambda: h.fill(0.0), answer=lambda: [h])


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(10_000_000, 40_000)
    for kind in ("uniform", "sorted", "one-hot"):
        for full in (1_000, 1_000_000):
            cells = bench.size(full, full // 10)
            x, key = reals(n), keys(n, cells, kind)
            serial, tiled = np.zeros(cells), np.zeros(cells)
            uniform = kind == "uniform"
            forms = [
                Form(
                    "C++ loop, one thread",
                    lambda x=x, key=key, h=serial: bench.twins.scatter_serial(x, key, h),
                    LIMIT,
                    reset=lambda h=serial: h.fill(0.0),
                    answer=lambda h=serial: [h],
                ),
                Form(
                    "C++ twin, tiled owners",
                    lambda x=x, key=key, h=tiled: bench.twins.scatter_tiled(x, key, h),
                    LIMIT if uniform else OTHER,
                    reset=lambda h=tiled: h.fill(0.0),
                    answer=lambda h=tiled: [h],
                ),
            ]
            forms += [form(name, session, n, cells, kind) for name, session in bench.sessions()]
            if uniform:
                add = lambda x=x, key=key, cells=cells: np.bincount(key, weights=x, minlength=cells)  # noqa: E731
                forms.append(Form("numpy.bincount", lambda add=add: void(add()), OTHER, answer=lambda add=add: [add()]))
                forms += bench.peers("scatter", 1e-9, ("numba",), n=n, cells=cells, kind=kind)
            most = (20 / 16 if full == 1_000 else 40 / 31.5) if uniform else 1.3
            bounds = [Bound(name, most, LIMIT) for name in (IN_PROCESS, DAEMON)]
            yield Row(f"{n:,} {kind} keys into {cells:,}", forms, bounds)
