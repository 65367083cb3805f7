"""A GPU of a daemon that computes, and everybody else, who goes on meanwhile. On the fake driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import eagle
import numpy as np
import pytest
from eagle.graph import opaque
from harness import Daemon, wait_until
from models import affine, count_up

pytestmark = pytest.mark.usefixtures("fake_gpus")

GPU = "cuda:0"


@eagle.kernel
def spin(x: eagle.Scalar, y: eagle.Mutable[eagle.Scalar]):
    i = 0
    while eagle.bounded(2**40) and i >= 0:
        i = i + 1
    y = x + i


@pytest.fixture
def daemon(gpu_daemon: Callable[..., Daemon]) -> Daemon:
    return gpu_daemon()


@pytest.fixture
def busy(daemon: Daemon) -> Iterator[eagle.Graph]:
    """A launch that has cuda:0 until it is cancelled."""
    with eagle.connect(daemon.endpoint) as session:
        zeros, marker = session.zeros(1, device=GPU), session.zeros(1, device=GPU)
        g = eagle.Graph(session).add(eagle.plan(affine).bind(x=zeros, y=marker, a=1.0, b=1.0))
        g.add(eagle.plan(spin).bind(x=marker, y=session.zeros(1, device=GPU))).build()
        g.enqueue()
        wait_until(lambda: float(marker[0]) == 1.0, "the GPU to be at the second node")
        yield g
        g.cancel()
        with pytest.raises(eagle.EagleError, match="cancelled"):
            g.synchronize()


def affine_on(session: eagle.Session, device: str) -> eagle.Graph:
    x, y = session.full(8, 2.0, device=device), session.zeros(8, device=device)
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0)).build()
    assert g.backend == device
    return g


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
@pytest.mark.parametrize("own", [True, False], ids=["of its session", "of another"])
def test_launches_elsewhere_go_on(daemon: Daemon, busy: eagle.Graph, device: str, own: bool) -> None:
    with eagle.connect(daemon.endpoint) as other:
        g = affine_on(busy.session if own else other, device)
        for _ in range(3):
            g.launch(2)


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_runs_elsewhere_go_on(daemon: Daemon, busy: eagle.Graph, device: str) -> None:
    with eagle.connect(daemon.endpoint) as other:
        planes = {"x": other.zeros(3, device=device), "step": other.full(3, 1.0, device=device)}
        done = other.zeros(3, dtype=bool, device=device)
        assert eagle.simulate(count_up, max_steps=9, limit=4.0, done=done, **planes).steps == 4


def test_values_there_are_read_and_written_meanwhile(daemon: Daemon, busy: eagle.Graph) -> None:
    with eagle.connect(daemon.endpoint) as other:
        x = other.asarray(np.arange(5.0), device=GPU)
        x[1:3] = 7.0
        assert x.numpy().tolist() == [0.0, 7.0, 7.0, 3.0, 4.0]


def test_a_launch_that_waits_for_the_gpu_ends_with_its_timeout(daemon: Daemon, busy: eagle.Graph) -> None:
    with eagle.connect(daemon.endpoint) as other, pytest.raises(eagle.DeadlineExceeded):
        affine_on(other, GPU).launch(timeout=0.2)


def test_whoever_waited_for_the_gpu_has_it_afterwards(daemon: Daemon, busy: eagle.Graph) -> None:
    with eagle.connect(daemon.endpoint) as other:
        g = affine_on(other, GPU).enqueue()
        busy.cancel()
        g.synchronize()


def test_what_touches_the_same_array_waits_wherever_it_runs(daemon: Daemon) -> None:
    """A callable of a graph of the GPU writes an array of the host that a graph of the CPU reads."""
    with eagle.connect(daemon.endpoint) as session:
        x, y = session.zeros(1, device=GPU), session.publish(session.zeros(4), "y")
        begun, go = threading.Event(), threading.Event()

        def slow() -> None:
            begun.set()
            assert go.wait(60)
            y[...] = 5.0

        first = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
        first.add_node(opaque(slow, writes={"y": y})).build()
        with eagle.connect(daemon.endpoint) as other:
            shared, total = other.open("y"), other.zeros(4)
            second = eagle.Graph(other).add(eagle.plan(affine).bind(x=shared, y=total, a=1.0, b=0.0)).build()
            thread = threading.Thread(target=first.launch)
            thread.start()
            assert begun.wait(60)
            second.enqueue()
            go.set()
            thread.join()
            second.synchronize()
            assert total.tolist() == [5.0] * 4
