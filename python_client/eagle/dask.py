"""Batches over the workers of a Dask cluster, each of which uses the daemon of its node or one of its own.

>>> import dask.array as da, eagle, eagle.dask
>>> from distributed import Client
>>> @eagle.kernel
... def decay(x: eagle.Mutable[eagle.Scalar], rate: eagle.Param, done: eagle.Terminated):
...     x = x - rate * x
...     done = x < 1e-3
>>> with Client(n_workers=2, threads_per_worker=1) as client:
...     x = da.ones(4096, chunks=1024)
...     result = eagle.dask.simulate(client, decay, max_steps=1000, x=x, rate=0.01)
...     print(result.status, result.steps, float(result.x.max().compute()) < 1e-3)
finished 688 True

Arrays are :mod:`dask.array` ones: those that are given lie in Dask's memory, those of a result in planes of the
daemons, where the next run finds them. What Dask's scheduler sees is a description of the work and a report for each
shard.
"""

from __future__ import annotations

import contextlib
import uuid
from concurrent.futures import CancelledError
from typing import Any, Iterable, Sequence

import numpy as np

from eagle.cluster import _node
from eagle.cluster._driver import Engine, Piece, sent_with
from eagle.cluster._graph import ShardedGraph
from eagle.cluster._late import late_of
from eagle.cluster._node import Lost
from eagle.cluster._results import Sharded
from eagle.cluster._results import simulate as _simulate
from eagle.cluster._sources import Of
from eagle.errors import refusal
from eagle.session import Array

try:
    import dask.array as da
    import distributed
except ImportError as missing:
    raise refusal("MISSING_PACKAGE", f"eagle.dask: {missing}; pip install eagled[dask]") from missing

__all__ = ["Graph", "simulate"]

_INLINE = 1024  # bytes of an array that is sent with the task itself


