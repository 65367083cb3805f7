"""A daemon's Admin, its metrics and its log, as an operator sees them; nothing of eagle's own client."""

import contextlib
import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from harness import EAGLED, PATIENCE_S, Daemon, wait_until
from stubs import Service, session_at

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def lacks(why: str) -> NoReturn:
    """Skips the test for want of a tool, unless whoever runs the suite has just installed all of them."""
    if os.environ.get("EAGLE_TOOLS_INSTALLED") and "root" not in why:
        pytest.fail(why)
    pytest.skip(why)


def run_eagled(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EAGLED, *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@contextlib.contextmanager
def service_of(daemon: Daemon) -> Iterator[Service]:
    with session_at(daemon.path) as service:
        yield service


def metrics_url(daemon: Daemon) -> str:
    found = re.search(r"metrics at (http://\S+)", daemon.log())
    assert found, daemon.log()
    return found.group(1)


def read_metrics(url: str) -> dict[str, float]:
    """Samples by name and labels, as in the text."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
        lines = response.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def json_log(daemon: Daemon) -> list[dict[str, Any]]:
    """Every line is an object."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def wait_for_log(daemon: Daemon, text: str, times: int = 1) -> None:
    wait_until(lambda: daemon.log().count(text) >= times, f"'{text}' in the log:\n{daemon.log()}")


def write_config(path: Path, *lines: str) -> None:
    """Whole or not at all: a daemon may read it at any time."""
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join(lines) + "\n")
    fresh.replace(path)
