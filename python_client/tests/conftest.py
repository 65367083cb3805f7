"""Both hosts: every test that takes ``session`` runs in this process and in a daemon of the tests' own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

import eagle


def eagled_program() -> str:
    """The eagled under test: EAGLED, the one in the package, or that of the build tree."""
    package = Path(eagle.__file__).parent
    build = os.environ.get("EAGLE_BUILD_DIR")
    places = [os.environ.get("EAGLED"), package / "bin" / "eagled", build and Path(build) / "bin" / "eagled"]
    for place in places:
        if place and os.access(place, os.X_OK):
            return str(place)
    pytest.fail(f"no eagled to test with; looked at {places}")


@contextlib.contextmanager
def running_daemon(folder, *options):
    """An eagled on a socket in this folder, with the environment of this moment; gives its endpoint."""
    socket = folder / "eagled.sock"
    told, tell = os.pipe()
    command = [eagled_program(), "--listen", f"unix:{socket}", "--ready-fd", str(tell), *options]
    with subprocess.Popen(command, pass_fds=(tell,)) as daemon:
        os.close(tell)
        with os.fdopen(told) as lines:
            answer = lines.readline()  # ends with the daemon, should it not come up
        assert answer == "ready\n"
        yield f"unix:{socket}"
        daemon.terminate()
        assert daemon.wait(30) == 0


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """A daemon for the whole run."""
    with running_daemon(tmp_path_factory.mktemp("eagled")) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch):
    """Nothing outside decides where a test runs."""
    monkeypatch.delenv("EAGLE_ENDPOINT", raising=False)


@pytest.fixture(params=["local", "daemon"])
def session(request):
    opened = eagle.local() if request.param == "local" else eagle.connect(request.getfixturevalue("endpoint"))
    yield opened
    opened.close()


@pytest.fixture
def local():
    opened = eagle.local()
    yield opened
    opened.close()


@pytest.fixture
def daemon(endpoint):
    opened = eagle.connect(endpoint)
    yield opened
    opened.close()
