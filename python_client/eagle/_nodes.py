"""Nodes of graphs: callables with declared arrays, and conditionals around other nodes."""

from __future__ import annotations

import itertools
import types
from typing import Any, Callable, Iterable, Mapping, Sequence, Union

import numpy as np

from eagle import _core
from eagle.errors import refusal, text
from eagle.plan import BoundPlan
from eagle.session import Array

# The arrays that a node declares: by name, in a list, or one alone.
Planes = Union[Mapping[str, Array], Sequence[Array], Array]

_numbers = itertools.count()  # of callables, process-wide


class Node:
    """A node of a graph, made by :func:`opaque`: ``kind``, ``name`` and what it touches."""

    def __init__(
        self, kind: str, name: str | None, node: _core.Node, arrays: list[Any], calls: dict[int, Callable[[], Any]]
    ) -> None:
        self.kind = kind
        self.name = name
        self._node = node
        self._arrays = arrays
        self._calls = calls

    def __repr__(self) -> str:
        return f"Node({self.kind!r}, name={self.name!r})"


def opaque(
    fn: Callable[[], Any],
    *,
    reads: Planes | None = None,
    writes: Planes | None = None,
    stream: Any = None,
    eager: bool = False,
    name: str | None = None,
) -> Node:
    """A node that calls ``fn()`` in the thread that launches, and touches the arrays it declares.

    ``reads`` and ``writes`` are dicts of arrays by name; a list or a bare array gets the names ``in0``,
    ``in1``, ... and ``out0``, ``out1``, ... Declare every array that ``fn`` touches: edges and refusals know
    no others. ``stream`` and ``eager`` say how the node runs on a GPU; on the CPU it is a plain call.

    Raises EagleError: TypeError for what cannot be called, for non-arrays, masked arrays and arrays of
    objects.

    >>> import numpy as np
    >>> from eagle.graph import opaque
    >>> x = np.zeros(3)
    >>> opaque(lambda: x.fill(1.0), writes={"x": x}, name="fill")
    Node('opaque', name='fill')
    """
    if not callable(fn):
        raise refusal("WRONG_TYPE", f"opaque: expected a callable without arguments, found {type(fn).__name__}")
    text("opaque: name", name)
    if stream is not None and eager:
        raise refusal("BAD_VALUE", "opaque: stream= and eager= exclude each other; choose one")
    read_arrays, written_arrays = _named("opaque: reads", reads, "in"), _named("opaque: writes", writes, "out")
    tier = "stream" if stream is not None else "eager" if eager else "captured"
    number = next(_numbers)
    node = _core.host_node(number, read_arrays, written_arrays, tier)
    kind = {"captured": "opaque", "stream": "opaque_stream", "eager": "opaque_host"}[tier]
    return Node(kind, name, node, [*read_arrays.values(), *written_arrays.values()], {number: fn})


class SkipGuard:
    """True when a cell is not 0, or differs from a baseline's cell; looked at when the graph gets there.

    ``count`` and ``baseline`` are integer or bool arrays, ``idx`` and ``bidx`` the cells in them. Raises
    EagleError: TypeError for other arrays, ValueError for an index outside.

    >>> import numpy as np, eagle
    >>> live = np.array([3])
    >>> eagle.SkipGuard.nonzero(live)
    SkipGuard(int64 array, idx=0)
    """

    def __init__(self, count: Array, idx: int = 0, baseline: Array | None = None, bidx: int = 0) -> None:
        self.count = count
        self.idx = idx
        self.baseline = baseline
        self.bidx = bidx
        self._negated = False
        self._count_cell = _cell("count", count, "idx", idx)
        self._baseline_cell = None if baseline is None else _cell("baseline", baseline, "bidx", bidx)

    @classmethod
    def nonzero(cls, count: Array) -> SkipGuard:
        """True when the first cell of ``count`` is not 0."""
        return cls(count)

    @classmethod
    def intent(cls, flags: Array, i: int) -> SkipGuard:
        """True when ``flags[i]`` is not 0."""
        return cls(flags, i)

    @classmethod
    def nonempty_bucket(cls, offsets: Array, t: int) -> SkipGuard:
        """True when bucket ``t`` is not empty: ``offsets[t + 1]`` differs from ``offsets[t]``."""
        return cls(offsets, t + 1, offsets, t)

    def negated(self) -> SkipGuard:
        """The opposite guard."""
        opposite = SkipGuard(self.count, self.idx, self.baseline, self.bidx)
        opposite._negated = not self._negated
        return opposite

    def _cells(self) -> list[Array]:
        return [self._count_cell] if self._baseline_cell is None else [self._count_cell, self._baseline_cell]

    def __repr__(self) -> str:
        baseline = "" if self.baseline is None else f", bidx={self.bidx}"
        return f"SkipGuard({self.count.dtype} array, idx={self.idx}{baseline}){'.negated()' if self._negated else ''}"


