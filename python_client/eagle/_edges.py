"""Edges: what waits for what. A list that is found when somebody first looks at it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Iterator, overload

from eagle import _core
from eagle._data_classes import NamedTuple


class Edge(NamedTuple):
    """An ordering that the touched bytes ask for: ``dst`` waits for ``src`` (indices of ``node_labels()``)."""

    src: int
    dst: int
    plane: str
    kind: str

    @property
    def meaning(self) -> str:
        """The kind in plain words.

        >>> from eagle.graph import Edge
        >>> Edge(0, 1, "x", "RAW").meaning
        'data flows'
        """
        return _core.meaning_of(self.kind)


class Edges(Sequence[Edge]):
    """The edges of a graph as it stood when they were asked for, in node order; nothing is reduced.

    A sequence: length, index, slices, iteration, and equality with lists and tuples of ``(src, dst, plane,
    kind)``. Nothing is computed before the first of these, and little is kept: the list of a long chain is
    quadratic in its nodes.

    >>> import numpy as np
    >>> import eagle
    >>> x = np.zeros(8)
    >>> node = lambda: eagle.graph.opaque(lambda: None, reads={"x": x}, writes={"x": x})
    >>> g = eagle.Graph().add_node(node()).add_node(node())
    >>> g.edges()[0]
    Edge(src=0, dst=1, plane='x', kind='RAW')
    >>> g.edges() == [(0, 1, "x", "RAW"), (0, 1, "x", "WAW"), (0, 1, "x", "WAR")]
    True
    """

    __slots__ = ("_list",)
    __hash__ = None  # type: ignore[assignment]
    _SHOWN = 20
    _PART = 1000  # rows fetched at a time

    def __init__(self, core: _core.Graph | None) -> None:
        self._list = None if core is None else _core.EdgeList(core)

    def __len__(self) -> int:
        return 0 if self._list is None else len(self._list)

    def _rows(self, first: int, last: int) -> list[Edge]:
        return [] if self._list is None else [Edge(*row) for row in self._list.rows(first, last)]

    @overload
    def __getitem__(self, index: int) -> Edge: ...
    @overload
    def __getitem__(self, index: slice) -> list[Edge]: ...
    def __getitem__(self, index: int | slice) -> Edge | list[Edge]:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step > 0:
                return self._rows(first, max(first, last))[::step]
            return self._rows(last + 1, max(first, last) + 1)[::step]
        number = operator.index(index)
        at = number + len(self) if number < 0 else number
        if not 0 <= at < len(self):
            raise IndexError(f"edge {number} of {len(self)}")
        return self._rows(at, at + 1)[0]

    def __iter__(self) -> Iterator[Edge]:
        for first in range(0, len(self), self._PART):
            yield from self._rows(first, first + self._PART)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Edges, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(a == _as_tuple(b) for a, b in zip(self, other))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[: self._SHOWN]))
        more = len(self) - self._SHOWN
        return f"[{shown}, ... {more} more]" if more > 0 else f"[{shown}]"


def _as_tuple(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item
