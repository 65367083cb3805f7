"""What graphs say of their launches and of how they are executed."""

from __future__ import annotations

from eagle import _core
from eagle._data_classes import NamedTuple
from eagle.session import Host


class ScratchUse(NamedTuple):
    """What became of a scratch plane: ``offset`` is in the graph's own memory, where planes may take turns."""

    name: str
    bytes: int
    in_memory: bool
    offset: int


class ExecutedGroup(NamedTuple):
    """Kernels that run block of samples by block of samples; see ``docs/manual/execution.md``.

    ``functions`` are compiled functions, in order, each the ``(index, label)`` of its nodes. ``block`` samples go
    through all of them before the next ones do. ``bytes`` is what one run loads and stores of planes of samples.
    """

    functions: tuple[tuple[tuple[int, str], ...], ...]
    samples: int
    block: int
    threads: int
    bytes: int


class Execution(NamedTuple):
    """How the kernels of a graph run: ``fusion`` is ``"full"``, or what ``EAGLED_FUSION`` said.

    ``bytes`` is of a launch in which every node runs once; ``left_out`` counts groups that are not listed.
    """

    fusion: str
    groups: tuple[ExecutedGroup, ...]
    left_out: int
    bytes: int

    @classmethod
    def of(cls, core: _core.Graph) -> Execution:
        """Of the last build."""
        fusion, groups, left_out, size = core.execution()
        return cls(fusion, tuple(ExecutedGroup(*row) for row in groups), left_out, size)


class GraphReport(NamedTuple):
    """What a launch says about itself, and the graph: :class:`eagle.plan.LaunchReport`, scratch planes, execution."""

    host: Host
    launches: int
    threads: int
    wall_s: float
    clamped: int
    zero_divisions: int
    dropped: int
    scratch: tuple[ScratchUse, ...]
    execution: Execution
