"""Batches over Ray actors, each of which uses the daemon of its node or one of its own.

>>> import eagle, eagle.ray, numpy as np
>>> @eagle.kernel
... def decay(x: eagle.Mutable[eagle.Scalar], rate: eagle.Param, done: eagle.Terminated):
...     x = x - rate * x
...     done = x < 1e-3
>>> with eagle.ray.Pool(2, num_cpus=0) as pool:
...     result = eagle.ray.simulate(pool, decay, max_steps=1000, chunks=1024, x=np.ones(4096), rate=0.01)
...     again = eagle.ray.simulate(pool, decay, max_steps=1000, x=result.x, rate=0.01)
...     print(result.status, result.steps, again.steps, float(result.x.gather().max()) < 1e-3)
finished 688 1 True

Arrays of a result lie in planes of the actors' daemons, where the next run finds them; they move when they are asked
for, and then from actor to asker.
"""

from __future__ import annotations

import os
import socket
import uuid
from typing import Any, Iterable, Sequence

import numpy as np

from eagle._running import whole
from eagle.cluster import _node
from eagle.cluster._driver import Engine, Piece, sent_with
from eagle.cluster._graph import ShardedGraph
from eagle.cluster._late import late_of
from eagle.cluster._node import Kept, Lost
from eagle.cluster._results import Sharded
from eagle.cluster._results import simulate as _simulate
from eagle.cluster._sources import Of
from eagle.errors import EagleError, refusal
from eagle.session import Array

try:
    import ray
except ImportError as missing:
    raise refusal("MISSING_PACKAGE", f"eagle.ray: {missing}; pip install eagled[ray]") from missing

__all__ = ["Graph", "Pool", "simulate"]


class _Actor:
    """What runs in a worker of Ray: shards, and the planes of those that it ran."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def about(self) -> tuple[str, int]:
        """Host and process."""
        return socket.gethostname(), os.getpid()

    def run(self, key: str, work: dict[str, Any], shard: tuple[int, int, int], names: list[str], *inputs: Any) -> Any:
        """What the shard tells, or what it raised: Ray would wrap an exception."""
        try:
            values = [self._own(*value) if isinstance(value, tuple) else value for value in inputs]
            self._kept[key] = _node.run_shard(work, shard, names, *values)
            return _node.told_of(self._kept[key])
        except (EagleError, Lost) as error:
            return error

    def plane(self, key: str, name: str) -> Array:
        """A plane, to be moved."""
        return np.asarray(self._own(key, name))

    def result(self, key: str) -> Any:
        """All of a shard, to be moved."""
        return _node.result_of(self._of(key))

    def holds(self, key: str) -> bool:
        """Whether the planes of a shard are here."""
        return key in self._kept

    def let_go(self, keys: list[str]) -> None:
        """These planes are wanted no longer."""
        for key in keys:
            self._kept.pop(key, None)

    def _own(self, key: str, name: str) -> Array:
        return _node.plane_of(self._of(key), name)

    def _of(self, key: str) -> Kept:
        if key not in self._kept:
            raise Lost("CONNECTION_LOST", f"actor {os.getpid()} was started anew since it ran the shard")
        return self._kept[key]


class Pool:
    """Actors that run shards: ``actors`` of them, each of ``num_cpus``, which Ray starts anew when their process ends.

    ``options`` are Ray's, as ``Actor.options`` takes them (``resources=``, ``scheduling_strategy=``): one actor a node
    makes good use of a daemon. A daemon that an actor starts has ``num_cpus`` threads (one for 0), as Ray tells it by
    OMP_NUM_THREADS; the daemon of a node has its own. Starts a local Ray where none runs. ``close()``, or the end
    of the ``with``, ends the actors.
    """

    def __init__(self, actors: int, *, num_cpus: float = 1, **options: Any) -> None:
        count = whole("eagle.ray.Pool: actors", actors, least=1)
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        kind = ray.remote(_Actor).options(num_cpus=num_cpus, max_restarts=-1, **options)
        self.actors = [kind.remote() for _ in range(count)]

    def pids(self) -> list[int]:
        """The actors' processes."""
        return [pid for _, pid in ray.get([actor.about.remote() for actor in self.actors])]

    def close(self) -> None:
        """Ends the actors, and with them what lies in their planes."""
        for actor in self.actors:
            ray.kill(actor)
        self.actors = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<eagle.ray.Pool of {len(self.actors)} actors>"


def simulate(
    pool: Pool,
    model: Any,
    /,
    *,
    max_steps: int,
    chunks: Any = None,
    until: Any = None,
    steps: Any = None,
    dispatch: Any = None,
    record: Any = None,
    every: int | None = None,
    events: bool = False,
    timeout: float | None = None,
    endpoint: str | None = None,
    retries: int = 3,
    late: float | None = 2.0,
    **args: Any,
) -> Sharded:
    """:func:`eagle.simulate`, its batch in shards over the actors of ``pool``; returns when all are done.

    ``args`` are numpy arrays, :func:`eagle.cluster.full`, planes of earlier results, and numbers for Params; samples
    are along the last axis. Everything else is as for :func:`eagle.dask.simulate`. The result's planes stay with the
    actors: ``result.x.gather()`` moves one here, ``x=result.x`` runs on where it lies.

    Raises EagleError: what :func:`eagle.simulate` refuses, chunks that do not make up the batch, DaemonUnavailable
    where shards came to nothing too often or no actor is left, ProtocolMismatch for actors of another version.
    """
    return _simulate(
        _Engine(pool, retries, late_of("eagle.ray.simulate", late)),
        "eagle.ray.simulate",
        model,
        dict(args),
        until=until,
        chunks=chunks,
        endpoint=endpoint,
        max_steps=max_steps,
        steps=steps,
        dispatch=dispatch,
        record=record,
        every=every,
        events=events or None,
        timeout=timeout,
    )


