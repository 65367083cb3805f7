"""Kinds of nodes that users register: what they touch, and what runs."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import numpy as np

from eagle._data_classes import NamedTuple
from eagle._nodes import Conditional, Group, Node, NodeLike, opaque
from eagle._scratch import Scratch
from eagle.errors import refusal, text
from eagle.plan import BoundPlan
from eagle.planes import Plane

# What `reads` and `writes` of a kind return: (plane name, array, role).
PlaneRows = Iterable[tuple[str, Any, str]]

_BUILT_IN = frozenset(
    (
        "opaque",
        "opaque_stream",
        "opaque_host",
        "child",
        "copy",
        "reduce",
        "skippable",
        "repeat_while",
        "kernel",
        "group",
    )
)


class NodeKind(NamedTuple):
    """A registered kind of node."""

    kind: str
    reads: Callable[[Any], PlaneRows]
    writes: Callable[[Any], PlaneRows]
    lower_cpu: Callable[[Any], Any]
    lower_gpu: Callable[[Any], Any] | None


_kinds: dict[str, NodeKind] = {}


def register_node_kind(
    kind: str,
    *,
    reads: Callable[[Any], PlaneRows],
    writes: Callable[[Any], PlaneRows],
    lower_cpu: Callable[[Any], Any],
    lower_gpu: Callable[[Any], Any] | None = None,
) -> NodeKind:
    """Makes ``Node(kind, payload)`` a node: each function gets the payload.

    ``reads`` and ``writes`` return ``(plane name, array, role)`` rows (the role is for you: "in", "out").
    ``lower_cpu`` returns a callable, which then runs as a host node over the declared planes, or a node, a BoundPlan,
    a conditional or a list of those, which the engine runs and whose planes it knows itself. ``lower_gpu`` is for a
    GPU, and kept. The same registration again is fine; another one under the same name is refused. Raises EagleError:
    TypeError for what cannot be called, ValueError for a name that is taken.

    >>> import numpy as np, eagle
    >>> from eagle.graph import Node, register_node_kind
    >>> def planes(payload): return [("x", payload, "inout")]
    >>> def doubled(payload): return lambda: np.multiply(payload, 2.0, out=payload)
    >>> _ = register_node_kind("twice", reads=planes, writes=planes, lower_cpu=doubled)
    >>> x = np.ones(3)
    >>> g = eagle.Graph().add_node(Node("twice", x), name="mine").build().launch()
    >>> x
    array([2., 2., 2.])
    """
    if not isinstance(kind, str) or not kind:
        raise refusal("WRONG_TYPE", f"register_node_kind: kind: expected a name, found {kind!r}")
    text("register_node_kind: kind", kind)
    if kind in _BUILT_IN:
        raise refusal("BAD_VALUE", f"register_node_kind: {kind!r} is a kind of eagle's own; choose another name")
    functions = {"reads": reads, "writes": writes, "lower_cpu": lower_cpu}
    if lower_gpu is not None:
        functions["lower_gpu"] = lower_gpu
    for role, function in functions.items():
        if not callable(function):
            raise refusal(
                "WRONG_TYPE",
                f"register_node_kind: kind {kind!r}: {role}: expected a function of the payload, found "
                f"{type(function).__name__}",
            )
    made = NodeKind(kind, reads, writes, lower_cpu, lower_gpu)
    known = _kinds.setdefault(kind, made)
    if known != made:
        raise refusal(
            "BAD_VALUE",
            f"register_node_kind: kind {kind!r} is registered already with other functions; choose another name",
        )
    return known


def lowered(kind: Any, payload: Any) -> Node:
    """What runs in place of a node of a registered kind."""
    known = _kinds.get(kind) if isinstance(kind, str) else None
    if known is None:
        names = ", ".join(sorted(_kinds)) or "none are registered"
        raise refusal(
            "BAD_VALUE",
            f"Node: there is no kind {kind!r} ({names}); register it with eagle.graph.register_node_kind, or make the "
            "node with eagle.graph.opaque, eagle.copy or a conditional",
        )
    read = _planes(known, "reads", payload)
    written = _planes(known, "writes", payload)
    runs = known.lower_cpu(payload)
    if isinstance(runs, (Node, Conditional, BoundPlan, Group)):
        runs = [runs]
    if isinstance(runs, (list, tuple)):
        return _of_parts(known, payload, list(runs))
    if not callable(runs):
        raise refusal(
            "WRONG_TYPE",
            f"Node: kind {kind!r}: lower_cpu returned {type(runs).__name__}; expected a callable, or nodes and plans",
        )
    host = opaque(runs, reads=read, writes=written)
    return Node._made(known.kind, None, host._node, host._arrays, host._calls, payload)


def _of_parts(known: NodeKind, payload: Any, parts: list[NodeLike]) -> Node:
    for part in parts:
        if not isinstance(part, (Node, Conditional, BoundPlan)):
            raise refusal(
                "WRONG_TYPE",
                f"Node: kind {known.kind!r}: lower_cpu returned a list with {type(part).__name__}; expected nodes and "
                "plans",
            )
    if not parts:
        raise refusal("BAD_VALUE", f"Node: kind {known.kind!r}: lower_cpu returned an empty list; expected a node")
    arrays = [
        array for part in parts for array in (part.planes.values() if isinstance(part, BoundPlan) else part._arrays)
    ]
    calls = {n: fn for part in parts if not isinstance(part, BoundPlan) for n, fn in part._calls.items()}
    return Node._made(known.kind, None, None, arrays, calls, payload, parts)


def _planes(known: NodeKind, role: str, payload: Any) -> dict[str, Any]:
    rows = getattr(known, role)(payload)
    where = f"Node: kind {known.kind!r}: {role}"
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise refusal("WRONG_TYPE", f"{where} returned {type(rows).__name__}; expected (plane name, array, role) rows")
    planes: dict[str, Any] = {}
    for row in rows:
        if not isinstance(row, tuple) or len(row) != 3 or not isinstance(row[0], str):
            raise refusal("WRONG_TYPE", f"{where}: expected (plane name, array, role) rows, found {row!r}")
        if not isinstance(row[1], (np.ndarray, Plane, Scratch)):
            raise refusal("WRONG_TYPE", f"{where}: plane {row[0]!r}: expected an array, found {type(row[1]).__name__}")
        planes[row[0]] = row[1]
    return planes
