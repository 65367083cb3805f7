"""How a daemon ends: what is refused, what is finished, what is cancelled and counted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import eagle
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import PATIENCE_S, ROOT, Daemon, wait_until
from operators import service_of, wait_for_log
from work import Beside, HeldLaunch, add, grow

STEPS = 100_000


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
    tcp = next(word for word in daemon.log().split() if word.startswith("dns:127.0.0.1:")).rstrip(",")
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
        x, done = session.zeros(1000), session.zeros(1000, dtype=bool)
        begun: list[int] = []
        run = Beside(
            lambda: eagle.simulate(
                grow, max_steps=STEPS, x=x, by=1.0, done=done, progress=lambda steps, *_: begun.append(steps)
            )
        )
        wait_until(lambda: "jobs" in str(session.info()) and patient.info()["launches"] > 0, "the run to begin")
        patient.process.send_signal(signal.SIGTERM)
        result = run.result()
        assert not isinstance(result, BaseException), result
        assert result.steps == STEPS
        assert x.tolist() == [float(STEPS)] * 1000
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
