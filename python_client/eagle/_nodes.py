"""Nodes of graphs: callables with declared arrays, and conditionals around other nodes."""

from __future__ import annotations

import itertools
import types
from typing import Any, Callable, Iterable, Mapping, Sequence, Union

import numpy as np

from eagle import _core
from eagle._gpu_calls import Captured, Child, OnStream, on_gpu, raw_graph_of, replay_of, takes_nothing
from eagle._gpu_streams import check_stream
from eagle._scratch import Scratch
from eagle.errors import refusal, text
from eagle.plan import BoundPlan
from eagle.planes import Plane
from eagle.session import Array, session_of

# The arrays that a node declares: by name, in a list, or one alone.
Planes = Union[Mapping[str, Array], Sequence[Array], Array]

_numbers = itertools.count()  # of callables, process-wide


class Node:
    """A node of a graph: ``kind``, ``payload``, ``name`` and what it touches.

    Made by :func:`opaque`, :func:`copy` and their like, or as ``Node(kind, payload)`` for a kind that
    :func:`register_node_kind` knows.
    """

    def __init__(self, kind: str, payload: Any = None, name: str | None = None) -> None:
        from eagle import _kinds

        made = _kinds.lowered(kind, payload)
        self._fill(kind, name, made._node, made._arrays, made._calls, payload, made._parts)

    def _fill(
        self,
        kind: str,
        name: str | None,
        node: _core.Node | None,
        arrays: list[Any],
        calls: dict[int, Callable[[], Any]],
        payload: Any = None,
        parts: Sequence[NodeLike] = (),
    ) -> None:
        self.kind = kind
        self.name = text(f"{kind}: name", name) or None
        self.payload = payload
        self._node = node
        self._arrays = arrays
        self._calls = calls
        self._parts = parts  # what it stands for, where it has no node of its own
        self._written: list[Any] = []  # of the arrays
        self._planes: dict[str, Any] = {}  # arrays by the names that edges have for them
        self._vjp: Callable[..., Any] | None = None  # its derivative, where it brings one

    @classmethod
    def _made(
        cls,
        kind: str,
        name: str | None,
        node: _core.Node | None,
        arrays: list[Any],
        calls: dict[int, Callable[[], Any]],
        payload: Any = None,
        parts: Sequence[NodeLike] = (),
    ) -> Node:
        made = cls.__new__(cls)
        made._fill(kind, name, node, arrays, calls, payload, parts)
        return made

    def __repr__(self) -> str:
        return f"Node({self.kind!r}, name={self.name!r})"


def child(owner: Any, *, reads: Planes | None = None, writes: Planes | None = None, name: str | None = None) -> Node:
    """A CUDA graph that a framework captured in this process, as one node of a graph on the same GPU.

    ``owner`` is a ``torch.cuda.CUDAGraph(keep_graph=True)``, a ``warp.Graph``, a ``cupy.cuda.Graph`` or anything else
    that gives its CUgraph away (``raw_cuda_graph()``), or has a method ``replay()``; it is kept for as long as the node
    is. Declare the arrays that it reads and writes, which were captured as they are
    (``torch.from_dlpack(x)``): it has their addresses.

    In process the build takes a copy of its graph, which is a node of the graph's own CUDA graph (``capture`` in
    ``graph.schedule``), and a launch is refused once the owner was reset or captured again. Through a daemon, and
    where the owner gives its graph to nobody, this process replays it between two CUDA graphs of the launch
    (``client_replay``), which waits for it: what ``owner`` raises then, of a graph that was reset, say, the launch
    raises, and one that was captured again is replayed as it is now. Do not replay it while a launch is under way.

    Raises MixedDevices where none of the arrays lies on a GPU: call the model in an :func:`opaque`. EagleError:
    TypeError for an owner that has neither.

    >>> from eagle.graph import child
    >>> child(object(), reads={}, writes={})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    eagle.MixedDevices: child: a captured CUDA graph runs on a GPU, and none of its arrays lies on one; call the ...
    """
    read_arrays, written_arrays = _named("child: reads", reads, "in"), _named("child: writes", writes, "out")
    arrays = {**read_arrays, **written_arrays}
    if not any(on_gpu(array) for array in arrays.values()):
        raise refusal(
            "MIXED_DEVICES",
            "child: a captured CUDA graph runs on a GPU, and none of its arrays lies on one; call the model in an "
            "eagle.graph.opaque(fn, reads=..., writes=...)",
        )
    raw = raw_graph_of(owner) != 0
    if not raw and replay_of(owner) is None:
        raise refusal(
            "WRONG_TYPE",
            "child: expected a torch.cuda.CUDAGraph, a warp.Graph, or an object with a method replay(), found "
            f"{type(owner).__name__}",
        )
    call = Child(owner, arrays)
    return _calling("child", name, "child", read_arrays, written_arrays, call, owner, "child" if raw else None)


