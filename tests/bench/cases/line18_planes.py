"""100 MB of planes, allocated, touched for the first time, released, and again. The daemon's segments and those of this
process are recycled within their session, which should cost what memory costs; numpy's come fresh from the kernel. The
limit writes memory that the process has had all along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases.chains import void
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, Bench, Bound, Form, Row, WrongAnswer

LINE = 18
TITLE = "100 MB of planes, allocated, first touched, released, again"
NUMPY = "numpy"


def touched(make: Any, n: int) -> None:
    array = make(n)
    if array[0] != 0.0 or array[-1] != 0.0 or array[n // 2] != 0.0:
        raise WrongAnswer("fresh zeros are not zero")
    array.fill(1.0)


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(100_000_000 // 8, 4096)
    kept = np.ones(n)
    forms = [Form("C++ fill of warm memory", lambda: void(bench.twins.fill(kept, 2.0)), LIMIT)]
    for name, session in bench.sessions():
        forms.append(Form(name, lambda session=session: touched(session.zeros, n)))
    forms.append(Form(NUMPY, lambda: touched(np.zeros, n), OTHER))
    yield Row(f"{8 * n:,} bytes", forms, [Bound(name, 0.1, NUMPY) for name in (IN_PROCESS, DAEMON)])