def simulate(
    client: distributed.Client,
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
    """:func:`eagle.simulate`, its batch in shards over the workers of ``client``; returns when all are done.

    ``args`` are dask arrays, numpy arrays, :func:`eagle.cluster.full`, and numbers for Params; samples are along the
    last axis. ``chunks`` is the samples of a shard, or a tuple of those of each; None takes the chunks that the dask
    arrays come in, else one shard a worker. Shards of models with reductions are cut at multiples of 256. State is
    copied to planes of the worker's daemon: what is given stays as it is.

    Each worker opens ``endpoint``, as :func:`eagle.connect` does: None finds the daemon of its node, or starts one;
    "local" computes in the worker. When a worker dies its shards run elsewhere, when a daemon does they are begun anew,
    ``retries`` times each. A shard that takes ``late`` times the median while workers are idle is begun a second time
    on one of them, once, and whichever ends first counts (None: never); the bits are the same. The result's planes are
    dask arrays.

    Raises EagleError: what :func:`eagle.simulate` refuses, chunks that do not make up the batch, DaemonUnavailable
    where shards came to nothing too often or no worker is left, ProtocolMismatch for workers of another version.
    """
    engine = _Engine(client, retries, late_of("eagle.dask.simulate", late))
    return _simulate(
        engine,
        "eagle.dask.simulate",
        model,
        {name: _source(client, value) for name, value in args.items()},
        until=until,
        chunks=chunks,
        endpoint=endpoint,
        kind=_Result,
        max_steps=max_steps,
        steps=steps,
        dispatch=dispatch,
        record=record,
        every=every,
        events=events or None,
        timeout=timeout,
    )


class _Result(Sharded):
    """Planes of samples are dask arrays over the planes of the workers' daemons."""

    def _array(self, name: str) -> Any:
        engine = self._engine
        assert isinstance(engine, _Engine)
        return engine.array(self._pieces, name)


class Graph(ShardedGraph):
    """:class:`eagle.cluster.ShardedGraph` over the workers of a client; arrays are as for :func:`simulate`."""

    _kind = _Result

    def __init__(
        self,
        client: distributed.Client,
        *,
        chunks: Any = None,
        endpoint: str | None = None,
        retries: int = 3,
        late: float | None = 2.0,
    ) -> None:
        engine = _Engine(client, retries, late_of("eagle.dask.Graph", late))
        super().__init__(engine, chunks=chunks, endpoint=endpoint, where="eagle.dask.Graph")
        self._client = client

    def _source(self, value: Any) -> Any:
        return _source(self._client, value)


class _Chunked:
    """A dask array, as the arrays of a batch come."""

    def __init__(self, client: distributed.Client, array: Any) -> None:
        self._client, self._array = client, array
        self.shape, self.dtype = tuple(array.shape), array.dtype
        self.sizes: tuple[int, ...] | None = tuple(array.chunks[-1])
        if any(size != size for size in self.sizes):
            raise refusal("BAD_VALUE", "a dask array of unknown chunk sizes; call its compute_chunk_sizes() first")

    def parts(self, shards: Sequence[tuple[int, int, int]]) -> list[Any]:
        """A future of each shard's samples, on some worker."""
        return self._futures((*((-1,) * (len(self.shape) - 1)), tuple(count for _, count, _ in shards)))

    def whole(self) -> Any:
        """A future of all of it."""
        return self._futures((-1,) * len(self.shape))[0]

    def _futures(self, chunks: tuple[Any, ...]) -> list[Any]:
        made = self._client.persist(self._array.rechunk(chunks))
        found = {future.key: future for future in distributed.futures_of(made)}
        keys: list[Any] = [made.__dask_keys__()]
        while isinstance(keys[0], list):
            keys = [key for inner in keys for key in inner]
        return [found[key] for key in keys]


def _source(client: distributed.Client, value: Any) -> Any:
    return _Chunked(client, value) if isinstance(value, da.Array) else value


class _Engine(Engine):
    """Dask as the one who runs shards: it places them, moves what they need, and makes again what is lost."""

    def __init__(self, client: distributed.Client, retries: int, late: float | None) -> None:
        super().__init__()
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise refusal(
                "WRONG_TYPE",
                f"eagle.dask: expected a distributed.Client that waits for its calls, found {client!r}; open one with "
                "Client(address)",
            )
        self._client = client
        self.retries, self.late = retries, late
        self._sent_once: dict[int, tuple[Array, Any]] = {}  # arrays that several shards have, while a batch runs

    def workers(self) -> int:
        return len(self._client.nthreads())

    def start(self, piece: Piece) -> Any:
        names, label, token = list(piece.inputs), piece.work["label"], uuid.uuid4().hex
        inputs = [self._input(value) for value in piece.inputs.values()]
        self.count_sent(sent_with(piece))
        piece.held = self._client.submit(
            _node.run_shard,
            piece.work,
            piece.shard,
            names,
            *inputs,
            key=f"{label}-{token}",
            pure=False,
            workers=None if piece.copy_of is None else self._idle(),
            allow_other_workers=piece.copy_of is not None,  # where those are gone by then
        )
        return self._client.submit(_node.told_of, piece.held, key=f"told-{token}", pure=False)

    def wait(self, tickets: Sequence[Any]) -> Iterable[Any]:
        with contextlib.suppress(TimeoutError, CancelledError):  # of the second, `told` finds out more
            distributed.wait(tickets, timeout=1, return_when="FIRST_COMPLETED")
        return [ticket for ticket in tickets if ticket.status in ("finished", "error", "cancelled")]

    def idle(self) -> int:
        return len(self._idle())

    def drop(self, ticket: Any) -> None:
        self._client.cancel([ticket])

    def told(self, ticket: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._taken(ticket)
        return found

    def holds(self, piece: Piece) -> bool:
        return piece.held is not None and piece.held.status not in ("cancelled", "error")

    def plane(self, piece: Piece, name: str) -> Array:
        array: Array = self._taken(self._plane(piece, name))
        return array

    def result(self, piece: Piece) -> Any:
        return self._taken(self._client.submit(_node.result_of, piece.held, pure=False))

    def cancel(self, tickets: Sequence[Any]) -> None:
        self._sent_once.clear()
        if tickets:
            self._client.cancel(list(tickets))

    def array(self, pieces: Sequence[Piece], name: str) -> Any:
        """A plane of all pieces as a dask array."""
        told = [piece.told["planes"][name] for piece in pieces if piece.told is not None]
        head, dtype = told[0][0][:-1], np.dtype(told[0][1])
        token = f"{name}-{uuid.uuid4().hex}"
        place = (0,) * len(head)
        futures = {(token, *place, index): self._plane(piece, name) for index, piece in enumerate(pieces)}
        chunks = (*((extent,) for extent in head), tuple(shape[-1] for shape, _ in told))
        return da.Array(futures, token, chunks=chunks, dtype=dtype)

    # ---- details

    def _idle(self) -> list[str]:
        """Workers that have nothing to do."""
        return [worker for worker, tasks in self._client.processing().items() if not tasks]

    def _plane(self, piece: Piece, name: str) -> Any:
        return self._client.submit(_node.plane_of, piece.held, name, key=f"{name}-{uuid.uuid4().hex}", pure=False)

    def _input(self, value: Any) -> Any:
        if isinstance(value, Of):
            return self._plane(value.piece, value.name)
        if not isinstance(value, np.ndarray) or value.nbytes <= _INLINE:
            return value
        known = self._sent_once.get(id(value))
        if known is None:  # straight to a worker, not through the scheduler
            known = value, self._client.scatter(value, direct=True, hash=False)
            self._sent_once[id(value)] = known
        return known[1]

    def _taken(self, future: Any) -> Any:
        """The value of a future, straight from its worker."""
        try:
            return self._client.gather(future, direct=True)
        except CancelledError as error:
            raise Lost("CONNECTION_LOST", f"its worker went away, with what had been sent to it: {error}") from None
        except distributed.KilledWorker as error:
            raise refusal(
                "CONNECTION_LOST",
                f"eagle.dask: {error}; a shard whose workers die again and again may need more memory than they have: "
                "give smaller chunks",
            ) from None
        except ModuleNotFoundError as error:
            raise refusal(
                "MISSING_PACKAGE",
                f"eagle.dask: a worker or the scheduler says: {error}; pip install eagled, in the version of this "
                "process, where each of them runs",
            ) from None
