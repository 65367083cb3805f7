"""The same chain over 100,000 samples, whose planes do not fit into the first caches."""

from __future__ import annotations

from collections.abc import Iterator

from cases.line02_chain import chain_rows
from frame import Bench, Row

LINE = 3
TITLE = "chain of 16, N = 100,000"


def rows(bench: Bench) -> Iterator[Row]:
    yield from chain_rows(bench, bench.size(100_000, 5000), bench.size(10, 1), 4, 35)
