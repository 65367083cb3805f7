"""Stepping: a model repeated until every sample has finished."""

from __future__ import annotations

import inspect
import threading
from contextlib import contextmanager
from typing import Any, Iterator, Mapping

import numpy as np

from eagle._kernel import Kernel, is_labelled
from eagle._model import Model
from eagle._progress import RunProgress, Watcher
from eagle._recording import recorded_names
from eagle._results import GroupReport, RunReport, SimResult
from eagle._running import Options, look, run, shard_of, whole
from eagle._shards import combine_shards, shards
from eagle._submitted import Run, submit
from eagle.errors import refusal
from eagle.planes import Plane
from eagle.session import Array, Session

__all__ = [
    "GroupReport",
    "Run",
    "RunProgress",
    "RunReport",
    "Runner",
    "SimResult",
    "Simulation",
    "combine_shards",
    "run_until_done",
    "shards",
    "simulate",
    "simulation",
    "submit",
    "until_done",
]


def simulate(
    model: Any,
    /,
    *,
    max_steps: int,
    until: Any = None,
    steps: Any = "auto",
    dispatch: Any = None,
    record: Any = False,
    record_to: Any = None,
    progress: Any = False,
    every: int | None = None,
    events: bool = False,
    timeout: float | None = None,
    shard: tuple[int, int, int] | None = None,
    session: Session | None = None,
    scalar_type: Any = None,
    **args: Any,
) -> SimResult:
    """Steps ``model`` until every sample has finished (its ``Terminated`` mask is set) or ``max_steps`` is reached.

    ``model`` is a kernel or a list of kernels: one step is all of them in order, over planes that they share by name.
    The list may hold opaque nodes, which are called once a step in this thread. State and mask are updated in place; a
    finished sample is left as it is by all of them, and ``max_steps`` is exact. One request, however many steps: a
    daemon steps without the client. Ctrl-C ends the run after a whole step, raises KeyboardInterrupt and leaves the
    session usable.

    ``args`` are the kernels' arguments: arrays (N,) or (w, N), numbers for Params. Outputs that are not given are made.
    Of ``xarray.DataArray`` arguments dimensions and coordinates are kept: planes, masks and records have them.
    ``until`` is one more kernel, which finishes samples by their state at the end of each step (its mask is made where
    nobody gives one), or a callable that is looked at after each ``every`` steps (64 where that is None) and ends the
    run by returning something true; it is called with the planes (``planes.x``), or with nothing if it takes nothing.
    ``steps`` is how many steps one pass takes; ``dispatch`` a policy for the dispatch groups that their author left
    open, or policies by group. ``record`` names planes, of which a row is kept for each ``every`` steps (1 where that
    is None) and the start, in ``result.records``; True is all state. ``record_to`` writes them to .npy files instead.
    ``events=True`` gives ``result.stop_step``. ``progress`` is True for a bar, or a callable that is given a
    :class:`RunProgress` some twenty times a second and ends the run by returning False. ``timeout`` is seconds.
    ``shard=(base, count, n)`` says that the arrays hold samples base, ..., base + count - 1 of a batch of n: they get
    what they would get in a run of all of it, wherever the other shards run; see :func:`combine_shards`.

    Raises EagleError before anything runs: TypeError for types, missing and extra arguments, ValueError for shapes
    and values.

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
    return simulation(
        model,
        max_steps=max_steps,
        until=until,
        steps=steps,
        dispatch=dispatch,
        record=record,
        record_to=record_to,
        progress=progress,
        every=every,
        events=events,
        timeout=timeout,
        shard=shard,
        session=session,
        scalar_type=scalar_type,
        _where="simulate",
        _resets=False,
        **args,
    ).run()


def simulation(
    model: Any,
    /,
    *,
    max_steps: int,
    until: Any = None,
    steps: Any = "auto",
    dispatch: Any = None,
    record: Any = False,
    record_to: Any = None,
    progress: Any = False,
    every: int | None = None,
    events: bool = False,
    timeout: float | None = None,
    shard: tuple[int, int, int] | None = None,
    session: Session | None = None,
    scalar_type: Any = None,
    _where: str = "simulation",
    _resets: bool = True,
    **args: Any,
) -> Simulation:
    """What :func:`simulate` would run, to be run as often as wanted: ``run()`` goes on from where the planes stand,
    ``reset()`` brings them back to where they stood when this was made.

    >>> import eagle
    >>> @eagle.kernel
    ... def count(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    ...     x = x + 1
    ...     done = x >= 5
    >>> run = eagle.simulation(count, max_steps=3, x=eagle.zeros(2), done=eagle.zeros(2, dtype=bool))
    >>> run.run().status, run.run().steps, run.reset().run().steps
    ('max_steps', 2, 3)
    """
    named = until if isinstance(until, Kernel) else None
    bound = Model(
        _where,
        model,
        args,
        reserved=_RESERVED,
        until=named,
        labelled=True,
        session=session,
        scalar_type=scalar_type,
    )
    options = Options(_where, max_steps, steps, dispatch, every, timeout)
    options.shard = shard_of(_where, shard)
    if until is not None and named is None:
        if shard is not None:
            raise refusal(
                "BAD_VALUE",
                f"{_where}: until: a callable looks at the samples of one shard and ends that alone; give a kernel, "
                "which finishes each sample by its own state, or run the whole batch in one",
            )
        options.look = look(_where, until, bound)
    options.record = recorded_names(_where, bound, record)
    options.record_to = record_to
    if record_to is not None and not options.record:
        raise refusal("BAD_VALUE", f"{_where}: record_to: nothing is recorded; name planes with record=")
    options.events = bool(events)
    options.progress = progress
    Watcher(_where, progress, 1, 1)
    return Simulation(bound, options, _resets)


class Simulation:
    """A model over its planes, ready to run; made by :func:`simulation`."""

    def __init__(self, model: Model, options: Options, resets: bool = True) -> None:
        self._model = model
        self._options = options
        # What `reset` goes back to; nothing where nobody can ask for that: it may be large, or have to travel.
        self._start = [(array, np.array(array)) for array in model.changed()] if resets else []
        self._in_use = threading.Lock()

    @property
    def planes(self) -> Mapping[str, Array]:
        """The arrays by name, outputs included."""
        return dict(self._model.shown)

    @property
    def n(self) -> int:
        """The number of samples."""
        return self._model.n

    def run(self, max_steps: int | None = None) -> SimResult:
        """Steps on until every sample has finished or ``max_steps`` more steps are taken.

        Raises Busy where another call is still running on this one, in another thread or in one further out.
        """
        steps = self._options.max_steps if max_steps is None else whole("run: max_steps", max_steps)
        with self._alone("run"):
            return run(self._model, self._options, steps)

    def reset(self) -> Simulation:
        """Brings every plane that a step writes back to what it was when this was made. Returns itself.

        Raises Busy as :meth:`run` does.
        """
        with self._alone("reset"):
            for array, values in self._start:
                array[...] = values
        return self

    @contextmanager
    def _alone(self, method: str) -> Iterator[None]:
        """One caller at a time: two would step the same planes."""
        if not self._in_use.acquire(blocking=False):
            raise refusal(
                "BUSY",
                f"{method}: another call is still running on this {type(self).__name__}; wait for it, or make one "
                "over other planes for each thread",
            )
        try:
            yield
        finally:
            self._in_use.release()

    def __repr__(self) -> str:
        return f"<eagle.Simulation of {self.n} samples, planes {', '.join(self._model.planes)}>"


class Runner(Simulation):
    """A step repeated until every sample is done; made by :func:`until_done`.

    ``terminated`` is the mask, ``finished`` the number of samples whose mask is set, ``n`` that of all.
    """

    @property
    def terminated(self) -> Array:
        """The mask: True for a sample that has finished."""
        assert self._model.mask is not None
        mask: Array = self._model.shown[self._model.mask]
        return mask

    @property
    def finished(self) -> int:
        """Samples whose mask is set."""
        assert self._model.mask is not None
        return int(np.count_nonzero(self._model.planes[self._model.mask]))

    def result(self, name: str) -> Array:
        """The plane of this name."""
        if name not in self._model.planes:
            raise refusal("BAD_VALUE", f"result: there is no plane '{name}'; there are {', '.join(self._model.planes)}")
        plane: Array = self._model.shown[name]
        return plane

    def reset(self) -> Runner:
        """As it was when it was made."""
        super().reset()
        return self

    def __repr__(self) -> str:
        return f"<eagle.Runner {self.finished} of {self.n} samples finished>"


def until_done(
    step: Any,
    /,
    *,
    max_steps: int,
    terminated: Array | None = None,
    shard: tuple[int, int, int] | None = None,
    session: Session | None = None,
    scalar_type: Any = None,
    **planes: Any,
) -> Runner:
    """A runner that repeats ``step`` until every sample has finished.

    ``step`` is a plan (or kernel), or a list of plans and opaque nodes, run in order once a step; the nodes run over
    the whole batch, in this thread, and must leave finished samples alone: pass ``terminated``, an array of N bools,
    and let them read it. Where it is not given the mask is made. ``planes`` are the arguments by name, and ``shard``
    is, as for :func:`simulate`. Over arrays on a GPU a captured node (:func:`eagle.graph.opaque`,
    :func:`eagle.graph.child`) is part of the run's CUDA graph in process, captured as each run begins.

    Raises EagleError: for an empty step, stream and host nodes, a model that nothing finishes, and what
    :func:`simulate` refuses.

    >>> import eagle
    >>> @eagle.kernel
    ... def count(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    ...     x = x + 1
    ...     done = x >= 5
    >>> runner = eagle.until_done(eagle.plan(count), max_steps=100, x=eagle.asarray([0.0, 3.0]))
    >>> result = runner.run()
    >>> result.steps, runner.finished, runner.result("x")
    (5, 2, array([5., 5.]))
    """
    return _runner("until_done", step, planes, max_steps, terminated, shard, session, scalar_type)


def run_until_done(step: Any, /, *, max_steps: int, terminated: Array | None = None, **planes: Any) -> SimResult:
    """:func:`until_done`, run.

    >>> import eagle
    >>> @eagle.kernel
    ... def count(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    ...     x = x + 1
    ...     done = x >= 5
    >>> eagle.run_until_done(count, max_steps=100, x=eagle.zeros(3)).status
    'finished'
    """
    shard, session, scalar_type = (planes.pop(name, None) for name in ("shard", "session", "scalar_type"))
    runner = _runner("run_until_done", step, planes, max_steps, terminated, shard, session, scalar_type, resets=False)
    return runner.run()


def _runner(
    where: str,
    step: Any,
    planes: dict[str, Any],
    max_steps: int,
    terminated: Array | None,
    shard: Any,
    session: Session | None,
    scalar_type: Any,
    resets: bool = True,
) -> Runner:
    if terminated is not None and not (isinstance(terminated, (np.ndarray, Plane)) or is_labelled([terminated])):
        raise refusal(
            "WRONG_TYPE", f"{where}: terminated: expected an array of bools, found {type(terminated).__name__}"
        )
    model = Model(
        where,
        step,
        planes,
        reserved=("max_steps", "terminated", "shard", "session", "scalar_type"),
        mask=terminated,
        makes_mask=True,
        labelled=True,
        session=session,
        scalar_type=scalar_type,
    )
    if model.mask is None:
        raise refusal(
            "BAD_VALUE",
            f"{where}: the step has no stop rule; give one of its kernels a Terminated argument that it sets when a "
            "sample is done",
        )
    options = Options(where, max_steps, "auto", None, None, None)
    options.shard = shard_of(where, shard)
    return Runner(model, options, resets)


_RESERVED = tuple(
    name
    for name, parameter in inspect.signature(simulate).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
)
