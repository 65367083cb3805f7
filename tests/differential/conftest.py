"""The reference implementation in a virtual environment of its own, or a skip that says why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = "0.6.2"  # that docs/manual/graph_model.md describes the differences to


class Reference:
    """raptor-eagle, asked over pipes."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [python, HERE / "reference.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version: str = self._reply()["version"]

    def build(self, graph: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(graph) + "\n")
        self.process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the reference implementation ended"
        return json.loads(line)

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    folder = Path(os.environ.get("EAGLE_BUILD_DIR", ROOT / "build" / "release")) / "reference-venv"
    python = folder / "bin" / "python"
    wanted = [python, "-c", f"import importlib.metadata as m; assert m.version('raptor-eagle') == '{VERSION}'"]
    if not python.exists() or subprocess.run(wanted, capture_output=True, check=False).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", f"raptor-eagle=={VERSION}"]
        installed = subprocess.run(install, capture_output=True, text=True, check=False)
        if installed.returncode != 0:
            pytest.skip(f"raptor-eagle=={VERSION} cannot be installed: {installed.stderr.strip()[-300:]}")
    process = Reference(python)
    yield process
    process.close()