class Graph(ShardedGraph):
    """:class:`eagle.cluster.ShardedGraph` over the actors of a pool; arrays are as for :func:`simulate`."""

    def __init__(
        self,
        pool: Pool,
        *,
        chunks: Any = None,
        endpoint: str | None = None,
        retries: int = 3,
        late: float | None = 2.0,
    ) -> None:
        engine = _Engine(pool, retries, late_of("eagle.ray.Graph", late))
        super().__init__(engine, chunks=chunks, endpoint=endpoint, where="eagle.ray.Graph")


class _Engine(Engine):
    """Ray as the one who runs shards: a piece is held by an actor, under a key."""

    def __init__(self, pool: Pool, retries: int, late: float | None) -> None:
        super().__init__()
        if not isinstance(pool, Pool):
            raise refusal(
                "WRONG_TYPE", f"eagle.ray: expected an eagle.ray.Pool, found {type(pool).__name__}; make one of actors"
            )
        if not pool.actors:
            raise refusal("NO_DAEMON", "eagle.ray: the pool was closed; make another one")
        self._actors = list(pool.actors)
        self._busy = [0] * len(self._actors)
        self._gone: set[int] = set()
        self._on: dict[Any, int] = {}  # by ticket
        self._put: dict[int, tuple[Array, Any]] = {}  # arrays that several shards have, while a batch runs
        self.retries, self.late = retries, late
        self._dropped: list[Any] = []  # tickets that nobody waits for, which keep their actors busy

    def workers(self) -> int:
        return len(self._actors) - len(self._gone)

    def start(self, piece: Piece) -> Any:
        number, key = self._actor_for(piece), uuid.uuid4().hex
        self.count_sent(sent_with(piece))
        inputs = [self._input(value, number) for value in piece.inputs.values()]
        ticket = self._actors[number].run.remote(key, piece.work, piece.shard, list(piece.inputs), *inputs)
        piece.held = number, key
        self._busy[number] += 1
        self._on[ticket] = number
        return ticket

    def wait(self, tickets: Sequence[Any]) -> Iterable[Any]:
        done: list[Any] = ray.wait(list(tickets), num_returns=1, timeout=1.0)[0]
        return done

    def idle(self) -> int:
        self._settle()
        return sum(not self._busy[number] for number in self._there())

    def drop(self, ticket: Any) -> None:
        self._dropped.append(ticket)

    def told(self, ticket: Any) -> dict[str, Any]:
        number = self._on.pop(ticket)
        self._busy[number] -= 1
        found = self._taken(ticket, number)
        if isinstance(found, BaseException):
            raise found
        return dict(found)

    def holds(self, piece: Piece) -> bool:
        if piece.held is None or piece.held[0] in self._gone:
            return False
        number, key = piece.held
        try:
            return bool(self._taken(self._actors[number].holds.remote(key), number))
        except Lost:
            return False

    def plane(self, piece: Piece, name: str) -> Array:
        number, key = piece.held
        array: Array = self._taken(self._actors[number].plane.remote(key, name), number)
        return array

    def result(self, piece: Piece) -> Any:
        number, key = piece.held
        return self._taken(self._actors[number].result.remote(key), number)

    def let_go(self, piece: Piece) -> None:
        if piece.held is not None and ray.is_initialized():
            number, key = piece.held
            piece.held = None
            self._actors[number].let_go.remote([key])

    def cancel(self, tickets: Sequence[Any]) -> None:
        self._put.clear()
        for ticket in tickets:
            self._busy[self._on.pop(ticket)] -= 1

    # ---- details

    def _actor_for(self, piece: Piece) -> int:
        """The one that holds most of what the piece is made of, else the least busy; of a copy the least busy."""
        self._settle()
        here = [source.held[0] for source in piece.sources() if source.held is not None and piece.copy_of is None]
        there = self._there() or [0]
        return min(there, key=lambda number: (-here.count(number), self._busy[number], number))

    def _there(self) -> list[int]:
        return [number for number in range(len(self._actors)) if number not in self._gone]

    def _settle(self) -> None:
        """Actors that have ended what was dropped are free again."""
        if not self._dropped:
            return
        done, self._dropped = ray.wait(self._dropped, num_returns=len(self._dropped), timeout=0)
        for ticket in done:
            self._busy[self._on.pop(ticket)] -= 1

    def _input(self, value: Any, number: int) -> Any:
        if isinstance(value, Of):
            on, key = value.piece.held
            return (key, value.name) if on == number else self._actors[on].plane.remote(key, value.name)
        if isinstance(value, np.ndarray) and value.nbytes > 1024:
            if id(value) not in self._put:
                self._put[id(value)] = value, ray.put(value)
            return self._put[id(value)][1]
        return value

    def _taken(self, reference: Any, number: int) -> Any:
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, Lost):
                raise error.cause from None
            if isinstance(error.cause, ray.exceptions.RayError):  # of what the task was given
                raise Lost("CONNECTION_LOST", f"what a shard is made of went away: {error.cause}") from None
            raise
        except ray.exceptions.ActorUnavailableError as error:
            raise Lost("CONNECTION_LOST", f"its actor went away: {error}") from None
        except ray.exceptions.RayActorError as error:
            if "ray.kill" in str(error):
                self._gone.add(number)
            raise Lost("CONNECTION_LOST", f"its actor went away: {error}") from None
        except ray.exceptions.RayError as error:
            raise Lost("CONNECTION_LOST", f"what a shard is made of went away: {error}") from None
