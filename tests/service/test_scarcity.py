"""A machine that has run out of something: what is refused is refused by name, and everything else goes on."""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import eagle
import pytest
from harness import EAGLED, PATIENCE_S, Daemon, wait_until
from models import affine
from watch import check_serves, held_by, wait_for_nothing_held, worker_of


def take(session: eagle.Session, held: list, count: int) -> None:
    """So many arrays of 8 MB more; large ones have a plane, and so a descriptor, each."""
    for _ in range(count):
        held.append(session.zeros(1_000_000))


@contextmanager
def control_group(controller: str, **limits: object) -> Iterator[Path]:
    """A cgroup (version 1) of the test's own; skips where none can be made."""
    group = Path(f"/sys/fs/cgroup/{controller}/eagled-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        for name, value in limits.items():
            (group / f"{controller}.{name}").write_text(f"{value}\n")
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text().split(), f"{group} to be empty")
        group.rmdir()


@contextmanager
def daemon_started_by(
    folder: Path, shell: str, *options: str, log: int | None = None
) -> Iterator[tuple[str, subprocess.Popen]]:
    """An eagled that a shell starts after it has set limits for it; its lines go to `log` or else a file."""
    endpoint = f"unix:{folder / 'scarce.sock'}"
    told, tell = os.pipe()
    command = f"{shell}\nexec '{EAGLED}' --listen '{endpoint}' --ready-fd {tell} {' '.join(options)}"
    with (folder / "scarce.log").open("wb") as file:
        lines_to = file if log is None else log
        process = subprocess.Popen(["bash", "-c", command], pass_fds=[tell], stdout=lines_to, stderr=lines_to)
    os.close(tell)
    try:
        with os.fdopen(told) as lines:
            answer = lines.readline()
        assert answer == "ready\n", answer + (folder / "scarce.log").read_text()
        yield endpoint, process
        assert process.poll() is None, (folder / "scarce.log").read_text()
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.survives("RLIMIT_NOFILE reached: planes and sessions are refused by name, what is there goes on")
def test_descriptors_run_out(short_path):
    with daemon_started_by(short_path, "ulimit -n 120") as (endpoint, _):
        with eagle.connect(endpoint) as session:
            x, y = session.full(100, 2.0), session.zeros(100)
            bound = eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0)
            bound.launch()
            y[:] = 0.0
            held = []
            with pytest.raises(eagle.EagleError) as refused:
                take(session, held, 200)
            assert "descriptor" in str(refused.value), refused.value
            bound.launch()
            assert y.tolist() == [7.0] * 100
            held.clear()
        check_serves(endpoint)


@pytest.mark.survives("arrays opened more often than RLIMIT_NOFILE allows descriptors: nothing is lost at a death")
def test_opened_arrays_take_no_descriptors(short_path):
    arrays, sessions, descriptors = 40, 15, 400
    assert arrays * sessions > descriptors
    with (
        daemon_started_by(short_path, f"ulimit -n {descriptors}") as (endpoint, keeper),
        ExitStack() as open_sessions,
    ):
        owner = open_sessions.enter_context(eagle.connect(endpoint))
        for i in range(arrays):
            owner.publish(owner.full(4, float(i)), f"array{i}")
        others = [open_sessions.enter_context(eagle.connect(endpoint)) for _ in range(sessions)]
        opened = [[session.open(f"array{i}") for i in range(arrays)] for session in others]
        assert held_by(keeper.pid).descriptors < descriptors / 2
        first = owner.info().host.pid
        for _ in range(2):
            os.kill(owner.info().host.pid, signal.SIGKILL)
            for session, mine in [(others[i], opened[i]) for i in range(sessions)]:
                y = session.zeros(4)
                eagle.plan(affine).bind(x=mine[-1], y=y, a=2.0, b=1.0).launch()
                assert y.tolist() == [2.0 * (arrays - 1) + 1.0] * 4
        assert owner.info().host.pid != first
        with eagle.connect(endpoint) as late:
            assert [late.open(f"array{i}")[3] for i in range(arrays)] == [float(i) for i in range(arrays)]
        check_serves(endpoint)


