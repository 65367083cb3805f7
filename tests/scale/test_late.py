"""Second copies of late shards, with an engine whose workers do as they are told: run, get lost, or stand still."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from eagle import cluster
from eagle.cluster import _late, _node, _results
from eagle.cluster._node import Lost
from models import MODEL, arguments, batch, expect_same, whole

N, STEPS, CHUNK = 4096, 20, 512


class Told(cluster.Engine):
    """Runs shards in this thread. ``fates`` are what becomes of the runs of a shard, by its first sample, in order;
    others run.
    """

    def __init__(self, fates: dict[int, list[str]]) -> None:
        super().__init__()
        self._fates = {base: list(fate) for base, fate in fates.items()}
        self._outcomes: dict[int, Any] = {}
        self._number = 0
        self.begun: Counter[int] = Counter()
        self.under_way: dict[int, int] = {}  # bases of shards, by ticket
        self.most_at_once = 0
        self.dropped: list[int] = []
        self.let_go_of: list[Any] = []

    def workers(self) -> int:
        return 4

    def idle(self) -> int:
        return 2

    def start(self, piece: Any) -> int:
        self._number += 1
        base = piece.shard[0]
        self.begun[base] += 1
        self.under_way[self._number] = base
        self.most_at_once = max(self.most_at_once, *Counter(self.under_way.values()).values())
        fate = self._fates.get(base, [])
        outcome = fate.pop(0) if fate else "runs"
        piece.held = None
        if outcome == "runs":
            piece.held = _node.run_shard(piece.work, piece.shard, list(piece.inputs), *piece.inputs.values())
            self._outcomes[self._number] = _node.told_of(piece.held)
        elif outcome == "lost":
            self._outcomes[self._number] = Lost("CONNECTION_LOST", "it was told to")
        return self._number

    def wait(self, tickets: Any) -> list[int]:
        done = [ticket for ticket in tickets if ticket in self._outcomes]
        if not done:
            time.sleep(0.01)
        return done

    def told(self, ticket: int) -> dict[str, Any]:
        del self.under_way[ticket]
        found = self._outcomes[ticket]
        if isinstance(found, Lost):
            raise found
        return found

    def holds(self, piece: Any) -> bool:
        return piece.held is not None

    def plane(self, piece: Any, name: str) -> Any:
        return _node.plane_of(piece.held, name)

    def result(self, piece: Any) -> Any:
        return _node.result_of(piece.held)

    def let_go(self, piece: Any) -> None:
        self.let_go_of.append(piece.held)
        piece.held = None

    def drop(self, ticket: int) -> None:
        del self.under_way[ticket]
        self.dropped.append(ticket)

    def cancel(self, tickets: Any) -> None:
        for ticket in tickets:
            del self.under_way[ticket]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of a test take milliseconds."""
    monkeypatch.setattr(_late, "LEAST_S", 0.05)


def ran(engine: Told, planes: dict[str, np.ndarray]) -> Any:
    return _results.simulate(
        engine, "late", MODEL, arguments(planes), chunks=CHUNK, endpoint=_node.LOCAL, max_steps=STEPS
    )


def test_a_shard_that_stands_still_has_one_copy_and_the_bits_of_one_run(session, seed):
    planes = batch(seed, N)
    engine = Told({1024: ["stands still"], 2048: ["stands still"]})
    found = ran(engine, planes)
    expect_same(found, whole(session, planes, STEPS))
    assert engine.begun == {base: 2 if base in (1024, 2048) else 1 for base in range(0, N, CHUNK)}
    assert (found.traffic.copies, found.traffic.reruns) == (2, 0)
    assert len(engine.dropped) == 2
    assert not engine.under_way


def test_a_copy_that_is_lost_is_made_again_as_often_as_shards_are_begun_anew(session, seed):
    planes = batch(seed, N)
    engine = Told({1024: ["stands still", "lost", "lost"]})
    found = ran(engine, planes)
    expect_same(found, whole(session, planes, STEPS))
    assert engine.begun[1024] == 4
    assert engine.most_at_once == 2


def test_nothing_is_copied_where_nobody_may_be_late(session, seed):
    planes = batch(seed, N)
    engine = Told({1024: ["lost"]})
    engine.late = None
    found = ran(engine, planes)
    expect_same(found, whole(session, planes, STEPS))
    assert (found.traffic.copies, found.traffic.reruns) == (0, 1)


def test_whatever_becomes_of_runs_the_bits_are_those_of_one(session, seed):
    """Half of all shards are lost or stand still at first; no shard ever runs three times at once."""
    planes = batch(seed, N)
    expected = whole(session, planes, STEPS)
    for number in range(20):
        rng = random.Random(number)
        kinds = [["lost"], ["stands still"], ["lost", "stands still"], ["stands still", "lost"], ["lost", "lost"]]
        late = rng.sample(range(0, N, CHUNK), 3)  # more than half have to be done before anybody is late
        engine = Told({base: list(rng.choice(kinds)) for base in late})
        found = ran(engine, planes)
        expect_same(found, expected)
        assert engine.most_at_once <= 2, number
        assert not engine.under_way, number


@pytest.mark.parametrize(("late", "error"), [("soon", TypeError), (True, TypeError), (0.5, ValueError)])
def test_what_late_cannot_be_is_refused(late, error):
    with pytest.raises(error, match="simulate: late: expected"):
        _late.late_of("simulate", late)
