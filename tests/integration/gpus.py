"""Daemons and sessions with GPUs, which the fake driver plays (``tests/fake_cuda``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import eagle
import pytest
from harness import BUILD, Daemon

DRIVER = str(BUILD / "fake_cuda/libcuda.so.1")


@pytest.fixture
def fake_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPUs of this process; it reads what they pretend once."""
    monkeypatch.setenv("EAGLE_CUDA_DRIVER", DRIVER)
    monkeypatch.setenv("EAGLE_FAKE_CUDA", "devices=2")


@pytest.fixture
def gpu_daemon(fake_gpus: None, short_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts daemons with GPUs that pretend what the test says."""
    running: list[Daemon] = []

    def start(*options: str, pretend: str = "devices=2", **environment: str) -> Daemon:
        folder = short_path / str(len(running))
        folder.mkdir()
        running.append(Daemon(folder, *options, environment={"EAGLE_FAKE_CUDA": pretend, **environment}))
        return running[-1]

    yield start
    for daemon in running:
        assert daemon.stop() == 0, daemon.log()


@pytest.fixture
def local(fake_gpus: None) -> Iterator[eagle.Session]:
    """For what only a session in process does."""
    with eagle.local() as opened:
        yield opened


@pytest.fixture(params=["local", "daemon"])
def gpu_session(fake_gpus: None, request: pytest.FixtureRequest) -> Iterator[eagle.Session]:
    opened = eagle.local() if request.param == "local" else None
    opened = opened or eagle.connect(request.getfixturevalue("gpu_daemon")().endpoint)
    with opened:
        yield opened
