"""A session of each kind, and JAX with float64."""

from __future__ import annotations

import os

import eagle
import pytest


@pytest.fixture(scope="session")
def jax():
    """JAX, or a skip that says why not."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    found = pytest.importorskip("jax", reason="jax could not be installed (tests/gradients/make_venv.sh)")
    found.config.update("jax_enable_x64", True)
    return found


@pytest.fixture(params=["local", "daemon"])
def session(request):
    """In process, and a daemon of the test's own process."""
    with eagle.local(threads=2) if request.param == "local" else eagle.connect() as opened:
        yield opened
