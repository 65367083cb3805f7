"""A chain of 16 nodes over 1,024 samples, launched a hundred times at once."""

from __future__ import annotations

from collections.abc import Iterator

from cases.chains import scratch_form, stored_form, twin_forms
from frame import DAEMON, IN_PROCESS, LIMIT, Bench, Bound, Row

LINE = 2
TITLE = "chain of 16, N = 1,024, a launch of launch(100)"
RAPTOR = "raptor-eagle"
PEERS = ("raptor-eagle", "numba", "jax", "warp")


def rows(bench: Bench) -> Iterator[Row]:
    yield from chain_rows(bench, bench.size(1024, 64), bench.size(100, 2), 12, 40)


def chain_rows(bench: Bench, n: int, count: int, stored_ahead: float, scratch_ahead: float) -> Iterator[Row]:
    """``ahead``: how many times faster than raptor-eagle, which stores every plane, the table wants us."""
    for title, make, most, ahead in (
        ("every plane stored", stored_form, 1.0, stored_ahead),
        ("scratch between", scratch_form, 1.5, scratch_ahead),
    ):
        forms = twin_forms(bench, n, count, scratch=make is scratch_form)
        forms += [make(name, session, n, count) for name, session in bench.sessions()]
        forms += bench.peers("chain", 1e-12, PEERS, n=n, count=count, scratch=make is scratch_form)
        bounds = [Bound(name, most, LIMIT) for name in (IN_PROCESS, DAEMON)]
        bounds += [Bound(name, 1 / ahead, RAPTOR) for name in (IN_PROCESS, DAEMON)]
        yield Row(f"{n:,} samples, {title}", forms, bounds)
