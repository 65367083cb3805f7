"""What a daemon and a client say to bad input: the thing, what was expected, the cure. And the daemon serves on."""

import os
import random
import socket
import struct
import subprocess
import sys
from pathlib import Path

import eagle
import numpy as np
import pytest
from harness import (
    EAGLED,
    PATIENCE_S,
    Daemon,
    SideConnection,
    decode,
    eaglectl,
    hello,
    nested,
    side_connection,
    side_error,
)
from models import affine, count_up

FAILED_PRECONDITION = 9


def check_serves_on(daemon) -> None:
    """A new client gets its work done, by the same process."""
    with eagle.connect(daemon.endpoint) as session:
        x, y = session.asarray(np.arange(5.0)), session.zeros(5)
        bound = eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0)
        bound.launch()
        assert y.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
        assert session.info().host.pid == daemon.pid


# ---- bytes on the socket

BYTES = random.Random(20_240_501)  # any bytes do; these are the same each time
GARBAGE = {
    "nothing": b"",
    "one byte": b"E",
    "half the magic": SideConnection.MAGIC[:4],
    "random": BYTES.randbytes(4096),
    "zeros": bytes(4096),
    "an http request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tls hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + BYTES.randbytes(500),
    "the http2 preface and garbage": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + BYTES.randbytes(2000),
    "a frame of 4 GiB": SideConnection.MAGIC + b"\xff\xff\xff\xff",
    "a frame of 4 GiB with some of it": SideConnection.MAGIC + b"\xff\xff\xff\xff" + bytes(100_000),
    "an empty frame": SideConnection.MAGIC + bytes(4),
    "a frame of garbage": SideConnection.MAGIC + struct.pack("<I", 300) + BYTES.randbytes(300),
    "a frame cut short": SideConnection.MAGIC + struct.pack("<I", 300) + BYTES.randbytes(10),
    "a message nested in itself": SideConnection.MAGIC + struct.pack("<I", 400) + b"\x0a\x7f" * 200,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_on_the_socket(daemon, name):
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(daemon.path))
            # The daemon may hang up while we still talk.
            try:
                connection.sendall(GARBAGE[name])
                connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            connection.settimeout(PATIENCE_S)
            try:
                while connection.recv(65536):
                    pass  # a hang-up, not a hang
            except ConnectionResetError:
                pass
    check_serves_on(daemon)


def test_silent_connections_keep_nobody_out(daemon):
    silent = [socket.socket(socket.AF_UNIX) for _ in range(30)]
    try:
        for number, connection in enumerate(silent):
            connection.connect(str(daemon.path))
            connection.sendall(SideConnection.MAGIC[: number % 9])
        check_serves_on(daemon)
    finally:
        for connection in silent:
            connection.close()


# ---- the protocol's own messages


def test_hello_in_our_version_is_answered(daemon):
    """What the tests below vary is right to begin with."""
    with side_connection(daemon.path) as side:
        side.send(hello(1, 1_000_000))
        reply = decode(decode(side.receive())[2][0])
    version, session, secret, host = reply[1][0], reply[3][0], reply[4][0], decode(reply[5][0])
    assert version >= 1
    assert session >= 1
    assert len(secret) == 32
    assert host[1] == [daemon.pid]


@pytest.mark.parametrize(("low", "high"), [(1000, 1001), (0, 0), (2**32 - 1, 2**32 - 1), (7000, 2)])
def test_protocol_version_apart(daemon, low, high):
    with side_connection(daemon.path) as side:
        side.send(hello(low, high))
        code, reason, message = side_error(side.receive())
    assert (code, reason) == (FAILED_PRECONDITION, "PROTOCOL_MISMATCH")
    assert str(low) in message, "the client's own range"
    assert str(high) in message
    check_serves_on(daemon)


def test_descriptors_without_a_session(daemon):
    with side_connection(daemon.path) as side:
        side.send(nested(2, nested(1, bytes(32))))
        _, reason, message = side_error(side.receive())
    assert reason in ("UNAUTHENTICATED", "BAD_MESSAGE")
    assert message
    check_serves_on(daemon)


@pytest.mark.parametrize("tokens", [1, 253, 254, 5000])
def test_descriptors_for_made_up_tokens(daemon, tokens):
    with side_connection(daemon.path) as side:
        side.send(hello(1, 1_000_000))
        side.receive()
        side.send(nested(2, b"".join(nested(1, os.urandom(32)) for _ in range(tokens))))
        _, reason, message = side_error(side.receive())
    assert reason
    assert message
    check_serves_on(daemon)


# ---- endpoints


def test_no_daemon_there(short_path):
    endpoint = f"unix:{short_path}/nobody.sock"
    with pytest.raises(eagle.EagleError) as caught:
        eagle.connect(endpoint)
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.reason == "NO_DAEMON"
    assert endpoint.removeprefix("unix:") in str(caught.value)
    assert "eagled --listen" in str(caught.value), "the cure"


def test_socket_that_nobody_listens_on_any_more(short_path):
    path = short_path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with pytest.raises(ConnectionError, match=r"stale\.sock"):
        eagle.connect(f"unix:{path}")


def test_socket_path_over_107_bytes_in_a_client(short_path):
    path = str(short_path / ("x" * 120))
    with pytest.raises(ValueError, match="107") as caught:
        eagle.connect(f"unix:{path}")
    assert caught.value.reason == "BAD_ENDPOINT"
    assert str(len(path)) in str(caught.value), "how long it is"


