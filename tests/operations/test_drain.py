"""How a daemon ends: what is refused, what is finished, what is cancelled and counted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eagle
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import BUILD, PATIENCE_S, ROOT, Beside, Daemon, tcp_endpoint, wait_until
from operators import Service, service_of, wait_for_log
from work import HeldLaunch, add, grow

STEPS = 100_000
LASTING = 200_000  # samples that take so many steps in half a second at the least: longer than a run is silent


def ends_well(daemon: Daemon) -> None:
    assert daemon.process.wait(PATIENCE_S) == 0, daemon.log()


@pytest.fixture
def patient(short_path: Path):
    """A daemon that gives running work an hour."""
    daemon = Daemon(short_path, "--drain-timeout", "3600")
    yield daemon
    daemon.process.kill()
    daemon.process.wait()


def test_new_work_is_refused_while_what_runs_is_finished(patient: Daemon) -> None:
    with eagle.connect(patient.endpoint) as session, grpc.insecure_channel(patient.endpoint) as channel:
        built = eagle.Graph(session).add(eagle.plan(add).bind(x=session.zeros(8), by=1.0)).build()
        held = HeldLaunch(session)
        stub = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="eagled.ready"), timeout=PATIENCE_S)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        patient.process.send_signal(signal.SIGTERM)
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(eagle.DaemonUnavailable, match=r"try again in \d+ s") as refused:
            built.launch()
        assert refused.value.reason == "SHUTTING_DOWN"
        with service_of(patient) as admin:  # an admin may look; its work is refused like everybody's
            assert admin.call("Admin.Info").draining
            with pytest.raises(grpc.RpcError) as told:
                admin.call("Graphs.Launch", graph=1, count=1)
            assert told.value.code() == grpc.StatusCode.UNAVAILABLE
            assert dict(told.value.trailing_metadata())["grpc-retry-pushback-ms"] == "1000"
        assert not isinstance(held.let_go(), BaseException)
        ends_well(patient)
    wait_for_log(patient, "drained: 0 of 1 jobs were cancelled")


def test_what_outlasts_the_drain_timeout_is_cancelled_and_counted(short_path: Path) -> None:
    daemon = Daemon(short_path, "--drain-timeout", "1")
    session = eagle.connect(daemon.endpoint)
    held = HeldLaunch(session)
    daemon.process.send_signal(signal.SIGTERM)
    ends_well(daemon)
    assert isinstance(held.let_go(), eagle.EagleError)
    wait_for_log(daemon, "drained: 1 of 1 jobs were cancelled")


def test_a_second_sigterm_does_not_wait(patient: Daemon) -> None:
    session = eagle.connect(patient.endpoint)
    held = HeldLaunch(session)
    patient.process.send_signal(signal.SIGTERM)
    wait_for_log(patient, "ending: jobs=1")
    patient.process.send_signal(signal.SIGTERM)
    ends_well(patient)
    assert isinstance(held.let_go(), eagle.EagleError)


def test_idle_streams_hold_up_no_end(short_path: Path) -> None:
    daemon = Daemon(short_path, "--listen", "dns:127.0.0.1:0", "--drain-timeout", "3600")
    tcp = tcp_endpoint(daemon)
    with grpc.insecure_channel(daemon.endpoint) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        next(watch)
        sessions = [eagle.connect(daemon.endpoint), eagle.connect(tcp)]  # a side connection, and an Attach stream
        daemon.process.send_signal(signal.SIGTERM)
        ends_well(daemon)
        for session in sessions:
            session.close()


def test_admin_drains_like_a_signal(patient: Daemon) -> None:
    session = eagle.connect(patient.endpoint)
    held = HeldLaunch(session)
    with service_of(patient) as admin:
        assert admin.call("Admin.Drain", timeout_s=1).jobs == 1
    ends_well(patient)
    assert isinstance(held.let_go(), eagle.EagleError)


def test_a_run_of_many_steps_is_finished_before_the_end(patient: Daemon) -> None:
    with eagle.connect(patient.endpoint) as session:
        x, done = session.zeros(LASTING), session.zeros(LASTING, dtype=bool)
        begun: list[int] = []
        run = Beside(
            lambda: eagle.simulate(
                grow, max_steps=STEPS, x=x, by=1.0, done=done, progress=lambda steps, *_: begun.append(steps)
            )
        )
        wait_until(lambda: len(begun) > 0, "the run to begin")
        patient.process.send_signal(signal.SIGTERM)
        result = run.result()
        assert not isinstance(result, BaseException), result
        assert result.steps == STEPS
        assert x.tolist() == [float(STEPS)] * LASTING
        ends_well(patient)


def test_the_death_of_a_client_in_the_middle_of_a_run_leaves_nothing(daemon: Daemon) -> None:
    script = (
        "import eagle, work\n"
        "s = eagle.connect()\n"
        "x, done = s.zeros(100_000), s.zeros(100_000, dtype=bool)\n"
        f"eagle.simulate(work.grow, max_steps={STEPS} * 1000, x=x, by=1.0, done=done)\n"
    )
    folders = os.pathsep.join(str(ROOT / "tests" / name) for name in ("operations", "integration"))
    client = subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "EAGLE_ENDPOINT": daemon.endpoint, "PYTHONPATH": folders}
    )
    with service_of(daemon) as admin:
        wait_until(lambda: admin.call("Admin.Info").jobs == 1, f"the run to begin\n{daemon.log()}")
        client.kill()
        client.wait()
        wait_until(
            lambda: (lambda info: (info.jobs, info.planes, info.sessions))(admin.call("Admin.Info")) == (0, 0, 1),
            f"all of it to be given back\n{daemon.log()}",
        )


def test_a_submitted_run_has_the_time_that_other_work_has(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is still at the compiler when the drain begins, so that no clock decides whether it runs then."""
    go, asked = short_path / "go", short_path / "asked"
    slow_compiler(short_path, monkeypatch, f"touch {asked}; while [ ! -e {go} ]; do sleep 0.05; done")
    daemon = Daemon(short_path, "--drain-timeout", "3600")
    with eagle.connect(daemon.endpoint) as session:
        x, done = session.zeros(1000), session.zeros(1000, dtype=bool)
        run = eagle.submit(grow, max_steps=STEPS, x=x, by=1.0, done=done, lease=3600)
        wait_until(asked.exists, f"the compiler\n{daemon.log()}")
        daemon.process.send_signal(signal.SIGTERM)
        wait_for_log(daemon, "ending: jobs=0 calls=1")
        with pytest.raises(eagle.DaemonUnavailable) as refused:
            eagle.submit(grow, max_steps=1, x=x, by=1.0, done=done, lease=3600)
        assert refused.value.reason == "SHUTTING_DOWN"
        go.touch()
        ends_well(daemon)
        assert x.tolist() == [float(STEPS)] * 1000
        del run
    wait_for_log(daemon, "drained: 0 of 0 jobs were cancelled, 0 of 1 calls cut off")


