"""Stepped runs that a reverse pass can go back over."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from eagle import _core
from eagle._kernel import Kernel
from eagle._model import Model, told_by
from eagle._nodes import Node
from eagle._progress import Watcher
from eagle._records import Record, callables_of
from eagle._results import RunReport, SimResult
from eagle._running import Options, Prepared
from eagle.errors import EagleError, refusal
from eagle.plan import BoundPlan
from eagle.planes import Plane
from eagle.session import Array, Session
from eagle.stepping import Simulation

_REAL = ("f64", "f32")
# What eagle.simulate takes beside the arguments of kernels, and recorded runs do not.
_NOT_RECORDED = ("record", "record_to", "every", "events", "shard")


class RunRecord(Record):
    """What the last run of a recorded model left."""

    def __init__(self, model: Model, runs: _core.RecordedModel) -> None:
        super().__init__(_inputs(model))
        self._model = model
        self._runs = runs

    def _core(self) -> _core.Record:
        return self._runs.record()

    def _callables(self) -> Iterable[tuple[str, Node]]:
        for part in self._model.parts:
            if isinstance(part, Node):
                yield from callables_of(part)

    def __repr__(self) -> str:
        return f"<eagle.diff.Record of a run of {self._model.n} samples>"


class RecordedSimulation(Simulation):
    """A model whose runs are recorded; made by :func:`eagle.diff.simulation` and its like.

    ``run()`` steps, and ``record`` is what :func:`eagle.diff.reverse` takes: it is of the last run, with the state
    from which that one began as what gradients are by. ``result`` is that of the last run.
    """

    def __init__(self, model: Model, options: Options, resets: bool) -> None:
        super().__init__(model, options, resets)
        try:
            labels = [part.kernel.name if isinstance(part, BoundPlan) else part.name or "" for part in model.parts]
            self._runs = _core.recorded_model(model.session._core, model.nodes(), labels, options.max_steps)
        except EagleError as error:
            raise told_by(options.where, "simulate", error) from None
        self._record = RunRecord(model, self._runs)
        self.result: SimResult | None = None

    @property
    def record(self) -> RunRecord:
        """What the last run left for a reverse pass."""
        return self._record

    def run(self, max_steps: int | None = None) -> SimResult:
        """Steps on as :meth:`eagle.Simulation.run` does, by no more steps than this was made for."""
        from eagle._running import whole

        options = self._options
        steps = options.max_steps if max_steps is None else whole("run: max_steps", max_steps)
        if steps > options.max_steps:
            raise refusal(
                "BAD_VALUE",
                f"run: max_steps: this was made for runs of at most {options.max_steps} steps, found {steps}; make "
                "another one",
            )
        with self._alone("run"):
            prepared = Prepared(self._model, options, steps)
            watcher = Watcher(options.where, options.progress, steps, self._model.n)
            prepared.arguments.progress = watcher.callback()
            report = None
            try:
                found = self._runs.run(prepared.arguments)
                report = RunReport.of(found.report)
            except EagleError as error:
                # What was raised in a callable of the user's, and so further in than here, is not ours to reword.
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise
                raise told_by(options.where, "simulate", error) from None
            finally:
                watcher.close(report)
            self.result = prepared.result(found)
        return self.result

    def __repr__(self) -> str:
        return f"<eagle.diff.RecordedSimulation of {self.n} samples, planes {', '.join(self.planes)}>"


def simulation(
    model: Any,
    /,
    *,
    max_steps: int,
    until: Kernel | None = None,
    steps: Any = "auto",
    dispatch: Any = None,
    progress: Any = False,
    timeout: float | None = None,
    session: Session | None = None,
    scalar_type: Any = None,
    _where: str = "diff.simulation",
    _resets: bool = True,
    **args: Any,
) -> RecordedSimulation:
    """:func:`eagle.simulation`, with runs that :func:`eagle.diff.reverse` can go back over.

    The arguments are those of :func:`eagle.simulation` but for ``record``, ``record_to``, ``every``, ``events`` and
    ``shard``; ``until`` is a kernel. A run costs one copy of what the steps overwrite, and computes what it would
    without a record.

    >>> import eagle
    >>> @eagle.kernel
    ... def grow(x: eagle.Mutable[eagle.Scalar], rate: eagle.Param, done: eagle.Terminated):
    ...     x = x * rate
    ...     done = x > 100.0
    >>> x, done = eagle.asarray([1.0, 30.0]), eagle.zeros(2, dtype=bool)
    >>> run = eagle.diff.simulation(grow, max_steps=50, x=x, rate=2.0, done=done)
    >>> run.run().steps
    7
    >>> gradients = eagle.diff.reverse(run.record, {"x": [1.0, 1.0]})
    >>> gradients["x"], gradients["rate"]
    (array([128.,   4.]), array(568.))
    """
    if until is not None and not isinstance(until, Kernel):
        raise refusal(
            "WRONG_TYPE",
            f"{_where}: until: expected a kernel, found {type(until).__name__}; a callable that looks at the run in "
            "between is not recorded",
        )
    for name in _NOT_RECORDED:
        if name in args:
            raise refusal(
                "BAD_VALUE",
                f"{_where}: {name}: eagle.simulate takes it, and a run that can be gone back over does not; leave it "
                "out here",
            )
    bound = Model(_where, model, args, until=until, session=session, scalar_type=scalar_type)
    options = Options(_where, max_steps, steps, dispatch, None, timeout)
    options.progress = progress
    Watcher(_where, progress, 1, 1)
    return RecordedSimulation(bound, options, _resets)


def simulate(model: Any, /, *, max_steps: int, **args: Any) -> RecordedSimulation:
    """:func:`simulation`, run once: ``result`` is what :func:`eagle.simulate` would return, ``record`` what
    :func:`eagle.diff.reverse` takes.

    >>> import eagle
    >>> @eagle.kernel
    ... def decay(x: eagle.Mutable[eagle.Scalar], rate: eagle.Scalar, done: eagle.Terminated):
    ...     x = x * rate
    ...     done = x < 0.1
    >>> run = eagle.diff.simulate(decay, max_steps=100, x=eagle.asarray([1.0]), rate=eagle.asarray([0.5]),
    ...                           done=eagle.zeros(1, dtype=bool))
    >>> run.result.steps, eagle.diff.reverse(run.record, {"x": [1.0]})["rate"]
    (4, array([0.5]))
    """
    made = simulation(model, max_steps=max_steps, _where="diff.simulate", _resets=False, **args)
    made.run()
    return made


def until_done(
    step: Any,
    /,
    *,
    max_steps: int,
    terminated: Array | None = None,
    session: Session | None = None,
    scalar_type: Any = None,
    **planes: Any,
) -> RecordedSimulation:
    """:func:`eagle.until_done`, with runs that :func:`eagle.diff.reverse` can go back over.

    Opaque nodes of the step are called once a step and recorded; their derivatives are given by their names, or
    ``"opaque"`` for one without.

    >>> import eagle
    >>> @eagle.kernel
    ... def count(x: eagle.Mutable[eagle.Scalar], rate: eagle.Param, done: eagle.Terminated):
    ...     x = x + rate
    ...     done = x >= 5
    >>> runner = eagle.diff.until_done(eagle.plan(count), max_steps=100, x=eagle.asarray([0.0, 3.0]), rate=1.0)
    >>> runner.run().steps, eagle.diff.reverse(runner.record, {"x": [1.0, 1.0]})["rate"]
    (5, array(7.))
    """
    if terminated is not None and not isinstance(terminated, (np.ndarray, Plane)):
        raise refusal(
            "WRONG_TYPE", f"diff.until_done: terminated: expected an array of bools, found {type(terminated).__name__}"
        )
    model = Model(
        "diff.until_done", step, planes, mask=terminated, makes_mask=True, session=session, scalar_type=scalar_type
    )
    if model.mask is None:
        raise refusal(
            "BAD_VALUE",
            "diff.until_done: the step has no stop rule; give one of its kernels a Terminated argument that it sets "
            "when a sample is done",
        )
    return RecordedSimulation(model, Options("diff.until_done", max_steps, "auto", None, None, None), True)


def _inputs(model: Model) -> tuple[str, ...]:
    """What a run is given, by name: a Param that kernels share is one number."""
    names: dict[str, None] = {}
    for part in model.parts:
        if isinstance(part, BoundPlan):
            for name, role, scalar, _ in part.rows:
                if scalar in _REAL and role in ("read", "mutable", "table", "param"):
                    names[name] = None
    return tuple(names)
