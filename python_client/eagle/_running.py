"""One run of a model: what it was asked for, and the callables that it is given."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np

from eagle import _core
from eagle._model import Model, told_by
from eagle._nodes import _numbers
from eagle._policies import policies
from eagle._progress import Watcher
from eagle._recording import Recording
from eagle._results import RunReport, ShardPart, SimResult
from eagle.errors import EagleError, refusal
from eagle.session import Array

_LOOK_EVERY = 64  # steps between two looks of a Python callable, where nobody says

_RUNNING = ("simulate", "run_until_done")  # make and run; the others are run by their `run`


class Options:
    """How a model is to be run."""

    look: Callable[[], Any] | None = None
    record_to: Any = None
    events = False
    progress: Any = False
    shard: tuple[int, int, int] | None = None

    def __init__(self, where: str, max_steps: Any, steps: Any, dispatch: Any, every: Any, timeout: Any) -> None:
        self.where = where if where in _RUNNING else "run"
        self.max_steps = whole(f"{where}: max_steps", max_steps)
        self.steps = 0 if steps == "auto" and isinstance(steps, str) else whole(f"{where}: steps", steps, least=1)
        self.dispatch = policies(where, dispatch)
        self.every = None if every is None else whole(f"{where}: every", every, least=1)
        self.timeout = 0.0 if timeout is None else seconds_of(where, timeout)
        self.record: list[str] = []


class Prepared:
    """What the core is given for one run, and what is made of its result."""

    def __init__(self, model: Model, options: Options, max_steps: int) -> None:
        self._model, self._options = model, options
        arguments = self.arguments = _core.RunArguments()
        arguments.max_steps = max_steps
        arguments.steps = options.steps
        arguments.timeout = options.timeout
        arguments.dispatch = options.dispatch
        calls = model.calls()
        between: list[tuple[int, int]] = []

        def call(function: Callable[[], Any], every: int) -> None:
            number = next(_numbers)
            calls[number] = function
            between.append((number, every))

        self.recording: Recording | None = None
        if options.record:
            made = Recording(options.where, model, options.record, options.every or 1, max_steps, options.record_to)
            arguments.record = list(made.arrays.items())
            arguments.every = made.every
            arguments.initial = made.initial
            if made.drained_every is not None:
                call(made.drain, made.drained_every)
            self.recording = made
        if options.look is not None:
            call(options.look, options.every or _LOOK_EVERY)
        self.stop_step: Array | None = None
        if options.events:
            self.stop_step = model.session.zeros(model.n, np.int64, model.device, "stop_step")
            arguments.stop_steps = self.stop_step
        arguments.shard = options.shard
        arguments.between = between
        arguments.calls = calls

    def result(self, found: _core.RunResult) -> SimResult:
        """The result as users have it."""
        report = RunReport.of(found.report)
        records: dict[str, Array] = {}
        if self.recording is not None:
            records, rows = self.recording.finish(report.records)
            report = report._replace(records=rows)
        return SimResult(
            dict(self._model.planes),
            self._model.mask,
            found.status,
            report,
            records=records,
            every=self._options.every or 1,
            stop_step=self.stop_step,
            ranges=found.report.ranges,
            shard=self._part(found),
            labels=self._model.labels,
        )

    def _part(self, found: _core.RunResult) -> ShardPart | None:
        if self._options.shard is None:
            return None
        return ShardPart(self._options.shard, found.to_bytes(), self._model.roles())


def run(model: Model, options: Options, max_steps: int) -> SimResult:
    """Steps the model on, by at most ``max_steps``."""
    prepared = Prepared(model, options, max_steps)
    watcher = Watcher(options.where, options.progress, max_steps, model.n)
    prepared.arguments.progress = watcher.callback()
    report = None
    refused = False
    try:
        if prepared.recording is not None:
            prepared.recording.start()
        found = _simulated(options.where, model, prepared.arguments)
        report = RunReport.of(found.report)
    except EagleError:
        refused = True  # or it broke; either way it is not the caller who ended it
        raise
    finally:
        watcher.close(report)
        if prepared.recording is not None and report is None:
            prepared.recording.close(keep=not refused)
    return prepared.result(found)


def _simulated(where: str, model: Model, arguments: _core.RunArguments) -> _core.RunResult:
    try:
        return _core.simulate(model.session._core, model.nodes(), arguments)
    except EagleError as error:
        # What was raised in a callable of the user's, and so further in than here, is not ours to reword.
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise
        raise told_by(where, "simulate", error) from None


def look(where: str, until: Any, model: Model) -> Callable[[], Any]:
    """What is called between steps."""
    if not callable(until):
        raise refusal("WRONG_TYPE", f"{where}: until: expected a kernel or a callable, found {type(until).__name__}")
    try:
        takes = inspect.signature(until)
    except ValueError:  # a builtin without a signature
        return lambda: until()
    if _fits(takes):
        return lambda: until()
    planes = SimpleNamespace(**model.shown)
    if not _fits(takes, planes):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: until: expected a callable without arguments, or of the planes alone, found one of {takes}",
        )
    return lambda: until(planes)


def _fits(signature: inspect.Signature, *arguments: Any) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def whole(where: str, value: Any, least: int = 0) -> int:
    """The value as an int of at least ``least`` that fits 64 bits."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise refusal("WRONG_TYPE", f"{where}: expected a whole number, found {type(value).__name__}")
    number = int(value.__index__())
    if not least <= number < 2**63:
        raise refusal("BAD_VALUE", f"{where}: expected a number from {least} to 2^63 - 1, found {number}")
    return number


def shard_of(where: str, value: Any) -> tuple[int, int, int] | None:
    """(base, count, n), each a whole number; what they may be is the engine's to say."""
    if value is None:
        return None
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        raise refusal("WRONG_TYPE", f"{where}: shard: expected (base, count, n), found {value!r}")
    base, count, n = (whole(f"{where}: shard", number) for number in value)
    return base, count, n


def seconds_of(where: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise refusal("WRONG_TYPE", f"{where}: timeout: expected seconds, found {type(value).__name__}")
    if not 0 < value <= 1e9:
        raise refusal("BAD_VALUE", f"{where}: timeout: expected seconds above 0, found {value}")
    return float(value)


def count_of(method: str, n: Any) -> int:
    """A number of launches, as the core takes it."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise refusal("WRONG_TYPE", f"{method}: n: expected a whole number, found {type(n).__name__}")
    number = int(n.__index__())
    if not -(2**63) <= number < 2**63:
        raise refusal("BAD_VALUE", f"{method}: n: {number} is over the range of int64")
    return number
