"""The example service (client/examples/service): a graph made here, saved, and launched there on a timer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import eagle
import pytest
from eagle import Mutable, Param, Scalar, kernel
from harness import BUILD, Daemon, children, eaglectl, wait_until

SERVICE = BUILD / "bin" / "eagle_example_service"


@kernel
def grow(x: Mutable[Scalar], rate: Param):
    x = x + rate


@kernel
def spin(x: Mutable[Scalar], trips: Param[int]):
    for _ in eagle.bounded(range(trips), 1_000_000_000_000):
        x = x * 1.0000001 + 0.5


class Service:
    """The program, and what it says over HTTP."""

    def __init__(self, *arguments: str) -> None:
        owner = os.pidfd_open(os.getpid())
        self.process = subprocess.Popen(
            [SERVICE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[owner]
        )
        os.close(owner)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("metrics at http://127.0.0.1:"), self.process.communicate()
        self.url = line.split()[-1]

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = answer.read().decode().splitlines()
        rows = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in rows}

    def at_least(self, name: str, value: float) -> None:
        wait_until(lambda: self.metrics().get(name, -1) >= value, f"{name} to reach {value}: {self.metrics()}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def daemon():
    with tempfile.TemporaryDirectory(prefix="eagle-") as folder:
        running = Daemon(Path(folder))
        yield running
        running.stop()


@pytest.fixture
def serve(daemon):
    running = []

    def start(*arguments: str) -> Service:
        running.append(Service(*arguments, "--endpoint", daemon.endpoint))
        return running[-1]

    yield start
    for service in running:
        if service.process.poll() is None:
            service.process.kill()
            service.process.communicate()


@pytest.fixture
def growing(tmp_path):
    """x += 1 over four samples, and their sum."""
    with eagle.local(threads=1) as session:
        x, total = session.zeros(4), session.zeros(1)
        g = eagle.Graph(session, name="grow").add(eagle.plan(grow).bind(x=x, rate=1.0))
        g.add_node(eagle.reduce(x, total), name="sum").save(tmp_path / "grow.eagle")
        return str(tmp_path / "grow.eagle")


def test_it_launches_what_python_saved_and_says_so(serve, growing):
    service = serve(growing, "--period-ms", "20", "--deadline-ms", "10000")
    service.at_least("eagle_service_launch_seconds_count", 3)
    found = service.metrics()
    assert found["eagle_service_up"] == 1
    assert found['eagle_service_launch_seconds_bucket{le="+Inf"}'] == found["eagle_service_launch_seconds_count"]
    assert found['eagle_service_value{plane="out"}'] == 4 * found["eagle_service_launch_seconds_count"]
    assert found["eagle_service_deadline_missed_total"] == 0
    with urllib.request.urlopen(service.url.replace("metrics", "healthz"), timeout=30) as answer:
        assert answer.read() == b"serving\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(service.url + "x", timeout=30)
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(urllib.request.Request(service.url, method="POST"), timeout=30)
    assert service.stop() == 0


def test_its_planes_are_those_of_whoever_asks(serve, growing, daemon):
    with eagle.connect(daemon.endpoint) as mine:
        rate = mine.publish(mine.full(4, 100.0), "start")
        service = serve(
            growing, "--period-ms", "20", "--deadline-ms", "10000", "--open", "grow.x=start", "--publish", "out"
        )
        service.at_least("eagle_service_launch_seconds_count", 2)
        total = mine.open("out.out")
        wait_until(lambda: total[0] > 400.0, "the sum of the service's samples to arrive")
        assert rate[0] > 100.0  # what the service computes on is this very array
        assert service.stop() == 0


def test_a_launch_that_is_late_is_stopped_and_the_next_one_begins(serve, tmp_path):
    with eagle.local(threads=1) as session:
        bound = eagle.plan(spin).bind(x=session.zeros(8), trips=1_000_000_000_000)
        eagle.Graph(session).add(bound).save(tmp_path / "spin.eagle")
    service = serve(str(tmp_path / "spin.eagle"), "--period-ms", "40", "--deadline-ms", "20")
    service.at_least("eagle_service_deadline_missed_total", 3)
    found = service.metrics()
    assert found["eagle_service_launch_seconds_count"] == 0
    assert not [name for name in found if name.startswith("eagle_service_failures_total")]
    assert service.stop() == 0


def test_it_outlives_the_daemons_worker(serve, growing, daemon):
    service = serve(growing, "--period-ms", "5", "--deadline-ms", "10000")
    service.at_least("eagle_service_launch_seconds_count", 3)
    worker = children(daemon.process.pid)[0]
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: worker not in children(daemon.process.pid), "the worker to go")
    after = service.metrics()["eagle_service_launch_seconds_count"]
    service.at_least("eagle_service_launch_seconds_count", after + 5)
    found = service.metrics()
    assert found["eagle_service_up"] == 1
    assert found["eagle_service_reconnects_total"] == 0  # the keeper has kept session, planes and graph
    assert service.stop() == 0


def test_it_waits_for_a_daemon_that_is_not_there_yet(growing, tmp_path):
    service = Service(growing, "--period-ms", "50", "--endpoint", f"unix:{tmp_path}/none.sock")
    try:
        service.at_least('eagle_service_failures_total{reason="NO_DAEMON"}', 2)
        assert service.metrics()["eagle_service_up"] == 0
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(service.url.replace("metrics", "healthz"), timeout=30)
    finally:
        assert service.stop() == 0


def test_a_file_that_is_none_ends_it_with_the_reason(tmp_path):
    (tmp_path / "none.eagle").write_bytes(b"no graph")
    ended = subprocess.run([SERVICE, tmp_path / "none.eagle"], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert re.search(r"BAD_MESSAGE\): load: .*none\.eagle': it is no saved graph", ended.stderr)
    assert subprocess.run([SERVICE], capture_output=True, timeout=60, check=False).returncode == 2


def test_eaglectl_builds_a_saved_graph_in_a_daemon(daemon, growing):
    text = eaglectl("--endpoint", daemon.endpoint, "graph", "load", growing, "--launches", "3").stdout
    assert "grow" in text
    assert "launched 3 times over zeros" in text
    assert re.search(r"\nx +float64 +4 +32 B +reads, writes\n", text)
