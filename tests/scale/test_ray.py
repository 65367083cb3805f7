"""Batches over actors of a real Ray: the bits of one run, whoever dies; arrays move when they are asked for."""

from __future__ import annotations

import os
import signal

import eagle
import numpy as np
import pytest
from harness import Beside, children, wait_until
from models import MODEL, arguments, batch, drift, energy, expect_same, scaled, tally, walk, whole

pytest.importorskip("ray", reason="ray could not be installed (tests/scale/make_venv.sh)")
eray = pytest.importorskip("eagle.ray")
from eagle import cluster  # noqa: E402

N = 20_000
STEPS = 60


@pytest.fixture(scope="module")
def shared_pool(ray_here):
    with eray.Pool(4, num_cpus=0) as opened:
        yield opened


@pytest.fixture
def pool(ray_here):
    """One to kill."""
    with eray.Pool(4, num_cpus=0) as opened:
        yield opened


def test_the_bits_are_those_of_one_run(shared_pool, session, seed):
    planes = batch(seed, N)
    expected = whole(session, planes, STEPS, events=True)
    found = eray.simulate(shared_pool, MODEL, max_steps=STEPS, chunks=3072, events=True, **arguments(planes))
    expect_same(found, expected)
    assert len({worker.daemon for worker in found.workers}) == 4
    assert {worker.worker for worker in found.workers} == set(shared_pool.pids())
    assert found.result().stop_step.tobytes() == expected.stop_step.tobytes()
    traffic = found.traffic
    assert traffic.sent + traffic.received < 100_000, "descriptions and reports, no arrays"
    assert traffic.gathered > 8 * N


def test_what_stays_in_planes_is_run_on_there(shared_pool, session, seed):
    planes = batch(seed, N)
    given = {name: session.asarray(planes[name]) for name in ("x", "life")}
    done = session.zeros(N, dtype=bool)
    found = eray.simulate(shared_pool, walk, max_steps=10, chunks=5120, rate=0.5, x=planes["x"], life=planes["life"])
    state = {name: found[name] for name in ("x", "life", "done")}
    again = eray.simulate(shared_pool, walk, max_steps=10, late=None, rate=0.5, **state)
    assert again.workers == found.workers
    assert again.traffic.gathered == 0
    eagle.simulate(walk, max_steps=10, rate=0.5, done=done, **given)
    assert found.x.gather().tobytes() == given["x"].tobytes()
    eagle.simulate(walk, max_steps=10, rate=0.5, done=done, **given)
    assert again.x.gather().tobytes() == given["x"].tobytes()
    with pytest.raises(ValueError, match="other cuts"):
        eray.simulate(shared_pool, walk, max_steps=1, chunks=100, rate=0.5, **{n: found[n] for n in ("x", "life")})


def test_an_actor_that_is_killed_midway_changes_no_bits(pool, session, seed):
    planes = batch(seed, N)
    expected = whole(session, planes, 600)
    pids = pool.pids()
    running = Beside(lambda: eray.simulate(pool, MODEL, max_steps=600, chunks=1024, **arguments(planes)))
    wait_until(lambda: running.ended() or _has_daemon(pids[1]), "an actor to be at work")
    os.kill(pids[1], signal.SIGKILL)
    found = running.result()
    assert not isinstance(found, BaseException), found
    assert found.traffic.reruns + found.traffic.copies >= 1
    expect_same(found, expected)


def test_late_shards_are_begun_a_second_time_elsewhere(pool, session, seed):
    """An actor that stands still gets its part of the shards; the others end the batch without it, once each shard."""
    planes = batch(seed, N)
    expected = whole(session, planes, STEPS)
    still = pool.pids()[1]
    os.kill(still, signal.SIGSTOP)
    try:
        found = eray.simulate(pool, MODEL, max_steps=STEPS, chunks=1024, **arguments(planes))
        assert 1 <= found.traffic.copies <= len(found.shards)
        assert still not in {worker.worker for worker in found.workers}
        expect_same(found, expected)
    finally:
        os.kill(still, signal.SIGCONT)