@pytest.mark.parametrize("endpoint", ["bogus", "ftp:somewhere", "unix:", "unix:\0x"])
def test_endpoint_that_cannot_be_one(endpoint):
    with pytest.raises(ValueError, match="unix:") as caught:
        eagle.connect(endpoint)
    assert caught.value.reason == "BAD_ENDPOINT"


def run_eagled(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [EAGLED, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_socket_path_over_107_bytes_in_the_daemon(short_path):
    path = str(short_path / ("x" * 120))
    result = run_eagled("--listen", f"unix:{path}")
    assert result.returncode != 0
    assert "107" in result.stdout + result.stderr
    assert not Path(path).exists()


def test_listening_where_a_daemon_listens(daemon):
    result = run_eagled("--listen", daemon.endpoint)
    assert result.returncode != 0
    assert daemon.path.name in result.stdout + result.stderr
    check_serves_on(daemon)


def test_listening_in_a_folder_that_is_not_there(short_path):
    result = run_eagled("--listen", f"unix:{short_path}/none/eagled.sock")
    assert result.returncode != 0
    assert "none" in result.stdout + result.stderr


def test_listening_over_a_stale_socket(short_path):
    """Left by a daemon that was killed: nobody answers there, so the next one takes it over."""
    killed = Daemon(short_path)
    killed.process.kill()
    killed.process.wait()
    assert killed.path.exists()
    following = Daemon(short_path)
    try:
        check_serves_on(following)
    finally:
        assert following.stop() == 0


def test_eaglectl_without_a_daemon(short_path):
    result = eaglectl("--endpoint", f"unix:{short_path}/nobody.sock", "info", check=False)
    assert result.returncode != 0
    assert "nobody.sock" in result.stderr


# ---- arrays that do not fit their kernel


@pytest.fixture
def session(daemon):
    with eagle.connect(daemon.endpoint) as session:
        yield session


def count_up_arguments(session, **changed):
    return {
        "x": session.zeros(8),
        "step": session.full(8, 1.0),
        "limit": 3.0,
        "done": session.zeros(8, dtype=bool),
    } | changed


def as_outside_view(array):
    """A numpy view that reaches past the end of the memory it is made from."""
    return np.lib.stride_tricks.as_strided(array, shape=(1 << 30,), strides=(8,))


BAD_ARGUMENTS = {
    "a wrong dtype": (lambda s: {"x": s.zeros(8, dtype=np.int64)}, TypeError, "WRONG_DTYPE", "x"),
    "a wrong shape": (lambda s: {"step": s.zeros((3, 8))}, ValueError, "WRONG_SHAPE", "step"),
    "other samples": (lambda s: {"step": s.zeros(9)}, ValueError, "SAMPLE_MISMATCH", "step"),
    "a private array": (lambda _: {"x": np.zeros(8)}, ValueError, "PRIVATE_ARRAY", "x"),
    "a strided array": (lambda s: {"x": s.zeros(16)[::2]}, ValueError, "COPY_BOUND_PLANE", "x"),
    "an argument too many": (lambda s: {"extra": s.zeros(8)}, TypeError, "BAD_BINDING", "extra"),
    "text for a number": (lambda _: {"limit": "three"}, TypeError, None, "limit"),
    "memory outside its plane": (lambda s: {"x": as_outside_view(s.zeros(8))}, ValueError, None, "x"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_argument(daemon, session, name):
    change, builtin, reason, argument = BAD_ARGUMENTS[name]
    with pytest.raises(eagle.EagleError) as caught:
        eagle.simulate(count_up, max_steps=10, **count_up_arguments(session, **change(session)))
    assert isinstance(caught.value, builtin)
    if reason:
        assert caught.value.reason == reason
    assert argument in str(caught.value), "names the argument"
    check_serves_on(daemon)


def test_missing_argument(daemon, session):
    arguments = count_up_arguments(session)
    del arguments["step"]
    with pytest.raises(eagle.EagleError, match="step") as caught:
        eagle.simulate(count_up, max_steps=10, **arguments)
    assert isinstance(caught.value, TypeError)
    check_serves_on(daemon)


def test_arrays_of_two_sessions(daemon, session):
    with eagle.connect(daemon.endpoint) as other, pytest.raises(eagle.EagleError) as caught:
        eagle.simulate(count_up, max_steps=10, **count_up_arguments(session, step=other.full(8, 1.0)))
    assert caught.value.reason == "MIXED_SESSIONS"
    check_serves_on(daemon)


def test_construct_that_kernels_do_not_have(tmp_path):
    program = tmp_path / "unknown_construct.py"
    program.write_text(
        "from eagle import Scalar, Mutable, kernel\n"
        "@kernel\n"
        "def k(x: Mutable[Scalar]):\n"
        "    x = [value for value in (x, x)][0]\n"
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert result.returncode != 0
    assert "KernelSyntaxError" in result.stderr
    assert "unknown_construct.py:4" in result.stderr


def test_session_after_its_daemon_has_gone(short_path):
    running = Daemon(short_path)
    session = eagle.connect(running.endpoint)
    arguments = count_up_arguments(session)
    running.process.kill()
    running.process.wait()
    with pytest.raises(eagle.EagleError) as caught:
        eagle.simulate(count_up, max_steps=10, **arguments)
    assert isinstance(caught.value, ConnectionError)
    assert arguments["x"].tolist() == [0.0] * 8, "arrays stay readable"