def _calling(
    kind: str,
    name: str | None,
    tier: str,
    reads: dict[str, Any],
    writes: dict[str, Any],
    call: Callable[[], Any],
    payload: Any,
    on_gpu: str | int | None = None,
) -> Node:
    """A node of this program's own code. ``on_gpu``: what it is there, for a graph in this process."""
    number = next(_numbers)
    node = _core.host_node(number, reads, writes, tier, on_gpu, name or "")
    made = Node._made(kind, name, node, [*reads.values(), *writes.values()], {number: call}, payload)
    made._written = list(writes.values())
    made._planes = {**reads, **writes}
    return made


def copy(
    src: Array | Scratch, dst: Array | Scratch, *, index: Array | Scratch | None = None, name: str | None = None
) -> Node:
    """A node that copies the elements of ``src`` to ``dst``, an array of the same shape; strides may be any.

    It is the cure for arrays that a kernel cannot take as they lie (:class:`eagle.CopyBoundPlane`). dtypes may differ
    and are converted as kernels convert: reals to integers towards zero, out of range to the nearest limit, NaN to 0.
    Its planes are called ``src`` and ``dst``.
    With ``index``, an array of one int64 or int32, either has one more axis than the other, the first one, and the row
    of that number is copied, from ``src`` or to ``dst``; the index is looked at when the copy runs, and one outside
    takes the nearest row. In a loop ``index=loop.iteration_index`` keeps what each round made.
    Raises EagleError when it is added: ValueError for another shape, shared bytes, a read-only ``dst``.

    >>> import numpy as np, eagle
    >>> rows, columns = np.arange(6.0).reshape(2, 3), np.zeros((3, 2))
    >>> g = eagle.Graph().add_node(eagle.copy(rows.T, columns)).build().launch()
    >>> columns
    array([[0., 3.],
           [1., 4.],
           [2., 5.]])
    """
    arrays = [src, dst] if index is None else [src, dst, index]
    made = Node._made("copy", name, _core.copy_node(src, dst, index), arrays, {})
    made._planes = {"src": src, "dst": dst}
    return made


