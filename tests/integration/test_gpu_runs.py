"""Runs until samples are done over arrays on a GPU, in process and in a daemon, on the fake driver."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eagle
import numpy as np
import pytest
from harness import Daemon, children, eaglectl, wait_until
from models import count_up

pytestmark = pytest.mark.usefixtures("fake_gpus")

GPU = "cuda:0"
SEED = 20261201


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


@eagle.kernel
def oscillator(
    x: eagle.Mutable[eagle.Scalar],
    v: eagle.Mutable[eagle.Scalar],
    t: eagle.Mutable[eagle.Scalar],
    omega: eagle.Scalar,
    dt: eagle.Param,
    t_end: eagle.Scalar,
    done: eagle.Terminated,
):
    x, v = x + dt * v, v - dt * omega * omega * x
    t = t + dt
    done = t >= t_end


@eagle.kernel
def look(x: eagle.Scalar, v: eagle.Scalar, k: eagle.Index, bins: eagle.Accum[eagle.Scalar]) -> eagle.Reduce("sum"):
    bins.add(0.25, at=k)
    energy = x * x + v * v
    return energy  # noqa: RET504  # it names the plane


@eagle.kernel
def spin(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    i = 0
    while eagle.bounded(2**40) and i >= 0:
        i = i + 1
    x = x + i
    done = False


def ensemble(session: eagle.Session, n: int, **where: str) -> dict[str, Any]:
    generator = np.random.default_rng(SEED)
    return {
        "x": session.full(n, 1.0, **where),
        "v": session.zeros(n, **where),
        "t": session.zeros(n, **where),
        "omega": session.asarray(generator.uniform(1, 3, n), **where),
        "dt": 1e-2,
        "t_end": session.asarray(generator.uniform(0, 0.3, n), **where),
        "done": session.asarray(np.arange(n) % 7 == 3, **where),
    }


def counting(session: eagle.Session, limit: float, n: int = 3) -> dict[str, Any]:
    return {
        "x": session.zeros(n, device=GPU),
        "step": session.full(n, 1.0, device=GPU),
        "limit": limit,
        "done": session.zeros(n, dtype=bool, device=GPU),
    }


# ---- the same as on the CPU


def test_a_run_computes_where_its_arrays_are_with_the_cpus_bits(session: eagle.Session) -> None:
    results = {
        place: eagle.simulate(
            oscillator, max_steps=25, events=True, record=True, every=4, **ensemble(session, 30, device=place)
        )
        for place in ("cpu", GPU)
    }
    here, there = results["cpu"], results[GPU]
    assert (here.report.backend, there.report.backend) == ("cpu", GPU)
    assert (there.report.schedule, there.report.mode) == ("cuda_graph", "fused")
    assert (there.status, there.steps, there.report.finished) == (here.status, here.steps, here.report.finished)
    assert there.stop_step.device == GPU
    for name in ("x", "v", "t", "done"):
        assert there[name].numpy().tobytes() == np.asarray(here[name]).tobytes(), name
    for name in ("x", "v", "t"):
        assert there.records[name].device == GPU
        assert np.asarray(there.records[name]).tobytes() == np.asarray(here.records[name]).tobytes(), name
    assert np.asarray(there.stop_step).tolist() == np.asarray(here.stop_step).tolist()
    assert there.record_steps.tolist() == here.record_steps.tolist()
    assert np.asarray(there.steps_taken).tolist() == np.asarray(here.steps_taken).tolist()
    assert f"on {GPU}" in str(there.report)


def test_samples_that_meet_give_the_cpus_bits(session: eagle.Session) -> None:
    def run(**where: str) -> eagle.SimResult:
        made = {"bins": session.zeros(4, **where), "k": session.asarray(np.arange(20) % 5, **where)}
        return eagle.simulate([oscillator, look], max_steps=9, **made, **ensemble(session, 20, **where))

    here, there = run(), run(device=GPU)
    assert there.report.mode == "stepwise"
    for name in ("x", "bins", "energy"):
        assert np.asarray(there[name]).tobytes() == np.asarray(here[name]).tobytes(), name
    assert there["energy"].device == GPU


def test_a_mask_that_nobody_gives_is_made_there(session: eagle.Session) -> None:
    x = session.asarray([0.0, 1.0], device=GPU)
    runner = eagle.until_done(
        eagle.plan(count_up), max_steps=10, x=x, step=session.full(2, 1.0, device=GPU), limit=3.0, session=session
    )
    assert runner.terminated.device == GPU
    assert runner.run().steps == 3
    assert (runner.finished, runner.result("x").numpy().tolist()) == (2, [3.0, 3.0])
    runner.reset()
    assert x.numpy().tolist() == [0.0, 1.0]


# ---- code of the caller


def test_a_callable_looks_after_so_many_steps_and_ends_the_run(session: eagle.Session) -> None:
    seen: list[float] = []

    def until(planes: Any) -> bool:
        seen.append(float(planes.x[0]))
        return len(seen) == 3

    result = eagle.simulate(count_up, until=until, every=10, max_steps=1000, **counting(session, 1e300))
    assert (result.status, result.steps, seen) == ("finished", 30, [10.0, 20.0, 30.0])


def test_a_callable_in_the_step_sees_what_kernels_stored_and_they_what_it_stores(session: eagle.Session) -> None:
    planes = counting(session, 6.0)

    def double(x: np.ndarray, done: np.ndarray) -> None:
        x[~done] *= 2

    step = [eagle.graph.opaque(double, reads={"done": planes["done"]}, writes={"x": planes["x"]}), eagle.plan(count_up)]
    runner = eagle.until_done(step, max_steps=10, **planes)
    result = runner.run()
    assert (result.steps, result.report.finished) == (3, 3)  # 1, 3, 7
    assert result.report.schedule == "host_loop: the client has a part in the step"
    assert runner.result("x").numpy().tolist() == [7.0] * 3


def test_rows_go_to_files_as_they_come(session: eagle.Session, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    result = eagle.simulate(count_up, max_steps=100, record="x", record_to=path, **counting(session, 7.0))
    assert result.report.records == 8
    assert np.load(path).tolist() == [[float(step)] * 3 for step in range(8)]


# ---- stopping


def test_a_timeout_ends_it_at_a_whole_step(session: eagle.Session) -> None:
    planes = counting(session, 1e300)
    result = eagle.simulate(count_up, max_steps=2**60, timeout=0.2, **planes)
    assert result.status == "deadline"
    assert planes["x"].numpy().tolist() == [float(result.steps)] * 3
    assert np.asarray(result.steps_taken).tolist() == [result.steps] * 3


def test_a_timeout_reaches_into_a_loop_and_undoes_the_step(session: eagle.Session) -> None:
    x, done = session.full(3, 1.0, device=GPU), session.zeros(3, dtype=bool, device=GPU)
    result = eagle.simulate(spin, max_steps=5, timeout=0.2, x=x, done=done)
    assert (result.status, result.steps) == ("deadline", 0)
    assert x.numpy().tolist() == [1.0] * 3


def test_progress_is_told_and_may_end_it(session: eagle.Session) -> None:
    told: list[int] = []

    def progress(now: eagle.RunProgress) -> bool:
        told.append(now.steps)
        return len(told) < 3

    planes = counting(session, 1e300)
    result = eagle.simulate(count_up, max_steps=2**60, progress=progress, **planes)
    assert result.status == "cancelled"
    assert told == sorted(told)
    assert planes["x"].numpy().tolist() == [float(result.steps)] * 3


def test_others_have_their_turn_meanwhile(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        planes = counting(session, 1e300)
        ended = threading.Event()

        def run() -> None:
            eagle.simulate(count_up, max_steps=2**60, timeout=60, progress=lambda _: not ended.is_set(), **planes)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            wait_until(lambda: float(planes["x"][0]) > 0, "the first steps")
            result = eagle.simulate(count_up, max_steps=10, **counting(other, 4.0))
            assert result.steps == 4
        finally:
            ended.set()
            thread.join()


# ---- runs that outlive their client


def test_a_submitted_run_has_the_arrays_that_it_was_given(session: eagle.Session) -> None:
    planes = counting(session, 5.0)
    run = eagle.submit(count_up, max_steps=100, events=True, record="x", name="tonight", **planes)
    result = run.result(timeout=60)
    assert (result.status, result.steps, result.report.backend) == ("finished", 5, GPU)
    assert planes["x"].numpy().tolist() == [5.0] * 3
    assert np.asarray(result.records["x"])[-1].tolist() == [5.0] * 3


def test_a_submitted_run_is_cancelled(session: eagle.Session) -> None:
    planes = counting(session, 1e300)
    run = eagle.submit(count_up, max_steps=2**60, **planes)
    wait_until(lambda: run.progress().steps > 0, "steps")
    run.cancel()
    result = run.result(timeout=60)
    assert result.status == "cancelled"
    assert planes["x"].numpy().tolist() == [float(result.steps)] * 3


def test_another_session_finds_the_run_with_arrays_on_that_gpu(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        number = eagle.submit(count_up, max_steps=100, record="x", **counting(session, 5.0)).id
    with eagle.connect(daemon.endpoint) as later:
        result = later.run(number).result(timeout=60)
        assert (result.status, result.x.device, result.records["x"].device) == ("finished", GPU, GPU)
        assert result.x.numpy().tolist() == [5.0] * 3
        assert np.asarray(result.records["x"]).tolist() == [[float(step)] * 3 for step in range(6)]
        assert later.runs() == []


# ---- refusals, old drivers, faults


def test_an_array_of_the_host_is_refused_by_the_names_of_both(session: eagle.Session) -> None:
    x, step = session.zeros(3, device=GPU, name="place"), session.full(3, 1.0, name="stride")
    done = session.zeros(3, dtype=bool, device=GPU)
    with pytest.raises(eagle.MixedDevices) as refused:
        eagle.simulate(count_up, max_steps=5, x=x, step=step, limit=3.0, done=done)
    for words in (
        "kernel 'count_up', 'step'",
        "'stride'",
        "memory of the host",
        "'place'",
        "cuda:0 (fake GPU 0",
        "device=",
    ):
        assert words in str(refused.value)
    other = session.full(3, 1.0, device="cuda:1")
    with pytest.raises(eagle.MixedDevices, match=r"cuda:0 \(fake GPU 0.*cuda:1 \(fake GPU 1"):
        eagle.simulate(count_up, max_steps=5, x=x, step=other, limit=3.0, done=done)


def test_an_old_driver_has_the_host_look_after_each_step(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon(pretend="version=12010").endpoint) as session:
        result = eagle.simulate(count_up, max_steps=100, **counting(session, 40.0))
        assert (result.status, result.steps) == ("finished", 40)
        assert result.report.schedule.startswith("host_loop: ")
        assert "driver for CUDA 12.1" in result.report.schedule


def test_a_fault_ends_the_run_by_name_and_the_next_one_finds_a_gpu(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon(pretend="devices=1,fail_launch=40")
    with eagle.connect(daemon.endpoint) as session:
        planes = counting(session, 1e300)
        with pytest.raises(eagle.EagleError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS.*cuda:0 .*is lost to this process"):
            eagle.simulate([count_up, oscillating], max_steps=1000, y=session.zeros(3, device=GPU), **planes)
        wait_until(lambda: children(daemon.process.pid) not in ([], [daemon.pid]), "another worker")
        wait_until(lambda: daemon.info()["worker_restarts"] > 0, "the next worker to serve")
        with pytest.raises(eagle.EagleError, match="lost with its worker: make the array again"):
            planes["x"].numpy()
        assert eagle.simulate(count_up, max_steps=10, **counting(session, 4.0)).steps == 4


@eagle.kernel
def oscillating(y: eagle.Mutable[eagle.Scalar]):
    y = 1.0 - y


def test_a_submitted_run_that_a_fault_ended_says_so_and_is_told_of(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon("--no-keeper", pretend="devices=1,fail_launch=40")
    with eagle.connect(daemon.endpoint) as session:
        planes = counting(session, 1e300)
        run = eagle.submit(
            [count_up, oscillating], max_steps=1000, name="tonight", y=session.zeros(3, device=GPU), **planes
        )
        with pytest.raises(eagle.EagleError, match="is lost to this process"):
            run.result(timeout=60)
        wait_until(lambda: daemon.info()["gpu_faults"], "the report")
        (fault,) = daemon.info()["gpu_faults"]
        assert [(lost["run"], lost["name"]) for lost in fault["runs"]] == [(run.id, "tonight")]
        assert "'tonight'" in eaglectl("--endpoint", daemon.endpoint, "info").stdout


def test_results_on_a_gpu_go_with_the_worker_and_the_refusal_says_so(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        number = eagle.submit(count_up, max_steps=100, **counting(session, 5.0)).id
        wait_until(lambda: session.run(number).ended, "the end")
        os.kill(daemon.pid, signal.SIGKILL)
        wait_until(lambda: daemon.info()["worker_restarts"] > 0, "the next worker")
        with pytest.raises(eagle.EagleError, match="its arrays lay on cuda:0, whose memory went with"):
            session.run(number).result(timeout=60)


# ---- what a run makes there for itself


def test_a_run_whose_notes_are_too_much_for_the_gpu_is_refused_with_sizes(gpu_daemon: Callable[..., Daemon]) -> None:
    mib, n = 1 << 20, 300_000
    daemon = gpu_daemon("--device-budget", str(17 * mib))
    with eagle.connect(daemon.endpoint) as session:
        x, v = session.full(n, 1.0, device=GPU), session.zeros(n, device=GPU)
        k, done = session.zeros(n, dtype=np.int64, device=GPU), session.zeros(n, dtype=bool, device=GPU)
        bins, total = session.zeros(4, device=GPU), session.zeros(1, device=GPU)

        def run(samples: int) -> eagle.SimResult:
            parts = {"x": x[:samples], "step": v[:samples], "v": v[:samples], "k": k[:samples], "done": done[:samples]}
            return eagle.simulate([count_up, look], max_steps=2, limit=9.0, bins=bins, energy=total, **parts)

        held = daemon.info()["gpus"][0]["plane_bytes"]
        with pytest.raises(eagle.EagleError, match="--device-budget") as refused:
            run(n)
        assert str(17 * mib) in str(refused.value)
        assert "2400000 bytes" in str(refused.value)
        assert daemon.info()["gpus"][0]["plane_bytes"] == held
        assert run(1000).steps == 2
        assert bins.numpy().tolist() == [500.0, 0.0, 0.0, 0.0]
        wait_until(lambda: daemon.info()["gpus"][0]["plane_bytes"] == held, "the notes to go")
