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

import threading
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from eagle import _core
from eagle._nodes import Conditional, Node, NodeLike, Planes, SkipGuard, opaque, repeat_while, skippable
from eagle.errors import refusal, text
from eagle.plan import BoundPlan, LaunchReport
from eagle.session import Session, default_session, local_session, session_of

__all__ = [
    "Conditional",
    "Edge",
    "Graph",
    "GraphReport",
    "Node",
    "NodeLike",
    "Planes",
    "SkipGuard",
    "opaque",
    "repeat_while",
    "skippable",
]


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


# What a launch says about itself.
GraphReport = LaunchReport


class Graph:
    """Nodes in the order they are added; what may run at the same time is a group.

    Edges are derived from the arrays that nodes touch, never drawn. Every verb returns the graph. ``build``
    refuses branches that could race; ``launch(n)`` runs the whole n times. One caller at a time: a second one,
    from another thread or from one of the graph's own callables, gets ``eagle.Busy``. Looking (``edges()``,
    ``print(g)``) is always allowed.

    Without ``session`` the graph runs where its arrays live; with private arrays only, in the current session.
    """

    def __init__(self, session: Session | None = None, *, name: str | None = None) -> None:
        if session is not None and not isinstance(session, Session):
            raise refusal("WRONG_TYPE", f"Graph: session: expected an eagle.Session, found {type(session).__name__}")
        self._name = text("Graph: name", name)
        self._found = session  # where the graph belongs: as asked for, else by the first array of a session
        self._adds: list[_Add] = []
        self._changing = threading.Lock()  # held by adds and build; never waited for
        self._home = session
        self._core = None if session is None else _core.Graph(session._core, self._name)
        self._calls: dict[int, Callable[[], Any]] = {}
        self._report: GraphReport | None = None

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
        return self._add(_Add([bound], lambda core: core.add(bound._node, label)))

    def add_node(self, node: Node | Conditional, *, name: str | None = None) -> Graph:
        """Adds a node or a conditional as a stage of its own; ``name`` is its label, else its own name or kind.

        Raises EagleError: TypeError for a BoundPlan (which goes to ``add``), ConditionalInUse, GraphState.
        """
        if not isinstance(node, (Node, Conditional)):
            hint = "; use add for a BoundPlan" if isinstance(node, BoundPlan) else ""
            raise refusal(
                "WRONG_TYPE",
                f"add_node: expected an eagle.graph.Node, eagle.skippable or eagle.repeat_while, "
                f"found {_kind(node)}{hint}",
            )
        label = text("add_node: name", name) or node.name or ""
        return self._add(_Add([node], lambda core: core.add_node(node._node, label)))

    def add_group(self, branches: Sequence[Any], *, names: Sequence[str | None] | None = None) -> Graph:
        """Adds a stage of branches that may run at the same time; the next stage waits for all of them.

        A branch is a BoundPlan, a node, or a list of them that run in order. ``names`` labels the branches of
        one item. Raises EagleError (TypeError, ValueError); branches that could race are refused by ``build``.
        """
        if isinstance(branches, (str, bytes)) or not isinstance(branches, Iterable):
            raise refusal("WRONG_TYPE", f"add_group: expected a list of branches, found {_kind(branches)}")
        items = [list(b) if isinstance(b, (list, tuple)) else [b] for b in branches]
        if len(items) < 2:
            raise refusal(
                "BAD_VALUE", f"add_group: a group needs at least 2 branches, found {len(items)}; add the node alone"
            )
        if names is not None and (isinstance(names, (str, bytes)) or not isinstance(names, Iterable)):
            raise refusal("WRONG_TYPE", f"add_group: names: expected a list of texts, found {_kind(names)}")
        labels = list(names) if names is not None else [None] * len(items)
        if len(labels) != len(items):
            raise refusal("BAD_VALUE", f"add_group: {len(labels)} names for {len(items)} branches; give one each")
        specs = []
        for number, (item, label) in enumerate(zip(items, labels)):
            if not item:
                raise refusal("BAD_VALUE", f"add_group: branch {number} is empty; give it a node, or leave it out")
            specs.append([(_label(part, label if len(item) == 1 else None, number), part._node) for part in item])
        return self._add(_Add([part for item in items for part in item], lambda core: core.add_group(specs)))

    def _add(self, add: _Add) -> Graph:
        with self._exclusively("add"):
            found = self._found or session_of(add.arrays())
            self._move(found or self._home or local_session())
            assert self._core is not None
            add.apply(self._core)
            self._found = found
            self._adds.append(add)
            self._calls.update(add.calls())
        return self

    # ---- building and launching

    def build(self, backend: str | None = None) -> Graph:
        """Refuses what could race, compiles the kernels, binds the arrays. Once.

        ``backend`` is None or "cpu". Raises RacingSiblings, GraphState for an empty or a built graph,
        MixedDevices for another backend; a failed build leaves the graph open.
        """
        if backend not in (None, "cpu"):
            raise refusal(
                "MIXED_DEVICES" if backend == "gpu" else "BAD_VALUE",
                f"build: backend {backend!r}: the planes of this graph live in host memory; say 'cpu' or leave it out",
            )
        with self._exclusively("build"):
            self._move(self._found or default_session())
            assert self._core is not None
            self._core.build()
        return self

    def launch(self, n: int = 1) -> Graph:
        """Runs the graph ``n`` times, one after another.

        What an opaque node raises reaches the caller unchanged: nodes after it and further repeats do not
        run, and the graph stays launchable. Ctrl-C ends the launch after the node that runs, and raises
        KeyboardInterrupt; a handler of yours for SIGINT that does not raise leaves an EagleError with reason
        CANCELLED. Raises GraphState before the build, Busy, SessionClosed.
        """
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise refusal("WRONG_TYPE", f"launch: n: expected a whole number, found {_kind(n)}")
        number = n.__index__()
        if not -(2**63) <= number < 2**63:
            raise refusal("BAD_VALUE", f"launch: n: {number} is over the range of int64")
        if self._core is None:
            raise refusal("GRAPH_STATE", "launch: this graph is empty and not built; add nodes, then call build()")
        report = self._core.launch(number, self._calls)
        self._report = GraphReport.of(report)
        if number > 0:
            for loop, count in zip(self._loops(), report.iterations):
                loop._iterations = count
        return self

    # ---- looking

    def edges(self) -> tuple[Edge, ...]:
        """Every edge, in node order; nothing is reduced. Works before the build, and on racing graphs."""
        return () if self._core is None else tuple(Edge(*row) for row in self._core.edges())

    def node_labels(self) -> list[str]:
        """The label of each node, by index: the given name, else the kernel's name, else the kind."""
        return [] if self._core is None else self._core.node_labels()

    @property
    def schedule(self) -> tuple[str, ...]:
        """How each stage runs, "work_share" or "branch_tasks"; () before the build."""
        return () if self._core is None else tuple(self._core.schedule())

    @property
    def backend(self) -> str | None:
        """``"cpu"``; None before the build."""
        return "cpu" if self._core is not None and self._core.built() else None

    @property
    def report(self) -> GraphReport | None:
        """What the last launch said about itself; None before the first."""
        return self._report

    @property
    def session(self) -> Session | None:
        """Where the graph runs; None while that is open."""
        return self._home if self.backend is not None else self._found

    def show(self) -> None:
        """Prints the picture of the graph, built or not."""
        print(self)

    def __str__(self) -> str:
        core = self._core or _core.Graph(local_session()._core, self._name)
        return core.show().rstrip("\n")

    def __repr__(self) -> str:
        state = "built" if self.backend else "not built"
        return f"<eagle.Graph {self._name or ''}{' ' if self._name else ''}{len(self.node_labels())} nodes, {state}>"

    # ---- details

    def _exclusively(self, method: str) -> _Exclusive:
        return _Exclusive(self._changing, method)

    def _loops(self) -> Iterable[Conditional]:
        for add in self._adds:
            for item in add.items:
                if isinstance(item, Conditional):
                    yield from item._loops()

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
        core = _core.Graph(home._core, self._name)
        for add in self._adds:
            add.apply(core)
        return core


class _Add:
    """One ``add``: its items, and how they enter a C++ graph."""

    def __init__(self, items: list[Any], apply: Callable[[_core.Graph], None]) -> None:
        self.items = items
        self.apply = apply

    def arrays(self) -> Iterable[Any]:
        for item in self.items:
            yield from item.planes.values() if isinstance(item, BoundPlan) else item._arrays

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


def _label(part: Any, name: Any, branch: int) -> str:
    if not isinstance(part, (BoundPlan, Node, Conditional)):
        raise refusal(
            "WRONG_TYPE",
            f"add_group: branch {branch}: expected a BoundPlan, an eagle.graph.Node or a conditional (or a list of "
            f"them), found {_kind(part)}",
        )
    own = None if isinstance(part, BoundPlan) else part.name
    return text("add_group: name", name) or own or ""
