"""Batches in shards: random models, cut anywhere, are the run of the whole."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
from conftest import running_daemon

import eagle
from eagle import Accum, Index, Mutable, Param, Reduce, Scalar, Table, Terminated, kernel


@kernel
def walk(x: Mutable[Scalar], life: Mutable[Scalar], rate: Param, done: Terminated):
    x = x + rate * eagle.random.normal(seed=5, counter=4 * eagle.step_index()) / eagle.n_samples()
    life = life - eagle.random.uniform(seed=6, counter=eagle.step_index())
    done = life <= 0


@kernel
def fold(x: Mutable[Scalar], kind: Index, offsets: Table[Scalar]):
    x = eagle.dispatch(kind, [lambda: 0.9 * x, lambda: x + 1e-3 * eagle.sample_index(), lambda: x - offsets.at(kind)])


@kernel
def measure(
    x: Scalar, kind: Index, seen: Accum[Index]
) -> {"total": Reduce("sum"), "least": Reduce("min"), "small": Reduce("all"), "kinds": Reduce("sum", Index)}:
    seen.add(1, at=kind)
    return {"total": x, "least": x, "small": x < 40.0, "kinds": kind}


@kernel
def count(x: Mutable[Scalar], done: Terminated):
    x = x + 1
    done = x >= 3


OFFSETS = np.array([0.5, -0.25, 0.125])
REDUCED = ("total", "least", "small", "kinds")


def random_batch(rng, n):
    life = rng.exponential(rng.choice([2.0, 30.0]), n) + 0.01
    life[rng.random(n) < 0.05] = np.nan  # a NaN never finishes
    x = rng.normal(0, 20, n)
    x[rng.random(n) < 0.01] = np.nan
    return {"x": x, "life": life, "kind": rng.integers(-1, 4, n), "done": rng.random(n) < 0.1}


def run(session, batch, shard=None, *, parts=(walk, fold, measure), **options):
    count = shard[1] if shard else len(batch["x"])
    base = shard[0] if shard else 0
    planes = {name: session.asarray(values[base : base + count]) for name, values in batch.items()}
    more = {"seen": session.zeros(3, np.int64)} if measure in parts else {}
    return eagle.simulate(
        list(parts),
        rate=0.5,
        offsets=session.asarray(OFFSETS),
        shard=shard,
        session=session,
        **planes,
        **more,
        **options,
    )


def cuts(rng, n, grain):
    at = np.unique([0, n, *(rng.integers(0, n // grain + 1, rng.integers(0, 5)) * grain)])
    shards = [(int(a), int(b - a), n) for a, b in zip(at[:-1], at[1:])] or [(0, 0, 0)]
    return [shards[i] for i in rng.permutation(len(shards))]


@pytest.mark.parametrize("seed", range(12))
def test_random_models_in_random_shards_are_the_run_of_the_whole(session, seed):
    rng = np.random.default_rng([20261130, seed])
    n = int(rng.choice([0, 1, 200, 256, 1000, 5000]))
    with_sums = bool(rng.integers(2))
    parts = (walk, fold, measure) if with_sums else (walk, fold)
    batch, cap = random_batch(rng, n), int(rng.integers(0, 60))
    record = {"record": "x", "every": int(rng.integers(1, 9))} if rng.integers(2) else {}
    options = {"max_steps": cap, "events": True, "parts": parts, **record}
    whole = run(session, batch, **options)
    results = []
    for shard in cuts(rng, n, 256 if with_sums else 1):
        result = run(session, batch, shard, **options)
        assert result.shard == shard
        results.append(pickle.loads(pickle.dumps(result)))
    found = eagle.combine_shards(results)
    told = f"seed {seed}: {[result.shard for result in results]}"
    assert (found.status, found.steps, found.done) == (whole.status, whole.steps, whole.done), told
    assert (found.report.finished, found.report.n, found.report.dropped) == (
        whole.report.finished,
        n,
        whole.report.dropped,
    )
    assert found.steps_taken[~found.finished].tolist() == whole.steps_taken[~whole.finished].tolist()
    for name in (
        "x",
        "life",
        "done",
        *(REDUCED if with_sums and whole.steps else ()),
        *(["seen"] if with_sums else ()),
    ):
        assert found[name].tobytes() == np.asarray(whole[name]).tobytes(), (told, name)
    assert found.stop_step.tobytes() == whole.stop_step.tobytes()
    assert found.finished is found["done"]
    if record:
        assert found.records["x"].tobytes() == np.ascontiguousarray(whole.records["x"]).tobytes(), told
        assert found.record_steps.tolist() == whole.record_steps.tolist()
    if n:
        groups = found.report.dispatch["dispatch0"].counts, whole.report.dispatch["dispatch0"].counts
        assert groups[0] == groups[1]


@kernel
def settled(x: Scalar, calm: Param, done: Terminated):
    done = abs(x) < calm


TARGETS = ("", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Sessions of both hosts, of every vector width that this CPU has, on teams of one to three: opened on demand."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as daemons:
        opened = {}
        for number, target in enumerate(TARGETS):
            patch.setenv("EAGLED_CPU_TARGET", target)
            local = eagle.local(threads=1 + number % 3)
            try:
                eagle.simulate(count, max_steps=1, x=local.zeros(1), done=local.zeros(1, dtype=bool), session=local)
            except eagle.EagleError as error:
                assert "this CPU does not have" in str(error)
                continue
            opened["local", target] = local
            threads = ("--threads", str(1 + (number + 1) % 3))
            endpoint = daemons.enter_context(running_daemon(tmp_path_factory.mktemp("wide"), *threads))
            opened["daemon", target] = eagle.connect(endpoint)
        assert len(opened) >= 6, f"this CPU has fewer widths than any that we know: {list(opened)}"
        yield opened
        for session in opened.values():
            session.close()


@pytest.mark.parametrize("seed", range(8))
def test_shards_on_other_hosts_widths_and_teams_are_the_run_of_the_whole(places, seed):
    """Each shard runs somewhere else than the whole did, and samples finish by a mask of the model, by ``until``, or
    by both; what they make together is of the last step.
    """
    rng = np.random.default_rng([20261201, seed])
    n, cap = int(rng.choice([257, 1500, 4096, 9000])), int(rng.integers(1, 60))
    batch = random_batch(rng, n)
    rules = [{}, {"until": settled, "calm": 3.0}][int(rng.integers(2))]
    options = {"max_steps": cap, "events": True, "steps": [1, 7, "auto"][int(rng.integers(3))], **rules}
    names = list(places)
    whole = run(places[names[int(rng.integers(len(names)))]], batch, **options)
    results, told = [], [f"seed {seed}, n {n}, cap {cap}, {sorted(rules)}"]
    for shard in cuts(rng, n, 256):
        place = names[int(rng.integers(len(names)))]
        told.append(f"{shard} on {place}")
        results.append(pickle.loads(pickle.dumps(run(places[place], batch, shard, **options))))
    found = eagle.combine_shards(results)
    assert (found.status, found.steps, found.report.finished) == (whole.status, whole.steps, whole.report.finished), (
        told
    )
    for name in ("x", "life", "done", "seen", *(REDUCED if whole.steps else ())):
        assert found[name].tobytes() == np.asarray(whole[name]).tobytes(), (told, name)
    assert found.stop_step.tobytes() == whole.stop_step.tobytes(), told


def test_a_submitted_shard_is_one_too(session):
    rng = np.random.default_rng(3)
    batch = random_batch(rng, 300)
    parts = (walk, fold)
    whole = run(session, batch, max_steps=20, parts=parts)
    results = []
    for base, count, n in [(0, 100, 300), (100, 200, 300)]:
        planes = {name: session.asarray(values[base : base + count]) for name, values in batch.items()}
        submitted = eagle.submit(
            list(parts), max_steps=20, rate=0.5, offsets=session.asarray(OFFSETS), shard=(base, count, n), **planes
        )
        results.append(submitted.result())
    assert eagle.combine_shards(results).x.tobytes() == whole.x.tobytes()


def test_a_runner_takes_a_shard(session):
    @kernel
    def number(x: Mutable[Scalar], done: Terminated):
        x = x + eagle.sample_index() + 1000 * eagle.n_samples()
        done = x > 0

    x = session.zeros(4)
    runner = eagle.until_done(number, max_steps=3, shard=(6, 4, 10), x=x)
    assert runner.run().shard == (6, 4, 10)
    assert x.tolist() == [10006, 10007, 10008, 10009]


def test_an_accumulator_of_reals_is_passed_on_from_shard_to_shard(session):
    @kernel
    def add(x: Scalar, sum: Accum[Scalar], done: Terminated):
        sum.add(x, at=0)
        done = x > 1e9

    values = np.random.default_rng(4).normal(0, 1, 700)

    def step(base, count, total, done):
        shard = (base, count, 700)
        return eagle.simulate(
            add, max_steps=1, shard=shard, x=session.asarray(values[base : base + count]), sum=total, done=done
        )

    whole, passed = session.zeros(1), session.zeros(1)
    for _ in range(3):
        step(0, 700, whole, session.zeros(700, dtype=bool))
        results = [step(base, 350, passed, session.zeros(350, dtype=bool)) for base in (0, 350)]
    assert eagle.combine_shards(results)["sum"].tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"shard": 3}, TypeError, r"\(base, count, n\)"),
        ({"shard": (0, 4)}, TypeError, r"\(base, count, n\)"),
        ({"shard": (0, 4.5, 9)}, TypeError, "shard"),
        ({"shard": (-1, 4, 9)}, ValueError, "shard"),
        ({"shard": (6, 4, 9)}, ValueError, "batch of n"),
        ({"shard": (0, 3, 9)}, ValueError, r"x\[base:base \+ count\]"),
        ({"shard": (0, 4, 9), "until": lambda: True}, ValueError, "give a kernel"),
    ],
)
def test_shards_that_cannot_be_are_refused_by_name(session, options, error, words):
    x, done = session.zeros(4), session.zeros(4, dtype=bool)
    with pytest.raises(error, match=words):
        eagle.simulate(count, max_steps=5, x=x, done=done, **options)
    assert not x.any()


def test_results_that_are_no_batch_are_refused(session):
    def part(base, count_, cap=5, n=8):
        done = session.zeros(count_, dtype=bool)
        return eagle.simulate(count, max_steps=cap, shard=(base, count_, n), x=session.zeros(count_), done=done)

    assert eagle.combine_shards([part(4, 4), part(0, 4)]).x.tolist() == [3.0] * 8
    with pytest.raises(ValueError, match="none"):
        eagle.combine_shards([])
    with pytest.raises(TypeError, match="dict"):
        eagle.combine_shards([{}])
    with pytest.raises(ValueError, match="shard="):
        eagle.combine_shards(
            [eagle.simulate(count, max_steps=5, x=session.zeros(2), done=session.zeros(2, dtype=bool))]
        )
    with pytest.raises(ValueError, match=r"\[4, 8\) are in no shard"):
        eagle.combine_shards([part(0, 4)])
    with pytest.raises(ValueError, match="two shards"):
        eagle.combine_shards([part(0, 5), part(4, 4)])
    with pytest.raises(ValueError, match="another batch"):
        eagle.combine_shards([part(0, 4), part(4, 4, n=9)])
    with pytest.raises(ValueError, match="step it on to there"):
        eagle.combine_shards([part(0, 4, cap=1), part(4, 4, cap=2)])
