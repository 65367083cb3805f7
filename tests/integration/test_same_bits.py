"""The same call gives the same bits: 200 times, on one core and on two, in process and through the daemon."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import PATIENCE_S, Daemon

HERE = Path(__file__).resolve().parent
CORES = sorted(os.sched_getaffinity(0))[:2]


def digest(where: str, cores: list[int]) -> str:
    """Of a process that may run on these cores alone."""
    command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, HERE / "same_bits.py", where]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stderr
    allowed, found = ran.stdout.split()
    assert int(allowed) == len(cores)
    return found


@pytest.mark.skipif(len(CORES) < 2, reason="this machine has one core")
def test_two_hundred_calls_give_one_result_on_one_and_on_two_cores(short_path):
    one, two = CORES[:1], CORES
    expected = digest("local", one)
    assert digest("local", two) == expected
    for threads in ("1", "2", "3"):
        (folder := short_path / threads).mkdir()
        daemon = Daemon(folder, "--threads", threads)
        try:
            assert digest(daemon.endpoint, one) == expected
            assert digest(daemon.endpoint, two) == expected
        finally:
            assert daemon.stop() == 0, daemon.log()
