"""What torch, CuPy, Warp and JAX are told of streams and captures. Modules of their names play them, and note it."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import types
from collections.abc import Iterator
from typing import Any

import eagle
import numpy as np
import pytest
from eagle.graph import child, current_stream, opaque
from gpu_package import CapturedGraph, Package, address

GPU = "cuda:0"

pytestmark = pytest.mark.usefixtures("fake_gpus")


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


class Notes:
    """What the packages were told, in order, and what torch has allocated."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.allocations = 0

    @contextlib.contextmanager
    def within(self, *what: Any) -> Iterator[None]:
        self.told.append(("begin", *what))
        yield
        self.told.append(("end", *what))


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    notes = Notes()

    class ExternalStream:
        def __init__(self, handle: int, device: str) -> None:
            self.cuda_stream = handle
            self.device = device

    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True,
        Stream=ExternalStream,
        ExternalStream=ExternalStream,
        stream=lambda stream: notes.within("torch", stream.cuda_stream, stream.device),
        memory_stats=lambda ordinal: {"allocation.all.allocated": notes.allocations},
    )
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(
        is_available=lambda: True,
        Device=lambda ordinal: notes.within("cupy device", ordinal),
        ExternalStream=lambda handle, ordinal: notes.within("cupy", handle, ordinal),
    )
    warp = types.ModuleType("warp")
    warp.Stream = lambda device, cuda_stream: (device, cuda_stream)
    warp.ScopedStream = lambda stream: notes.within("warp", *stream)
    warp.capture_begin = lambda stream, external: notes.told.append(("begin", "warp capture", *stream, external))
    warp.capture_end = lambda stream: notes.told.append(("end", "warp capture", *stream))
    for module in (torch, cupy, warp):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return notes


@pytest.mark.parametrize("how", ["stream", "captured"])
def test_packages_have_the_stream_as_their_current_one_while_a_callable_runs(
    session: eagle.Session, package: Package, notes: Notes, how: str
) -> None:
    x, y = session.full(4, 3.0, device=GPU), session.zeros(4, device=GPU)
    seen: list[int] = []

    def double() -> None:
        seen.append(current_stream())
        notes.told.append("called")
        package.affine(address(x), address(y), 2.0, 0.0, 4, current_stream())

    stream = {"stream": package.stream()} if how == "stream" else {}
    eagle.Graph().add_node(opaque(double, reads={"x": x}, writes={"y": y}, **stream)).build().launch()
    assert y.numpy().tolist() == [6.0] * 4
    if how == "stream":
        assert seen == [stream["stream"]]
    handle = seen[0]
    begun = [
        ("begin", "torch", handle, GPU),
        ("begin", "cupy device", 0),
        ("begin", "cupy", handle, 0),
        ("begin", "warp", GPU, handle),
    ]
    if how == "captured":
        begun.append(("begin", "warp capture", GPU, handle, True))
    ended = [("end", *one[1:]) for one in reversed(begun)]
    if how == "captured":
        ended[0] = ended[0][:-1]
    assert notes.told == [*begun, "called", *ended]


def test_memory_that_torch_takes_from_its_own_pool_within_a_capture_is_refused(
    session: eagle.Session, package: Package, notes: Notes
) -> None:
    x, y = session.full(4, 3.0, device=GPU), session.zeros(4, device=GPU)

    def double() -> None:
        notes.allocations += 2
        package.affine(address(x), address(y), 2.0, 0.0, 4, current_stream())

    node = opaque(double, reads={"x": x}, writes={"y": y}, name="model")
    said = r"torch allocated 2 tensors on the GPU meanwhile.*out=.*stream=.*eager=True"
    with pytest.raises(eagle.GraphState, match=said):
        eagle.Graph().add_node(node).build().launch()


def test_what_another_thread_may_have_allocated_is_captured_once_more(
    session: eagle.Session, package: Package, notes: Notes
) -> None:
    x, y = session.full(4, 3.0, device=GPU), session.zeros(4, device=GPU)
    calls: list[int] = []

    def double() -> None:
        calls.append(notes.allocations)
        notes.allocations += len(calls) == 1
        package.affine(address(x), address(y), 2.0, 0.0, 4, current_stream())

    eagle.Graph().add_node(opaque(double, reads={"x": x}, writes={"y": y})).build().launch(2)
    assert (y.numpy().tolist(), calls) == ([6.0] * 4, [0, 1])


def test_a_tensor_that_is_returned_is_recorded_for_torchs_own_stream_object(
    session: eagle.Session, package: Package, notes: Notes
) -> None:
    x, y = session.full(4, 3.0, device=GPU), session.zeros(4, device=GPU)
    handle = package.stream()
    recorded: list[Any] = []

    def double() -> Any:
        package.affine(address(x), address(y), 2.0, 0.0, 4, handle)
        return types.SimpleNamespace(record_stream=recorded.append)

    g = eagle.Graph().add_node(opaque(double, reads={"x": x}, writes={"y": y}, stream=handle)).build().launch()
    assert [(type(one).__name__, one.cuda_stream) for one in recorded] == [("ExternalStream", handle)]
    assert g.report.launches == 1


