"""grpc.health.v1 and reflection, as anybody may ask for them, and `eagled --health` for HEALTHCHECK."""

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from harness import PATIENCE_S, Daemon, decode, tcp_endpoint
from operators import run_eagled, service_of

SERVING = health_pb2.HealthCheckResponse.SERVING
SERVICES = ("", "eagled.ready", "eagled.device.cpu")


def health(endpoint: str, service: str) -> int:
    with grpc.insecure_channel(endpoint) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S).status


def test_health_is_told_on_the_unix_socket_and_over_tcp(short_path: Path) -> None:
    daemon = Daemon(short_path, "--listen", "dns:127.0.0.1:0")
    try:
        tcp = tcp_endpoint(daemon)
        for endpoint in (daemon.endpoint, tcp):
            assert [health(endpoint, service) for service in SERVICES] == [SERVING] * 3
            with pytest.raises(grpc.RpcError) as refused:
                health(endpoint, "eagled.device.none")
            assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_reflection_describes_every_service(daemon: Daemon) -> None:
    with service_of(daemon) as service:
        services = set(service.database.get_services())
        assert {f"eagle.v1.{name}" for name in ("Planes", "Graphs", "Runs", "Admin")} <= services
        assert service.call("Admin.Info").sessions == 1  # a call made of nothing but what reflection told


def test_idle_reflection_streams_shut_nobody_out(daemon: Daemon) -> None:
    with grpc.insecure_channel(daemon.endpoint) as channel:
        done = threading.Event()

        def nothing() -> Iterator[reflection_pb2.ServerReflectionRequest]:
            done.wait(PATIENCE_S)
            yield from ()

        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        try:
            idle = [stub.ServerReflectionInfo(nothing(), timeout=PATIENCE_S) for _ in range(20)]
            with service_of(daemon) as service:
                assert "eagle.v1.Admin" in service.database.get_services()
            assert all(stream.is_active() for stream in idle)
        finally:
            done.set()


def test_reflection_refuses_what_there_is_not(daemon: Daemon) -> None:
    with grpc.insecure_channel(daemon.endpoint) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = [
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="no.such.Thing"),
            reflection_pb2.ServerReflectionRequest(file_by_filename="/etc/passwd"),
            reflection_pb2.ServerReflectionRequest(all_extension_numbers_of_type="x"),
        ]
        codes = [one.error_response.error_code for one in stub.ServerReflectionInfo(iter(asked), timeout=PATIENCE_S)]
        assert codes == [5, 5, 12]  # NOT_FOUND, UNIMPLEMENTED


def test_a_health_check_has_an_exit_status(daemon: Daemon, short_path: Path) -> None:
    for service in SERVICES:
        asked = run_eagled("--listen", daemon.endpoint, f"--health={service}" if service else "--health")
        assert (asked.returncode, asked.stdout) == (0, "SERVING\n"), asked.stderr
    wrong = run_eagled("--listen", daemon.endpoint, "--health", "eagled.device.none")
    assert wrong.returncode == 1
    assert "eagled.ready" in wrong.stderr
    nobody = run_eagled("--listen", f"unix:{short_path}/nobody", "--health")
    assert nobody.returncode == 1
    assert "nobody answers" in nobody.stderr


def test_a_refusal_says_its_reason_as_googles_error_info(daemon: Daemon) -> None:
    with service_of(daemon) as service:
        with pytest.raises(grpc.RpcError) as refused:
            service.call("Admin.SetLogLevel", level="louder")
        trailers = dict(refused.value.trailing_metadata())
        assert trailers["eagle-error-reason"] == "BAD_VALUE"
        status = decode(trailers["grpc-status-details-bin"])  # google.rpc.Status: code, message, details
        assert status[1] == [refused.value.code().value[0]]
        assert status[2] == [refused.value.details().encode()]
        packed = decode(status[3][0])
        assert packed[1] == [b"type.googleapis.com/google.rpc.ErrorInfo"]
        assert decode(packed[2][0]) == {1: [b"BAD_VALUE"], 2: [b"eagled"]}
