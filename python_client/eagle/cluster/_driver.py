"""The asking side: pieces of a batch, handed out by an engine until each has come to something."""

from __future__ import annotations

import abc
import pickle
import time
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from eagle._results import SimResult
from eagle.cluster._late import Copies
from eagle.cluster._node import Lost
from eagle.cluster._sources import Filled, Of
from eagle.cluster._work import Work
from eagle.errors import refusal
from eagle.session import Array

#: A batch whose engine has had no worker for so long is given up.
PATIENCE_S = 60.0


class Traffic(NamedTuple):
    """Bytes, as pickled; how often a shard was begun anew, and how often a late one a second time beside the first.

    ``sent`` are descriptions of work and ``received`` what shards say of themselves: what goes through a scheduler.
    ``gathered`` are arrays that somebody asked for, which go from worker to asker.
    """

    sent: int
    received: int
    gathered: int
    reruns: int
    copies: int


class Piece:
    """One shard, on its way or done: what it is made of, so that it can be made again, and where it lies."""

    def __init__(self, work: dict[str, Any], shard: tuple[int, int, int], inputs: dict[str, Any]) -> None:
        self.work, self.shard, self.inputs = work, shard, inputs
        self.attempts = 0
        self.held: Any = None  # the engine's reference to a Kept
        self.told: dict[str, Any] | None = None  # of a shard that is done
        self.started = 0.0  # when it was handed out last
        self.copied = False  # a late one, begun a second time
        self.copy_of: Piece | None = None
        self.wanted = True  # its planes are; those of a piece that is only made again for another one are let go

    def copy(self) -> Piece:
        """The same shard, to be run beside this one."""
        made = Piece(self.work, self.shard, self.inputs)
        made.copy_of, self.copied = self, True
        return made

    def sources(self) -> Iterator[Piece]:
        """The pieces whose planes it is made of."""
        return (value.piece for value in self.inputs.values() if isinstance(value, Of))


class Engine(abc.ABC):
    """Who runs shards: the part that Dask, Ray or another engine plays.

    ``retries`` is how often a shard is begun anew after its worker or daemon went away; ``late`` how many times the
    median a shard may take before idle workers are given a second copy of it (None: none is).
    """

    retries = 3
    late: float | None = 2.0
    patience_s = PATIENCE_S

    def __init__(self) -> None:
        self._sent = self._received = self._gathered = self._reruns = self._copies = 0

    @property
    def traffic(self) -> Traffic:
        """What has gone over so far."""
        return Traffic(self._sent, self._received, self._gathered, self._reruns, self._copies)

    @abc.abstractmethod
    def workers(self) -> int:
        """How many there are now."""

    @abc.abstractmethod
    def start(self, piece: Piece) -> Any:
        """Hands the piece out. Returns a ticket, which can be hashed; ``piece.held`` refers to what will be kept. A
        copy goes to an idle worker that does not run what it is a copy of.
        """

    def idle(self) -> int:
        """How many workers have nothing to do. An engine that cannot tell makes no second copies."""
        return 0

    @abc.abstractmethod
    def wait(self, tickets: Sequence[Any]) -> Iterable[Any]:
        """Tickets that are done, whatever came of them; none after a second or so."""

    @abc.abstractmethod
    def told(self, ticket: Any) -> dict[str, Any]:
        """What the shard says of itself. Raises Lost, or what the shard raised."""

    @abc.abstractmethod
    def holds(self, piece: Piece) -> bool:
        """Whether the planes of a piece that is done are still there, or the engine makes them again by itself."""

    @abc.abstractmethod
    def plane(self, piece: Piece, name: str) -> Array:
        """Moves a plane here. Raises Lost."""

    @abc.abstractmethod
    def result(self, piece: Piece) -> SimResult:
        """Moves all of a piece here. Raises Lost."""

    def let_go(self, piece: Piece) -> None:
        """Nobody wants its planes any longer."""
        piece.held = None

    @abc.abstractmethod
    def drop(self, ticket: Any) -> None:
        """Nobody waits for this one any longer: its shard is done. It may run to its end."""

    @abc.abstractmethod
    def cancel(self, tickets: Sequence[Any]) -> None:
        """Nobody waits for these any longer, nor sends another one of the batch."""

    # ---- counting

    def count_sent(self, *parts: Any) -> None:
        """Counts what is handed to the scheduler."""
        self._sent += len(pickle.dumps(parts))

    def count_received(self, part: Any) -> None:
        """Counts what the scheduler hands back."""
        self._received += len(pickle.dumps(part))

    def count_gathered(self, size: int) -> None:
        """Counts arrays that were asked for."""
        self._gathered += size

    def count_rerun(self) -> None:
        """Counts a shard that is begun anew."""
        self._reruns += 1

    def count_copy(self) -> None:
        """Counts a second copy of a late shard."""
        self._copies += 1


