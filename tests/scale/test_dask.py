"""Batches over a real cluster of Dask: the bits of one run, whoever dies, and no arrays in the scheduler."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import eagle
import numpy as np
import pytest
from clusters import DaskCluster
from harness import PATIENCE_S, Beside, children, wait_until
from models import MODEL, arguments, batch, drift, energy, expect_same, part, scaled, sums, tally, walk, whole

da = pytest.importorskip("dask.array", reason="dask could not be installed (tests/scale/make_venv.sh)")
distributed = pytest.importorskip("distributed")
edask = pytest.importorskip("eagle.dask")
from eagle import cluster  # noqa: E402

N = 20_000
STEPS = 60


@pytest.fixture(scope="module")
def client(shared_dask: DaskCluster):
    with distributed.Client(shared_dask.address) as opened:
        opened.wait_for_workers(4, timeout=2 * PATIENCE_S)
        yield opened


@pytest.fixture
def own_client(dask_cluster: DaskCluster):
    with distributed.Client(dask_cluster.address) as opened:
        opened.wait_for_workers(4, timeout=2 * PATIENCE_S)
        yield opened


def daemons_of(pids: list[int]) -> set[int]:
    """The daemons that these workers started."""
    return {child for pid in pids for child in children(pid) if "eagled" in Path(f"/proc/{child}/cmdline").read_text()}


def test_the_bits_are_those_of_one_run(client, shared_dask, session, seed):
    planes = batch(seed, N)
    expected = whole(session, planes, STEPS, events=True, record="x", every=20)
    given = {name: da.from_array(value, chunks=3072) for name, value in planes.items()}
    found = edask.simulate(client, MODEL, max_steps=STEPS, events=True, record="x", every=20, **arguments(given))
    assert len(found.shards) == 7
    expect_same(found, expected)
    # The processes that computed are daemons of their own, one a worker.
    daemons = {worker.daemon for worker in found.workers}
    assert len(daemons) == len({worker.worker for worker in found.workers}) == 4
    assert daemons <= daemons_of([worker.pid for worker in shared_dask.workers])
    # All of it, moved here.
    moved = found.result()
    assert moved.stop_step.tobytes() == expected.stop_step.tobytes()
    assert moved.records["x"].tobytes() == np.ascontiguousarray(expected.records["x"]).tobytes()
    # Planes are dask arrays, computed on where they are, and what is given stays as it was.
    assert float(found.x.sum().compute()) == pytest.approx(float(np.sum(expected.x)))
    assert np.array_equal(given["x"].compute(), planes["x"])
    # Dask's own pages know the tasks by the name of the model.
    prefixes = client.run_on_scheduler(lambda dask_scheduler: sorted(dask_scheduler.task_prefixes))
    assert "walk_measure" in prefixes


def test_what_stays_in_planes_is_run_on_without_moving(client, session, seed):
    planes = batch(seed, N)
    first = whole(session, planes, 10)
    found = edask.simulate(client, MODEL, max_steps=10, chunks=5120, **arguments(planes))
    state = {name: found[name] for name in ("x", "life", "done")}
    again = edask.simulate(client, walk, max_steps=10, late=None, rate=0.5, **state)
    for name in ("x", "life", "done"):
        held = first[name]
        assert found[name].compute().tobytes() == held.tobytes(), name
    more = eagle.simulate(walk, max_steps=10, rate=0.5, **{name: first[name] for name in ("x", "life", "done")})
    for name in ("x", "life", "done"):
        assert again[name].compute().tobytes() == more[name].tobytes(), name
    # Its shards ran where the planes of the first one's lie.
    assert again.workers == found.workers


def test_a_worker_that_is_killed_midway_changes_no_bits(own_client, dask_cluster, session, seed):
    planes = batch(seed, N)
    expected = whole(session, planes, 600)
    given = {name: da.from_array(value, chunks=1024) for name, value in planes.items()}
    running = Beside(lambda: edask.simulate(own_client, MODEL, max_steps=600, **arguments(given)))

    def busy() -> list[str]:
        done = own_client.run_on_scheduler(
            lambda dask_scheduler: sum(
                1
                for key, task in dask_scheduler.tasks.items()
                if str(key).startswith("walk_measure") and task.state == "memory"
            )
        )
        at_work = [worker for worker, tasks in own_client.processing().items() if tasks]
        return at_work if done >= 4 else []

    wait_until(lambda: running.ended() or bool(busy()), "shards to be under way")
    victim = own_client.run(os.getpid)
    target = next(iter(busy() or victim))
    dask_cluster.kill(victim[target])
    found = running.result()
    assert not isinstance(found, BaseException), found
    expect_same(found, expected)
    assert len(own_client.nthreads()) == 3


def test_a_daemon_that_is_killed_midway_changes_no_bits(own_client, dask_cluster, session, seed):
    planes = batch(seed, N)
    expected = whole(session, planes, 600)
    warm = edask.simulate(own_client, walk, max_steps=1, rate=0.5, x=planes["x"], life=planes["life"])
    daemons = {worker.daemon for worker in warm.workers}
    running = Beside(lambda: edask.simulate(own_client, MODEL, max_steps=600, chunks=1024, **arguments(planes)))
    wait_until(lambda: running.ended() or any(own_client.processing().values()), "shards to be under way")
    os.kill(min(daemons), signal.SIGKILL)
    found = running.result()
    assert not isinstance(found, BaseException), found
    expect_same(found, expected)
    again = edask.simulate(own_client, MODEL, max_steps=5, chunks=1024, **arguments(planes))
    expect_same(again, whole(session, planes, 5))
    assert min(daemons) not in {worker.daemon for worker in again.workers}


def test_late_shards_are_begun_a_second_time_elsewhere(own_client, dask_cluster, session):
    """A worker that stands still gets its part of the shards; the others end the batch without it, once each shard."""
    planes = {"x": cluster.full(N, 0.5), "life": cluster.full(N, 20.0), "kind": cluster.full(N, 1, dtype=np.int64)}
    expected = whole(session, {name: np.asarray(value) for name, value in planes.items()}, 60)
    given = {"max_steps": 60, "chunks": 1024, **arguments(planes)}
    warm = edask.simulate(own_client, MODEL, late=None, **given)
    assert warm.traffic.copies == 0
    still = dask_cluster.workers[0].pid
    os.kill(still, signal.SIGSTOP)
    try:
        found = edask.simulate(own_client, MODEL, **given)
        assert 1 <= found.traffic.copies <= len(found.shards)
        assert found.traffic.reruns == 0
        assert still not in {worker.worker for worker in found.workers}
        expect_same(found, expected)
    finally:
        os.kill(still, signal.SIGCONT)
    expect_same(warm, expected)


def test_arrays_do_not_travel_through_the_scheduler(tmp_path, meter, seed):
    """Its sockets are counted from outside. Twice the samples are as many bytes there."""
    n = 409_600
    counted = []
    for samples in (n, 2 * n):
        (folder := tmp_path / str(samples)).mkdir()
        environment = {"LD_PRELOAD": str(meter), "SOCKET_METER": str(folder / "bytes")}
        with DaskCluster(folder, workers=2, scheduler_environment=environment) as made:
            with distributed.Client(made.address) as client:
                client.wait_for_workers(2, timeout=2 * PATIENCE_S)
                planes = batch(seed, samples)
                given = {"x": planes["x"], "life": da.ones(samples, chunks=samples // 4), "kind": planes["kind"]}
                found = edask.simulate(client, MODEL, max_steps=3, chunks=samples // 4, **arguments(given))
                again = edask.simulate(
                    client, walk, max_steps=3, rate=0.5, x=found.x, life=found.life, done=found["done"]
                )
                assert again.gather("x")["x"].nbytes == 8 * samples
                traffic = found.traffic
                assert traffic.sent + traffic.received < 100_000
                assert again.traffic.gathered == 8 * samples
            scheduler = made.scheduler.pid
        sent, received = map(int, (folder / f"bytes.{scheduler}").read_text().split())
        counted.append(sent + received)
    arrays = 4 * 8 * n
    assert counted[0] < arrays / 8, counted
    assert counted[1] < 2 * 8 * n / 4, counted


def test_no_array_is_copied_between_a_worker_and_its_daemon(tmp_path, meter):
    """All planes are memory that both map, and the daemons' sockets, which are counted from outside, carry messages."""

    def held_by_worker() -> list[tuple[str, int]]:
        from eagle.cluster import _node

        return [(plane.transport, plane.nbytes) for plane in _node._sessions.get(None).planes()]

    n = 1_000_000
    environment = {"LD_PRELOAD": str(meter), "SOCKET_METER": str(tmp_path / "bytes")}
    with DaskCluster(tmp_path, workers=2, environment=environment) as made, distributed.Client(made.address) as client:
        client.wait_for_workers(2, timeout=2 * PATIENCE_S)
        given = {"rate": 0.5, "x": cluster.full(n, 1.0), "life": cluster.full(n, 9.0)}
        found = edask.simulate(client, walk, max_steps=3, chunks=n // 2, late=None, **given)
        state = {name: found[name] for name in ("x", "life", "done")}
        again = edask.simulate(client, walk, max_steps=3, late=None, rate=0.5, **state)
        held = [plane for planes in client.run(held_by_worker).values() for plane in planes]
        assert {transport for transport, _ in held} == {"memfd"}
        arrays = 2 * (8 + 8 + 1) * n  # of both results
        assert sum(size for _, size in held) >= arrays
        assert again.workers == found.workers
        daemons = {worker.daemon for worker in again.workers}
    # They end with their workers, and say what went over their sockets.
    files = [tmp_path / f"bytes.{daemon}" for daemon in daemons]
    wait_until(lambda: all(file.is_file() and file.read_text().endswith("\n") for file in files), "daemons to end")
    counted = [sum(map(int, file.read_text().split())) for file in files]
    assert min(counted) > 0
    assert sum(counted) < arrays / 256, counted


def test_a_kernel_that_reads_an_earlier_reduction_is_refused_with_the_way_out(client):
    given = {"max_steps": 1, "chunks": 512}
    with pytest.raises(
        ValueError,
        match=r"'total' of kernel 'part'.*cut the model in two: what makes 'total' of kernel 'sums' in shards",
    ):
        edask.simulate(client, [sums, part], x=np.ones(1024), y=np.ones(1024), **given)
    first = edask.simulate(client, sums, x=np.ones(1024), **given)
    found = edask.simulate(client, part, y=np.ones(1024), total=first.total, **given)
    assert found.gather("y")["y"].tolist() == [1 / 1024] * 1024


def test_workers_of_a_node_use_its_daemon(client, session, seed, daemon):
    planes = batch(seed, 4096)
    found = edask.simulate(client, MODEL, max_steps=20, chunks=1024, endpoint=daemon.endpoint, **arguments(planes))
    expect_same(found, whole(session, planes, 20))
    assert {worker.daemon for worker in found.workers} == {daemon.pid}
    assert len({worker.worker for worker in found.workers}) > 1


def test_accumulators_of_reals_are_passed_on(client, session, seed):
    x = seed.normal(0, 1, 3000)
    expected = session.zeros(1)
    eagle.simulate(tally, max_steps=1, x=session.asarray(x), sum=expected, done=session.zeros(3000, dtype=bool))
    found = edask.simulate(client, tally, max_steps=1, chunks=512, x=x, sum=np.zeros(1))
    assert found["sum"].tobytes() == expected.tobytes()


def test_a_graph_over_dask_arrays(client, session, seed):
    x, v = seed.normal(0, 1, 5000), seed.normal(0, 1, 5000)
    given_x, given_v = da.from_array(x, chunks=1280), da.from_array(v, chunks=1280)
    graph = edask.Graph(client)
    first = graph.add(scaled, x=given_x, a=2.0)
    second = graph.add(scaled, x=first.y, a=0.5)
    moved = graph.add(drift, v=given_v, y=second.y)
    total = graph.add(energy, v=moved.v)
    here = session.asarray(v)
    y1 = eagle.plan(scaled).bind(x=session.asarray(x), a=2.0)
    y2 = eagle.plan(scaled).bind(x=y1.planes["y"], a=0.5)
    e = eagle.plan(energy).bind(v=here)
    g = eagle.Graph().add(y1).add(y2).add(eagle.plan(drift).bind(v=here, y=y2.planes["y"])).add(e).build()
    for n in (1, 3):  # a launch goes on where the last one ended
        found, _ = graph.launch(n), g.launch(n)
        assert found[second.y].compute().tobytes() == y2.planes["y"].tobytes()
        assert found[moved.v].compute().tobytes() == here.tobytes()
        assert found[total.e].tobytes() == e.planes["e"].tobytes()
    assert np.array_equal(given_v.compute(), v)


def test_vectors_and_single_precision(client, session, seed):
    turn = eagle.kernel(
        source="def turn(p: Mutable[Vector[3]], w: Scalar, done: Terminated):\n    p = w * p\n    done = w > 9"
    )
    p, w = seed.normal(0, 1, (3, 900)).astype("f4"), seed.normal(0, 1, 900).astype("f4")
    expected = session.asarray(p)
    eagle.simulate(turn, max_steps=4, p=expected, w=session.asarray(w), done=session.zeros(900, dtype=bool))
    found = edask.simulate(client, turn, max_steps=4, chunks=100, p=da.from_array(p, chunks=(2, 450)), w=w)
    assert found.p.shape == (3, 900)
    assert found.p.compute().tobytes() == expected.tobytes()


def test_no_samples_are_a_batch_too(client):
    found = edask.simulate(client, MODEL, max_steps=9, **arguments(batch(np.random.default_rng(0), 0)))
    assert (found.status, found.steps, found.n) == ("finished", 0, 0)
    assert found.x.compute().shape == (0,)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"chunks": (512, 256)}, ValueError, "768 samples in all, for a batch of 1,000"),
        ({"chunks": 100}, ValueError, "multiples of 256"),
        ({"chunks": 0}, ValueError, "chunks"),
        ({"kind": None}, TypeError, "'kind'"),
        ({"more": 1.0}, TypeError, "no argument 'more'"),
        ({"life": np.ones(7)}, ValueError, "1,000 samples and 'life' 7"),
        ({"life": np.ones(1000, "f4")}, TypeError, "float64 .* float32"),
        ({"max_steps": -1}, ValueError, "max_steps"),
        ({"rate": "fast"}, TypeError, "rate"),
    ],
)
def test_mistakes_are_refused_here(client, options, error, words):
    planes = batch(np.random.default_rng(1), 1000)
    with pytest.raises(error, match=words):
        edask.simulate(client, MODEL, **{"max_steps": 3, **arguments(planes), **options})


