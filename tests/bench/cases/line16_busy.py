"""A launch beside a process that keeps one core busy, in medians of launches: a minimum would hide those that waited.
What a launch of a team does there is shown too."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import eagle
from cases.chains import affine
from cases.inputs import chain_start
from frame import DAEMON, IN_PROCESS, OURS, Bench, Bound, Form, Row

LINE = 16
TITLE = "launch of line 1 beside one busy process"
LAUNCHES = 200


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    program = "print(flush=True)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it runs
        yield
    finally:
        process.kill()
        process.communicate()


def median_of_launches(g: eagle.Graph, launches: int) -> float:
    found = []
    for _ in range(launches):
        begin = time.perf_counter()
        g.launch()
        found.append(time.perf_counter() - begin)
    return statistics.median(found)


def rows(bench: Bench) -> Iterator[Row]:
    launches = bench.size(LAUNCHES, 3)
    for title, n in (("1,024 samples", bench.size(1024, 64)), ("1,000,000 samples, a team", bench.size(10**6, 5000))):
        forms: list[Form] = []
        for name, session in bench.sessions():
            x, y = session.asarray(chain_start(n)), session.zeros(n)
            g = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=0.5)).build()

            def beside(g: Any = g) -> float:
                with busy_process():
                    return median_of_launches(g, launches)

            answer = lambda y=y: [y]  # noqa: E731
            forms.append(Form(f"{name}, quiet", lambda g=g: median_of_launches(g, launches), OURS, answer=answer))
            forms.append(Form(f"{name}, beside", beside, OURS, answer=answer))
        bounds = [Bound(f"{name}, beside", 4.0, f"{name}, quiet") for name in (IN_PROCESS, DAEMON)]
        yield Row(title, forms, bounds if n <= 1024 else [])
