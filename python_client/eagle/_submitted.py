"""Runs that go on by themselves: submitted, looked at, found again."""

from __future__ import annotations

from typing import Any

import numpy as np

from eagle import _core
from eagle._kernel import Kernel
from eagle._progress import RunProgress
from eagle._results import RunReport, SimResult
from eagle._running import Prepared, seconds_of
from eagle.errors import refusal, text
from eagle.session import Session


def submit(
    model: Any,
    /,
    *,
    max_steps: int,
    until: Kernel | None = None,
    steps: Any = "auto",
    dispatch: Any = None,
    record: Any = False,
    every: int | None = None,
    events: bool = False,
    shard: tuple[int, int, int] | None = None,
    lease: float = 86400,
    name: str | None = None,
    session: Session | None = None,
    scalar_type: Any = None,
    **args: Any,
) -> Run:
    """Starts what :func:`simulate` would run and returns at once.

    In a daemon the run outlives this process: it goes on when the session ends, and another session of the same user
    finds it again (``session.runs()``, ``session.run(id)``) until its result is taken there or ``lease`` seconds are
    over. In process it runs on a thread and ends with the session. Nobody can be called meanwhile: opaque nodes,
    callables and files are refused. ``name`` is for people.

    >>> import eagle
    >>> @eagle.kernel
    ... def count(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    ...     x = x + 1
    ...     done = x >= 5
    >>> run = eagle.submit(count, max_steps=100, x=eagle.zeros(3), done=eagle.zeros(3, dtype=bool))
    >>> run.result().status
    'finished'
    """
    if until is not None and not isinstance(until, Kernel):
        raise refusal("WRONG_TYPE", f"submit: until: expected a kernel, found {type(until).__name__}")
    from eagle.stepping import simulation  # which imports this

    made = simulation(
        model,
        max_steps=max_steps,
        until=until,
        steps=steps,
        dispatch=dispatch,
        record=record,
        every=every,
        events=events,
        shard=shard,
        session=session,
        scalar_type=scalar_type,
        _where="submit",
        _resets=False,
        **args,
    )
    if isinstance(lease, (bool, np.bool_)) or not isinstance(lease, (int, float, np.integer, np.floating)):
        raise refusal("WRONG_TYPE", f"submit: lease: expected seconds, found {type(lease).__name__}")
    bound, options = made._model, made._options
    prepared = Prepared(bound, options, options.max_steps)
    kept = list(bound.planes.items())
    if prepared.recording is not None:
        kept += [(f"{_RECORD}{plane}", rows) for plane, rows in prepared.recording.arrays.items()]
    if prepared.stop_step is not None:
        kept.append((_STOP_STEP, prepared.stop_step))
    number = _core.submit_run(
        bound.session._core,
        bound.nodes(),
        prepared.arguments,
        float(lease),
        text("submit: name", name),
        kept,
        bound.mask or "",
    )
    return Run(bound.session, number, prepared)


# Planes of a submitted run that are none of its model's. (No argument has such a name.)
_RECORD = "record:"
_STOP_STEP = "events:stop_step"


class Run:
    """A run that was submitted: by :func:`submit` in this process, or found again with ``session.run(id)``."""

    def __init__(self, session: Session, number: int, prepared: Prepared | None = None) -> None:
        self._session = session
        self._prepared = prepared
        self._result: SimResult | None = None
        self.id = number

    def progress(self) -> RunProgress:
        """How far it is. Raises EagleError (a ValueError) where the host keeps it no longer."""
        if self._result is not None:
            report = self._result.report
            return RunProgress(report.steps, report.finished, report.steps, report.n)
        state = self._state()
        mask = next((shape for name, _, shape, _ in state["planes"] if name == state["mask"]), ())
        return RunProgress(state["steps"], state["finished"], state["max_steps"], mask[-1] if mask else 0)

    @property
    def ended(self) -> bool:
        """Whether there is a result."""
        return self._result is not None or bool(self._state()["ended"])

    def result(self, timeout: float | None = None) -> SimResult:
        """Waits for the end (at most ``timeout`` seconds) and gives the result; the host then keeps the run no longer.

        In the process that submitted it, the arrays are those that it was given; elsewhere they are new ones. Raises
        DeadlineExceeded after the timeout: the run goes on.
        """
        if self._result is None:
            seconds = 0.0 if timeout is None else seconds_of("result", timeout)
            found = _core.wait_run(self._session._core, self.id, seconds)
            self._result = self._fetched(found) if self._prepared is None else self._own(found)
        return self._result

    def cancel(self) -> None:
        """Ends the run at whole steps; its result says how many there are."""
        _core.cancel_run(self._session._core, self.id)

    def _state(self) -> dict[str, Any]:
        return _core.run_state(self._session._core, self.id)

    def _own(self, found: _core.RunResult) -> SimResult:
        assert self._prepared is not None
        _core.fetch_run(self._session._core, self.id, [])
        return self._prepared.result(found)

    def _fetched(self, found: _core.RunResult) -> SimResult:
        state = self._state()
        arrays = {
            name: self._session.zeros(shape, dtype, device or None, name)
            for name, dtype, shape, device in state["planes"]
        }
        _core.fetch_run(self._session._core, self.id, list(arrays.items()))
        report = RunReport.of(found.report)
        records = {
            name[len(_RECORD) :]: arrays.pop(name)[: report.records]
            for name in list(arrays)
            if name.startswith(_RECORD)
        }
        stop_step = arrays.pop(_STOP_STEP, None)
        return SimResult(
            arrays,
            state["mask"] or None,
            found.status,
            report,
            records=records,
            stop_step=stop_step,
            ranges=found.report.ranges,
        )

    def __repr__(self) -> str:
        return f"<eagle.Run {self.id}>"
