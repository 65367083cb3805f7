"""Graphs of kernels over the planes of a sharded batch."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from eagle._kernel import Kernel, kernel
from eagle._running import whole
from eagle.cluster._driver import Engine
from eagle.cluster._kernels import kernel_of
from eagle.cluster._results import Sharded, run
from eagle.cluster._work import RESERVED, work_of
from eagle.errors import refusal

# A stepped run ends by its samples, or by a number of steps where none ever finishes.
_GOES_ON = kernel(source="def goes_on(done: Terminated):\n    done = False")


class _Plane:
    """A plane of a graph: an array that was given, or what a node makes."""

    def __init__(self, graph: ShardedGraph, name: str) -> None:
        self.graph, self.name = graph, name

    def __repr__(self) -> str:
        return f"<plane '{self.name}' of a sharded graph>"


class ShardedPlanes(Mapping[str, Any]):
    """What a node touches: its planes by argument, as items and attributes, to be arguments of later nodes."""

    def __init__(self, planes: Mapping[str, _Plane]) -> None:
        self._planes = dict(planes)

    def __getitem__(self, name: str) -> _Plane:
        if name not in self._planes:
            raise refusal("UNKNOWN_NAME", f"the node has no plane '{name}'; it has {', '.join(self._planes)}")
        return self._planes[name]

    def __getattr__(self, name: str) -> _Plane:
        if name.startswith("_") or name not in self._planes:
            raise AttributeError(f"the node has no plane '{name}'; it has {', '.join(self._planes)}")
        return self._planes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._planes)

    def __len__(self) -> int:
        return len(self._planes)


class ShardedGraph:
    """Kernels in the order they are added, over arrays of the whole batch; each worker runs all of them on its shard.

    ``add`` takes a kernel and its arguments by name: arrays, planes of nodes that were added before, numbers for
    Params. Outputs are made where they are computed. ``launch(n)`` runs the whole n times, and the next launch goes on
    from there. It returns what came of it; ``result[node.y]`` is a plane of that.

    Nodes run in their order, sample by sample, so that nothing can race and there is nothing to group. Refused are
    kernels that finish samples (see ``simulate``), and what one shard cannot know: a table that another node writes.
    """

    _kind: type[Sharded] = Sharded

    def __init__(
        self, engine: Engine, *, chunks: Any = None, endpoint: str | None = None, where: str = "Graph"
    ) -> None:
        self._engine, self._chunks, self._endpoint, self._where = engine, chunks, endpoint, where
        self._kernels: list[Kernel] = []
        self._renamed: list[list[tuple[str, str]]] = []
        self._given: dict[str, Any] = {}  # arrays and numbers, by plane or Param
        self._planes: list[tuple[Any, _Plane]] = []  # arrays that were given, and what they are here
        self._changed: list[str] = []
        self._names: set[str] = set()

    def add(self, kernel: Any, /, **arguments: Any) -> ShardedPlanes:
        """Adds a launch of a kernel. Returns its planes by argument name."""
        found = kernel_of(f"{self._where}: add", kernel)
        translation = found.translation("f64")
        rows = translation.kernel.arguments
        unknown = sorted(arguments.keys() - {name for name, _, _, _ in rows})
        if unknown:
            raise refusal(
                "BAD_BINDING",
                f"{self._where}: add: kernel '{found.name}' has no argument '{unknown[0]}'; it takes "
                f"{', '.join(repr(name) for name, _, _, _ in rows)}",
            )
        renamed: list[tuple[str, str]] = []
        planes: dict[str, _Plane] = {}
        given: dict[str, Any] = {}
        fresh: list[tuple[Any, _Plane]] = []
        taken = set(self._names)
        for name, role, _, _ in rows:
            plane = self._plane(found, name, role, arguments, taken, given, fresh)
            renamed.append((name, plane.name))
            if role != "param":
                planes[name] = plane
        names = [plane.name for plane in planes.values()]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise refusal(
                "BAD_BINDING",
                f"{self._where}: add: kernel '{found.name}': one plane for two arguments, "
                f"{' and '.join(repr(name) for name, plane in planes.items() if plane.name == double)}; give one of "
                "them a copy",
            )
        self._names = taken
        self._given.update(given)
        self._planes += fresh
        self._kernels.append(found)
        self._renamed.append(renamed)
        self._changed += [planes[name].name for name, role, _, _ in rows if role in ("mutable", "accum")]
        return ShardedPlanes(planes)

    def launch(self, n: int = 1) -> Sharded:
        """Runs all nodes, in order, n times over each shard: as one run of n steps."""
        if not self._kernels:
            raise refusal("GRAPH_STATE", f"{self._where}: launch: the graph is empty; add kernels first")
        times = whole(f"{self._where}: launch: n", n)
        if times > 1 and any("step_index" in kernel.translation("f64").kernel.text for kernel in self._kernels):
            for _ in range(times - 1):  # in a graph each launch is the first step
                self._run(1)
            return self._run(1)
        return self._run(times)

    # ---- details

    def _run(self, times: int) -> Sharded:
        mask = [("done", _unused("goes_on", self._names))]
        work = work_of(
            f"{self._where}: launch",
            [*self._kernels, _GOES_ON],
            self._given,
            until=None,
            chunks=self._chunks,
            parts=max(1, self._engine.workers()),
            endpoint=self._endpoint,
            options={"max_steps": times},
            renamed=[*self._renamed, mask],
        )
        result = run(self._engine, work, f"{self._where}: launch", self._kind)
        for name in self._changed:
            if name in self._given:
                self._given[name] = self._source(result[name])
        return result

    def _source(self, value: Any) -> Any:
        """An array as this engine's batches take it."""
        return value

    def _plane(
        self,
        kernel: Kernel,
        name: str,
        role: str,
        arguments: Mapping[str, Any],
        taken: set[str],
        given: dict[str, Any],
        fresh: list[tuple[Any, _Plane]],
    ) -> _Plane:
        where = f"{self._where}: add: kernel '{kernel.name}'"
        if role == "terminated":
            raise refusal(
                "BAD_VALUE",
                f"{where}: '{name}' finishes samples, which a stepped run knows how to leave out; use simulate for it",
            )
        value = arguments.get(name)
        if isinstance(value, _Plane):
            if value.graph is not self:
                raise refusal(
                    "BAD_BINDING",
                    f"{where}: '{name}' is a {value!r}, another one; launch that one, and pass what came of it",
                )
            return value
        made = role in ("output", "reduce")
        if value is None and not made:
            raise refusal("BAD_BINDING", f"{where}: argument '{name}' is missing: pass {name}=")
        if value is not None and made:
            raise refusal("BAD_BINDING", f"{where}: '{name}' is an output, which is made where it is computed")
        if not made and role != "param":
            for array, known in (*self._planes, *fresh):
                if array is value:
                    return known
        plane = _Plane(self, _unused(name, taken))
        taken.add(plane.name)
        if not made:
            given[plane.name] = self._source(value)
        if not made and role != "param":
            fresh.append((value, plane))
        return plane


def _unused(name: str, taken: set[str]) -> str:
    """The name, or with a number: planes of a model go by name."""
    if name not in taken and name not in RESERVED:
        return name
    return next(f"{name}_{i}" for i in range(2, len(taken) + 3) if f"{name}_{i}" not in taken)
