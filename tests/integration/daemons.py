"""Fixtures of the suites that run real daemons; a suite's conftest.py names this module as a plugin."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import BUILD, Daemon


@pytest.fixture(scope="session", autouse=True)
def _environment() -> Iterator[None]:
    """Nothing that a developer has set or runs may answer for the daemons of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("EAGLE_ENDPOINT", "EAGLE_SHARED_ARRAYS", "XDG_RUNTIME_DIR", "LD_PRELOAD"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name: sockets end at 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="eagle-") as folder:
        yield Path(folder)


@pytest.fixture
def daemon(short_path: Path) -> Iterator[Daemon]:
    """A fresh eagled. It must still run when the test is over, and end well when told to."""
    running = Daemon(short_path)
    try:
        yield running
        assert running.process.poll() is None, f"eagled ended with {running.process.returncode}:\n{running.log()}"
    except BaseException:
        running.process.kill()
        running.process.wait()
        raise
    assert running.stop() == 0, running.log()


def pytest_sessionstart() -> None:
    if not (BUILD / "bin" / "eagled").is_file():
        raise pytest.UsageError(f"no eagled in {BUILD}: run the suite with tests/run.sh, which builds it")
