"""Threads of a team wait for each other without sleeping for microseconds, not for libgomp's own milliseconds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from eagle._openmp import SPIN_COUNT
from harness import ROOT, Daemon, wait_until

# What libgomp says of itself when it is loaded.
SAID = re.compile(r"GOMP_SPINCOUNT = '(\w+)'")


@pytest.fixture(autouse=True)
def libgomp_says_how_it_waits(monkeypatch):
    monkeypatch.setenv("OMP_DISPLAY_ENV", "VERBOSE")
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)


def in_python(**environment: str) -> str:
    script = "import os, eagle; print('left behind:', os.environ.get('GOMP_SPINCOUNT'))"
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return result.stdout + result.stderr


@pytest.mark.parametrize("options", [[], ["--no-keeper"]])
def test_of_a_daemon(short_path, options):
    daemon = Daemon(short_path, *options)
    try:
        wait_until(lambda: SPIN_COUNT in SAID.findall(daemon.log()), f"libgomp to say it: {daemon.log()}")
        assert Path(f"/proc/{daemon.process.pid}/comm").read_text() == "eagled\n"
    finally:
        assert daemon.stop() == 0


def test_of_a_python_process_and_of_none_that_it_starts():
    said = in_python()
    assert SAID.findall(said) == [SPIN_COUNT]
    assert "left behind: None" in said


@pytest.mark.parametrize("environment", [{"GOMP_SPINCOUNT": "77"}, {"OMP_WAIT_POLICY": "passive"}])
def test_what_the_user_says_stands(environment):
    assert SAID.findall(in_python(**environment)) == ["77" if "GOMP_SPINCOUNT" in environment else "0"]


def test_both_languages_mean_the_same():
    header = (ROOT / "engine/run/spin_limit.h").read_text()
    assert f'spin_count = "{SPIN_COUNT}"' in header
