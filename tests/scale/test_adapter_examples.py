"""Examples in the documentation of the adapters, where their engines are."""

from __future__ import annotations

import doctest
import importlib
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_examples_of_the_documentation_run(name: str, request: pytest.FixtureRequest) -> None:
    """In a process of its own, which starts a cluster of Dask, or finds Ray's."""
    pytest.importorskip("distributed" if name == "dask" else name, reason="see tests/scale/make_venv.sh")
    program = f"import doctest, eagle.{name} as m; raise SystemExit(doctest.testmod(m, verbose=True).failed)"
    code = f"if __name__ == '__main__':\n    {program}"
    address = {"RAY_ADDRESS": request.getfixturevalue("ray_here")} if name == "ray" else {}
    environment = {**os.environ, **address}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=170, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "passed" in ran.stdout


@pytest.mark.parametrize("name", ["eagle.cluster", "eagle.cluster._cuts", "eagle.cluster._sources"])
def test_examples_of_the_core_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_an_engine_is_loaded_when_it_is_asked_for() -> None:
    program = "import eagle, eagle.cluster, sys; print(*({'dask', 'distributed', 'ray'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=170, check=True)
    assert ran.stdout.split() == []
