"""The same oscillators with ends spread over (0, 1]: the limit is given its samples sorted by end."""

from __future__ import annotations

from collections.abc import Iterator

from cases.oscillators import run_form, twin_form
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, Bench, Bound, Row
from twins import EULER

LINE = 7
TITLE = "oscillator, ends spread over (0, 1]"
PEERS = ("raptor-eagle", "numba")


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(100_000, 512)
    as_they_lie = twin_form(bench, n, EULER, True, False)
    as_they_lie.name, as_they_lie.kind = "C++ loop, as they lie", OTHER
    forms = [twin_form(bench, n, EULER, True, True), as_they_lie]
    forms += [run_form(name, session, n, EULER, True) for name, session in bench.sessions()]
    forms += bench.peers("oscillator", 1e-9, PEERS, n=n, spread=True)
    yield Row(f"{n:,} oscillators, spread", forms, [Bound(name, 1.4, LIMIT) for name in (IN_PROCESS, DAEMON)])
