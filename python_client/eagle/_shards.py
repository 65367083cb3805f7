"""Shards: a batch run in parts, and the run of the whole made of what came of them."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from eagle import _core
from eagle._results import RunReport, ShardPart, SimResult
from eagle._running import whole
from eagle.errors import refusal
from eagle.session import Array


def shards(n: int, parts: int) -> list[tuple[int, int, int]]:
    """The samples of a batch of ``n`` in at most ``parts`` shards (base, count, n) of about equal size.

    They are cut where reductions may be cut, at multiples of 256 samples.

    >>> import eagle
    >>> eagle.shards(1000, 3)
    [(0, 512, 1000), (512, 256, 1000), (768, 232, 1000)]
    """
    return _core.shards(whole("shards: n", n), whole("shards: parts", parts, least=1))


def combine_shards(results: Sequence[SimResult]) -> SimResult:
    """The result of the whole batch, from those of runs whose ``shard=`` make it up, in any order.

    Everything is what one run of all samples gives, bit for bit, except times, threads and passes. Planes are new
    arrays: those of samples put together (records and ``stop_step`` too), a Reduce made of the parts of the shards, an
    integer Accum the sum of theirs (start each at 0, or all but one). An Accum of reals, which one shard passes on to
    the next, is the last one's; a Table the first one's. ``record_to`` files and labels are not put together.

    Raises EagleError (a ValueError) where samples are missing or doubled, for runs of different models, and for runs
    that were stopped with unfinished samples at different steps.

    >>> import eagle
    >>> @eagle.kernel
    ... def number(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    ...     x = x + eagle.sample_index()
    ...     done = x >= 600
    >>> results = []
    >>> for base, count, n in eagle.shards(600, 2):
    ...     planes = {"x": eagle.zeros(count), "done": eagle.zeros(count, dtype=bool)}
    ...     results.append(eagle.simulate(number, max_steps=1000, shard=(base, count, n), **planes))
    >>> whole = eagle.combine_shards(results)
    >>> whole.status, whole.steps, whole.x.tolist()[599]
    ('max_steps', 1000, 1198.0)
    """
    parts = [(_part(result), result) for result in results]
    found = _core.combine_shards([part.told for part, _ in parts])
    parts.sort(key=lambda entry: entry[0].place[:2])
    first, start = parts[0]
    reduced = {argument: index for index, (_, argument) in enumerate(found.report.reductions)}
    planes: dict[str, Array] = {}
    for name, role in first.roles.items():
        mine = [result._planes[name] for _, result in parts]
        if role == "reduce":
            planes[name] = _reduced(found, reduced[name], mine[0])
        elif role == "accum":
            planes[name] = np.sum(mine, axis=0, dtype=mine[0].dtype) if mine[0].dtype.kind == "i" else mine[-1].copy()
        else:
            planes[name] = np.concatenate(mine, axis=-1) if role == "sample" else mine[0].copy()
    report = RunReport.of(found.report)
    stop_steps = [result._stop_step for _, result in parts if result._stop_step is not None]
    return SimResult(
        planes,
        start._mask,
        found.status,
        report,
        records=_records([result for _, result in parts], report.records),
        every=start._every,
        stop_step=np.concatenate(stop_steps) if len(stop_steps) == len(parts) else None,
        ranges=found.report.ranges,
        shard=ShardPart((0, report.n, report.n), found.to_bytes(), first.roles),
    )


def _part(result: Any) -> ShardPart:
    if not isinstance(result, SimResult):
        raise refusal("WRONG_TYPE", f"combine_shards: expected results, found {type(result).__name__}")
    if result._shard is None:
        raise refusal(
            "BAD_VALUE", "combine_shards: a result is not of a shard; give each run its shard=(base, count, n)"
        )
    return result._shard


def _reduced(found: _core.RunResult, index: int, like: Array) -> Array:
    value = found.reduced(index)  # none where no step was taken: all planes are as they were
    plane: Array = like.copy() if value is None else np.frombuffer(value, like.dtype).copy()
    return plane


def _records(results: list[SimResult], rows: int) -> dict[str, Array]:
    """Samples of a shard that had all finished stay as its last row has them."""
    found: dict[str, Array] = {}
    for name in results[0]._records:
        padded = []
        for result in results:
            mine = result._records[name]
            more = np.repeat(mine[-1:], rows - len(mine), axis=0)
            padded.append(np.concatenate([mine, more]))
        found[name] = np.concatenate(padded, axis=-1)
    return found
