"""A session of each kind, and the packages of others, each or a skip that says why not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import eagle
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))  # harness.py


def package(name: str):
    """A package of the suite's environment (tests/interop/make_venv.sh)."""
    return pytest.importorskip(name, reason=f"{name} could not be installed (tests/interop/make_venv.sh)")


@pytest.fixture(scope="session")
def jax():
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    found = package("jax")
    found.config.update("jax_enable_x64", True)
    return found


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed (apt-get install python3-torch)")


@pytest.fixture(scope="session")
def pyarrow():
    return package("pyarrow")


@pytest.fixture(scope="session")
def xarray():
    return package("xarray")


@pytest.fixture(scope="session")
def hawk():
    return package("hawk")


@pytest.fixture(params=["local", "daemon"])
def session(request):
    """In process, and a daemon of the test's own process."""
    with eagle.local(threads=2) if request.param == "local" else eagle.connect() as opened:
        yield opened


def address(array) -> int:
    return array.__array_interface__["data"][0]
