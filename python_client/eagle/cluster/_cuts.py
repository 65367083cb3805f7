"""Where a batch is cut."""

from __future__ import annotations

import itertools
from typing import Any, Sequence

from eagle import _core
from eagle._running import whole
from eagle.errors import refusal

#: Samples of a leaf of a reduction; a cut between two leaves leaves its tree as it is (docs/manual/accumulation.md).
LEAF = 256


def sizes_of(
    n: int, chunks: int | Sequence[int] | None = None, *, parts: int = 1, leaves: bool = False, where: str = "sizes_of"
) -> tuple[int, ...]:
    """How many samples each shard of a batch of ``n`` has.

    ``chunks`` is the samples of a shard (the last one has what is left), or those of each; None cuts ``parts`` of about
    equal size, at multiples of 256. With ``leaves`` every cut must be there: the model reduces.

    >>> sizes_of(1000, parts=3), sizes_of(10, [4, 6])
    ((512, 256, 232), (4, 6))
    """
    n = whole(f"{where}: samples", n)
    if chunks is None:
        return tuple(count for _, count, _ in _core.shards(n, whole(f"{where}: parts", parts, least=1)))
    if isinstance(chunks, (tuple, list)):
        sizes = tuple(whole(f"{where}: chunks", size) for size in chunks)
        if sum(sizes) != n:
            raise refusal(
                "BAD_VALUE",
                f"{where}: chunks: {len(sizes)} shards of {sum(sizes):,} samples in all, for a batch of {n:,}; give "
                "sizes that add up to it, or one number for the size of each",
            )
        sizes = tuple(size for size in sizes if size) or (0,)
    else:
        size = whole(f"{where}: chunks", chunks, least=1)
        sizes = tuple(min(size, n - base) for base in range(0, n, size)) or (0,)
    wrong = next((size for size in sizes[:-1] if size % LEAF), None) if leaves else None
    if wrong is not None:
        raise refusal(
            "BAD_VALUE",
            f"{where}: chunks: a shard of {wrong:,} samples, in a model with reductions, which add leaves of {LEAF}; "
            f"give chunks={max(LEAF, round(wrong / LEAF) * LEAF)}, or other multiples of {LEAF}",
        )
    return sizes


def shards_of(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """(base, count, n) of each shard.

    >>> shards_of((512, 488))
    [(0, 512, 1000), (512, 488, 1000)]
    """
    bases = [0, *itertools.accumulate(sizes)]
    return [(base, size, bases[-1]) for base, size in zip(bases, sizes)]


def common_sizes(where: str, found: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The chunks that arrays come in, where all agree; None where none says."""
    names = list(found)
    for name in names[1:]:
        if found[name] != found[names[0]]:
            raise refusal(
                "BAD_VALUE",
                f"{where}: '{names[0]}' and '{name}' come in different chunks, {_brief(found[names[0]])} and "
                f"{_brief(found[name])}; say chunks=, or rechunk one of them",
            )
    return found[names[0]] if names else None


def _brief(sizes: Sequence[Any]) -> str:
    shown = ", ".join(map(str, sizes[:3]))
    return f"({shown}{', ...' if len(sizes) > 3 else ''})"
