"""Metrics over HTTP: for a real Prometheus, and among peers that misbehave."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import eagle
import grpc
import pytest
from harness import PATIENCE_S, Daemon, children, tcp_endpoint, wait_until
from operators import lacks, metrics_url, read_metrics, run_eagled, service_of, wait_for_log, write_config
from work import HeldLaunch, add

MOST_CONNECTIONS = 16  # server/sockets/http_listener.h


@pytest.fixture
def measured(short_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(short_path, "--metrics", "127.0.0.1:0")
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log()


def launch_some(daemon: Daemon, times: int) -> None:
    with eagle.connect(daemon.endpoint) as session:
        graph = eagle.Graph(session).add(eagle.plan(add).bind(x=session.zeros(8), by=1.0)).build()
        for _ in range(times):
            graph.launch()


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        lacks(f"no {program}: apt-get install prometheus")
    return found


def test_they_pass_the_check_of_promtool(measured: Daemon) -> None:
    launch_some(measured, 3)
    with urllib.request.urlopen(metrics_url(measured), timeout=PATIENCE_S) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read()
    checked = subprocess.run([needs("promtool"), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_they_say_what_happened(measured: Daemon) -> None:
    url, tenant = metrics_url(measured), f"uid:{os.getuid()}"
    with eagle.connect(measured.endpoint) as session:
        x = session.zeros(1000)
        graph = eagle.Graph(session).add(eagle.plan(add).bind(x=x, by=1.0)).build()
        for _ in range(5):
            graph.launch()
        held = HeldLaunch(session)

        def now(name: str) -> float:
            return read_metrics(url).get(name, 0.0)

        launches = f'eagled_launches_total{{status="OK",tenant="{tenant}"}}'
        wait_until(lambda: now(launches) == 5, "five launches")
        samples = read_metrics(url)
        assert samples["eagled_launch_duration_seconds_count"] == 5
        assert samples['eagled_launch_duration_seconds_bucket{le="+Inf"}'] == 5
        assert samples["eagled_queue_wait_seconds_count"] == 6
        assert samples["eagled_queue_depth"] == 1
        assert samples["eagled_host_calls_total"] == 1
        assert samples[f'eagled_sessions{{tenant="{tenant}"}}'] == 1
        assert samples[f'eagled_graphs{{tenant="{tenant}"}}'] == 2
        assert samples[f'eagled_plane_bytes{{device="cpu",tenant="{tenant}"}}'] >= x.nbytes
        assert samples["eagled_build_duration_seconds_count"] == 2
        assert samples["eagled_kernel_cache_entries"] >= 1
        assert samples["eagled_worker_restarts_total"] == 0
        assert any(name.startswith("eagled_build_info{version=") for name in samples)
        held.let_go()
        wait_until(lambda: now("eagled_queue_depth") == 0, "an empty queue")


def test_admin_tells_the_same_numbers(measured: Daemon) -> None:
    launch_some(measured, 2)
    names = re.compile(r"^(?!process_|eagled_uptime)\w+", re.MULTILINE)
    with service_of(measured) as admin:
        by_rpc = admin.call("Admin.Metrics").text
    with urllib.request.urlopen(metrics_url(measured), timeout=PATIENCE_S) as response:
        by_http = response.read().decode()
    assert names.findall(by_rpc) == names.findall(by_http)


def test_a_real_prometheus_reads_them_and_sees_the_worker_replaced(measured: Daemon, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    target = urllib.parse.urlparse(metrics_url(measured)).netloc
    config.write_text(
        "scrape_configs:\n"
        "- job_name: eagled\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n"
        f"  static_configs: [{{targets: ['{target}']}}]\n"
    )
    with (tmp_path / "log").open("wb") as log:
        prometheus = subprocess.Popen(
            [
                needs("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )

    def query(expression: str) -> list[float]:
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
                found = json.load(response)["data"]["result"]
        except OSError:
            return []  # it is not there yet
        return [float(sample["value"][1]) for sample in found]

    def log_text() -> str:
        return (tmp_path / "log").read_text()

    try:
        launch_some(measured, 7)
        wait_until(lambda: query('sum(eagled_launches_total{status="OK"})') == [7.0], f"7 launches\n{log_text()}")
        os.kill(children(measured.process.pid)[0], signal.SIGKILL)
        wait_until(lambda: query("eagled_worker_restarts_total") == [1.0], f"a restart\n{log_text()}")
        wait_until(lambda: query('up{job="eagled"}') == [1.0], f"a target that is up\n{log_text()}")
    finally:
        prometheus.kill()
        prometheus.wait()


def test_peers_that_misbehave_hold_nobody_up(measured: Daemon) -> None:
    url = metrics_url(measured)
    where = urllib.parse.urlparse(url)

    def peer(sends: bytes) -> socket.socket:
        made = socket.create_connection((where.hostname, where.port), timeout=PATIENCE_S)
        made.sendall(sends)
        return made

    silent = [peer(b"") for _ in range(2 * MOST_CONNECTIONS)]
    slow = [peer(b"GET /metrics HTTP/1.1\r\nHost: x\r\n") for _ in range(2 * MOST_CONNECTIONS)]
    unread = [peer(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20) for _ in range(2 * MOST_CONNECTIONS)]
    assert read_metrics(url)["eagled_threads"] >= 1
    for open_one in (*silent, *slow, *unread):
        open_one.close()
    assert read_metrics(url)["eagled_threads"] >= 1


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
        (b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"200"),
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"200"),
        (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"405"),
        (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n", b"400"),
        (b"EAGLESC1 is not HTTP\r\n\r\n", b"400"),
    ],
)
def test_a_request_that_is_none_is_answered_so(measured: Daemon, request_bytes: bytes, status: bytes) -> None:
    where = urllib.parse.urlparse(metrics_url(measured))
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE_S) as peer:
        peer.sendall(request_bytes)
        answer = b""
        while b"\r\n" not in answer and (part := peer.recv(4096)):
            answer += part
    assert answer.split(b" ")[1:2] == [status], answer[:200]


def test_they_are_for_this_machine_unless_one_insists(short_path: Path) -> None:
    endpoint = f"unix:{short_path}/s"
    refused = run_eagled("--listen", endpoint, "--metrics", "0.0.0.0:0", "--no-keeper")
    assert refused.returncode == 1
    assert "127.0.0.1" in refused.stderr


def test_without_being_asked_nobody_is_told(daemon: Daemon) -> None:
    assert "metrics at" not in daemon.log()


def test_whoever_is_not_known_is_counted_and_told_of_with_its_address(short_path: Path) -> None:
    lines = run_eagled("--new-token", "ops").stdout.splitlines()
    tokens = short_path / "tokens"
    tokens.write_text(lines[1].rpartition(": ")[2] + "\n")
    tokens.chmod(0o600)
    daemon = Daemon(short_path, "--metrics", "127.0.0.1:0", "--tokens", str(tokens), "--listen", "dns:127.0.0.1:0")
    try:
        tcp = tcp_endpoint(daemon)
        eagle.connect(tcp, auth=lines[0].rpartition(": ")[2]).close()
        for _ in range(3):
            with pytest.raises(eagle.EagleError):
                eagle.connect(tcp, auth="wrong")
        samples = read_metrics(metrics_url(daemon))
        assert samples['eagled_authentications_total{outcome="accepted"}'] == 1
        assert samples['eagled_authentications_total{outcome="refused"}'] == 3
        assert samples['eagled_refusals_total{reason="UNAUTHENTICATED"}'] == 3
        wait_for_log(daemon, "not known: peer=ipv4:127.0.0.1:", times=3)
        assert "wrong" not in daemon.log()
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_a_flood_of_the_unknown_is_counted_and_does_not_fill_the_log(measured: Daemon) -> None:
    url, many = metrics_url(measured), 500
    with service_of(measured) as service:
        service.secret = "00" * 32
        for _ in range(many):
            with pytest.raises(grpc.RpcError):
                service.call("Admin.Info")
    assert read_metrics(url)['eagled_authentications_total{outcome="refused"}'] == many
    assert 0 < measured.log().count("not known: ") < many // 2


def test_memory_is_told_and_common_refusals_from_the_start(measured: Daemon) -> None:
    samples = read_metrics(metrics_url(measured))
    assert samples["process_resident_memory_bytes"] > 1 << 20
    assert samples['eagled_refusals_total{reason="QUOTA"}'] == 0


def test_what_is_over_a_tenants_quota_is_counted(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "[[tenant]]", 'principal = "*"', "sessions = 1")
    daemon = Daemon(short_path, "--metrics", "127.0.0.1:0", "--config", str(config))
    try:
        with eagle.connect(daemon.endpoint), pytest.raises(eagle.EagleError, match="tenant"):
            eagle.connect(daemon.endpoint)
        samples = read_metrics(metrics_url(daemon))
        assert samples[f'eagled_tenant_refusals_total{{tenant="uid:{os.getuid()}"}}'] == 1
        assert samples['eagled_refusals_total{reason="QUOTA"}'] == 1
    finally:
        assert daemon.stop() == 0, daemon.log()
