"""kill -9 of the worker while clients launch: nothing that was acknowledged is lost, and nothing runs twice."""

from __future__ import annotations

import os
import signal
import threading

import eagle
import pytest
from eagle import Index, Mutable, Param, kernel
from harness import PATIENCE_S, children, wait_until
from watch import check_serves, wait_for_nothing_held

DEATHS = 3  # five within a minute end the daemon
SAMPLES = 300_000  # so that a worker dies in the middle of launches, not between them


@kernel
def count(n: Mutable[Index], step: Param):
    n = n + 1 if step > 0.0 else n


class Launcher:
    """Launches until it is told to stop: how many were acknowledged, and how many a death left open."""

    def __init__(self, endpoint: str) -> None:
        self.session = eagle.connect(endpoint)
        self.counted = self.session.zeros(SAMPLES, dtype="int64")
        self.acknowledged, self.interrupted, self.unexpected = 0, 0, []
        self._graph = self._built()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _built(self) -> eagle.Graph:
        """A graph of its own name each time: one that was running at two deaths is not launched again."""
        graph = eagle.Graph(self.session)
        graph.add(eagle.plan(count).bind(n=self.counted, step=1.0), name=f"{id(self)} {self.interrupted}")
        return graph.build()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                self._graph.launch()
                self.acknowledged += 1
            except eagle.WorkerRestarted:
                self.interrupted += 1
                self.session.accept(self.counted)  # each element is as it was, or one more
                self._graph = self._built()
            except eagle.EagleError as error:
                self.unexpected.append(str(error))
                return

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def close(self) -> None:
        del self.counted, self._graph
        self.session.close()


@pytest.mark.survives("kill -9 of the worker under load: acknowledged launches have run once, the others at most once")
def test_the_worker_dies_under_load(daemon, measured):
    launchers = [Launcher(daemon.endpoint) for _ in range(4)]
    for _ in range(DEATHS):
        known = [launcher.acknowledged for launcher in launchers]

        def all_go_on(known: list[int] = known) -> bool:
            assert not [text for each in launchers for text in each.unexpected]
            return all(each.acknowledged > before + 5 for each, before in zip(launchers, known, strict=True))

        wait_until(all_go_on, "every client to launch")
        (worker,) = children(daemon.process.pid)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda worker=worker: children(daemon.process.pid) not in ([], [worker]), "another worker")
    for each in launchers:
        each.stop()
        assert each.counted.min() >= each.acknowledged, "a launch that was acknowledged is lost"
        assert each.counted.max() <= each.acknowledged + each.interrupted, "a launch has run twice"
    acknowledged, interrupted = (
        sum(getattr(each, name) for each in launchers) for name in ("acknowledged", "interrupted")
    )
    assert interrupted, "no launch was under way when a worker died: nothing was shown"
    while launchers:
        launchers.pop().close()
    check_serves(daemon.endpoint)
    wait_for_nothing_held(daemon)
    measured(f"{DEATHS} deaths among {acknowledged} launches; {interrupted} were interrupted and told so")