def opaque(
    fn: Callable[..., Any],
    *,
    reads: Planes | None = None,
    writes: Planes | None = None,
    stream: Any = None,
    eager: bool = False,
    captured: bool = False,
    name: str | None = None,
) -> Node:
    """A node that calls ``fn()`` in the thread that launches, and touches the arrays it declares.

    ``reads`` and ``writes`` are dicts of arrays by name; a list or a bare array gets the names ``in0``,
    ``in1``, ... and ``out0``, ``out1``, ... Declare every array that ``fn`` touches: edges and refusals know
    no others. Where they are on another machine or on a GPU (:class:`eagle.Plane`), ``fn`` is called with them by name,
    ``fn(x=array, ...)``: their values are fetched before, and those of ``writes`` sent after. On the CPU it is a plain
    call, whatever else is said here.

    Over arrays of a GPU there are two faster ways, in which ``fn`` gets the arrays themselves
    (``torch.from_dlpack(x)``), if it has parameters, and nothing is copied. ``captured=True``: ``fn`` is called once,
    by the build, while its stream is captured, and what it enqueued is replayed with the graph; it may not allocate
    memory of the GPU nor wait for the GPU, and is refused by name if it does. A ``fn`` without parameters, which could
    not be given values, is captured without being told to. ``stream``, a torch, CuPy or Warp stream or the handle of
    one: ``fn`` is called at each launch and enqueues there, behind what comes before and ahead of what follows, and
    nobody waits; what it returns (tensors, a list or dict of them) is kept until the launch is over, and
    ``record_stream`` is called for it. In both, the stream is the current one of torch, CuPy and Warp meanwhile, and
    :func:`eagle.graph.current_stream` has its handle. Through a daemon, which cannot capture what another process
    enqueues, this process replays what it captured, or waits for the stream (``client_replay`` in ``graph.schedule``).
    ``eager`` says that ``fn`` is to get values at each launch.

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
    if stream is not None:
        check_stream(stream)
    said = [
        word for word, given in (("stream=", stream is not None), ("eager=", eager), ("captured=", captured)) if given
    ]
    if len(said) > 1:
        raise refusal("BAD_VALUE", f"opaque: {' and '.join(said)} exclude each other; choose one")
    read_arrays, written_arrays = _named("opaque: reads", reads, "in"), _named("opaque: writes", writes, "out")
    arrays = {**read_arrays, **written_arrays}
    tier = "stream" if stream is not None else "eager" if eager else "captured"
    kind = {"captured": "opaque", "stream": "opaque_stream", "eager": "opaque_host"}[tier]
    call = _with_arrays(fn, read_arrays, written_arrays)
    there = any(on_gpu(array) for array in arrays.values())
    if there and stream is not None:
        work = OnStream(fn, arrays, lambda: _given_all(read_arrays, written_arrays, True), stream)
        return _calling(kind, name, tier, read_arrays, written_arrays, work, fn, work.handle)
    if there and not eager and (captured or takes_nothing(fn)):
        once = Captured(fn, arrays, lambda: _given_all(read_arrays, written_arrays, True))
        return _calling(kind, name, "recorded", read_arrays, written_arrays, once, fn, "capture")
    return _calling(kind, name, tier, read_arrays, written_arrays, call, fn)


def _with_arrays(fn: Callable[..., Any], reads: dict[str, Any], writes: dict[str, Any]) -> Callable[[], Any]:
    """``fn`` as the graph calls it: with the arrays by name where they are on another machine or on a GPU."""
    if not any(isinstance(array, Plane) for array in (*reads.values(), *writes.values())):
        return fn
    both = [name for name in reads if name in writes and reads[name] is not writes[name]]
    if both:
        raise refusal(
            "BAD_VALUE",
            f"opaque: '{both[0]}' is one array in reads and another one in writes; the callable gets its arrays by "
            "name, so give each its own",
        )
    return lambda: fn(**_given_all(reads, writes, False))


def _given_all(reads: dict[str, Any], writes: dict[str, Any], themselves: bool) -> dict[str, Any]:
    given = {name: _given(array, False, themselves) for name, array in reads.items()}
    given.update((name, _given(array, True, themselves)) for name, array in writes.items())
    return given


def _given(array: Any, written: bool, itself: bool) -> Any:
    """What a callable gets for an array that its node declares; ``itself``: one on a GPU as it is."""
    if not isinstance(array, Plane) or (itself and on_gpu(array)):
        return array
    local = array._given()
    if not written:
        local.flags.writeable = False
    return local


def reduce(x: Array, out: Array, *, op: str = "sum", compensated: bool = False) -> Node:
    """A node that reduces all of ``x`` into ``out``.

    ``x`` has shape (N,) and ``out`` one element, or (rows, N) and (rows,); both contiguous, of one dtype. ``op`` is
    ``"sum"``, ``"max"`` or ``"min"`` of float64, float32, int64 or int32, ``"all"`` or ``"any"`` of bool. Sums of
    floats have one fixed order, so their bits depend on nothing but ``x``; ``compensated=True`` also keeps what
    rounding loses and adds it at the end. Integers wrap. Any NaN gives NaN, and +0 is greater than -0.

    Raises EagleError: TypeError for non-arrays and dtypes, ValueError for shapes, an empty ``x``, strided arrays, an
    ``op`` that the dtype does not have, and an ``out`` that shares memory with ``x``; some only when the graph is
    built.

    >>> import numpy as np, eagle
    >>> x, total = np.arange(5.0), np.zeros(1)
    >>> g = eagle.Graph().add_node(eagle.reduce(x, total)).build().launch()
    >>> total
    array([10.])
    """
    if not isinstance(op, str):
        raise refusal("WRONG_TYPE", f"reduce: op: expected a text, found {type(op).__name__}")
    if not isinstance(compensated, (bool, np.bool_)):
        raise refusal("WRONG_TYPE", f"reduce: compensated: expected a bool, found {type(compensated).__name__}")
    made = Node._made("reduce", None, _core.reduce_node(x, out, op, bool(compensated)), [x, out], {})
    made._planes = {"x": x, "out": out}
    return made


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
        if baseline is not None and "u" in (count.dtype.kind, baseline.dtype.kind) and count.dtype != baseline.dtype:
            raise refusal(
                "WRONG_DTYPE",
                f"SkipGuard: baseline: expected {count.dtype} like count, found {baseline.dtype}; cast one of them",
            )

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

    def __init__(
        self, kind: str, step: Any, guard: SkipGuard, max_iters: int | None, counter: Array | Scratch | None = None
    ) -> None:
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
        self._counter = counter
        cells = [*guard._cells(), *([] if counter is None else [counter])]
        self._arrays = [*cells, *(array for part in self.body for array in _arrays_of(part))]
        self._calls = _calls_of(self.body)
        named = [row for part in self.body for row in _rows_of(part)]
        self._node: _core.Node = _core.conditional_node(
            guard._count_cell, guard._baseline_cell, guard._negated, named, max_iters, counter
        )

    def iterations(self) -> int:
        """How many bodies the last launch of a ``repeat_while`` ran (in its last repeat); 0 before the first."""
        return self._iterations

    @property
    def iteration_index(self) -> Array | Scratch:
        """The counter of a ``repeat_while``: an array of one integer, the number of bodies run so far.

        So it is 0, 1, 2, ... inside them, and their number for nodes after the loop; bind it, or declare it as read,
        and the loop comes first. It lies where the guard's array does. To have it before the loop, for nodes of the
        body, make it yourself and say ``repeat_while(..., iteration_index=cell)``.

        >>> import numpy as np, eagle
        >>> live, last = np.array([3]), np.zeros(1, dtype=int)
        >>> loop = eagle.repeat_while(lambda: np.subtract(live, 1, out=live), eagle.SkipGuard.nonzero(live), 64)
        >>> g = eagle.Graph().add_node(loop, name="loop").add_node(eagle.copy(loop.iteration_index, last), name="last")
        >>> g = g.build().launch()
        >>> last, list(g.edges())
        (array([3]), [Edge(src=0, dst=1, plane='iterations', kind='RAW')])
        """
        if self.max_iters is None:
            raise refusal("WRONG_TYPE", "iteration_index: a skippable does not count; only a repeat_while does")
        if self._counter is None:
            raise refusal(
                "BAD_VALUE",
                "iteration_index: the guard of this loop is a scratch plane, so there is no memory to count in; give "
                "repeat_while(..., iteration_index=cell) a cell",
            )
        return self._counter

    def _loops(self) -> Iterable[Conditional]:
        if self.max_iters is not None:
            yield self
        yield from _loops_of(self.body)

    def __repr__(self) -> str:
        cap = "" if self.max_iters is None else f", max_iters={self.max_iters}"
        return f"{self.kind}({self.body!r}, {self.guard!r}{cap})"


class Group:
    """Branches that may run at the same time, as one step of a body or an item of a branch; made by :func:`group`."""

    name: str | None = None

    def __init__(self, branches: Any, names: Any) -> None:
        self.branches = _branches("group", branches, names)
        items = [part for branch in self.branches for part, _ in branch]
        self._arrays = [array for part in items for array in _arrays_of(part)]
        self._calls = _calls_of(items)
        self._node: _core.Node = _core.group_node(
            [[row for part, label in branch for row in _rows_of(part, label)] for branch in self.branches]
        )

    def __repr__(self) -> str:
        return f"group({[[part for part, _ in branch] for branch in self.branches]!r})"


def group(branches: Sequence[Any], *, names: Sequence[str | None] | None = None) -> Group:
    """A group of branches, written as for ``Graph.add_group``, where a graph has no method to add it: as a step of
    :func:`skippable` or :func:`repeat_while`, and as an item of a branch of another group.

    >>> import numpy as np, eagle
    >>> from eagle.graph import group, opaque
    >>> flag, ran = np.array([1]), []
    >>> both = group([opaque(lambda: ran.append("left")), opaque(lambda: ran.append("right"))])
    >>> g = eagle.Graph().add_node(eagle.skippable(both, eagle.SkipGuard.nonzero(flag))).build().launch()
    >>> ran
    ['left', 'right']
    >>> first, last = opaque(lambda: ran.append("first")), opaque(lambda: ran.append("last"))
    >>> inner = group([opaque(lambda: ran.append("a")), opaque(lambda: ran.append("b"))])
    >>> g = eagle.Graph().add_group([[first, inner, last], opaque(lambda: ran.append("beside"))]).build().launch()
    >>> ran[2:]
    ['first', 'a', 'b', 'last', 'beside']
    """
    return Group(branches, names)


NodeLike = Union[Node, Conditional, BoundPlan, Group]


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


def repeat_while(
    step: Any, guard: SkipGuard, max_iters: int, *, iteration_index: Array | Scratch | None = None
) -> Conditional:
    """A node that repeats its step while the guard holds, at most ``max_iters`` times a launch.

    The guard is looked at before each step. ``iteration_index`` is an array of one int64 or int32 that the loop writes:
    the number of steps run so far (see :attr:`Conditional.iteration_index`); the step may read it, and must not
    write it. Raises EagleError: ValueError for a cap under 1, TypeError for one that is no whole number.

    >>> import numpy as np, eagle
    >>> live = np.array([5])
    >>> loop = eagle.repeat_while(lambda: np.subtract(live, 1, out=live), eagle.SkipGuard.nonzero(live), 64)
    >>> g = eagle.Graph().add_node(loop).build().launch()
    >>> live[0], loop.iterations()
    (np.int64(0), 5)
    >>> index, seen = np.zeros(1, dtype=int), []
    >>> note = opaque(lambda: seen.append(int(index[0])), reads={"index": index})
    >>> loop = eagle.repeat_while([note], eagle.SkipGuard.nonzero(np.array([1])), 3, iteration_index=index)
    >>> g = eagle.Graph().add_node(loop).build().launch()
    >>> seen, index
    ([0, 1, 2], array([3]))
    """
    cap = _index("repeat_while: max_iters", max_iters)
    if not 1 <= cap < 2**63:
        raise refusal("BAD_VALUE", f"repeat_while: max_iters: expected 1 to 2^63 - 1, found {cap}")
    if not isinstance(guard, SkipGuard):
        return Conditional("repeat_while", step, guard, cap)  # refuses it
    counter = _counter_beside(guard.count) if iteration_index is None else _checked_counter(iteration_index)
    return Conditional("repeat_while", step, guard, cap, counter)


def _counter_beside(count: Array) -> Array | None:
    """A cell in the memory that holds the guard's array."""
    if isinstance(count, Scratch):
        return None
    home = session_of([count])
    if home is None or home.closed:
        return np.zeros(1, np.int64)
    return home.zeros(1, np.int64, device=count.device if isinstance(count, Plane) else None)