@pytest.mark.survives("a memory cgroup that is full: planes are refused before the system ends anybody")
def test_memory_runs_out(short_path):
    megabytes = 400
    with (
        control_group("memory", limit_in_bytes=megabytes << 20) as group,
        daemon_started_by(short_path, f"echo $$ > {group}/cgroup.procs") as (endpoint, process),
    ):
        with eagle.connect(endpoint) as session:
            held = []
            with pytest.raises(eagle.EagleError) as refused:
                take(session, held, 100)
            assert isinstance(refused.value, MemoryError), refused.value
            assert 10 <= len(held) <= megabytes // 8
            held[-1][:] = 1.0
        assert process.poll() is None
        check_serves(endpoint)


@pytest.mark.survives("pids.max reached: the team is what can be started, and the daemon says so")
def test_threads_run_out(short_path):
    with (
        control_group("pids", max=40) as group,
        daemon_started_by(short_path, f"echo $$ > {group}/cgroup.procs", "--threads", "64") as (endpoint, process),
    ):
        check_serves(endpoint)
        with eagle.connect(endpoint) as session:
            assert 1 <= session.info().threads < 64
        assert "threads" in (short_path / "scarce.log").read_text()
        assert process.poll() is None


@pytest.mark.survives("disk full for logs: lines are lost, and nothing else")
def test_logs_on_a_full_disk(short_path):
    with (
        open("/dev/full", "wb") as full,
        daemon_started_by(short_path, "", "--log-level", "debug", log=full.fileno()) as (endpoint, _),
    ):
        for _ in range(20):
            check_serves(endpoint)


@pytest.mark.survives("a log that nobody reads (a full pipe): nothing waits for it")
def test_logs_that_nobody_reads(short_path):
    unread, log = os.pipe()
    try:
        with daemon_started_by(short_path, "", "--log-level", "debug", log=log) as (endpoint, _):
            # A pipe takes 64 KiB; a session leaves some 250 bytes of log.
            for _ in range(600):
                with eagle.connect(endpoint) as session:
                    session.zeros(3)
    finally:
        os.close(unread)
        os.close(log)


@pytest.mark.survives("the plane budget used up by one: it is refused by name, and frees when it gives back")
def test_the_budget_runs_out(short_path):
    folder = short_path / "small"
    folder.mkdir()
    daemon = Daemon(folder, "--plane-budget", str(64 << 20))
    try:
        with eagle.connect(daemon.endpoint) as session:
            held = []
            with pytest.raises(eagle.EagleError) as refused:
                take(session, held, 100)
            assert isinstance(refused.value, MemoryError)
            held.clear()
            wait_until(lambda: int(daemon.info()["plane_bytes"]) < 32 << 20, "arrays to be given back")
            assert session.zeros(1_000_000).sum() == 0.0
        wait_for_nothing_held(daemon)
    finally:
        assert daemon.stop() == 0


@pytest.mark.survives("a client without descriptors left: it is told, and the daemon holds nothing for it")
def test_a_client_without_descriptors(daemon):
    worker = worker_of(daemon)
    before = held_by(worker)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with eagle.connect(daemon.endpoint) as session:
            held = [session.zeros(1_000_000)]
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 1, hard))
            with pytest.raises((eagle.EagleError, OSError)):
                take(session, held, 20)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            held.append(session.zeros(1_000_000))
            held.clear()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for_nothing_held(daemon)
    wait_until(lambda: held_by(worker).descriptors <= before.descriptors + 4, "descriptors to be given back")


@pytest.mark.survives("no descriptors left in the moment of a worker's death: the keeper tries again, nothing is lost")
def test_a_worker_that_cannot_be_started_is_tried_again(short_path):
    with daemon_started_by(short_path, "true") as (endpoint, keeper), eagle.connect(endpoint) as session:
        x, y = session.full(100_000, 2.0), session.zeros(100_000)
        bound = eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0)
        bound.launch()
        most = resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, (3, most[1]))
        os.kill(session.info().host.pid, signal.SIGKILL)
        log = short_path / "scarce.log"
        wait_until(lambda: "trying again" in log.read_text(), "the keeper to find no descriptors")
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, most)
        y[:] = 0.0
        bound.launch()
        assert y.tolist() == [7.0] * 100_000
