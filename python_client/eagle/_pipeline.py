"""GraphPipeline: steps in order, which can be switched on and off between launches."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence, Union

import numpy as np

from eagle._nodes import Conditional, Node, SkipGuard, opaque, skippable
from eagle.errors import refusal, text
from eagle.graph import Graph, GraphReport
from eagle.plan import BoundPlan
from eagle.session import Session, check_session, default_session, session_of

Step = Union[Callable[[], Any], Node, Conditional, BoundPlan]


class GraphPipeline:
    """Steps that you order yourself: callables without arguments, and also nodes and bound plans.

    ``add`` appends a step, ``add_concurrent`` a stage of steps that may run at the same time. Every step is a member,
    called by its name or by its index in the order of registration; a member that is switched off is skipped, without
    a rebuild. Every verb returns the pipeline. One caller at a time: a second one gets ``eagle.Busy``.

    >>> import eagle
    >>> ran = []
    >>> pipe = eagle.GraphPipeline().add(lambda: ran.append("move"), name="move").add(lambda: ran.append("look"))
    >>> _ = pipe.build().launch(2).set_member_enabled("move", False).launch()
    >>> ran
    ['move', 'look', 'move', 'look', 'look']
    >>> pipe.node_labels(), pipe.member_nodes("move")
    (['move', 'step1'], [0])
    """

    def __init__(self, session: Session | None = None) -> None:
        check_session("GraphPipeline", session)
        self._session = session
        self._stages: list[list[int]] = []
        self._steps: list[Step] = []
        self._names: list[str] = []
        self._enabled: list[bool] = []
        self._cells: Any = None  # by member; looked at by the guards of steps that the engine runs
        self._graph: Graph | None = None

    def add(self, step: Step, *, name: str | None = None) -> GraphPipeline:
        """Appends a step. Raises EagleError: TypeError for what cannot run, GraphState after the build."""
        self._open("add")
        self._stages.append([self._member("add", step, name)])
        return self

    def add_concurrent(self, members: Sequence[Step], *, names: Sequence[str | None] | None = None) -> GraphPipeline:
        """Appends a stage of at least two steps that may run at the same time, and join before the next one."""
        self._open("add_concurrent")
        if isinstance(members, (str, bytes)) or not isinstance(members, Iterable):
            raise refusal(
                "WRONG_TYPE", f"add_concurrent: members: expected a list of steps, found {type(members).__name__}"
            )
        steps = list(members)
        if len(steps) < 2:
            raise refusal("BAD_VALUE", f"add_concurrent: expected at least 2 members, found {len(steps)}; use add")
        labels = list(names) if names is not None else [None] * len(steps)
        if len(labels) != len(steps):
            raise refusal("BAD_VALUE", f"add_concurrent: {len(labels)} names for {len(steps)} members; give one each")
        for step, label in zip(steps, labels):
            self._check("add_concurrent", step, label)
        self._stages.append([self._member("add_concurrent", step, label) for step, label in zip(steps, labels)])
        return self

    def build(self) -> GraphPipeline:
        """Builds the graph of its steps. Once; raises GraphState where there are none, and as ``Graph.build`` does."""
        self._open("build")
        if not self._steps:
            raise refusal("GRAPH_STATE", "build: this pipeline is empty; add steps first")
        home = self._session or session_of(self._arrays()) or default_session()
        cells = home.full(len(self._steps), 1, dtype=np.int32)
        graph = Graph(home)
        nodes = [self._node(index, cells) for index in range(len(self._steps))]
        for stage in self._stages:
            if len(stage) == 1:
                graph.add_node(nodes[stage[0]], name=self._names[stage[0]])
            else:
                graph.add_group([nodes[index] for index in stage], names=[self._names[index] for index in stage])
        graph.build()
        self._cells, self._graph = cells, graph
        return self

    def launch(self, n: int = 1) -> GraphPipeline:
        """Runs the steps ``n`` times."""
        self._built("launch").launch(n)
        return self

    def enqueue(self, n: int = 1) -> GraphPipeline:
        """Queues ``n`` runs, as :meth:`eagle.Graph.enqueue` does."""
        self._built("enqueue").enqueue(n)
        return self

    def synchronize(self) -> GraphPipeline:
        """Waits for what was enqueued. Nothing in flight is fine."""
        self._built("synchronize").synchronize()
        return self

    def set_member_enabled(self, member: str | int, enabled: bool) -> GraphPipeline:
        """Switches a member on or off, from the next run on; needs a build. Raises EagleError for an unknown one."""
        self._built("set_member_enabled")
        if not isinstance(enabled, (bool, np.bool_)):
            raise refusal(
                "WRONG_TYPE", f"set_member_enabled: enabled: expected True or False, found {type(enabled).__name__}"
            )
        index = self._index("set_member_enabled", member)
        self._enabled[index] = bool(enabled)
        self._cells[index] = 1 if enabled else 0
        return self

    def member_nodes(self, member: str | int) -> list[int]:
        """The nodes of a member, as indices into :meth:`node_labels`; needs a build."""
        self._built("member_nodes")
        return [self._index("member_nodes", member)]

    def node_labels(self) -> list[str]:
        """The labels of the nodes, in the order of registration; needs a build."""
        return self._built("node_labels").node_labels()

    @property
    def schedule(self) -> tuple[str, ...]:
        """How each stage runs; () before the build."""
        return () if self._graph is None else self._graph.schedule

    @property
    def report(self) -> GraphReport | None:
        """What the last launch said about itself; None before the first."""
        return None if self._graph is None else self._graph.report

    def __str__(self) -> str:
        return str(self._graph) if self._graph is not None else f"eagle.GraphPipeline of {len(self._steps)} members"

    def __repr__(self) -> str:
        members = len(self._steps)
        state = "built" if self._graph is not None else "not built"
        return f"<eagle.GraphPipeline of {members} member{'' if members == 1 else 's'}, {state}>"

    # ---- details

    def _check(self, method: str, step: Any, name: Any) -> str:
        if not (isinstance(step, (Node, Conditional, BoundPlan)) or callable(step)):
            raise refusal(
                "WRONG_TYPE",
                f"{method}: expected a callable without arguments, a node or a BoundPlan, found {type(step).__name__}",
            )
        label = text(f"{method}: name", name)
        if label and label in self._names:
            raise refusal("BAD_VALUE", f"{method}: there is a member {label!r} already; names are for one member each")
        return label

    def _member(self, method: str, step: Any, name: Any) -> int:
        label = self._check(method, step, name)
        self._steps.append(step)
        self._names.append(label or f"step{len(self._names)}")
        self._enabled.append(True)
        return len(self._steps) - 1

    def _node(self, index: int, cells: Any) -> Node | Conditional:
        step = self._steps[index]
        if not isinstance(step, (Node, Conditional, BoundPlan)):

            def run() -> None:
                if self._enabled[index]:
                    step()

            return opaque(run)
        return skippable(step, SkipGuard(cells, index))

    def _arrays(self) -> Iterable[Any]:
        for step in self._steps:
            if isinstance(step, BoundPlan):
                yield from step.planes.values()
            elif isinstance(step, (Node, Conditional)):
                yield from step._arrays

    def _open(self, method: str) -> None:
        if self._graph is not None:
            raise refusal("GRAPH_STATE", f"{method}: this pipeline is built, and stays as it is; make another one")

    def _built(self, method: str) -> Graph:
        if self._graph is None:
            raise refusal("GRAPH_STATE", f"{method}: this pipeline is not built; call build() first")
        return self._graph

    def _index(self, method: str, member: Any) -> int:
        if isinstance(member, str) and member in self._names:
            return self._names.index(member)
        if isinstance(member, int) and not isinstance(member, bool) and 0 <= member < len(self._names):
            return member
        known = ", ".join(repr(name) for name in self._names[:20])
        raise refusal("UNKNOWN_NAME", f"{method}: there is no member {member!r}; this pipeline has {known}")
