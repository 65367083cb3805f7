"""What the daemon has given up before it serves."""

from pathlib import Path

import eagle
from harness import Daemon, children


def status(pid: int) -> dict[str, str]:
    rows = (line.partition(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: value.strip() for name, _, value in rows}


def test_no_new_privileges_and_a_filter_of_system_calls_for_every_process_of_it(daemon: Daemon) -> None:
    @eagle.kernel
    def helper_starts(x: eagle.Scalar) -> eagle.Scalar:
        return x * 1.25 + 0.75

    with eagle.connect(daemon.endpoint) as session:
        assert helper_starts(session.full(2, 1.0)).tolist() == [2.0, 2.0]
        for pid in (daemon.pid, *children(daemon.pid)):
            assert status(pid)["NoNewPrivs"] == "1"
            assert status(pid)["Seccomp"] == "2"
        threads = [int(task.name) for task in Path(f"/proc/{daemon.pid}/task").iterdir()]
        assert len(threads) > 1
        assert all(status(thread)["Seccomp"] == "2" for thread in threads)
