"""Launches a second of one session and of 64, one in flight each, from C++ (``launches.cpp``). The table's rates are
seconds a launch here: 500,000 a second are 2 us. Of 64 sessions, what counts is the bare ring of the same run."""

from __future__ import annotations

from collections.abc import Iterator

from frame import LIMIT, Bench, Bound, Row
from programs import program_rows

LINE = 19
TITLE = "launches a second, 1 / 64 sessions, ring; gRPC"


def rows(bench: Bench) -> Iterator[Row]:
    bounds = {
        "1 session": [Bound("ring", 1 / 500_000), Bound("gRPC", 1 / 6_000)],
        "64 sessions": [Bound("ring", 1 / 300_000), Bound("ring", 1 / 0.6, LIMIT)],
    }
    options = ("--daemon", bench.daemon.endpoint, "--seconds", "0.01" if bench.smoke else "0.2")
    yield from program_rows(bench, "bench_launches", *options, only=list(bounds), bounds=bounds)
