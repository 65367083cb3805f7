"""Work that takes as long as a test wants, given to a daemon from a thread of the test's."""

import threading
from collections.abc import Callable
from typing import Any

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.graph import opaque
from harness import PATIENCE_S


@kernel
def grow(x: Mutable[Scalar], by: Param, done: Terminated):
    x = x + by
    done = x >= 1e300


@kernel
def add(x: Mutable[Scalar], by: Param):
    x = x + by


class Beside:
    """A call in a thread of its own, whose result or error is had by `result`."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._outcome.append(self._call())
        except BaseException as error:
            self._outcome.append(error)

    def result(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert self._outcome, "the call did not end"
        return self._outcome[0]


class HeldLaunch:
    """A launch that is at a host call until it is let go."""

    def __init__(self, session: eagle.Session) -> None:
        self.reached, self._go = threading.Event(), threading.Event()
        x = session.zeros(4)

        def wait() -> None:
            self.reached.set()
            assert self._go.wait(PATIENCE_S)

        graph = eagle.Graph(session).add_node(opaque(wait, reads={"x": x}, writes={"x": x}), name="wait").build()
        self._call = Beside(graph.launch)
        assert self.reached.wait(PATIENCE_S), "the launch did not begin"

    def let_go(self) -> Any:
        """What the launch returned or raised."""
        self._go.set()
        return self._call.result()
