"""What ``import eagle`` adds to numpy, in a fresh process each time; what an idle daemon (keeper and worker, no
session) has in memory and uses of a processor."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from cases.line14_first_result import child
from frame import OTHER, Bench, Bound, Form, Row
from harness import descendants

LINE = 15
TITLE = "import eagle: time and memory; the daemon idle"
BEYOND = "eagle, beyond numpy"
# Nothing is asked of the machine but a beat now and then: less than a thousandth of a core.
NO_CPU = 1e-3


def imported(module: str, what: int) -> float:
    return child("import", "numpy", "eagle")[module][what]


def proportional_mib(pid: int) -> float:
    """Memory of a process, what it shares divided by those who share it."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024


def cpu_ns(pid: int) -> int:
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def rows(bench: Bench) -> Iterator[Row]:
    for what, unit, most in ((0, "s", 30e-3), (1, "MiB", 15.0)):
        forms = [
            Form(BEYOND, lambda what=what: imported("eagle", what)),
            Form("numpy", lambda what=what: imported("numpy", what), OTHER),
        ]
        forms += bench.peers("import", 0.0, ("raptor-eagle", "numba", "jax", "warp"), what=what)
        yield Row(f"import, {'seconds' if unit == 's' else unit}", forms, [Bound(BEYOND, most)], unit=unit)
    with contextlib.ExitStack() as stack:
        daemon = bench.new_daemon(stack)
        processes = descendants(daemon.process.pid)

        def memory() -> float:
            return sum(map(proportional_mib, processes))

        def share_of_a_core() -> float:
            before, begin = sum(map(cpu_ns, processes)), time.monotonic()
            time.sleep(0.05 if bench.smoke else 2.0)
            return (sum(map(cpu_ns, processes)) - before) * 1e-9 / (time.monotonic() - begin)

        time.sleep(0 if bench.smoke else 2.0)  # it has just started
        yield Row("idle daemon, MiB", [Form("keeper and worker", memory)], [Bound("keeper and worker", 60)], "MiB", 3)
        cpu = [Form("keeper and worker", share_of_a_core)]
        yield Row("idle daemon, share of a core", cpu, [Bound("keeper and worker", NO_CPU)], "of a core", 3)
