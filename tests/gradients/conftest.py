"""A session of each kind, and the frameworks."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import eagle
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from harness import Daemon, tcp_endpoint, wait_until


def framework(name: str) -> ModuleType:
    """The package, or a skip that says why there is none; a failure where tests/run.sh has just installed it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
    why = f"{name} is not in {sys.prefix}; tests/run.sh --suite gradients installs it (tests/gradients/make_venv.sh)"
    if name == "torch" and os.environ.get("EAGLE_TOOLS_INSTALLED"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def jax():
    """JAX, with float64."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    found = framework("jax")
    found.config.update("jax_enable_x64", True)
    return found


@pytest.fixture(scope="session")
def torch():
    """Torch for CPUs."""
    found = framework("torch")
    with warnings.catch_warnings():
        # Debian's was built for numpy 1, says once that it meets a newer one, and does without it. What is tested here
        # goes through DLPack, of which numpy's binary interface is no part.
        warnings.filterwarnings("ignore", "Failed to initialize NumPy", UserWarning)
        found.linspace(0.0, 1.0, 2)
    return found


@pytest.fixture(params=["local", "daemon", "tcp"])
def session(request):
    """In process, a daemon of the test's own process, and one without memory in common: values travel."""
    if request.param == "local":
        opened = eagle.local(threads=2)
    elif request.param == "daemon":
        opened = eagle.connect()
    else:
        opened = eagle.connect(request.getfixturevalue("tcp_daemon"))
    with opened:
        yield opened


@pytest.fixture(params=["local", "daemon", "tcp"])
def lone_session(request):
    """As `session`, with nobody else: what a daemon says of all its memory is this test's."""
    if request.param == "local":
        with eagle.local(threads=2) as opened:
            yield opened
        return
    tcp = request.param == "tcp"
    with (
        serving(*(("--listen", "dns:127.0.0.1:0") if tcp else ())) as daemon,
        eagle.connect(tcp_endpoint(daemon) if tcp else daemon.endpoint) as opened,
    ):
        yield opened


@pytest.fixture(scope="session")
def tcp_daemon():
    """Where a daemon listens that serves other machines."""
    with serving("--listen", "dns:127.0.0.1:0") as daemon:
        yield tcp_endpoint(daemon)


@contextlib.contextmanager
def serving(*options: str) -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="eagle-") as folder:
        daemon = Daemon(Path(folder), *options)
        wait_until(lambda: " serves " in daemon.log(), "eagled to say where it serves")
        yield daemon
        assert daemon.stop() == 0, daemon.log()
