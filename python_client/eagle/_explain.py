"""Explanations: why one node waits for another, what a node touches, and how it runs.

Facts and words are made in C++, once for every client; these classes give them their names.
"""

from __future__ import annotations

from typing import Any

from eagle import _core
from eagle._data_classes import data_class, field
from eagle._edges import Edge
from eagle.errors import refusal


@data_class(frozen=True)
class Meeting:
    """Two planes of two nodes that share bytes, at least one of them written.

    ``first`` is the first shared byte of the memory region named ``memory``; ``first_in_src`` and
    ``first_in_dst`` count it from the lowest byte of each view. ``count`` bytes are shared. Where ``exact`` is
    false a search was capped: the views are taken to overlap, and ``count`` is what was found by then.
    """

    kind: str
    src_plane: str
    dst_plane: str
    memory: str
    first: int
    first_in_src: int
    first_in_dst: int
    count: int
    exact: bool

    @property
    def meaning(self) -> str:
        """The kind in plain words: "data flows", "must wait to overwrite", "same output"."""
        return _core.meaning_of(self.kind)


@data_class(frozen=True, repr=False)
class PairExplanation:
    """Why ``dst`` waits for ``src``, or why it need not; ``str`` tells it.

    ``relation`` is "ordered" (``dst`` waits), "independent" (they share no byte that either writes), "siblings"
    (branches of one group, free to run at the same time) or "racing" (branches of one group that ``build``
    refuses). ``refusal`` is what ``build`` says, or would say if the two were branches of one group; empty where
    they share nothing.
    """

    src: int
    src_label: str
    dst: int
    dst_label: str
    relation: str
    meetings: tuple[Meeting, ...]
    refusal: str
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    __repr__ = __str__


@data_class(frozen=True)
class PlaneExplanation:
    """In what way a node touches a plane, and why.

    ``first`` is the lowest byte of the region ``memory`` that it touches, ``bytes`` how many it touches;
    ``view`` says shape and strides, in bytes.
    """

    name: str
    read: bool
    written: bool
    why: str
    view: str
    memory: str
    first: int
    bytes: int


@data_class(frozen=True, repr=False)
class NodeExplanation:
    """What a node touches, why its stage runs as it does, and its edges; ``str`` tells it.

    ``schedule`` is None before the build, and ``execution``, how its kernels run, empty. ``incoming`` and
    ``outgoing`` are all its edges, nothing reduced.
    """

    index: int
    label: str
    kind: str
    stage: int
    planes: tuple[PlaneExplanation, ...]
    schedule: str | None
    why: str
    execution: str
    incoming: tuple[Edge, ...]
    outgoing: tuple[Edge, ...]
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    __repr__ = __str__


def reference(what: str, node: Any) -> int | str:
    """An index or a label as the engine takes it."""
    if isinstance(node, str):
        return node
    if isinstance(node, bool) or not hasattr(node, "__index__"):
        raise refusal(
            "WRONG_TYPE",
            f"explain: {what}: expected the index of a node or its label, found {type(node).__name__}",
        )
    index: int = node.__index__()
    if not 0 <= index < 2**32:
        raise refusal("BAD_VALUE", f"explain: {what}: there is no node {index}; indices start at 0")
    return index


def explain(core: _core.Graph, node: Any, other: Any) -> PairExplanation | NodeExplanation:
    """The one or the other, for ``eagle.Graph.explain``."""
    if other is None:
        index, label, kind, stage, planes, schedule, why, execution, incoming, outgoing, text = _core.explain_node(
            core, reference("node", node)
        )
        return NodeExplanation(
            index,
            label,
            kind,
            stage,
            tuple(PlaneExplanation(*row) for row in planes),
            schedule,
            why,
            execution,
            tuple(Edge(*row) for row in incoming),
            tuple(Edge(*row) for row in outgoing),
            text,
        )
    src, src_label, dst, dst_label, relation, meetings, refused, text = _core.explain_pair(
        core, reference("src", node), reference("dst", other)
    )
    rows = tuple(Meeting(*row) for row in meetings)
    return PairExplanation(src, src_label, dst, dst_label, relation, rows, refused, text)
