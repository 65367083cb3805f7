"""What a process holds, looked at from outside."""

import os
from dataclasses import dataclass
from pathlib import Path

import eagle
from harness import Daemon, wait_until
from models import affine


@dataclass(frozen=True)
class Held:
    descriptors: int
    resident_kib: int
    threads: int


def held_by(pid: int) -> Held:
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Held(
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        resident_kib=int(fields["VmRSS"].split()[0]),
        threads=int(fields["Threads"]),
    )


def worker_of(daemon: Daemon) -> int:
    """The process that computes; the daemon may have another one before it."""
    return int(daemon.info()["pid"]) if "pid" in daemon.info() else daemon.pid


def keeper_of(daemon: Daemon) -> int:
    """The process that holds the descriptors of all planes, and the journal."""
    assert daemon.pid != daemon.process.pid, "this daemon has no keeper"
    return daemon.process.pid


def wait_for_nothing_held(daemon: Daemon) -> None:
    """Until no session, plane or graph is left of anybody."""

    def nothing() -> bool:
        info = daemon.info()
        return all(int(info[name]) == 0 for name in ("plane_bytes", "planes", "graphs"))

    wait_until(nothing, f"everything to be given back: {daemon.info()}")


def wait_for_descriptors(pid: int, most: int) -> None:
    wait_until(lambda: held_by(pid).descriptors <= most, f"{pid} to hold at most {most} descriptors, {held_by(pid)}")


def wait_for_at_most(pid: int, descriptors: int, resident_kib: int) -> Held:
    """Until it holds no more than that: what was released goes some time after the answer to the release."""

    def within() -> bool:
        held = held_by(pid)
        return held.descriptors <= descriptors and held.resident_kib <= resident_kib

    wait_until(within, f"{pid} to hold at most {descriptors} descriptors and {resident_kib} KiB, {held_by(pid)}")
    return held_by(pid)


def check_serves(endpoint: str) -> None:
    """A new client gets its work done there."""
    with eagle.connect(endpoint) as session:
        x, y = session.full(100, 2.0), session.zeros(100)
        eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0).launch()
        assert y.tolist() == [7.0] * 100
