"""Graphs: nodes over arrays, ordered by the bytes they touch, built once and replayed.

>>> import numpy as np
>>> import eagle
>>> from eagle.graph import opaque
>>> x, y, z = np.ones(8), np.zeros(8), np.zeros(8)
>>> g = eagle.Graph()
>>> g = g.add_node(opaque(lambda: np.multiply(x, 2.0, out=y), reads={"x": x}, writes={"y": y}), name="double")
>>> g = g.add_node(opaque(lambda: np.add(y, 1.0, out=z), reads={"y": y}, writes={"z": z}), name="shift")
>>> g = g.build().launch()
>>> z[:3]
array([3., 3., 3.])
>>> print(g)
eagle.Graph  2 nodes · 0 groups · backend: cpu
<BLANKLINE>
  stage 0 work_share ┌╌╌╌╌╌╌╌╌╌┐
                     ╎ double  ╎
                     └╌╌╌╌┬╌╌╌╌┘
                          y
                          │
  stage 1 work_share  ┌╌╌╌┴╌╌╌┐
                      ╎ shift ╎
                      └╌╌╌╌╌╌╌┘
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, Literal, Mapping, Sequence, overload

from eagle import _core, _gpu_calls, _plot
from eagle._addresses import param_rows, plane_rows
from eagle._edges import Edge, Edges
from eagle._explain import Meeting, NodeExplanation, PairExplanation, PlaneExplanation, explain
from eagle._gpu_streams import current_stream
from eagle._graph_files import Storable
from eagle._imported import Imported, Watched, refuse_moved, watched_after, watched_of
from eagle._kinds import NodeKind, register_node_kind
from eagle._nodes import (
    Conditional,
    Group,
    Node,
    NodeLike,
    Planes,
    SkipGuard,
    _branches,
    _loops_of,
    _rows_of,
    child,
    copy,
    group,
    opaque,
    reduce,
    repeat_while,
    skippable,
)
from eagle._policies import policies
from eagle._records import GraphRecord
from eagle._reports import ExecutedGroup, Execution, GraphReport, ScratchUse
from eagle._running import count_of as _count
from eagle._running import seconds_of
from eagle._scratch import Scratch
from eagle.errors import refusal, text
from eagle.plan import BoundPlan, LaunchReport
from eagle.planes import Plane
from eagle.session import Session, _dtype, _shape, check_session, default_session, local_session, session_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Conditional",
    "Edge",
    "Edges",
    "ExecutedGroup",
    "Execution",
    "Graph",
    "GraphReport",
    "Group",
    "Meeting",
    "Node",
    "NodeExplanation",
    "NodeKind",
    "NodeLike",
    "PairExplanation",
    "PlaneExplanation",
    "Planes",
    "Scratch",
    "ScratchUse",
    "SkipGuard",
    "child",
    "copy",
    "current_stream",
    "group",
    "opaque",
    "reduce",
    "register_node_kind",
    "repeat_while",
    "skippable",
]


class Graph(Storable):
    """Nodes in the order they are added; what may run at the same time is a group.

    Edges are derived from the arrays that nodes touch, never drawn. Every verb returns the graph. ``build``
    refuses branches that could race; ``launch(n)`` runs the whole n times. One caller at a time: a second one,
    from another thread or from one of the graph's own callables, gets ``eagle.Busy``. Looking (``edges()``,
    ``print(g)``) is always allowed.

    Without ``session`` the graph runs where its arrays live; with private arrays only, in the current session.
    """

    def __init__(self, session: Session | None = None, record: bool = False, name: str | None = None) -> None:
        check_session("Graph", session)
        self._name = text("Graph: name", name)
        self._recorded = _flag("Graph: record", record)
        self._found = session  # where the graph belongs: as asked for, else by the first array of a session
        self._adds: list[_Add] = []
        self._has_imported = False  # arrays whose memory is another package's: most graphs are spared the look for them
        self._last_rebind = BoundPlan._last_rebind
        self._rebound = False  # to other arrays than those of `_adds`
        self._changing = threading.Lock()  # held by adds and build; never waited for
        self._home = session
        self._core = None if session is None else self._new_core(session)
        self._calls: dict[int, Callable[[], Any]] = {}
        self._starting: set[_core.CancelFlag] = set()  # of `launch_async`, also of one whose launch has yet to begin
        # What the last launch said; "unread" until somebody asks for it.
        self._report: GraphReport | Literal["unread"] | None = None
        self._counters: tuple[Conditional, ...] | None = None  # the loops of the graph, once it was launched
        self._scratch: tuple[ScratchUse, ...] = ()
        self._execution: Execution | None = None  # of the core, for who asks
        self._enqueued = 0  # runs that `synchronize` will report
        self._numbers = itertools.count()  # of scratch planes without a name
        self._record: GraphRecord | None = None
        self._watched: list[Watched] = []  # arrays of other packages, as they were at the build

    def __del__(self) -> None:  # what is captured may call the interpreter, which this does not hold meanwhile
        if getattr(self, "_enqueued", 0) and self._home and self._core and not self._home._core.remote:
            self._core.cancel()
            with contextlib.suppress(Exception):
                self._core.synchronize({})

    # ---- adding

    def add(self, bound: BoundPlan, *, name: str | None = None) -> Graph:
        """Adds a launch of a bound plan as a stage of its own; its label is ``name``, else the kernel's.

        Raises EagleError: TypeError for a Node (which goes to ``add_node``), CopyBoundPlane, GraphState after
        the build.
        """
        if not isinstance(bound, BoundPlan):
            hint = "; use add_node for a Node" if isinstance(bound, (Node, Conditional)) else ""
            raise refusal("WRONG_TYPE", f"add: expected a BoundPlan (plan.bind(...)), found {_kind(bound)}{hint}")
        label = text("add: name", name)
        return self._add("add", _Add([bound], lambda core: core.add(bound._node, label), [label]))

    def add_node(self, node: Node | Conditional, *, name: str | None = None) -> Graph:
        """Adds a node or a conditional as a stage of its own; ``name`` is its label, else its own name or kind.

        Raises EagleError: TypeError for a BoundPlan (which goes to ``add``), ConditionalInUse, GraphState.
        """
        if not isinstance(node, (Node, Conditional)):
            hint = "; use add for a BoundPlan" if isinstance(node, BoundPlan) else ""
            hint = "; use add_group([...]) for its branches" if isinstance(node, Group) else hint
            raise refusal(
                "WRONG_TYPE",
                f"add_node: expected an eagle.graph.Node, eagle.skippable or eagle.repeat_while, "
                f"found {_kind(node)}{hint}",
            )
        label = text("add_node: name", name)
        rows = _rows_of(node, label)
        return self._add(
            "add_node", *(_Add([node] if not i else [], _adding(row), [label]) for i, row in enumerate(rows))
        )

    def add_group(self, branches: Sequence[Any], *, names: Sequence[str | None] | None = None) -> Graph:
        """Adds a stage of branches that may run at the same time; the next stage waits for all of them.

        A branch is a BoundPlan, a node, or a list of them that run in order; an :func:`eagle.graph.group` in it is a
        fork and join of its own. ``names`` labels the branches of one item. Raises EagleError (TypeError,
        ValueError); branches that could race are refused by ``build``.
        """
        items = _branches("add_group", branches, names)
        parts = [part for item in items for part, _ in item]
        labels = [label for item in items for _, label in item]

        def apply(core: _core.Graph) -> None:
            core.add_group([[row for part, label in item for row in _rows_of(part, label)] for item in items])

        return self._add("add_group", _Add(parts, apply, labels))

    def scratch(self, shape: Any, dtype: Any = float, width: int | None = None, *, name: str | None = None) -> Scratch:
        """An array that only kernels and copies of this graph touch; the engine makes its memory where it needs some.

        ``shape`` is (N,) or any; with ``width`` it is (width, N), for vectors. It has edges, a name and a place in
        pictures like any array, and holds nothing between launches: a node writes it before another reads it. Scratch
        planes that are never in use at the same time share memory, and one that only passes values from kernel to
        kernel of a chain has none. ``report.scratch`` says what became of them.
        Raises EagleError: TypeError for another dtype than float64, float32, int64, int32 and bool.

        >>> import eagle
        >>> @eagle.kernel
        ... def double(x: eagle.Scalar) -> eagle.Scalar:
        ...     y = 2.0 * x
        ...     return y
        >>> x, y, g = eagle.asarray([1.0, 2.0]), eagle.zeros(2), eagle.Graph()
        >>> between = g.scratch(2, name="between")
        >>> g = g.add(eagle.plan(double).bind(x=x, y=between)).add(eagle.plan(double).bind(x=between, y=y))
        >>> g = g.build().launch()
        >>> y, g.report.scratch
        (array([4., 8.]), (ScratchUse(name='between', bytes=16, in_memory=False, offset=0),))
        """
        extents = _shape(shape)
        if width is not None:
            extents = [*_shape(width), *extents]
        if any(extent < 0 for extent in extents):
            raise refusal("BAD_VALUE", f"scratch: shape {shape!r}: extents start at 0")
        found = _dtype(dtype)
        if found.name not in ("float64", "float32", "int64", "int32", "bool"):
            raise refusal("WRONG_DTYPE", f"scratch: planes hold float64, float32, int64, int32 or bool, not {found}")
        if math.prod(extents) * found.itemsize >= 2**62:
            raise refusal("BAD_VALUE", f"scratch: shape {shape!r}: more than 2^62 bytes")
        return Scratch.of(self, tuple(extents), found, text("scratch: name", name) or f"scratch{next(self._numbers)}")

    def _add(self, method: str, *adds: _Add) -> Graph:
        with self._exclusively(method):
            arrays = [array for add in adds for array in add.arrays()]
            for array in arrays:
                self._has_imported |= isinstance(array, Imported) or (isinstance(array, Plane) and bool(array.source()))
                if isinstance(array, Scratch) and array._graph is not self:
                    raise refusal(
                        "SCRATCH_PLANE",
                        f"{method}: the {array._label()} is another graph's, and only nodes of that graph can touch "
                        "it; make one with scratch() of this graph, or use an array",
                    )
            found = self._found or session_of(arrays)
            self._move(found or self._home or local_session())
            assert self._core is not None
            for add in adds:
                add.apply(self._core)
                self._adds.append(add)
            self._found = found
            for add in adds:
                self._calls.update(add.calls())
        return self

    # ---- building and launching

    def build(self, backend: str | None = None, *, dispatch: Any = None, record: bool | None = None) -> Graph:
        """Refuses what could race, compiles the kernels, binds the arrays. Once.

        It runs where its arrays are: on the CPU, or as a CUDA graph on the GPU that has them all; ``backend`` None,
        "cpu" or "gpu" says that this is what you meant. ``record=True`` makes ``graph.record``, and launches keep
        copies of what they overwrite and derivatives look at. ``dispatch`` says how dispatch groups that their author
        left open run: "switch" (branches behind a test whether any sample of a block takes them), "predicated" (all
        branches, then a choice), or either by group; "segmented" is refused, because a built graph is one fixed
        structure. Raises RacingSiblings, GraphState for an empty or a built graph, MixedDevices for arrays of several
        places or another backend; a failed build leaves the graph open.
        """
        if backend not in (None, "cpu", "gpu"):
            raise refusal(
                "BAD_VALUE", f"build: backend {backend!r}: expected 'cpu', 'gpu', or None for where the arrays are"
            )
        recorded = self._recorded if record is None else _flag("build: record", record)
        with self._exclusively("build"):
            self._move(self._found or default_session())
            self._take_rebound()
            assert self._core is not None
            if backend is not None:
                self._check_backend(backend)
            self._core.set_recorded(recorded)
            try:
                _gpu_calls.build(self._core, policies("build", dispatch), self._calls)
            except BaseException:
                self._core.set_recorded(self._recorded)
                raise
            self._recorded = recorded
            self._watched = [row for add in self._adds for row in add.watched()] if self._has_imported else []
            self._look_at(self._core)
        return self

    def _check_backend(self, backend: str) -> None:
        arrays = [array for add in self._adds for array in add.arrays()]
        there = [array for array in arrays if isinstance(array, Plane) and array.device != "cpu"]
        if backend == "cpu" and there:
            raise refusal(
                "MIXED_DEVICES", f"build: backend 'cpu': {there[0]!r} lies on a GPU; say 'gpu' or leave it out"
            )
        if backend == "gpu" and not there:
            raise refusal(
                "MIXED_DEVICES",
                "build: backend 'gpu': the planes of this graph live in host memory; say 'cpu' or leave it out",
            )

    def launch(self, n: int = 1, *, timeout: float | None = None) -> Graph:
        """Runs the graph ``n`` times, one after another, for at most ``timeout`` seconds.

        What an opaque node raises reaches the caller unchanged: nodes after it and further repeats do not
        run, and the graph stays launchable. Ctrl-C ends the launch after the node that runs, and raises
        KeyboardInterrupt; a handler of yours for SIGINT that does not raise leaves an EagleError with reason
        CANCELLED. Raises GraphState before the build, Busy, SessionClosed, DeadlineExceeded after the timeout.
        """
        core = self._core
        if core is None or self._watched or timeout is not None or type(n) is not int or not 0 <= n < 2**63:
            n, seconds = _count("launch", n), _seconds("launch", timeout)
            self._built("launch").launch(n, self._calls, seconds)
        else:
            core.replay(n, self._calls)  # the usual launch takes a microsecond: nothing more happens here than must
        if self._report != "unread":
            self._report = "unread"
        if self._counters or self._counters is None:
            self._count_trips(n)
        return self

    def enqueue(self, n: int = 1) -> Graph:
        """Queues ``n`` runs and returns; :meth:`synchronize` waits for them.

        Through a daemon it returns once the launch is queued: until ``synchronize`` the graph is busy, its callables
        run there, and errors come out there. So it does in process over arrays of a GPU that runs the graph alone; else
        it is ``launch`` in process. Raises Busy where a launch is in flight.
        """
        number = _count("enqueue", n)
        self._built("enqueue").enqueue(number, self._calls)
        self._enqueued = number
        return self

    def synchronize(self, *, timeout: float | None = None) -> Graph:
        """Waits for what was enqueued; raises what it raised. Nothing in flight is fine.

        After ``timeout`` seconds the launch is stopped. Raises DeadlineExceeded.
        """
        seconds = _seconds("synchronize", timeout)
        self._built("synchronize").synchronize(self._calls, seconds)
        number, self._enqueued = self._enqueued, 0
        if number > 0:
            self._report = "unread"
            self._count_trips(number)
        return self

    async def launch_async(self, n: int = 1, *, timeout: float | None = None) -> Graph:
        """Runs the graph ``n`` times without holding up the event loop.

        Callables run in a thread of their session, one at a time, never in the loop's. Cancelling the task cancels
        the launch, also one that has yet to begin, and waits until it let go of the arrays. ``timeout`` is that of
        :meth:`launch`.

        >>> import asyncio, eagle, numpy as np
        >>> x = np.zeros(2)
        >>> g = eagle.Graph().add_node(eagle.graph.opaque(lambda: np.add(x, 1.0, out=x), writes=x)).build()
        >>> asyncio.run(g.launch_async(3)).report.launches, x
        (3, array([3., 3.]))
        """
        from eagle._async import run_async  # asyncio takes its time

        number, seconds = _count("launch_async", n), _seconds("launch_async", timeout)
        core = self._built("launch_async")
        flag = _core.CancelFlag()
        self._starting.add(flag)
        try:
            await run_async(
                lambda calls: core.launch(number, calls, seconds, flag), self._calls, key=self._home, cancel=flag.set
            )
        finally:
            self._starting.discard(flag)
        self._report = "unread"
        self._count_trips(number)
        return self

    def cancel(self) -> Graph:
        """Stops the launch that is in flight, if there is one; its caller gets an EagleError, reason CANCELLED.

        From any thread, and from the graph's own callables. It stops between two nodes, or within 20 ms inside a
        loop of a kernel.
        """
        for flag in tuple(self._starting):
            flag.set()
        if self._core is not None:
            self._core.cancel()
        return self

    # ---- changing a built graph

    def update(self, params: Mapping[Any, Any]) -> Graph:
        """New numbers for Params of its kernels, without a build: all of them or, where one is refused, none.

        Keys: ``"a"`` is what one node has, or all nodes that have Params share; ``"node.a"``, ``("node", "a")`` or
        ``(index, "a")`` is that of one node, also inside conditionals. Raises Busy, GraphState before the build, and
        EagleError: ValueError for an unknown or ambiguous name (the candidates are listed), TypeError for no number.

        >>> import eagle
        >>> @eagle.kernel
        ... def scale(x: eagle.Scalar, a: eagle.Param) -> eagle.Scalar:
        ...     y = a * x
        ...     return y
        >>> bound = eagle.plan(scale).bind(x=eagle.asarray([1.0, 2.0]), a=2.0)
        >>> g = eagle.Graph().add(bound).build().update({"a": 10.0}).launch()
        >>> bound.planes["y"]
        array([10., 20.])
        """
        self._built("update").update(param_rows("update", params))
        return self

    def rebind(self, planes: Mapping[Any, Any] | None = None, **named: Any) -> Graph:
        """Other arrays of the same dtype and shape for its kernels and copies: all or, where one is refused, none.

        Keys as for :meth:`update`, with names of arguments: ``{"node.x": array}``, or ``x=array`` where one node has
        it or all share it. Overlaps and races are looked at again. Numbers of Params stay. Raises RacingSiblings,
        Busy, GraphState before the build, EagleError for another dtype (TypeError) or shape (ValueError).
        """
        core = self._built("rebind")
        _ = self.report  # it is of the planes and the execution that were
        rows = plane_rows("rebind", {**(planes or {}), **named})
        core.rebind(rows)
        self._rebound = True
        self._watched = watched_after(self._watched, rows)
        self._look_at(core)
        return self

    # ---- looking

    def edges(self) -> Edges:
        """Every edge, in node order; nothing is reduced. Works before the build, and on racing graphs.

        A sequence of :class:`Edge` that is found when it is first looked at.
        """
        return Edges(self._core)

    @overload
    def explain(self, node: int | str) -> NodeExplanation: ...
    @overload
    def explain(self, node: int | str, other: int | str) -> PairExplanation: ...
    def explain(self, node: int | str, other: int | str | None = None) -> NodeExplanation | PairExplanation:
        """Why one of two nodes waits for the other, or what one node touches and how it runs.

        Nodes are named by index or label, the two in either order. Works before the build, and on racing graphs.
        Print the result, or look at its attributes. Raises EagleError (ValueError) for a node that is not there
        and for a label of several, TypeError for what is neither index nor label.

        >>> import numpy as np
        >>> import eagle
        >>> x = np.zeros(8)
        >>> g = eagle.Graph()
        >>> g = g.add_node(eagle.graph.opaque(lambda: None, writes={"x": x}), name="seed")
        >>> g = g.add_node(eagle.graph.opaque(lambda: None, reads={"tail": x[6:]}), name="look")
        >>> why = g.explain("seed", "look")
        >>> why.relation, why.meetings[0].kind, why.meetings[0].count
        ('ordered', 'RAW', 16)
        """
        return explain(self._as_core(), node, other)

    def node_labels(self) -> list[str]:
        """The label of each node, by index: the given name, else the kernel's name, else the kind."""
        return [] if self._core is None else self._core.node_labels()

    @property
    def schedule(self) -> tuple[str, ...]:
        """How each stage runs, "work_share" or "branch_tasks"; () before the build."""
        return () if self._core is None else tuple(self._core.schedule())

    @property
    def dispatch(self) -> dict[str, dict[str, str]]:
        """How the dispatch groups of each node run: {label: {group: policy}}; {} before the build."""
        found: dict[str, dict[str, str]] = {}
        for label, name, policy in [] if self._core is None else self._core.dispatch():
            found.setdefault(label, {})[name] = policy
        return found

    @property
    def backend(self) -> str | None:
        """Where it runs: ``"cpu"``, ``"cuda:0"``; None before the build."""
        return self._core.backend() if self._core is not None and self._core.built() else None

    @property
    def record(self) -> GraphRecord | None:
        """What the last launch of a graph made with ``record=True`` left for :func:`eagle.diff.reverse`; None else.

        It has ``labels``, ``edges`` and ``nodes`` of the graph, too, and ``nbytes``, the memory that it holds.
        """
        if not (self._recorded and self.backend):
            return None
        if self._record is None:
            self._record = GraphRecord(self)
        return self._record

    @property
    def report(self) -> GraphReport | None:
        """What the last launch said about itself; None before the first."""
        if self._report == "unread":
            core = self._built("report")
            self._execution = self._execution or Execution.of(core)
            self._report = GraphReport(*LaunchReport.of(core.report()), self._scratch, self._execution)
        return self._report

    @property
    def session(self) -> Session | None:
        """Where the graph runs; None while that is open."""
        return self._home if self.backend is not None else self._found

    def show(self) -> None:
        """Prints the picture of the graph, built or not."""
        print(self)

    def __str__(self) -> str:
        return _core.picture(self._as_core(), "text").rstrip("\n")

    def to_mermaid(self) -> str:
        """The picture as a Mermaid ``flowchart TD``, to paste into a Markdown page."""
        return _core.picture(self._as_core(), "mermaid")

    def to_dot(self) -> str:
        """The picture for Graphviz."""
        return _core.picture(self._as_core(), "dot")

    def to_svg(self) -> str:
        """The picture as an SVG: one element that needs nothing outside itself, for light and dark pages."""
        return _core.picture(self._as_core(), "svg")

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.to_svg()

    def timeline(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """What the graph did lately in its daemon, in Chrome's trace-event format: launches, their turns on the team,
        host calls and builds. With ``path`` it is also written there, to open in chrome://tracing or ui.perfetto.dev.

        Raises EagleError before the build, and for a session in this process, which keeps no timeline.
        """
        content = _core.timeline(self._built("timeline"))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        import json  # takes its time

        events: dict[str, Any] = json.loads(content)
        return events

    def plot(self, ax: Axes | None = None, edge_labels: bool = True, show_schedule: bool = True) -> Figure:
        """Draws the picture with matplotlib; returns the figure, a plain ``matplotlib.figure.Figure``.

        Into ``ax``, or a figure of its own that no pyplot state knows of, so that it works without a display.
        ``edge_labels``: the names of planes at the lines; ``show_schedule``: the stages at the left. Raises
        EagleError (ImportError) with the command that installs matplotlib where that is missing.
        """
        return _plot.plot(_core.figure(self._as_core()), ax, bool(edge_labels), bool(show_schedule))

    def _as_core(self) -> _core.Graph:
        return self._core or self._new_core(local_session())

    def __repr__(self) -> str:
        state = "built" if self.backend else "not built"
        name, nodes = f"{self._name} " if self._name else "", len(self.node_labels())
        return f"<eagle.Graph {name}{nodes} node{'' if nodes == 1 else 's'}, {state}>"

    # ---- details

    def _exclusively(self, method: str) -> _Exclusive:
        return _Exclusive(self._changing, method)

    def _built(self, method: str) -> _core.Graph:
        if self._core is None:
            raise refusal("GRAPH_STATE", f"{method}: this graph is empty and not built; add nodes, then call build()")
        if self._watched and method in ("launch", "launch_async", "enqueue"):
            refuse_moved(method, self._watched)
        return self._core

    def _look_at(self, core: _core.Graph) -> None:
        """What became of scratch planes and kernels at the build."""
        self._scratch = tuple(ScratchUse(*row) for row in core.scratch())
        self._execution = None

    def _count_trips(self, number: int) -> None:
        """What the loops of the graph say of the last launch, of ``number`` runs."""
        if self._counters is None:
            self._counters = tuple(_loops_of(item for add in self._adds for item in add.items))
        if self._counters and number > 0:
            for loop, count in zip(self._counters, self._built("launch").report().iterations):
                loop._iterations = count

    def _new_core(self, home: Session) -> _core.Graph:
        core = _core.Graph(home._core, self._name)
        core.set_recorded(self._recorded)
        return core

    def _take_rebound(self) -> None:
        """A plan that was bound again since it was added is what it is now; from the build on it is by value."""
        if self._home is None or self._last_rebind is BoundPlan._last_rebind:
            return
        if not any(add.changed() for add in self._adds):
            return
        self._has_imported = True  # perhaps
        home, self._core, self._home = self._home, None, None  # frees conditionals, as `_move` does
        self._core = self._replayed(home)
        self._home = home

    def _move(self, home: Session) -> None:
        """Moves the nodes to another session: the first array of a session says where a graph belongs."""
        if self._home is home or (self._core is not None and self._core.built()):
            return
        old, self._core = self._home, None  # frees conditionals, which belong to one graph at a time
        try:
            self._core = self._replayed(home)
            self._home = home
        except Exception:
            self._core = None if old is None else self._replayed(old)
            raise

    def _replayed(self, home: Session) -> _core.Graph:
        core = self._new_core(home)
        for add in self._adds:
            add.apply(core)
        return core


class _Add:
    """One ``add``: its items, and how they enter a C++ graph."""

    def __init__(self, items: list[Any], apply: Callable[[_core.Graph], None], labels: list[str]) -> None:
        self.items = items
        self._apply = apply
        self._labels = labels  # one an item
        self._nodes: list[Any] = []

    def apply(self, core: _core.Graph) -> None:
        """Adds it."""
        self._apply(core)
        self._nodes = self._bound_nodes()

    def labelled(self) -> Iterable[tuple[str, Any]]:
        """The items with the labels that they were given."""
        return zip(self._labels, self.items)

    def changed(self) -> bool:
        """Whether a plan in it was bound again since."""
        return any(old is not new for old, new in zip(self._nodes, self._bound_nodes()))

    def _bound_nodes(self) -> list[Any]:
        return [item._node for item in self.items if isinstance(item, BoundPlan)]

    def arrays(self) -> Iterable[Any]:
        for item in self.items:
            yield from item.planes.values() if isinstance(item, BoundPlan) else item._arrays

    def watched(self) -> Iterable[Watched]:
        """The planes of kernels and callables whose memory is another package's."""
        for label, item in self.labelled():
            named = item.planes if isinstance(item, BoundPlan) else getattr(item, "_planes", {})
            kind = item.kernel.name if isinstance(item, BoundPlan) else "callable"
            yield from watched_of(label or kind, named.items())

    def calls(self) -> dict[int, Callable[[], Any]]:
        found: dict[int, Callable[[], Any]] = {}
        for item in self.items:
            if not isinstance(item, BoundPlan):
                found.update(item._calls)
        return found


class _Exclusive:
    """A non-blocking guard: a second caller gets Busy."""

    def __init__(self, lock: threading.Lock, method: str) -> None:
        self._lock = lock
        self._method = method

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise refusal(
                "BUSY",
                f"{self._method}: another call is still running on this Graph; give each thread its own Graph, "
                "or wait for it",
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def _kind(found: Any) -> str:
    return type(found).__name__


def _adding(row: tuple[str, _core.Node]) -> Callable[[_core.Graph], None]:
    label, node = row
    return lambda core: core.add_node(node, label)


def _flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refusal("WRONG_TYPE", f"{where}: expected True or False, found {_kind(value)}")
    return value


def _seconds(method: str, timeout: Any) -> float:
    """As the core takes it: 0 for none."""
    return 0.0 if timeout is None else seconds_of(method, timeout)
