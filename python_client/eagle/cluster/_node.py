"""A worker's side: its session in its node's daemon, and shards run there.

Everything here is called by an engine in one of its workers. What a shard gives stays in the planes of the daemon, held
by a :class:`Kept`; only what :func:`told_of` says of it travels by itself.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any, Sequence

import numpy as np

import eagle
from eagle import _core
from eagle._results import SimResult
from eagle.cluster._kernels import Described
from eagle.cluster._sources import Filled, nbytes_of
from eagle.errors import DaemonUnavailable, EagleError, SessionClosed, WorkerRestarted, refusal
from eagle.session import Array, Session

#: As an endpoint: the engine in the worker's own process, where a node has no daemon and is to have none.
LOCAL = "local"


class Lost(Exception):
    """A shard came to nothing because somebody went away; run again, it may come to something."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(reason, why)
        self.reason, self.why = reason, why

    def __str__(self) -> str:
        return self.why


class Kept:
    """What a shard gave, in the planes of its node. A copy that is sent elsewhere has plain arrays."""

    def __init__(self, result: SimResult, daemon: int, seconds: float) -> None:
        self.result = result
        self.daemon = daemon
        self.seconds = seconds  # that it took, with whatever had to be sent, made and compiled there

    def __sizeof__(self) -> int:
        """Bytes of the arrays: what an engine would have to move."""
        return 1000 + sum(nbytes_of(array.shape, array.dtype) for array in _arrays_of(self.result))

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self.result._over(np.array), self.daemon, self.seconds)


def run_shard(work: dict[str, Any], shard: tuple[int, int, int], names: Sequence[str], *inputs: Any) -> Kept:
    """Runs one shard: ``inputs`` are arrays by these names, or what makes them."""
    begun, where, me = time.monotonic(), work["where"], f"worker {os.getpid()} on {socket.gethostname()}"
    if work["version"] != _core.__version__:
        raise refusal(
            "PROTOCOL_MISMATCH",
            f"{where}: {me} has eagled {_core.__version__}, and was sent work by {work['version']}; install one "
            f"version for all: pip install eagled=={work['version']}",
        )
    try:
        session = _sessions.get(work["endpoint"])
    except DaemonUnavailable as error:
        raise Lost(
            error.reason,
            f"{me} has no daemon: {error}; start eagled on that node, or leave endpoint= out, and each worker starts "
            "one of its own where there is none",
        ) from None
    try:
        result = _run(session, work, shard, dict(zip(names, inputs)))
        return Kept(result, result.report.host.pid, time.monotonic() - begun)
    except (DaemonUnavailable, SessionClosed, WorkerRestarted) as error:
        if not isinstance(error, WorkerRestarted):
            _sessions.forget(work["endpoint"], session)
        raise Lost("CONNECTION_LOST", f"the daemon of {me} went away: {error}") from None


def told_of(kept: Kept) -> dict[str, Any]:
    """What a shard says of itself, without its arrays."""
    result, part = kept.result, kept.result._shard
    assert part is not None
    return {
        "shard": part.place,
        "told": part.told,
        "roles": part.roles,
        "mask": result._mask,
        "planes": {name: (tuple(result[name].shape), result[name].dtype.name) for name in result},
        "host": socket.gethostname(),
        "worker": os.getpid(),
        "daemon": kept.daemon,
        "seconds": kept.seconds,
    }


def plane_of(kept: Kept, name: str) -> Array:
    """One of its planes, where it lies."""
    return kept.result[name]


def result_of(kept: Kept) -> SimResult:
    """All of it, to be sent, over plain arrays: those of a session over TCP are on another machine."""
    return kept.result._over(np.array)


# ---- details


class _Sessions:
    """The sessions of this process, by endpoint; each worker process has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, str | None], Session] = {}

    def get(self, endpoint: str | None) -> Session:
        with self._lock:
            key = (os.getpid(), endpoint)
            known = self._open.get(key)
            if known is None or known.closed:
                known = self._open[key] = eagle.local() if endpoint == LOCAL else eagle.connect(endpoint)
            return known

    def forget(self, endpoint: str | None, session: Session) -> None:
        """The next one to ask opens another. Arrays of this one stay readable."""
        with self._lock:
            if self._open.get((os.getpid(), endpoint)) is session:
                del self._open[os.getpid(), endpoint]


_sessions = _Sessions()


def _run(session: Session, work: dict[str, Any], shard: tuple[int, int, int], inputs: dict[str, Any]) -> SimResult:
    arguments: dict[str, Any] = dict(work["params"])
    for name, value in inputs.items():
        arguments[name] = _bound(session, value, name in work["states"])
    if work["mask"] is not None:
        arguments[work["mask"]] = session.zeros(shard[1], dtype=bool)
    kernels: list[Any] = [Described(described) for described in work["kernels"]]
    until = kernels.pop() if work["until"] else None
    options = {**work["options"], "scalar_type": work["kernels"][0][1]}
    try:
        return eagle.simulate(kernels, until=until, shard=shard, session=session, **options, **arguments)
    except EagleError as error:
        if isinstance(error, (DaemonUnavailable, SessionClosed, WorkerRestarted)):
            raise
        raise refusal(error.reason, f"{work['where']}: shard {shard}: {error}") from None


def _bound(session: Session, value: Any, changes: bool) -> Array:
    """The value in the session's planes: itself where it lies there and is only read."""
    if isinstance(value, Filled):
        return session.full(value.shape, value.value, dtype=value.dtype)
    if not changes:
        return session.asarray(value)
    array = session.empty(value.shape, dtype=value.dtype)
    array[...] = np.asarray(value)
    return array


def _arrays_of(result: SimResult) -> list[Array]:
    stops = [] if result.stop_step is None else [result.stop_step]
    return [*(result[name] for name in result), *result.records.values(), *stops]
