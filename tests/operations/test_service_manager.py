"""What a service manager is told, what it may pass, and how far the unit is confined."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import eagle
import pytest
from eagle import Mutable, Scalar, kernel
from harness import EAGLED, PATIENCE_S, ROOT, Daemon, children
from operators import lacks
from work import HeldLaunch, add

UNITS = ROOT / "deploy/systemd"


class Manager:
    """A socket that gets notifications, and the daemon that sends them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(PATIENCE_S)
        self.endpoint = f"unix:{folder / 'eagled.sock'}"
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [EAGLED, "--listen", self.endpoint, *options],
                env={**os.environ, "NOTIFY_SOCKET": str(self.path), **environment},
                stdout=log,
                stderr=log,
            )
        return self.process

    def next(self, word: str) -> dict[str, str]:
        """The next message that has this variable; others before it are left out."""
        while True:
            message = dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())
            if word in message:
                return message

    def drain(self) -> None:
        """Everything that comes until there is silence for a second."""
        self.socket.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while True:
                self.socket.recv(4096)

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.socket.close()


@pytest.fixture
def manager(short_path: Path) -> Iterator[Manager]:
    made = Manager(short_path)
    yield made
    made.end()


@pytest.mark.parametrize("options", [(), ("--no-keeper",)], ids=["keeper", "one process"])
def test_start_reload_and_end_are_told(manager: Manager, options: tuple[str, ...]) -> None:
    daemon = manager.start(*options)
    assert manager.next("READY")["STATUS"].startswith("serving")
    eagle.connect(manager.endpoint).close()
    daemon.send_signal(signal.SIGHUP)
    assert "MONOTONIC_USEC" in manager.next("RELOADING")
    assert manager.next("READY")["READY"] == "1"
    daemon.send_signal(signal.SIGTERM)
    assert manager.next("STOPPING")["STATUS"] == "draining"
    assert daemon.wait(PATIENCE_S) == 0


def test_the_watchdog_is_fed_by_the_keeper_while_work_goes_round(manager: Manager) -> None:
    daemon = manager.start(WATCHDOG_USEC="2000000")
    manager.next("READY")
    for _ in range(3):
        manager.next("WATCHDOG")
    worker = children(daemon.pid)[0]
    os.kill(worker, signal.SIGSTOP)  # nothing goes round any more
    try:
        manager.drain()  # a few may have been on their way
        manager.socket.settimeout(2.0)
        with pytest.raises(TimeoutError):
            manager.next("WATCHDOG")
    finally:
        os.kill(worker, signal.SIGCONT)
    manager.socket.settimeout(PATIENCE_S)
    manager.next("WATCHDOG")


@kernel
def stand_still(x: Mutable[Scalar]):
    for k in eagle.bounded(range(1 << 40), 1 << 40):
        x = x * 0.5 + k


def test_a_worker_whose_work_stands_still_is_replaced_before_the_manager_ends_everybody(manager: Manager) -> None:
    daemon = manager.start(WATCHDOG_USEC="4000000")
    manager.next("READY")
    with eagle.connect(manager.endpoint) as session:
        kept, x = session.full(8, 7.0), session.zeros(1)
        graph = eagle.Graph(session).add(eagle.plan(stand_still).bind(x=x)).build()
        with pytest.raises(eagle.WorkerRestarted):
            graph.launch()
        assert "worker 2" in manager.next("READY")["STATUS"]
        assert kept.tolist() == [7.0] * 8
        assert eagle.Graph(session).add(eagle.plan(add).bind(x=kept, by=1.0)).build().launch()
    assert daemon.poll() is None
    assert "has been at one piece of work for" in manager.log.read_text()


def test_another_worker_is_told_of(manager: Manager) -> None:
    daemon = manager.start()
    manager.next("READY")
    os.kill(children(daemon.pid)[0], signal.SIGKILL)
    assert "starting another" in manager.next("STATUS")["STATUS"]
    assert "worker 2" in manager.next("READY")["STATUS"]
    eagle.connect(manager.endpoint).close()


