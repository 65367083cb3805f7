"""docs/manual/clusters.md: its programs and its commands, where the engines are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from harness import ROOT

sys.path.insert(0, str(ROOT / "tests/docs"))

from blocks import blocks_of

PAGE = "docs/manual/clusters.md"


def code(language: str) -> str:
    return "\n".join(block.code for block in blocks_of(PAGE) if block.language == language)


def test_the_programs_of_the_page_run(tmp_path: Path, ray_here: str) -> None:
    """All as one; under the guard that a program needs whose workers are started from it."""
    pytest.importorskip("distributed", reason="dask could not be installed (tests/scale/make_venv.sh)")
    program = tmp_path / "page.py"
    program.write_text("if __name__ == '__main__':\n" + textwrap.indent(code("python"), "    "))
    environment = {**os.environ, "RAY_ADDRESS": ray_here}
    ran = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=170, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "False" not in ran.stdout, ran.stdout
    for shown in code("text").splitlines():
        assert shown in ran.stdout, f"{PAGE} shows\n{shown}\nand printed was\n{ran.stdout}"


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = "set -euo pipefail\n" + code("sh")
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=170, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads((tmp_path / "results/result.json").read_text())
    assert (told["status"], told["shards"], told["finished"]) == ("finished", 10, 10_000)
    assert set(told["values"]) == {"furthest"}
