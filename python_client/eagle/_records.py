"""Records: what a recorded graph, or a recorded run, left for a reverse pass."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Callable, Iterable

from eagle import _core
from eagle._edges import Edge
from eagle._nodes import Conditional, Group, Node
from eagle.errors import refusal

if TYPE_CHECKING:
    from eagle.diff import Reverse
    from eagle.graph import Graph

# Of reverse passes that a record keeps, for the next time that the same is asked.
MOST_PASSES = 8


class Record:
    """What the last launch left, whichever launch that is when somebody looks: hand it to ``eagle.diff.reverse``."""

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self._names = names  # what gradients are of where nobody says; None: all inputs
        self._passes: OrderedDict[Any, Reverse] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the record holds: copies of what the launch overwrote, and what callables made."""
        return int(self._core().bytes)

    def _core(self) -> _core.Record:
        raise NotImplementedError

    def _callables(self) -> Iterable[tuple[str, Node]]:
        """The callables by label, in the order of the graph."""
        raise NotImplementedError

    def _remembered(self, key: Any, make: Callable[[], Reverse]) -> Reverse:
        """The pass that was made for this key, if it still fits; else a new one."""
        known = self._passes.pop(key, None)
        if known is None or not known._fits():
            known = make()
        self._passes[key] = known
        while len(self._passes) > MOST_PASSES:
            self._passes.popitem(last=False)
        return known


class GraphRecord(Record):
    """The record of a graph: ``labels``, ``edges`` and ``nodes`` as they were added, and what its launch left."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph = graph

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each node, by index."""
        return tuple(self._graph.node_labels())

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge; a reverse pass follows those of kind RAW."""
        return tuple(self._graph.edges())

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes, as they were added."""
        return tuple(item for add in self._graph._adds for item in add.items)

    def _core(self) -> _core.Record:
        core = self._graph._core
        if core is None:
            raise refusal("GRAPH_STATE", "record: this graph is empty; add nodes, build() and launch() it")
        return _core.record_of(core)

    def _callables(self) -> Iterable[tuple[str, Node]]:
        for add in self._graph._adds:
            for label, item in add.labelled():
                yield from callables_of(item, label)

    def __repr__(self) -> str:
        return f"<eagle.diff.Record of {self._graph!r}>"


def callables_of(item: Any, label: str = "") -> Iterable[tuple[str, Node]]:
    """Callables in a node, with the labels that the engine gives them."""
    if isinstance(item, Conditional):
        for part in item.body:
            yield from callables_of(part)
    elif isinstance(item, Group):
        for branch in item.branches:
            for part, name in branch:
                yield from callables_of(part, name)
    elif isinstance(item, Node):
        if item._parts:
            own = label or item.name or item.kind
            for number, part in enumerate(item._parts):
                yield from callables_of(part, f"{own}[{number}]" if len(item._parts) > 1 else own)
        elif item._calls:
            yield label or item.name or item.kind, item