def listening_unix(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen(16)
    return made


def listening_tcp(host: str = "127.0.0.1") -> socket.socket:
    made = socket.socket()
    made.bind((host, 0))
    made.listen(16)
    return made


def start_passed(manager: Manager, sockets: dict[str, socket.socket], *options: str) -> subprocess.Popen[bytes]:
    """As systemd would: the sockets from descriptor 3 on, LISTEN_PID the daemon's own."""
    moves = " ".join(f"{3 + i}<&{made.fileno()}" for i, made in enumerate(sockets.values()))
    with manager.log.open("wb") as log:
        manager.process = subprocess.Popen(
            ["bash", "-c", f'export LISTEN_PID=$$; exec "$@" {moves}', "bash", EAGLED, *options],
            env={
                **os.environ,
                "NOTIFY_SOCKET": str(manager.path),
                "LISTEN_FDS": str(len(sockets)),
                "LISTEN_FDNAMES": ":".join(sockets),
            },
            pass_fds=[made.fileno() for made in sockets.values()],
            stdout=log,
            stderr=log,
        )
    return manager.process


def high(made: socket.socket) -> socket.socket:
    """The same under a number that is not in the way of 3, 4, 5."""
    import fcntl

    return socket.socket(fileno=fcntl.fcntl(made.detach(), fcntl.F_DUPFD_CLOEXEC, 50))


def test_sockets_that_were_passed_are_used_and_survive(manager: Manager, short_path: Path) -> None:
    path = short_path / "passed.sock"
    tcp, metrics = high(listening_tcp()), high(listening_tcp())
    sockets = {"unix": high(listening_unix(path)), "tcp": tcp, "metrics": metrics}
    port, metrics_port = tcp.getsockname()[1], metrics.getsockname()[1]
    daemon = start_passed(
        manager,
        sockets,
        *("--listen", f"unix:{path}", "--listen", f"dns:127.0.0.1:{port}", "--metrics", f"127.0.0.1:{metrics_port}"),
    )
    for made in sockets.values():
        made.close()
    manager.next("READY")
    for endpoint in (f"unix:{path}", f"dns:127.0.0.1:{port}"):
        eagle.connect(endpoint).close()
    with socket.create_connection(("127.0.0.1", metrics_port), timeout=PATIENCE_S) as peer:
        peer.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert peer.recv(64).startswith(b"HTTP/1.0 200")
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(PATIENCE_S) == 0
    assert path.exists(), "the socket's file is the service manager's"


def test_a_socket_that_no_setting_names_is_refused(manager: Manager, short_path: Path) -> None:
    sockets = {"unix": high(listening_unix(short_path / "other.sock"))}
    daemon = start_passed(manager, sockets, "--listen", manager.endpoint)
    sockets["unix"].close()
    assert daemon.wait(PATIENCE_S) == 1
    assert "other.sock" in manager.log.read_text()


@pytest.mark.parametrize(
    ("host", "options", "expected"),
    [
        ("0.0.0.0", ("--metrics", "127.0.0.1:7412"), "can be read from other machines"),
        ("127.0.0.1", (), "`metrics` is not set"),
    ],
    ids=["other machines", "not wanted"],
)
def test_a_metrics_socket_is_checked_whoever_opened_it(
    manager: Manager, host: str, options: tuple[str, ...], expected: str
) -> None:
    with high(listening_tcp(host)) as metrics:
        daemon = start_passed(manager, {"metrics": metrics}, "--listen", manager.endpoint, *options)
    assert daemon.wait(PATIENCE_S) == 1
    assert expected in manager.log.read_text()


@pytest.mark.parametrize("options", [(), ("--no-keeper",)], ids=["keeper", "one process"])
def test_a_drain_asks_for_the_time_that_it_may_take(manager: Manager, options: tuple[str, ...]) -> None:
    """Whatever TimeoutStopSec= says: `eaglectl drain` may give work longer than the unit does."""
    daemon = manager.start("--drain-timeout", "600", *options)
    manager.next("READY")
    with eagle.connect(manager.endpoint) as session:
        held = HeldLaunch(session)
        daemon.send_signal(signal.SIGTERM)
        first = manager.next("EXTEND_TIMEOUT_USEC")
        assert first["STOPPING"] == "1"
        assert int(first["EXTEND_TIMEOUT_USEC"]) > 600e6
        if not options:  # and again, while it lasts
            again = manager.next("EXTEND_TIMEOUT_USEC")
            assert 0 < int(again["EXTEND_TIMEOUT_USEC"]) < int(first["EXTEND_TIMEOUT_USEC"])
        held.let_go()
    assert daemon.wait(PATIENCE_S) == 0


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        lacks(f"no {program}: apt-get install systemd")
    return found


def test_the_unit_is_confined(tmp_path: Path) -> None:
    unit = tmp_path / "eagled.service"
    unit.write_text((UNITS / "eagled.service").read_text())
    scored = subprocess.run(
        [needs("systemd-analyze"), "security", "--offline=true", "--threshold=15", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert scored.returncode == 0, scored.stdout + scored.stderr
    score = re.search(r"exposure level for eagled.service: ([\d.]+)", scored.stdout)
    assert score
    assert float(score.group(1)) <= 1.5
    assert re.search(r"^User=eagled$", unit.read_text(), re.MULTILINE)


def test_the_unit_gives_a_drain_its_time() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", (UNITS / "eagled.service").read_text(), re.MULTILINE))
    drain = int(re.search(r"^drain_timeout = (\d+)$", (UNITS / "eagled.toml").read_text(), re.MULTILINE).group(1))
    longest_end = 15  # server/keeper/keeper.cpp
    assert int(settings["TimeoutStopSec"]) > drain + longest_end
    assert settings["KillMode"] == "mixed"
    assert settings["Type"] == "notify"


def test_socket_unit_and_configuration_agree() -> None:
    listen = re.search(r"^ListenStream=(.*)$", (UNITS / "eagled.socket").read_text(), re.MULTILINE).group(1)
    assert f'endpoint = "unix:{listen}"' in (UNITS / "eagled.toml").read_text()
    checked = subprocess.run(
        [EAGLED, "--config", UNITS / "eagled.toml", "--check-config"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_the_team_is_as_large_as_the_processors_that_the_manager_leaves(short_path: Path) -> None:
    """CPUAffinity= of a unit; the cgroup's quota (CPUQuota=) is tested on made-up trees, engine/run/cgroup_test.cpp."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        daemon = Daemon(short_path)
    finally:
        os.sched_setaffinity(0, before)
    try:
        assert daemon.info()["threads"] == 1
        assert os.sched_getaffinity(daemon.pid) == {min(before)}
    finally:
        assert daemon.stop() == 0, daemon.log()