@pytest.mark.parametrize("kind", ["warp", "cupy", "other"])
def test_graphs_of_warp_and_cupy_give_their_handle_as_an_attribute(
    session: eagle.Session, package: Package, kind: str
) -> None:
    x, y = session.full(4, 3.0, device=GPU), session.zeros(4, device=GPU)
    captured = CapturedGraph(package, x, y)
    handle: Any = captured.raw_cuda_graph()
    replays: list[int] = []
    owner_type = type("Graph", (), {"__module__": f"{kind}.of_it", "replay": lambda self: replays.append(1)})
    owner = owner_type()
    owner.graph = ctypes.c_void_p(handle) if kind == "warp" else handle
    g = eagle.Graph().add_node(child(owner, reads={"x": x}, writes={"y": y})).build().launch()
    if kind != "other" and not session._core.remote:
        assert (g.schedule, replays, y.numpy().tolist()) == (("capture",), [], [30.0] * 4)
    else:  # what an attribute of that name is elsewhere nobody knows
        assert (g.schedule, replays) == (("client_replay",), [1])


# ---- JAX


class JaxArray:
    """A result of JAX's: computed on a stream of JAX's own, which another one waits for when it is handed over."""

    def __init__(self, jax: Jax, pointer: int, size: int) -> None:
        self.jax, self.pointer = jax, pointer
        self.shape, self.dtype = (size,), np.dtype(float)

    def __dlpack__(self, *, stream: int) -> Any:
        self.jax.order(self.jax.computes_on, stream)
        return object()

    def unsafe_buffer_pointer(self) -> int:
        return self.pointer

    def __del__(self) -> None:
        self.jax.alive -= 1


class Jax:
    """The module, and what it did."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.computes_on, self.stream = package.stream(), package.stream()
        self.alive = self.most_alive = 0

    def order(self, earlier: int, later: int) -> None:
        self.package.order(earlier, later)

    def from_dlpack(self, plane: eagle.Plane) -> tuple[int, int]:
        self.order(self.stream, self.computes_on)
        return address(plane), plane.size

    def affine(self, x: tuple[int, int], a: float, b: float) -> JaxArray:
        pointer = self.package.allocate(8 * x[1])
        self.package.affine(x[0], pointer, a, b, x[1], self.computes_on)
        self.alive += 1
        self.most_alive = max(self.most_alive, self.alive)
        return JaxArray(self, pointer, x[1])


@pytest.fixture
def jax(package: Package, monkeypatch: pytest.MonkeyPatch) -> Jax:
    played = Jax(package)
    numpy = types.ModuleType("jax.numpy")
    numpy.from_dlpack = played.from_dlpack
    device = types.SimpleNamespace(local_hardware_id=0, get_stream_for_external_ready_events=lambda: played.stream)
    module = types.ModuleType("jax")
    module.__path__ = []  # a package
    module.numpy, module.jit = numpy, lambda fn: fn
    module.devices = lambda platform: [device] if platform == "cuda" else []
    module.config = types.SimpleNamespace(jax_enable_x64=True)
    monkeypatch.setitem(sys.modules, "jax", module)
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy)
    monkeypatch.delitem(sys.modules, "eagle.frameworks.jax", raising=False)
    return played


def test_a_node_of_jax_works_on_jaxs_own_stream_and_keeps_its_results_until_the_launch_is_over(
    session: eagle.Session, jax: Jax
) -> None:
    from eagle.frameworks import jax as frameworks_jax
    from models import affine

    x, y, z = (session.full(4, 1.0, device=GPU) for _ in range(3))
    node = frameworks_jax.node(lambda x: jax.affine(x, 2.0, 0.0), {"x": x}, {"y": y}, name="model")
    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).add_node(node)
    g.add(eagle.plan(affine).bind(x=y, y=z, a=1.0, b=0.5)).build()
    in_process = not session._core.remote
    assert g.schedule[1] == ("eager_stream" if in_process else "client_replay")
    assert "model [stream]" in str(g)
    g.launch(3)
    assert z.numpy().tolist() == [8.5] * 4
    assert (jax.alive, jax.most_alive) == (0, 3 if in_process else 1)


def test_a_node_of_jax_refuses_results_of_another_shape_by_name(session: eagle.Session, jax: Jax) -> None:
    from eagle.frameworks import jax as frameworks_jax

    x, y = session.full(4, 1.0, device=GPU), session.zeros(3, device=GPU)
    node = frameworks_jax.node(lambda x: jax.affine(x, 2.0, 0.0), {"x": x}, {"y": y})
    with pytest.raises(ValueError, match=r"jax.node: plane 'y': expected shape \(3,\), the function returned \(4,\)"):
        eagle.Graph().add_node(node).build().launch()


def test_a_gpu_that_jax_does_not_use_is_refused_by_name(session: eagle.Session, jax: Jax) -> None:
    from eagle.frameworks import jax as frameworks_jax

    x, y = session.full(4, 1.0, device="cuda:1"), session.zeros(4, device="cuda:1")
    with pytest.raises(eagle.MixedDevices, match="GPU 1 of this process, which JAX does not use"):
        frameworks_jax.node(lambda x: x, {"x": x}, {"y": y})


def test_a_node_of_jax_over_arrays_of_both_is_refused_by_name(session: eagle.Session, jax: Jax) -> None:
    from eagle.frameworks import jax as frameworks_jax

    x, y = session.full(4, 1.0, device=GPU), session.zeros(4)
    with pytest.raises(eagle.MixedDevices, match=r"jax.node: plane 'y' is in memory of the host"):
        frameworks_jax.node(lambda x: x, {"x": x}, {"y": y})