class Conditional:
    """A node around others: made by :func:`skippable` and :func:`repeat_while`, for one graph."""

    name: str | None = None

    def __init__(self, kind: str, step: Any, guard: SkipGuard, max_iters: int | None) -> None:
        if not isinstance(guard, SkipGuard):
            raise refusal("WRONG_TYPE", f"{kind}: guard: expected a SkipGuard, found {type(guard).__name__}")
        steps = list(step) if isinstance(step, (list, tuple)) else [step]
        if not steps:
            raise refusal("BAD_VALUE", f"{kind}: the step is empty; give it a node")
        self.kind = kind
        self.guard = guard
        self.max_iters = max_iters
        self.body: list[NodeLike] = [_as_node(kind, part) for part in steps]
        self._iterations = 0
        self._arrays = [*guard._cells(), *(array for part in self.body for array in _arrays_of(part))]
        self._calls: dict[int, Callable[[], Any]] = {
            n: fn for part in self.body if not isinstance(part, BoundPlan) for n, fn in part._calls.items()
        }
        named = [("" if isinstance(part, BoundPlan) else part.name or "", part._node) for part in self.body]
        self._node: _core.Node = _core.conditional_node(
            guard._count_cell, guard._baseline_cell, guard._negated, named, max_iters
        )

    def iterations(self) -> int:
        """How many bodies the last launch of a ``repeat_while`` ran (in its last repeat); 0 before the first."""
        return self._iterations

    def _loops(self) -> Iterable[Conditional]:
        if self.max_iters is not None:
            yield self
        for part in self.body:
            if isinstance(part, Conditional):
                yield from part._loops()

    def __repr__(self) -> str:
        cap = "" if self.max_iters is None else f", max_iters={self.max_iters}"
        return f"{self.kind}({self.body!r}, {self.guard!r}{cap})"


NodeLike = Union[Node, Conditional, BoundPlan]


def skippable(step: Any, guard: SkipGuard) -> Conditional:
    """A node that runs its step when the guard holds, and is skipped when not.

    ``step`` is a node, a BoundPlan or its ``launch``, a callable, or a list of those, run in order. A bare
    callable declares no arrays: prefer ``opaque``. The guard sees what earlier nodes wrote.

    >>> import numpy as np, eagle
    >>> flag, hits = np.array([0]), []
    >>> g = eagle.Graph().add_node(eagle.skippable(lambda: hits.append(1), eagle.SkipGuard.nonzero(flag))).build()
    >>> g = g.launch(); flag[0] = 1; g = g.launch(2); len(hits)
    2
    """
    return Conditional("skippable", step, guard, None)


def repeat_while(step: Any, guard: SkipGuard, max_iters: int) -> Conditional:
    """A node that repeats its step while the guard holds, at most ``max_iters`` times a launch.

    The guard is looked at before each step. Raises EagleError: ValueError for a cap under 1, TypeError for one
    that is no whole number.

    >>> import numpy as np, eagle
    >>> live = np.array([5])
    >>> loop = eagle.repeat_while(lambda: np.subtract(live, 1, out=live), eagle.SkipGuard.nonzero(live), 64)
    >>> g = eagle.Graph().add_node(loop).build().launch()
    >>> live[0], loop.iterations()
    (np.int64(0), 5)
    """
    cap = _index("repeat_while: max_iters", max_iters)
    if not 1 <= cap < 2**63:
        raise refusal("BAD_VALUE", f"repeat_while: max_iters: expected 1 to 2^63 - 1, found {cap}")
    return Conditional("repeat_while", step, guard, cap)


def _as_node(kind: str, part: Any) -> NodeLike:
    if isinstance(part, (Node, Conditional, BoundPlan)):
        return part
    if isinstance(part, types.MethodType) and isinstance(part.__self__, BoundPlan) and part.__name__ == "launch":
        return part.__self__
    if callable(part):
        return opaque(part)
    raise refusal(
        "WRONG_TYPE", f"{kind}: step: expected a node, a BoundPlan or a callable, found {type(part).__name__}"
    )


def _arrays_of(part: NodeLike) -> Iterable[Any]:
    return part.planes.values() if isinstance(part, BoundPlan) else part._arrays


def _named(where: str, planes: Any, prefix: str) -> dict[str, Any]:
    """The declared arrays by name; unnamed ones are numbered."""
    if planes is None:
        return {}
    if isinstance(planes, Mapping):
        for name in planes:
            if not isinstance(name, str):
                raise refusal("WRONG_TYPE", f"{where}: expected texts as names, found {name!r}")
            text(f"{where}: name", name)
        return dict(planes)
    if isinstance(planes, np.ndarray):
        return {f"{prefix}0": planes}
    if isinstance(planes, (list, tuple)):
        return {f"{prefix}{i}": array for i, array in enumerate(planes)}
    raise refusal(
        "WRONG_TYPE", f"{where}: expected a dict of arrays by name, a list or an array, found {type(planes).__name__}"
    )


def _index(where: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise refusal("WRONG_TYPE", f"{where}: expected a whole number, found {type(value).__name__}")
    return int(value.__index__())


def _cell(role: str, array: Any, parameter: str, idx: Any) -> Array:
    """The one cell of the array, as a view of one element."""
    if not isinstance(array, np.ndarray):
        raise refusal("WRONG_TYPE", f"SkipGuard: {role}: expected a numpy array, found {type(array).__name__}")
    if array.dtype.kind not in "iub":
        raise refusal("WRONG_DTYPE", f"SkipGuard: {role}: expected an integer or bool array, found {array.dtype}")
    if array.ndim != 1:
        raise refusal("WRONG_SHAPE", f"SkipGuard: {role}: expected a 1-D array, found shape {array.shape}")
    index = _index(f"SkipGuard: {parameter}", idx)
    if not 0 <= index < array.size:
        raise refusal(
            "BAD_VALUE", f"SkipGuard: {parameter} = {index} is outside of '{role}', which has {array.size} cells"
        )
    return array[index : index + 1]
