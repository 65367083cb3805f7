"""Dask clusters whose scheduler and workers are processes of the test's own, to look at from outside and to kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from harness import PATIENCE_S, wait_until


class DaskCluster:
    """A scheduler and workers of one thread each. ``environment`` is what workers have besides the test's own."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        environment: dict[str, str] | None = None,
        scheduler_environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._file = folder / "scheduler.json"
        self._environment = environment or {}
        self.workers: list[subprocess.Popen[bytes]] = []
        options = ("--no-dashboard", "--port", "0", "--scheduler-file", str(self._file))
        self.scheduler = self._started("dask_scheduler", *options, environment=scheduler_environment or {})
        wait_until(self._written, "the scheduler to say where it is")
        self.address = json.loads(self._file.read_text())["address"]
        for _ in range(workers):
            self.add_worker()

    def _written(self) -> bool:
        """Whether all of the file is there, which is made before it has anything in it."""
        return self._file.is_file() and self._file.read_text().rstrip().endswith("}")

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """One more, with more of an environment."""
        options = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0")
        where = ("--local-directory", str(self.folder), self.address)
        self.workers.append(
            self._started("dask_worker", *options, *where, environment={**self._environment, **environment})
        )
        return self.workers[-1]

    def _started(self, program: str, *options: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}-{len(self.workers)}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *options],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )

    def kill(self, pid: int) -> None:
        """As the kernel does, without a word."""
        (process,) = (one for one in self.workers if one.pid == pid)
        process.kill()
        process.wait(PATIENCE_S)
        self.workers.remove(process)

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self.workers:
            process.kill()  # told to end, they would wait for each other
            process.wait()
        self.scheduler.send_signal(signal.SIGTERM)
        try:
            self.scheduler.wait(PATIENCE_S)
        finally:
            self.scheduler.kill()
            self.scheduler.wait()


def _die_with_parent() -> None:
    """A test run that is killed leaves nothing behind."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