def pieces_of(work: Work) -> list[Piece]:
    """The shards of a batch, each with what it is made of."""
    pieces: list[Piece] = []
    tables = {name: source.whole() for name, source in work.tables.items()}
    parts = {name: source.parts(work.shards) for name, source in work.sources.items()}
    for index, shard in enumerate(work.shards):
        inputs = {name: mine[index] for name, mine in parts.items()}
        inputs.update(tables)
        for name, source in work.sums.items():
            inputs[name] = Filled(source.shape, 0, source.dtype) if pieces else source.whole()
        for name, source in work.passed.items():
            inputs[name] = Of(pieces[-1], name) if pieces else source.whole()
        pieces.append(Piece(work.message, shard, inputs))
    return pieces


def complete(engine: Engine, pieces: Sequence[Piece], where: str) -> None:
    """Returns when all are done, those that they are made of included. Raises what a shard raised, and
    DaemonUnavailable where workers went away too often, or none is left.
    """
    todo, running, made = list(pieces), dict[Any, Piece](), set(pieces)
    copies = Copies(engine, len(pieces))
    alone_since: float | None = None
    try:
        while todo or running:
            todo = _started(engine, todo, running)
            made.update(piece for piece in running.values() if piece.copy_of is None)
            for ticket in [] if todo else copies.due(running):
                _handed_out(engine, running[ticket].copy(), running)
                engine.count_copy()
            done = list(engine.wait(list(running)))
            alone_since = None if done or engine.workers() else (alone_since or time.monotonic())
            if alone_since is not None and time.monotonic() - alone_since > engine.patience_s:
                raise refusal(
                    "NO_DAEMON",
                    f"{where}: no worker is left, since {engine.patience_s:.0f} s, and {len(todo) + len(running)} of "
                    f"{len(pieces)} shards are to be run; start workers, and run the batch again",
                )
            for ticket in done:
                if ticket not in running:  # dropped, because the other one of two was done first
                    continue
                run = running.pop(ticket)
                piece = run.copy_of or run
                other = next((key for key, one in running.items() if (one.copy_of or one) is piece), None)
                try:
                    told = engine.told(ticket)
                except Lost as lost:
                    if other is None:
                        _begin_anew(engine, piece, lost, where)
                        todo.append(piece)
                    else:
                        running[other] = _left(engine, piece, running[other])
                else:
                    if other is not None:
                        engine.drop(other)
                    _done(engine, piece, run, running.pop(other, None))
                    piece.told = told
                    copies.note(told)
                    engine.count_received(told)
    finally:
        engine.cancel(list(running))
        for piece in {*made, *(one for one in running.values() if one.copy_of)}:
            if not piece.wanted or piece.copy_of:
                engine.let_go(piece)


def _handed_out(engine: Engine, piece: Piece, running: dict[Any, Piece]) -> None:
    piece.started = time.monotonic()
    running[engine.start(piece)] = piece


def _left(engine: Engine, piece: Piece, other: Piece) -> Piece:
    """The piece, one of whose two runs was lost and whose ``other`` one goes on: it may be copied again."""
    piece.attempts += 1
    piece.copied = piece.attempts > engine.retries
    piece.held, piece.started = other.held, other.started
    return piece


def _done(engine: Engine, piece: Piece, first: Piece, second: Piece | None) -> None:
    """The piece is what its ``first`` run gave; of the second one nobody wants anything."""
    if first is not piece:
        piece.held, first.held = first.held, piece.held
        second = first
    if second is not None and second is not piece:
        engine.let_go(second)


def fetched(engine: Engine, piece: Piece, where: str, name: str | None = None) -> Any:
    """A plane of a piece that is done, or all of it where no name is given; made again where it was lost."""
    while True:
        try:
            return engine.result(piece) if name is None else engine.plane(piece, name)
        except Lost as lost:
            piece.told = None
            _begin_anew(engine, piece, lost, where)
            complete(engine, [piece], where)


def _started(engine: Engine, todo: Sequence[Piece], running: dict[Any, Piece]) -> list[Piece]:
    """Hands out what can run; what waits for another piece stays."""
    waiting: list[Piece] = []
    under_way = {piece.copy_of or piece for piece in running.values()}
    queue = list(todo)
    for piece in queue:
        missing = [source for source in piece.sources() if source.told is None]
        if missing:
            waiting.append(piece)
            queue += [source for source in missing if source not in under_way and source not in queue]
        elif piece not in under_way:
            piece.copied = False
            _handed_out(engine, piece, running)
            under_way.add(piece)
    return waiting


def _begin_anew(engine: Engine, piece: Piece, lost: Lost, where: str) -> None:
    piece.attempts += 1
    engine.count_rerun()
    if piece.attempts > engine.retries:
        raise refusal(
            lost.reason,
            f"{where}: shard {piece.shard} came to nothing {piece.attempts} times, the last time because {lost}; look "
            "at the logs of the workers, and raise retries= where workers are expected to go",
        ) from None
    for source in piece.sources():
        if not engine.holds(source):
            source.told = None


def sent_with(piece: Piece) -> Mapping[str, Any]:
    """What of a piece goes to the scheduler: no arrays, but what stands for them."""
    standing = {
        name: value if isinstance(value, Filled) else type(value).__name__ for name, value in piece.inputs.items()
    }
    return {"work": piece.work, "shard": piece.shard, "inputs": standing}
