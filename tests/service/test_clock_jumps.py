"""The wall clock jumps by hours, either way, while everything that has a time is under way.

No clock of the machine is set: the daemon's processes read theirs through `wall_clock.c`, whose offset this changes.
"""

from __future__ import annotations

import contextlib
import json
import struct
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import eagle
import hand_made
import pytest
from eagle.graph import opaque
from harness import PATIENCE_S, Beside, Daemon, compile_shared, new_token, tcp_endpoint, wait_until
from line import Line
from models import affine
from stubs import session_at
from watch import check_serves, keeper_of, worker_of

LEASE_S = 3600.0  # much, and much less than a jump
JUMPS = {"seven hours ahead": 7 * 3600, "seven hours back": -7 * 3600}


class Clock:
    """The wall clock of processes that have `environment`."""

    def __init__(self, folder: Path) -> None:
        library, self._offset = folder / "wall_clock.so", folder / "offset"
        self._offset.write_bytes(bytes(8))
        compile_shared(Path(__file__).with_name("wall_clock.c"), library, "-O2")
        self.library = str(library)
        self.environment = {"LD_PRELOAD": self.library, "WALL_CLOCK_OFFSET": str(self._offset)}

    def jump(self, seconds: int) -> None:
        with self._offset.open("r+b") as file:
            file.write(struct.pack("=q", seconds * 1_000_000_000))


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


@pytest.fixture
def token(short_path: Path) -> str:
    made, row = new_token("alice")
    (short_path / "tokens").write_text(row + "\n")
    (short_path / "tokens").chmod(0o600)
    return made


@pytest.fixture
def clocked(short_path: Path, clock: Clock, token: str) -> Iterator[Daemon]:
    assert token
    config = short_path / "eagled.toml"
    config.write_text(
        f'log_format = "json"\n[[listen]]\nendpoint = "unix:{short_path}/eagled.sock"\n'
        f'[[listen]]\nendpoint = "dns:127.0.0.1:0"\nidentity = "token"\n[tokens]\nfile = "{short_path}/tokens"\n'
    )
    daemon = Daemon(short_path, "--config", str(config), environment=clock.environment, listens=False)
    try:
        for process in (worker_of(daemon), keeper_of(daemon)):
            if clock.library not in Path(f"/proc/{process}/maps").read_text():
                pytest.skip("the dynamic linker preloads nothing here, so the daemon's clock cannot jump")
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log()


def logged(daemon: Daemon) -> list[dict[str, Any]]:
    """Every line of the log is an object, whatever the clock did."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def time_of(entry: dict[str, Any]) -> float:
    return datetime.fromisoformat(entry["time"].replace("Z", "+00:00")).timestamp()


@pytest.mark.survives("the wall clock jumps by hours, either way: leases, deadlines, queues, tokens and logs go on")
@pytest.mark.parametrize("jump", JUMPS)
def test_the_wall_clock_jumps(clocked, clock, token, jump):
    daemon, worker = clocked, worker_of(clocked)
    reached, leave = threading.Event(), threading.Event()
    with (
        contextlib.closing(Line(tcp_endpoint(daemon))) as kept,
        contextlib.closing(Line(tcp_endpoint(daemon))) as lost,
        eagle.connect(daemon.endpoint) as session,
        session_at(daemon.path) as service,
    ):
        # Leases: of a session whose line breaks for long, of one whose line breaks for good, and of a run.
        remote = eagle.connect(kept.endpoint, auth=token, lease=LEASE_S, timeout=PATIENCE_S)
        far = remote.full(1000, 2.0)
        gone = eagle.connect(lost.endpoint, auth=token, lease=1.0)
        gone.full(1000, 1.0)
        made = service.call("Planes.Create", planes=[{"bytes": 8 * 512}, {"bytes": 8 * 512}]).planes
        described = hand_made.counting_run(service, made[0].ref, made[1].ref, 512, 2**50)
        run = service.call("Runs.Submit", run=described, lease_s=LEASE_S, attempt=b"1" * 16).run

        # Deadlines: of a launch that has long, at a host call, and of one that has a second and would take for ever.
        x, y = session.zeros(10), session.zeros(10)

        def wait() -> None:
            reached.set()
            assert leave.wait(PATIENCE_S)

        held = eagle.Graph(session).add_node(opaque(wait, writes={"x": x}), name="wait").build()
        patient = Beside(lambda: held.launch(timeout=LEASE_S))
        assert reached.wait(PATIENCE_S)
        endless = eagle.Graph(session).add(eagle.plan(affine).bind(x=y, y=y, a=1.0, b=1.0), name="endless").build()
        hasty = Beside(lambda: endless.launch(2**50, timeout=1.0))
        # Queues: one that was queued before behind the endless one, and runs afterwards.
        queued = eagle.Graph(session).add(eagle.plan(affine).bind(x=y, y=y, a=0.0, b=5.0), name="queued").build()
        wait_until(lambda: y[0] > 0, "the endless launch to run")
        behind = Beside(lambda: queued.launch(timeout=LEASE_S))

        lost.cut(for_good=True)
        kept.cut()
        before = max(time_of(entry) for entry in logged(daemon))
        clock.jump(JUMPS[jump])

        # What has a second ends all the same, and what has an hour stays.
        assert isinstance(hasty.result(), eagle.DeadlineExceeded)
        y[:] = 0.0
        session.accept(y)
        outcome = behind.result()
        assert not isinstance(outcome, eagle.DeadlineExceeded), outcome
        wait_until(lambda: len(service.call("Admin.ListSessions").sessions) == 3, "the lost session to end")
        eagle.plan(affine).bind(x=far, y=far, a=2.0, b=1.0).launch()
        assert far[:2].tolist() == [5.0] * 2, "the session whose line broke goes on"
        assert not service.call("Runs.Get", run=run).ended
        assert 0 < service.call("Runs.Get", run=run).lease_s <= LEASE_S
        assert not patient.ended(), "a launch that has an hour ended"
        leave.set()
        assert not isinstance(patient.result(), eagle.EagleError)

        # New work of all kinds, and those who come with a token.
        check_serves(daemon.endpoint)
        with eagle.connect(tcp_endpoint(daemon), auth=token) as fresh:
            z = fresh.full(3, 1.0)
            eagle.plan(affine).bind(x=z, y=z, a=1.0, b=1.0).launch()
            assert z.tolist() == [2.0] * 3
        with pytest.raises((PermissionError, ConnectionError)):
            eagle.connect(tcp_endpoint(daemon), auth=token[:-1] + ("0" if token[-1] != "0" else "1"))
        service.call("Runs.CancelRun", run=run)
        service.call("Planes.Release", planes=[plane.ref for plane in made])

        # What is told of times has no hours in it, and the log has those of the clock.
        info = service.call("Admin.Info")
        assert 0 <= info.uptime_s < LEASE_S
        assert all(0 <= each.age_s < LEASE_S for each in service.call("Admin.ListSessions").sessions)
        events = json.loads(service.call("Admin.Timeline").trace_json)["traceEvents"]
        assert all(0 <= event.get("dur", 0) < LEASE_S * 1e6 for event in events)
        after = time_of(logged(daemon)[-1])
        assert abs(after - before - JUMPS[jump]) < LEASE_S, "the daemon did not see the jump: nothing was shown"
        assert worker_of(daemon) == worker == info.host.pid, "the worker was taken for dead"
        remote.close()
