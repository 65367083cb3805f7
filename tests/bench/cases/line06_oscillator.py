"""The main job: oscillators that all finish in the same step."""

from __future__ import annotations

from collections.abc import Iterator

from cases.oscillators import run_form, twin_form
from frame import DAEMON, IN_PROCESS, LIMIT, Bench, Bound, Row
from twins import EULER

LINE = 6
TITLE = "oscillator, 1e5 x 1,000 steps, all finish together"
PEERS = ("raptor-eagle", "numba", "jax", "warp")


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(100_000, 512)
    forms = [twin_form(bench, n, EULER, False, False)]
    forms += [run_form(name, session, n, EULER, False) for name, session in bench.sessions()]
    forms += bench.peers("oscillator", 1e-9, PEERS, n=n, spread=False)
    yield Row(f"{n:,} oscillators, together", forms, [Bound(name, 1.1, LIMIT) for name in (IN_PROCESS, DAEMON)])
