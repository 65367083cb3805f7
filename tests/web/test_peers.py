"""Requests by hand: who gets an answer, and who does not."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import address_of
from harness import EAGLED, PATIENCE_S, Daemon, wait_until
from operators import run_eagled, write_config

NOBODY_SPECIAL = 4711  # a uid that is no admin


@pytest.fixture
def daemon(short_path: Path) -> Iterator[Daemon]:
    running = Daemon(short_path, "--web", "127.0.0.1:0")
    try:
        yield running
    finally:
        assert running.stop() == 0, running.log()


def port_of(daemon: Daemon) -> int:
    return int(re.findall(r":(\d+)/", address_of(daemon))[0])


def ask(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as peer:
        peer.sendall(request)
        answer = b""
        while more := peer.recv(1 << 16):
            answer += more
    return answer


def get(port: int, path: str, *fields: str, host: str = "localhost") -> tuple[int, bytes, bytes]:
    """Status, header and body."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *fields, "", ""]
    head, _, body = ask(port, "\r\n".join(lines).encode()).partition(b"\r\n\r\n")
    return int(head.split()[1]), head, body


def test_the_state_is_there_for_the_user_whose_daemon_it_is(daemon: Daemon) -> None:
    status, head, body = get(port_of(daemon), "/api/state")
    assert status == 200
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert b"Access-Control" not in head
    state = json.loads(body)
    assert state["info"]["version"]
    assert state["sessions"] == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_other_users_of_the_machine_see_nothing(daemon: Daemon) -> None:
    script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).status)"
    for path, last in (("", "200"), ("api/state", "urllib.error.HTTPError: HTTP Error 403: Forbidden")):
        asked = subprocess.run(
            [sys.executable, "-c", script, address_of(daemon) + path],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            user=NOBODY_SPECIAL,
            group=NOBODY_SPECIAL,
            extra_groups=[],
            cwd="/",
        )
        assert (asked.stdout + asked.stderr).strip().splitlines()[-1] == last


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:7413", "127.0.0.1.nip.io"])
def test_a_name_that_is_bent_to_this_address_gets_nothing(daemon: Daemon, host: str) -> None:
    assert get(port_of(daemon), "/api/state", host=host)[0] == 421
    assert get(port_of(daemon), "/", host=host)[0] == 421


def test_other_pages_get_nothing(daemon: Daemon) -> None:
    assert get(port_of(daemon), "/api/state", "Sec-Fetch-Site: cross-site")[0] == 403
    assert get(port_of(daemon), "/api/state", "Sec-Fetch-Site: same-site")[0] == 403
    assert get(port_of(daemon), "/api/state", "Sec-Fetch-Site: same-origin")[0] == 200


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"POST /api/state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", b"405"),
        (b"DELETE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"405"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"400"),
        (b"GET / HTTP/1.0\r\n\r\n", b"421"),
        (b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400"),
    ],
    ids=["post", "delete", "two-hosts", "no-host", "long-path", "large-header", "metrics", "tls"],
)
def test_what_it_does_not_do_is_refused(daemon: Daemon, request_text: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=PATIENCE_S) as peer:
        peer.sendall(request_text)
        peer.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while more := peer.recv(1 << 16):
                answer += more
        except ConnectionResetError:
            pass
    assert answer.split()[1:2] == [status], answer


def test_head_has_no_body(daemon: Daemon) -> None:
    answer = ask(port_of(daemon), b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b""


def test_slow_peers_make_room(daemon: Daemon) -> None:
    port = port_of(daemon)
    slow = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) for _ in range(40)]
    for peer in slow:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    try:
        assert get(port, "/api/state")[0] == 200
    finally:
        for peer in slow:
            peer.close()


def test_it_is_off_unless_asked_for(short_path: Path) -> None:
    running = Daemon(short_path)
    try:
        wait_until(lambda: "serves" in running.log(), "the daemon to serve")
        assert "dashboard" not in running.log()
    finally:
        assert running.stop() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "only a token tells who asks"),
        (("--tokens", "TOKENS"), "whoever sees the line sees the token"),
    ],
    ids=["without-tokens", "without-tls"],
)
def test_other_machines_need_more_than_an_address(short_path: Path, options: tuple[str, ...], said: str) -> None:
    tokens = short_path / "tokens"
    tokens.write_text("")
    tokens.chmod(0o600)
    listen = ("--listen", f"unix:{short_path}/eagled.sock", "--no-keeper")
    web = ("--web", "0.0.0.0:0")
    found = run_eagled(*listen, *web, *(str(tokens) if one == "TOKENS" else one for one in options))
    assert found.returncode == 1, found.stderr
    assert said in found.stderr


def test_the_setting_is_checked_and_shown(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, 'web = "127.0.0.1"', "[[listen]]", f'endpoint = "unix:{short_path}/eagled.sock"')
    wrong = run_eagled("--config", str(config), "--check-config")
    assert wrong.returncode != 0
    assert "web: expected HOST:PORT, as 127.0.0.1:7413" in wrong.stderr
    write_config(config, 'web = "127.0.0.1:7413"', "[[listen]]", f'endpoint = "unix:{short_path}/eagled.sock"')
    shown = run_eagled("--config", str(config), "--print-config").stdout
    assert "web = '127.0.0.1:7413'  # file" in shown
    by_environment = run_eagled("--config", str(config), "--print-config", EAGLED_WEB="127.0.0.1:9999").stdout
    assert "web = '127.0.0.1:9999'  # environment EAGLED_WEB" in by_environment
    assert EAGLED.exists()