def test_a_run_that_waits_for_a_compiler_thread_has_the_time_that_other_work_has(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was accepted before the drain began, and gets its thread after that."""
    go, asked = short_path / "go", short_path / "asked"
    slow_compiler(short_path, monkeypatch, f"touch {asked}; while [ ! -e {go} ]; do sleep 0.05; done")
    daemon = Daemon(short_path, "--drain-timeout", "3600")
    with eagle.connect(daemon.endpoint) as session, service_of(daemon) as admin:
        y, x, done = session.zeros(8), session.zeros(1000), session.zeros(1000, dtype=bool)
        # There are two threads, and each waits for the compiler.
        builds = [Beside(lambda: eagle.Graph(session).add(eagle.plan(add).bind(x=y, by=1.0)).build()) for _ in range(2)]
        wait_until(asked.exists, f"the compiler\n{daemon.log()}")
        run = Beside(lambda: eagle.simulate(grow, max_steps=STEPS, x=x, by=1.0, done=done))
        three = "\neagled_calls_under_way 3\n"
        wait_until(lambda: three in admin.call("Admin.Metrics").text, f"the run to be accepted\n{daemon.log()}")
        daemon.process.send_signal(signal.SIGTERM)
        wait_for_log(daemon, "ending: jobs=0 calls=3")
        go.touch()
        for built in builds:
            assert isinstance(built.result(), eagle.Graph)
        result = run.result()
        assert not isinstance(result, BaseException), result
        assert x.tolist() == [float(STEPS)] * 1000
        ends_well(daemon)


def test_a_submitted_run_that_outlasts_the_drain_is_cancelled_and_counted(short_path: Path) -> None:
    daemon = Daemon(short_path, "--drain-timeout", "1")
    with eagle.connect(daemon.endpoint) as session:
        x, done = session.zeros(100_000), session.zeros(100_000, dtype=bool)
        run = eagle.submit(grow, max_steps=STEPS * 1000, x=x, by=1.0, done=done, lease=3600)
        wait_until(lambda: daemon.info()["jobs"] == 1, f"the run to begin\n{daemon.log()}")
        daemon.process.send_signal(signal.SIGTERM)
        ends_well(daemon)
        del run
    wait_for_log(daemon, "drained: 1 of 1 jobs were cancelled")


def begin_read(service: Service, plane: object, bytes_: int) -> Iterator[Any]:
    """A Planes.Read of all of it, as a stream of which nothing was taken yet."""
    view = {"dtype": 5, "item_bytes": 1, "shape": [bytes_], "strides": [1]}
    return service.begin("Planes.Read", slice={"plane": plane, "view": view})


MUCH = 64 << 20  # more than gRPC and the kernel keep for a client that does not read


@pytest.mark.parametrize("patience", ["3600", "1"], ids=["in time", "too late"])
def test_a_transfer_under_way_is_finished_or_told_why_not(short_path: Path, patience: str) -> None:
    daemon = Daemon(short_path, "--drain-timeout", patience)
    with service_of(daemon) as service:
        plane = service.call("Planes.Create", planes=[{"bytes": MUCH}]).planes[0].ref
        chunks = begin_read(service, plane, MUCH)
        got = len(next(chunks).data)
        daemon.process.send_signal(signal.SIGTERM)
        wait_for_log(daemon, "ending: jobs=0 calls=1")
        if patience == "1":
            wait_for_log(daemon, "1 of 1 calls cut off")
            with pytest.raises(grpc.RpcError) as cut:
                list(chunks)
            assert cut.value.code() == grpc.StatusCode.UNAVAILABLE
        else:
            got += sum(len(chunk.data) for chunk in chunks)
            assert got == MUCH
            wait_for_log(daemon, "0 of 1 calls cut off")
        ends_well(daemon)


def test_a_build_under_way_is_finished(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, asked = short_path / "go", short_path / "asked"
    slow_compiler(short_path, monkeypatch, f"touch {asked}; while [ ! -e {go} ]; do sleep 0.05; done")
    daemon = Daemon(short_path, "--drain-timeout", "3600")
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(8)
        built = Beside(lambda: eagle.Graph(session).add(eagle.plan(add).bind(x=x, by=1.0)).build())
        wait_until(asked.exists, f"the compiler\n{daemon.log()}")
        daemon.process.send_signal(signal.SIGTERM)
        wait_for_log(daemon, "ending: jobs=0 calls=1")
        go.touch()
        assert isinstance(built.result(), eagle.Graph)
        ends_well(daemon)


def test_what_is_never_cut_short_makes_no_failure_of_an_orderly_end(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = short_path / "asked"
    slow_compiler(short_path, monkeypatch, f"touch {asked}; exec sleep 1000")
    daemon = Daemon(short_path, "--drain-timeout", "0")
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(8)
        built = Beside(lambda: eagle.Graph(session).add(eagle.plan(add).bind(x=x, by=1.0)).build())
        wait_until(asked.exists, f"the compiler\n{daemon.log()}")
        daemon.process.send_signal(signal.SIGTERM)
        ends_well(daemon)
        assert isinstance(built.result(), eagle.EagleError)
    wait_for_log(daemon, "1 of 1 calls cut off")
    wait_for_log(daemon, "ended in the middle of what is never cut short: 1 builds, transfers or copies")


def slow_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """The compiler of daemons that start from now on does this first."""
    helper = folder / "slow-compiler"
    helper.write_text(f'#!/bin/sh\n{before}\nexec {BUILD}/bin/eagle-compile "$@"\n')
    helper.chmod(0o755)
    monkeypatch.setenv("EAGLE_COMPILE_HELPER", str(helper))


def test_a_hangup_during_the_drain_of_one_process_cancels_nothing(short_path: Path) -> None:
    daemon = Daemon(short_path, "--no-keeper", "--drain-timeout", "3600")
    with eagle.connect(daemon.endpoint) as session:
        held = HeldLaunch(session)
        daemon.process.send_signal(signal.SIGTERM)
        wait_for_log(daemon, "ending: jobs=1")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "signal 1 ")
        assert not isinstance(held.let_go(), BaseException)
        ends_well(daemon)
    wait_for_log(daemon, "drained: 0 of 1 jobs were cancelled")
