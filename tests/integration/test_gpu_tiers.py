"""Work that a program does itself on the GPU of its graph: callables with a stream, and captured graphs as nodes.

A stand-in plays the framework: it has the memory of the fake driver by its address, as torch or warp would.
"""

from __future__ import annotations

import ctypes
from typing import Any

import eagle
import numpy as np
import pytest
from eagle import _core
from eagle.graph import child, opaque
from models import affine

GPU = "cuda:0"

pytestmark = pytest.mark.usefixtures("fake_gpus")


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


def at(pointer: int, size: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(pointer))


def on_gpu(plane: eagle.Plane) -> np.ndarray:
    return at(plane.__cuda_array_interface__["data"][0], plane.size)


class Captured:
    """What a framework captured: y = 10 x, over the addresses that the arrays had then."""

    def __init__(self, x: eagle.Plane, y: eagle.Plane) -> None:
        self.replays = 0
        self.factor = 10.0
        self.capture(x, y)

    def capture(self, x: eagle.Plane, y: eagle.Plane) -> None:
        self._x = x.__cuda_array_interface__["data"][0]
        self._y = y.__cuda_array_interface__["data"][0]
        self._size = x.size

    def reset(self) -> None:
        self._size = 0

    def replay(self) -> None:
        if self._size == 0:
            raise RuntimeError("replay of a graph that was reset")
        self.replays += 1
        at(self._y, self._size)[...] = self.factor * at(self._x, self._size)


def around(node: Any, x: Any, y: Any, z: Any) -> eagle.Graph:
    """x + 1, the node from x to y, and z = y + 0.5."""
    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).add_node(node)
    return g.add(eagle.plan(affine).bind(x=y, y=z, a=1.0, b=0.5)).build()


def arrays(session: eagle.Session) -> list[Any]:
    return [session.full(4, 1.0, device=GPU) for _ in range(3)]


class Stream:
    cuda_stream = 0  # the default one


@pytest.mark.parametrize("stream", [0, Stream()], ids=["handle", "object"])
def test_a_callable_with_a_stream_works_on_the_gpus_memory_itself(session: eagle.Session, stream: Any) -> None:
    x, y, z = arrays(session)
    given: list[Any] = []

    def double(x: Any, y: Any) -> None:
        given.extend([x, y])
        on_gpu(y)[...] = 2.0 * on_gpu(x)

    g = around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z)
    assert g.schedule == ("cuda_graph", "client_replay", "cuda_graph")
    g.launch(2)
    assert [type(one) for one in given] == [eagle.Plane] * 4
    assert (y.numpy().tolist(), z.numpy().tolist()) == ([6.0] * 4, [6.5] * 4)


def test_what_it_waits_for_is_the_stream(session: eagle.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = arrays(session)
    waited: list[Any] = []
    monkeypatch.setattr(_core, "wait_for_stream", lambda uuid, stream: waited.append((uuid[:4], stream)))
    around(opaque(lambda x, y: None, reads={"x": x}, writes={"y": y}, stream=7), x, y, z).launch()
    assert waited == [("GPU-", 7)]


def test_a_captured_graph_is_a_node(session: eagle.Session) -> None:
    x, y, z = arrays(session)
    owner = Captured(x, y)
    g = around(child(owner, reads={"x": x}, writes={"y": y}, name="model"), x, y, z)
    assert g.schedule == ("cuda_graph", "client_replay", "cuda_graph")
    assert g.node_labels()[1] == "model"
    assert [(edge.src, edge.dst) for edge in g.edges()] == [(0, 1), (1, 2)]
    g.launch(3)
    assert owner.replays == 3
    assert z.numpy().tolist() == [40.5] * 4
    del owner
    g.launch()  # the graph keeps it
    assert z.numpy().tolist() == [50.5] * 4


def test_a_captured_graph_that_was_reset_says_so_itself(session: eagle.Session) -> None:
    x, y, z = arrays(session)
    owner = Captured(x, y)
    g = around(child(owner, reads={"x": x}, writes={"y": y}), x, y, z)
    owner.reset()
    with pytest.raises(RuntimeError, match="replay of a graph that was reset"):
        g.launch()
    owner.capture(x, y)  # again: it is replayed as it is now
    owner.factor = 100.0
    if session._core.remote:
        for array in (x, y, z):
            session.accept(array)
    g.launch()
    assert z.numpy().tolist() == [300.5] * 4


def test_an_array_that_has_moved_since_is_refused_by_its_name(
    session: eagle.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z = arrays(session)
    owner = Captured(x, y)
    g = around(child(owner, reads={"x": x}, writes={"y": y}), x, y, z)
    found = _core.on_device
    monkeypatch.setattr(_core, "on_device", lambda *about: (found(*about)[0] + 256, *found(*about)[1:]))
    with pytest.raises(eagle.EagleError, match=r"child: 'x' lies at another address .* capture it again"):
        g.launch()
    assert owner.replays == 0


@pytest.mark.parametrize("kind", ["captured", "eager"])
def test_other_callables_get_values_and_the_schedule_says_so(session: eagle.Session, kind: str) -> None:
    x, y, z = arrays(session)

    def double(x: Any, y: Any) -> None:
        assert type(x) is np.ndarray
        y[...] = 2.0 * x

    g = around(opaque(double, reads={"x": x}, writes={"y": y}, eager=kind == "eager"), x, y, z)
    assert g.schedule == ("cuda_graph", "host_call", "cuda_graph")
    g.launch()
    assert z.numpy().tolist() == [4.5] * 4


# ---- bad input


def test_what_cannot_be_replayed_is_refused(session: eagle.Session) -> None:
    x, y, _ = arrays(session)
    with pytest.raises(TypeError, match=r"child: expected a torch.cuda.CUDAGraph, .* found object"):
        child(object(), reads={"x": x}, writes={"y": y})


def test_a_captured_graph_over_arrays_of_the_host_is_refused_with_the_way_out(session: eagle.Session) -> None:
    x = session.zeros(4)
    with pytest.raises(
        eagle.MixedDevices, match=r"none of its arrays lies on one; call the model in an eagle.graph.opaque"
    ):
        child(Captured.__new__(Captured), reads={"x": x}, writes={})


def test_a_child_that_writes_what_a_sibling_reads_is_a_race(session: eagle.Session) -> None:
    x, y, z = arrays(session)
    model = child(Captured(x, y), reads={"x": x}, writes={"y": y}, name="model")
    g = eagle.Graph().add_group([model, eagle.plan(affine).bind(x=y, y=z, a=1.0, b=0.5)])
    with pytest.raises(eagle.RacingSiblings, match="model"):
        g.build()
