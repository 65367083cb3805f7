"""From the decorator to the first result of the oscillator (1,000 samples, 1,000 steps), in a fresh process each time,
imports and the session aside. Through the daemon: one that was just started, and one that knows the kernel."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cases.inputs import DT
from frame import DAEMON, IN_PROCESS, OURS, Bench, Bound, Form, Row, WrongAnswer, environment_of_children

LINE = 14
TITLE = "decorator to first result, cold, oscillator"
KNOWN = "known to the daemon"
HERE = Path(__file__).resolve().parents[1]


def child(*words: str) -> dict[str, float]:
    command = [sys.executable, str(HERE / "cold.py"), *words]
    done = subprocess.run(
        command, env=environment_of_children(), capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        raise WrongAnswer(f"cold.py ended with {done.returncode}: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def expected() -> float:
    """x of the first oscillator (omega = 1) after 1,000 steps, in Python's own arithmetic."""
    x, v = 1.0, 0.0
    for _ in range(1000):
        x, v = x + DT * v, v - DT * x
    return x


def seconds(endpoint: str) -> float:
    found = child("first", endpoint)
    if found["x"] != expected():
        raise WrongAnswer(f"the first result is {found['x']!r}; expected {expected()!r}")
    return found["seconds"]


def in_a_new_daemon(bench: Bench) -> float:
    with contextlib.ExitStack() as stack:
        return seconds(bench.new_daemon(stack).endpoint)


def rows(bench: Bench) -> Iterator[Row]:
    forms = [
        Form(IN_PROCESS, lambda: seconds(""), OURS),
        Form(f"{DAEMON}, just started", lambda: in_a_new_daemon(bench), OURS),
        Form(KNOWN, lambda: seconds(bench.daemon.endpoint), OURS),
    ]
    forms += bench.peers("first_result", 1e-9, ("raptor-eagle", "numba", "jax", "warp"))
    bounds = [Bound(IN_PROCESS, 60e-3), Bound(f"{DAEMON}, just started", 60e-3), Bound(KNOWN, 2e-3)]
    yield Row("a fresh process each time", forms, bounds)