def _checked_counter(cell: Any) -> Any:
    where = "repeat_while: iteration_index"
    if not isinstance(cell, (np.ndarray, Scratch, Plane)):
        raise refusal("WRONG_TYPE", f"{where}: expected a numpy array, found {type(cell).__name__}")
    if cell.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise refusal("WRONG_DTYPE", f"{where}: expected an array of int64 or int32, found {cell.dtype}")
    if cell.size != 1:
        raise refusal("WRONG_SHAPE", f"{where}: expected an array of one element, found shape {cell.shape}")
    return cell


def _as_node(kind: str, part: Any) -> NodeLike:
    if isinstance(part, (Node, Conditional, BoundPlan, Group)):
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


def _calls_of(parts: Iterable[NodeLike]) -> dict[int, Callable[[], Any]]:
    return {n: fn for part in parts if not isinstance(part, BoundPlan) for n, fn in part._calls.items()}


def _loops_of(parts: Iterable[NodeLike]) -> Iterable[Conditional]:
    """The loops in these nodes, in the order of their counts in a report."""
    for part in parts:
        if isinstance(part, Conditional):
            yield from part._loops()
        elif isinstance(part, Group):
            yield from _loops_of(item for branch in part.branches for item, _ in branch)
        elif isinstance(part, Node):
            yield from _loops_of(part._parts)