def test_what_cannot_travel_is_refused_by_name(client):
    def jump(x):
        return x

    with pytest.raises(TypeError, match="function 'jump': workers are sent descriptions of kernels"):
        edask.simulate(client, jump, max_steps=1, x=np.ones(3))
    with pytest.raises(TypeError, match="bound to arrays of this process"):
        edask.simulate(client, eagle.plan(scaled).bind(x=np.ones(3), a=1.0), max_steps=1)
    with pytest.raises(TypeError, match="Client"):
        edask.simulate("tcp://somewhere", walk, max_steps=1)
    with pytest.raises(ValueError, match="derivative"):
        edask.simulate(client, eagle.diff.vjp(scaled), max_steps=1, x=np.ones(3), a=1.0)


def test_a_worker_of_another_version_says_both(own_client):
    def pretend() -> None:
        from eagle import _core

        _core.__version__ = "9.9"

    own_client.run(pretend)
    with pytest.raises(eagle.ProtocolMismatch, match=r"has eagled 9\.9, and was sent work by .*pip install"):
        edask.simulate(own_client, walk, max_steps=1, rate=0.5, x=np.ones(300), life=np.ones(300))


def test_a_worker_without_a_daemon_is_named(client):
    with pytest.raises(eagle.DaemonUnavailable, match=r"worker \d+ on .* has no daemon: .*start eagled"):
        edask.simulate(
            client, walk, max_steps=1, endpoint="unix:/nowhere/eagled.sock", rate=0.5, x=np.ones(9), life=np.ones(9)
        )


