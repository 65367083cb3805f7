"""Waits for gradients, which this release does not have."""

from __future__ import annotations

from collections.abc import Iterator

import eagle
from frame import Bench, Row

LINE = 17
TITLE = "vjp of a two-body RK4 step"
WAITS = "waits for gradients"


def rows(bench: Bench) -> Iterator[Row]:
    assert not hasattr(eagle, "diff"), "there are gradients now: measure them"
    bench.say(f"line {LINE} {WAITS}: there is no eagle.diff in this release")
    return iter(())