def _rows_of(part: NodeLike, label: str | None = None) -> list[tuple[str, _core.Node]]:
    """The node, or the nodes that it stands for, with their labels."""
    own = label or (None if isinstance(part, BoundPlan) else part.name) or ""
    if isinstance(part, Node) and part._node is None:
        base, several = own or part.kind, len(part._parts) > 1
        return [
            row for i, inner in enumerate(part._parts) for row in _rows_of(inner, f"{base}[{i}]" if several else base)
        ]
    if isinstance(part, Node) and not own and part.kind not in _core_kinds:
        own = part.kind
    assert part._node is not None
    return [(own, part._node)]


# Kinds whose label the engine gives.
_core_kinds = frozenset(("opaque", "opaque_stream", "opaque_host", "copy", "reduce"))


def _branches(where: str, branches: Any, names: Any) -> list[list[tuple[NodeLike, str]]]:
    """Branches as lists of nodes with their labels."""
    if isinstance(branches, (str, bytes)) or not isinstance(branches, Iterable):
        raise refusal("WRONG_TYPE", f"{where}: expected a list of branches, found {type(branches).__name__}")
    items = [list(b) if isinstance(b, (list, tuple)) else [b] for b in branches]
    if len(items) < 2:
        raise refusal(
            "BAD_VALUE", f"{where}: a group needs at least 2 branches, found {len(items)}; add the node alone"
        )
    if names is not None and (isinstance(names, (str, bytes)) or not isinstance(names, Iterable)):
        raise refusal("WRONG_TYPE", f"{where}: names: expected a list of texts, found {type(names).__name__}")
    labels = list(names) if names is not None else [None] * len(items)
    if len(labels) != len(items):
        raise refusal("BAD_VALUE", f"{where}: {len(labels)} names for {len(items)} branches; give one each")
    out = []
    for number, (item, label) in enumerate(zip(items, labels)):
        if not item:
            raise refusal("BAD_VALUE", f"{where}: branch {number} is empty; give it a node, or leave it out")
        for part in item:
            if not isinstance(part, (BoundPlan, Node, Conditional, Group)):
                raise refusal(
                    "WRONG_TYPE",
                    f"{where}: branch {number}: expected a BoundPlan, an eagle.graph.Node, a conditional or an "
                    f"eagle.graph.group (or a list of them), found {type(part).__name__}",
                )
        given = text(f"{where}: name", label) if len(item) == 1 else ""
        if given and isinstance(item[0], Group):
            raise refusal("BAD_VALUE", f"{where}: branch {number} is a group, which has no name; name its branches")
        out.append([(part, given) for part in item])
    return out


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
    if isinstance(planes, (np.ndarray, Plane, Scratch)):
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
    if not isinstance(array, (np.ndarray, Plane, Scratch)):
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
    cell: Any = array[index : index + 1]
    # Whether a cell is 0, or like another of its type, is the same for signed integers of that size.
    return cell.view(f"i{cell.itemsize}") if isinstance(cell, np.ndarray) and cell.dtype.kind == "u" else cell