def test_planes_that_went_with_their_actor_are_made_again(pool, session, seed):
    planes = batch(seed, N)
    first = eray.simulate(pool, walk, max_steps=10, chunks=4096, rate=0.5, x=planes["x"], life=planes["life"])
    second = eray.simulate(pool, walk, max_steps=10, rate=0.5, **{n: first[n] for n in ("x", "life", "done")})
    os.kill(pool.pids()[0], signal.SIGKILL)
    del first  # its planes are let go; what `second` is made of is made again
    x, life, done = session.asarray(planes["x"]), session.asarray(planes["life"]), session.zeros(N, dtype=bool)
    for _ in range(2):
        eagle.simulate(walk, max_steps=10, rate=0.5, x=x, life=life, done=done)
    assert second.x.gather().tobytes() == x.tobytes()
    assert second.traffic.reruns >= 1


def _has_daemon(pid: int) -> bool:
    return bool(children(pid))


def test_accumulators_of_reals_are_passed_on_from_actor_to_actor(shared_pool, session, seed):
    x = seed.normal(0, 1, 3000)
    expected = session.zeros(1)
    eagle.simulate(tally, max_steps=1, x=session.asarray(x), sum=expected, done=session.zeros(3000, dtype=bool))
    found = eray.simulate(shared_pool, tally, max_steps=1, chunks=512, x=x, sum=np.zeros(1))
    assert found["sum"].tobytes() == expected.tobytes()


def test_a_graph_over_the_actors(shared_pool, session, seed):
    x, v = seed.normal(0, 1, 5000), seed.normal(0, 1, 5000)
    graph = eray.Graph(shared_pool, chunks=1280)
    first = graph.add(scaled, x=x, a=2.0)
    moved = graph.add(drift, v=v, y=first.y)
    total = graph.add(energy, v=moved.v)
    here = session.asarray(v)
    y = eagle.plan(scaled).bind(x=session.asarray(x), a=2.0)
    e = eagle.plan(energy).bind(v=here)
    g = eagle.Graph().add(y).add(eagle.plan(drift).bind(v=here, y=y.planes["y"])).add(e).build()
    for n in (1, 3):
        found, _ = graph.launch(n), g.launch(n)
        assert found[moved.v].gather().tobytes() == here.tobytes()
        assert found[total.e].tobytes() == e.planes["e"].tobytes()


def test_arrays_of_one_number_and_no_samples(shared_pool, session):
    found = eray.simulate(
        shared_pool, walk, max_steps=5, chunks=1000, rate=0.5, x=cluster.full(2500, 1.5), life=cluster.full(2500, 9.0)
    )
    x, life, done = session.full(2500, 1.5), session.full(2500, 9.0), session.zeros(2500, dtype=bool)
    eagle.simulate(walk, max_steps=5, rate=0.5, x=x, life=life, done=done)
    assert found.x.gather().tobytes() == x.tobytes()
    none = eray.simulate(shared_pool, walk, max_steps=5, rate=0.5, x=np.zeros(0), life=np.zeros(0))
    assert (none.status, none.steps, none.x.gather().shape) == ("finished", 0, (0,))


def test_mistakes_are_refused_by_name(shared_pool, ray_here):
    planes = arguments(batch(np.random.default_rng(1), 1000))
    with pytest.raises(ValueError, match="768 samples in all, for a batch of 1,000"):
        eray.simulate(shared_pool, MODEL, max_steps=3, chunks=(512, 256), **planes)
    with pytest.raises(TypeError, match="descriptions of kernels, never code"):
        eray.simulate(shared_pool, lambda x: x, max_steps=3, x=np.ones(3))
    with pytest.raises(TypeError, match=r"eagle\.ray\.Pool"):
        eray.simulate(None, MODEL, max_steps=3, **planes)
    with pytest.raises(eagle.DaemonUnavailable, match=r"worker \d+ on .* has no daemon"):
        eray.simulate(
            shared_pool, walk, max_steps=1, endpoint="unix:/nowhere/e.sock", rate=0.5, x=np.ones(9), life=np.ones(9)
        )


def test_a_batch_whose_actors_are_all_gone_ends_with_a_word(pool, monkeypatch):
    import ray

    monkeypatch.setattr(cluster.Engine, "patience_s", 2.0)
    pool.pids()
    for actor in pool.actors:
        ray.kill(actor)
    with pytest.raises(eagle.DaemonUnavailable, match=r"no worker is left|came to nothing"):
        eray.simulate(pool, walk, max_steps=1, rate=0.5, x=np.ones(9), life=np.ones(9))