def test_a_batch_without_workers_ends_with_a_word(own_client, dask_cluster, monkeypatch):
    monkeypatch.setattr(cluster.Engine, "patience_s", 2.0)
    for worker in list(dask_cluster.workers):
        dask_cluster.kill(worker.pid)
    wait_until(lambda: not own_client.nthreads(), "the scheduler to notice")
    with pytest.raises(eagle.DaemonUnavailable, match="no worker is left"):
        edask.simulate(own_client, walk, max_steps=1, rate=0.5, x=np.ones(9), life=np.ones(9))


def test_mistakes_in_a_graph_are_refused_when_they_are_made(client):
    graph = edask.Graph(client)
    with pytest.raises(eagle.GraphState, match="the graph is empty"):
        graph.launch()
    with pytest.raises(TypeError, match="no argument 'z'; it takes 'x', 'a'"):
        graph.add(scaled, x=np.ones(3), z=2.0)
    with pytest.raises(TypeError, match="'a' is missing"):
        graph.add(scaled, x=np.ones(3))
    with pytest.raises(TypeError, match="'y' is an output"):
        graph.add(scaled, x=np.ones(3), a=1.0, y=np.ones(3))
    with pytest.raises(ValueError, match=r"'done' finishes samples.*use simulate"):
        graph.add(walk, rate=0.5, x=np.ones(3), life=np.ones(3))
    one = np.ones(3)
    with pytest.raises(TypeError, match="one plane for two arguments, 'v' and 'y'"):
        graph.add(drift, v=one, y=one)
    with pytest.raises(TypeError, match="another one; launch that one"):
        graph.add(scaled, x=edask.Graph(client).add(scaled, x=one, a=1.0).y, a=1.0)
    assert graph.add(scaled, x=one, a=1.0).keys() == {"x", "y"}
    with pytest.raises(ValueError, match="no plane 'q'"):
        graph.launch()["q"]
