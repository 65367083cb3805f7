"""RK4 of a damped oscillator, all ending together and spread. The limit of both takes samples as they lie: the table
gives both the same."""

from __future__ import annotations

from collections.abc import Iterator

from cases.oscillators import run_form, twin_form
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, Bench, Bound, Row
from twins import RK4

LINE = 8
TITLE = "RK4 damped oscillator, 1e5 x 1,000 steps"


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(100_000, 512)
    for spread in (False, True):
        forms = [twin_form(bench, n, RK4, spread, False)]
        if spread:
            ordered = twin_form(bench, n, RK4, True, True)
            ordered.name, ordered.kind = "C++ loop, sorted by end", OTHER
            forms.append(ordered)
        forms += [run_form(name, session, n, RK4, spread) for name, session in bench.sessions()]
        forms += bench.peers("rk4", 1e-9, ("raptor-eagle", "numba"), n=n, spread=spread)
        bounds = [Bound(name, 1.1, LIMIT) for name in (IN_PROCESS, DAEMON)]
        yield Row(f"{n:,} oscillators, {'spread' if spread else 'together'}", forms, bounds)
