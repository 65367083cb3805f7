"""Work that takes as long as a test wants, given to a daemon from a thread of the test's."""

import threading
from typing import Any

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.graph import opaque
from harness import PATIENCE_S, Beside


@kernel
def grow(x: Mutable[Scalar], by: Param, done: Terminated):
    x = x + by
    done = x >= 1e300


@kernel
def add(x: Mutable[Scalar], by: Param):
    x = x + by


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
