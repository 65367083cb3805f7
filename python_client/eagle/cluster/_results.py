"""What came of a sharded batch: one result, whose arrays lie where they were made."""

from __future__ import annotations

import weakref
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from eagle import _core
from eagle._results import RunReport, SimResult
from eagle._shards import combine_shards
from eagle._shown import pairs_html, pairs_text, seconds_text
from eagle.cluster._cuts import shards_of
from eagle.cluster._driver import Engine, Piece, Traffic, complete, fetched, pieces_of
from eagle.cluster._sources import Of
from eagle.cluster._work import Work, work_of
from eagle.errors import refusal
from eagle.session import Array


class Worker(NamedTuple):
    """Who ran a shard: processes by their ids on a host."""

    host: str
    worker: int
    daemon: int


class ShardedArray:
    """A plane of a sharded batch, which lies where its shards ran; an argument for the next run there."""

    def __init__(self, of: Sharded, name: str) -> None:
        self._of, self.name = of, name
        shapes = [piece.told["planes"][name] for piece in of._pieces if piece.told is not None]
        self.sizes: tuple[int, ...] | None = tuple(shape[-1] for shape, _ in shapes)
        self.shape: tuple[int, ...] = (*shapes[0][0][:-1], sum(self.sizes))
        self.dtype = np.dtype(shapes[0][1])

    def parts(self, shards: Sequence[tuple[int, int, int]]) -> list[Any]:
        """The plane of each shard, for a batch that is cut alike."""
        mine = shards_of(self.sizes or ())
        if list(shards) != mine:
            raise refusal(
                "BAD_VALUE",
                f"'{self.name}' lies in shards of {self.sizes} samples, where other cuts are asked for; leave chunks= "
                "out, or gather() it first",
            )
        return [Of(piece, self.name) for piece in self._of._pieces]

    def whole(self) -> Array:
        """All of it, moved here."""
        return self.gather()

    def gather(self) -> Array:
        """All of it as one array here."""
        return self._of._moved(self.name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.gather() if dtype is None else self.gather().astype(dtype)

    def __repr__(self) -> str:
        return f"<eagle sharded array '{self.name}' {self.dtype} {self.shape} in {len(self.sizes or ())} shards>"


class Sharded:
    """What one run of the whole batch would have given, in the planes of those that ran its shards.

    ``status``, ``steps``, ``done``, ``n`` and ``report`` are those of the whole; ``shards`` is where it was cut,
    ``workers`` who ran each shard, ``traffic`` the bytes that went over. Planes are attributes and items: one with an
    element a sample stays where it is until it is asked for (``gather``), a ``Reduce`` is made of what the shards told,
    an integer ``Accum`` is the sum of theirs.
    """

    def __init__(self, engine: Engine, pieces: Sequence[Piece], where: str, before: Traffic) -> None:
        self._engine, self._pieces, self._where = engine, list(pieces), where
        told = [piece.told for piece in pieces if piece.told is not None]
        self._found = _core.combine_shards([part["told"] for part in told])
        self._roles: dict[str, str] = told[0]["roles"]
        self._reductions = {argument: index for index, (_, argument) in enumerate(self._found.report.reductions)}
        self._before = before
        self.report = RunReport.of(self._found.report)
        self.status: str = self._found.status
        self.done: bool = self.status == "finished"
        self.steps: int = self.report.steps
        self.n: int = self.report.n
        self.shards = tuple(piece.shard for piece in pieces)
        self.workers = tuple(Worker(part["host"], part["worker"], part["daemon"]) for part in told)
        weakref.finalize(self, _let_go, engine, self._pieces)

    @property
    def traffic(self) -> Traffic:
        """What went over for this batch, and for what was asked of it since."""
        return Traffic(*(now - then for now, then in zip(self._engine.traffic, self._before)))

    def keys(self) -> tuple[str, ...]:
        """Names of the planes."""
        return tuple(self._roles)

    def __iter__(self) -> Iterator[str]:
        return iter(self._roles)

    def __getitem__(self, name: Any) -> Any:
        name = name if isinstance(name, str) else getattr(name, "name", name)  # a plane of a graph
        role = self._roles.get(name)
        if role is None:
            raise refusal("UNKNOWN_NAME", f"there is no plane '{name}'; there are {', '.join(self._roles)}")
        if role == "sample":
            return self._array(name)
        if role == "reduce":
            return self._reduced(name)
        if role == "accum" and np.dtype(self._told(0)["planes"][name][1]).kind == "i":
            mine = self._fetch(name)
            return np.sum(mine, axis=0, dtype=mine[0].dtype)
        return self._plane(-1 if role == "accum" else 0, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.__dict__.get("_roles", {}):
            raise AttributeError(f"a sharded result has no '{name}'; its planes are {', '.join(self._roles)}")
        return self[name]

    def gather(self, *names: str) -> dict[str, Array]:
        """These planes (all where none is named) as arrays here, of the whole batch, by name."""
        return {name: self._moved(name) for name in names or self._roles}

    def result(self) -> SimResult:
        """All of it here, as :func:`eagle.simulate` would have returned it: records and ``stop_step`` too."""
        results = [fetched(self._engine, piece, self._where) for piece in self._pieces]
        self._engine.count_gathered(sum(int(result[name].nbytes) for result in results for name in result))
        return combine_shards(results)

    def __repr__(self) -> str:
        return (
            f"<eagle sharded result {self.status}: {self.steps} steps, {self.report.finished} of {self.n} samples "
            f"finished, in {len(self.shards)} shards>"
        )

    def _rows(self) -> dict[str, Any]:
        sent, received, gathered, reruns, copies = self.traffic
        return {
            "status": self.status,
            "steps": f"{self.steps:,}",
            "samples": f"{self.report.finished:,} of {self.n:,} finished",
            "time": f"{seconds_text(self.report.wall_s)}, the longest shard",
            "shards": f"{len(self.shards)}, by {len(set(self.workers))} workers, {reruns} begun anew, {copies} twice",
            "traffic": f"{sent:,} B sent, {received:,} B received, {gathered:,} B of arrays gathered",
        }

    def __str__(self) -> str:
        return pairs_text("sharded result of a run", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pairs_html("sharded result of a run", self._rows())

    # ---- details

    def _array(self, name: str) -> Any:
        """A plane of samples, as the engine's users like it."""
        return ShardedArray(self, name)

    def _moved(self, name: str) -> Array:
        """A plane here: one of samples straight from those that hold it, whatever the engine makes of it."""
        sampled = self._roles.get(name) == "sample"
        array: Array = np.concatenate(self._fetch(name), axis=-1) if sampled else self[name]
        return array

    def _told(self, index: int) -> dict[str, Any]:
        told = self._pieces[index].told
        assert told is not None
        return told

    def _plane(self, index: int, name: str) -> Array:
        array: Array = np.array(fetched(self._engine, self._pieces[index], self._where, name))
        self._engine.count_gathered(array.nbytes)
        return array

    def _fetch(self, name: str) -> list[Array]:
        return [self._plane(index, name) for index in range(len(self._pieces))]

    def _reduced(self, name: str) -> Array:
        value = self._found.reduced(self._reductions[name])
        if value is None:  # no step was taken: all planes are as they were
            return self._plane(0, name)
        plane: Array = np.frombuffer(value, self._told(0)["planes"][name][1]).copy()
        return plane


def _let_go(engine: Engine, pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        piece.wanted = False
        engine.let_go(piece)


def run(engine: Engine, work: Work, where: str, kind: type[Sharded] = Sharded) -> Sharded:
    """Runs a batch and returns when all of its shards are done."""
    before, pieces = engine.traffic, pieces_of(work)
    complete(engine, pieces, where)
    return kind(engine, pieces, where, before)


def simulate(
    engine: Engine,
    where: str,
    model: Any,
    arguments: dict[str, Any],
    *,
    until: Any = None,
    chunks: Any = None,
    endpoint: str | None = None,
    kind: type[Sharded] = Sharded,
    **options: Any,
) -> Sharded:
    """:func:`eagle.simulate` over the workers of an engine."""
    work = work_of(
        where,
        model,
        arguments,
        until=until,
        chunks=chunks,
        parts=max(1, engine.workers()),
        endpoint=endpoint,
        options=options,
    )
    return run(engine, work, where, kind)
