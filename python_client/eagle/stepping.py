"""Stepping: a model repeated until every sample has finished."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np

from eagle._kernel import Kernel
from eagle.errors import refusal
from eagle.plan import Plan
from eagle.session import Array, Host, Session

# Keywords of simulate, which an argument's name would hide.
_RESERVED = ("max_steps",)


class RunReport(NamedTuple):
    """What a run says about itself, as told by the process that computed.

    ``host`` is its (pid, name); ``finished`` counts the samples that this run finished, ``launches`` the
    passes over them; ``build_s`` and ``wall_s`` are seconds; ``compiled`` is False where compiled code was
    found in the cache. ``clamped`` counts indices outside of their table (the nearest element was taken),
    ``zero_divisions`` integer divisions by zero (which give 0).
    """

    host: Host
    n: int
    samples: int
    finished: int
    launches: int
    steps: int
    threads: int
    build_s: float
    wall_s: float
    compiled: bool
    clamped: int
    zero_divisions: int


class SimResult:
    """What came of a run: the caller's own arrays by name, as attributes and items, and how it ended.

    ``status`` is "finished", "max_steps", "cancelled" or "deadline"; ``steps`` the number of the last step that
    any sample took; ``finished`` the mask (None for a kernel without one) and ``done`` whether all of it is
    set; ``wall_s`` seconds. A plane whose name is one of these is reached as an item: ``result["steps"]``.
    """

    def __init__(self, planes: dict[str, Array], mask: str | None, status: str, report: RunReport) -> None:
        self._planes = planes
        self.finished: Array | None = planes[mask] if mask is not None else None
        self.done: bool = status == "finished"
        self.steps: int = report.steps
        self.status: str = status
        self.wall_s: float = report.wall_s
        self.report = report

    def __getitem__(self, name: str) -> Array:
        return self._planes[name]

    def __getattr__(self, name: str) -> Array:
        planes: dict[str, Array] = self.__dict__.get("_planes", {})
        if name in planes:
            return planes[name]
        raise AttributeError(f"a result has no '{name}'; its arrays are {', '.join(planes)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._planes)

    def keys(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(self._planes)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._planes]

    def __repr__(self) -> str:
        return (
            f"<eagle.SimResult {self.status}: {self.steps} steps, {self.report.finished} of {self.report.n} samples "
            f"finished, {self.wall_s:.3g} s>"
        )


def simulate(
    model: Kernel, /, *, max_steps: int, session: Session | None = None, scalar_type: Any = None, **args: Any
) -> SimResult:
    """Steps ``model`` until every sample has finished (its ``Terminated`` mask is set) or ``max_steps`` is reached.

    State and mask are updated in place; a finished sample is left as it is, and ``max_steps`` is exact. One
    request, however many steps: a daemon steps without the client. Ctrl-C ends the run after a whole step,
    raises KeyboardInterrupt and leaves the session usable.

    ``args`` are the kernel's arguments: arrays (N,) or (w, N), numbers for Params. Outputs that are not given
    are made. Raises EagleError before anything runs: TypeError for types, missing and extra arguments,
    ValueError for shapes and values.

    >>> import eagle
    >>> @eagle.kernel
    ... def grow(x: eagle.Mutable[eagle.Scalar], rate: eagle.Param, done: eagle.Terminated):
    ...     x = x * rate
    ...     done = x > 100.0
    >>> x, done = eagle.asarray([1.0, 30.0]), eagle.zeros(2, dtype=bool)
    >>> result = eagle.simulate(grow, max_steps=50, x=x, rate=2.0, done=done)
    >>> result.status, result.steps, result.x
    ('finished', 7, array([128., 120.]))
    """
    if not isinstance(model, Kernel):
        raise refusal(
            "WRONG_TYPE",
            f"simulate: expected a kernel as model, found {type(model).__name__}; decorate the step with @eagle.kernel",
        )
    for name in _RESERVED:
        if name in model.arguments:
            raise refusal(
                "BAD_BINDING", f"simulate: kernel '{model.name}' has an argument '{name}', a keyword here; rename it"
            )
    if isinstance(max_steps, (bool, np.bool_)) or not hasattr(max_steps, "__index__"):
        raise refusal("WRONG_TYPE", f"simulate: max_steps: expected a whole number, found {type(max_steps).__name__}")
    steps = max_steps.__index__()
    if not 0 <= steps < 2**63:
        raise refusal("BAD_VALUE", f"simulate: max_steps: expected a number from 0 to 2^63 - 1, found {steps}")
    bound = Plan(model, scalar_type).bind(session=session, **args)
    result = bound.session._core.simulate(bound._node, steps)
    masks = [name for name in model.arguments if model.role(name).kind == "terminated"]
    return SimResult(bound.planes, masks[0] if masks else None, result.status, _report(result.report))


def _report(found: Any) -> RunReport:
    return RunReport(
        host=Host(found.host.pid, found.host.host_name),
        n=found.samples,
        samples=found.samples,
        finished=found.finished,
        launches=found.launches,
        steps=found.steps,
        threads=found.threads,
        build_s=found.build_s,
        wall_s=found.wall_s,
        compiled=found.compiled,
        clamped=found.clamped,
        zero_divisions=found.zero_divisions,
    )
