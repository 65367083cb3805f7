"""Work that a program does itself on the GPU of its graph: callables with a stream, and captured graphs as nodes.

A stand-in plays the framework: it has the memory of the fake driver by its address, as torch or warp would.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import eagle
import numpy as np
import pytest
from eagle import _core
from eagle.graph import child, current_stream, opaque
from frameworks import DriverError
from gpu_package import CapturedGraph, Package, address
from models import add_into, affine

GPU = "cuda:0"

pytestmark = pytest.mark.usefixtures("fake_gpus")


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


def at(pointer: int, size: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(pointer))


class Captured:
    """What a package captured and gives to nobody: y = 10 x, over the addresses that the arrays had then."""

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


def in_process(session: eagle.Session) -> bool:
    return not session._core.remote


def by_host(session: eagle.Session, local: str) -> tuple[str, ...]:
    """The schedule of `around`, which names the host's way."""
    return ("cuda_graph", local if in_process(session) else "client_replay", "cuda_graph")


# ---- a callable with a stream


class Stream:
    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle


@pytest.mark.parametrize("kind", ["default", "handle", "object"])
def test_a_callable_with_a_stream_works_on_the_gpus_memory_itself(
    session: eagle.Session, package: Package, kind: str
) -> None:
    x, y, z = arrays(session)
    handle = 0 if kind == "default" else package.stream()
    given: list[Any] = []

    def double(x: Any, y: Any) -> None:
        given.extend([x, y])
        package.affine(address(x), address(y), 2.0, 0.0, x.size, handle)

    stream = Stream(handle) if kind == "object" else handle
    g = around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z)
    assert g.schedule == by_host(session, "eager_stream")
    g.launch(2)
    assert [type(one) for one in given] == [eagle.Plane] * 4
    assert (y.numpy().tolist(), z.numpy().tolist()) == ([6.0] * 4, [6.5] * 4)


def test_a_callable_without_parameters_knows_its_arrays_itself(session: eagle.Session, package: Package) -> None:
    x, y, z = arrays(session)
    stream = package.stream()
    seen: list[int] = []

    def double() -> None:
        seen.append(current_stream())
        package.affine(address(x), address(y), 2.0, 0.0, x.size, stream)

    around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z).launch()
    assert (seen, z.numpy().tolist()) == ([stream], [4.5] * 4)
    with pytest.raises(eagle.GraphState, match="current_stream: no callable of a graph runs in this thread"):
        current_stream()


def test_in_process_nobody_waits_for_the_stream_and_through_a_daemon_this_process_does(
    session: eagle.Session, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z = arrays(session)
    stream = package.stream()
    waited: list[Any] = []
    wait = _core.wait_for_stream
    monkeypatch.setattr(_core, "wait_for_stream", lambda *of: (waited.append(of[1]), wait(*of)))
    before: list[float] = []

    def double(x: Any, y: Any) -> None:
        before.append(at(address(x), 1)[0])  # what the host sees that waits for nothing
        package.affine(address(x), address(y), 2.0, 0.0, x.size, stream)

    around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z).launch(3)
    assert z.numpy().tolist() == [8.5] * 4
    if in_process(session):  # the driver begins when somebody waits, and nobody has
        assert (waited, before) == ([], [1.0] * 3)
    else:
        assert (waited, before) == ([stream] * 3, [2.0, 3.0, 4.0])


def test_a_stream_that_begins_early_waits_for_what_comes_before(session: eagle.Session, package: Package) -> None:
    x, y, z = arrays(session)
    stream = package.stream()

    def double(x: Any, y: Any) -> None:
        package.affine(address(x), address(y), 2.0, 0.0, x.size, stream)
        package.wait(stream)  # for the sake of the test: nothing behind it has been enqueued yet
        assert at(address(y), 1)[0] == 2.0 * at(address(x), 1)[0]

    g = around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z)
    for number in range(2, 5):
        g.launch()
        assert z.numpy().tolist() == [2.0 * number + 0.5] * 4


class Tensor:
    """As torch's, whose memory goes to the next who asks once nobody has it."""

    def __init__(self) -> None:
        self.recorded: list[Any] = []

    def record_stream(self, stream: Any) -> None:
        self.recorded.append(stream)


def test_what_a_callable_returns_is_kept_until_the_launch_is_over_and_recorded_for_the_stream(
    session: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(session)
    stream = Stream(package.stream())
    alive: list[Any] = []
    while_running: list[bool] = []
    recorded: list[Any] = []

    def double(x: Any, y: Any) -> Any:
        while_running.extend(one() is not None for one in alive)
        package.affine(address(x), address(y), 2.0, 0.0, x.size, stream.cuda_stream)
        made = Tensor()
        made.recorded = recorded
        alive.append(weakref.ref(made))
        return {"between": [made]}

    around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z).launch(2)
    assert recorded == [stream] * 2
    assert while_running == [in_process(session)]  # a daemon's replay is over when the next one begins
    gc.collect()
    assert [one() for one in alive] == [None, None]


def test_of_many_replays_at_most_some_results_are_kept(session: eagle.Session, package: Package) -> None:
    x, y, z = arrays(session)
    stream = package.stream()
    alive: weakref.WeakSet[Tensor] = weakref.WeakSet()
    most: list[int] = []

    def double(x: Any, y: Any) -> Any:
        package.affine(address(x), address(y), 2.0, 0.0, x.size, stream)
        made = Tensor()
        alive.add(made)
        most.append(len(alive))
        return made

    around(opaque(double, reads={"x": x}, writes={"y": y}, stream=stream), x, y, z).launch(100)
    assert z.numpy().tolist() == [202.5] * 4
    assert (len(most), max(most)) == (100, 16 if in_process(session) else 1)
    assert not alive


def test_what_a_callable_with_a_stream_raises_ends_the_launch_and_the_graph_stays(
    session: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(session)
    fails = [True]

    def double(x: Any, y: Any) -> None:
        package.affine(address(x), address(y), 2.0, 0.0, x.size, 0)
        if fails.pop():
            raise ValueError("not today")

    g = around(opaque(double, reads={"x": x}, writes={"y": y}, stream=0), x, y, z)
    with pytest.raises(ValueError, match="not today"):
        g.launch()
    fails.append(False)
    if session._core.remote:
        for array in (x, y, z):
            session.accept(array)
    g.launch()
    assert z.numpy().tolist() == [6.5] * 4


def test_a_stream_in_a_loop_is_the_hosts_loop(session: eagle.Session, package: Package) -> None:
    x, y = session.full(4, 1.0, device=GPU), session.zeros(4, device=GPU)
    flag, count = session.full(1, 1, dtype="int64", device=GPU), session.zeros(1, dtype="int64", device=GPU)
    stream = package.stream()

    def double(x: Any, y: Any) -> None:
        package.affine(address(x), address(x), 2.0, 0.0, x.size, stream)

    body = opaque(double, reads={"x": x}, writes={"x": x, "y": y}, stream=stream)
    loop = eagle.repeat_while(body, eagle.SkipGuard.nonzero(flag), 3, iteration_index=count)
    g = eagle.Graph().add_node(loop).build()
    assert g.schedule == ("host_loop",)
    g.launch()
    assert (x.numpy().tolist(), int(count.item())) == ([8.0] * 4, 3)


# ---- captured callables


@pytest.mark.parametrize("parameters", [True, False], ids=["given_arrays", "without_parameters"])
def test_a_callable_is_captured_once_and_replayed(session: eagle.Session, package: Package, parameters: bool) -> None:
    x, y, z = arrays(session)
    calls: list[int] = []

    def enqueue() -> None:
        calls.append(current_stream())
        package.affine(address(x), address(y), 2.0, 0.0, x.size, current_stream())

    def given(x: Any, y: Any) -> None:
        assert type(x) is type(y) is eagle.Plane
        enqueue()

    fn = given if parameters else enqueue
    g = around(opaque(fn, reads={"x": x}, writes={"y": y}, captured=parameters, name="model"), x, y, z)
    assert g.schedule == by_host(session, "capture")
    assert len(calls) == (1 if in_process(session) else 0)  # by the build, or with the first launch
    assert x.numpy().tolist() == y.numpy().tolist() == [1.0] * 4  # nothing has run
    g.launch(2)
    g.launch()
    assert len(calls) == 1
    assert (y.numpy().tolist(), z.numpy().tolist()) == ([8.0] * 4, [8.5] * 4)
    assert "[" not in str(g).split("model")[1].splitlines()[0]  # a captured callable has no tag


def test_a_captured_callable_runs_where_its_edges_say_whatever_the_order(
    session: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(session)
    left, right = session.zeros(4, device=GPU), session.zeros(4, device=GPU)

    def times(factor: float, source: Any, target: Any) -> Any:
        return opaque(
            lambda: package.affine(address(source), address(target), factor, 1.0, 4, current_stream()),
            reads={"source": source},
            writes={"target": target},
        )

    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
    g.add_group([times(2.0, x, left), [times(3.0, x, right), times(10.0, right, y)]])
    g.add(eagle.plan(add_into).bind(x=left, y=y, z=z)).build()
    if in_process(session):
        assert g.schedule == ("cuda_graph", "capture", "cuda_graph")
    for number in range(2, 8):  # the fake driver draws another order each time
        g.launch()
        assert z.numpy().tolist() == [2.0 * number + 1.0 + 10.0 * (3.0 * number + 1.0) + 1.0] * 4


def test_a_captured_callable_in_a_loop_of_the_device(session: eagle.Session, package: Package) -> None:
    x = session.full(4, 1.0, device=GPU)
    flag, count = session.full(1, 1, dtype="int64", device=GPU), session.zeros(1, dtype="int64", device=GPU)
    body = opaque(
        lambda: package.affine(address(x), address(x), 2.0, 1.0, 4, current_stream()), reads={"x": x}, writes={"x": x}
    )
    g = (
        eagle.Graph()
        .add_node(eagle.repeat_while(body, eagle.SkipGuard.nonzero(flag), 4, iteration_index=count))
        .build()
    )
    assert g.schedule == (("cuda_graph",) if in_process(session) else ("host_loop",))
    g.launch()
    assert (x.numpy().tolist(), int(count.item())) == ([31.0] * 4, 4)


HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def test_what_bodies_of_conditionals_may_not_have_makes_the_conditional_the_hosts(
    local: eagle.Session, package: Package
) -> None:
    x = local.full(4, 1.0, device=GPU)
    flag = local.full(1, 1, dtype="int64", device=GPU)
    called: list[int] = []
    count = HostFunction(lambda _: called.append(1))

    def enqueue() -> None:
        package.affine(address(x), address(x), 2.0, 0.0, 4, current_stream())
        package.call_host(count, current_stream())

    node = opaque(enqueue, reads={"x": x}, writes={"x": x}, name="model")
    g = eagle.Graph().add_node(eagle.skippable(node, eagle.SkipGuard.nonzero(flag))).build()
    assert g.schedule == ("host_loop",)
    g.launch(2)
    assert (called, x.numpy().tolist()) == ([1, 1], [4.0] * 4)
    flag[0] = 0
    g.launch()
    assert (called, x.numpy().tolist()) == ([1, 1], [4.0] * 4)


def test_what_a_captured_graph_has_captured_stays_after_a_rebind_and_an_update(
    session: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(session)
    other = session.zeros(4, device=GPU)
    calls: list[int] = []

    def enqueue() -> None:
        calls.append(1)
        package.affine(address(x), address(y), 2.0, 0.0, x.size, current_stream())

    g = around(opaque(enqueue, reads={"x": x}, writes={"y": y}), x, y, z).launch()
    g.rebind({(2, "y"): other}).update({(2, "b"): 0.25}).launch()
    assert (z.numpy().tolist(), other.numpy().tolist(), calls) == ([4.5] * 4, [6.25] * 4, [1])


def test_an_array_that_nobody_has_any_more_stays_for_the_graph_that_captured_it(
    session: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(session)
    at_y = address(y)
    size = x.size
    at_x = address(x)
    node = opaque(lambda: package.affine(at_x, at_y, 2.0, 0.0, size, current_stream()), reads={"x": x}, writes={"y": y})
    g = around(node, x, y, z)
    del x, y, node
    gc.collect()
    g.launch()
    assert z.numpy().tolist() == [4.5] * 4


def refused(package: Package, how: str) -> Any:
    """Enqueues something, and does what no capture stands."""

    def fn(x: Any, y: Any) -> None:
        stream = current_stream()
        package.affine(address(x), address(y), 2.0, 0.0, x.size, stream)
        if how == "allocates":
            package.allocate()
        elif how == "allocates in the graph":
            package.allocate_on(stream)
        elif how == "waits":
            package.wait(stream)
        elif how == "waits and does not say so":
            with contextlib.suppress(DriverError):
                package.wait(stream)
        elif how == "reads":
            x.numpy()

    return fn


@pytest.mark.parametrize("how", ["allocates", "allocates in the graph", "waits", "waits and does not say so", "reads"])
def test_what_breaks_a_capture_is_refused_by_name_with_the_way_out(
    session: eagle.Session, package: Package, how: str
) -> None:
    x, y, z = arrays(session)
    node = opaque(refused(package, how), reads={"x": x}, writes={"y": y}, captured=True, name="model")

    def build_and_launch() -> None:
        around(node, x, y, z).launch()

    name = "node 'model': " if in_process(session) else ""
    with pytest.raises(eagle.GraphState, match=f"{name}it cannot be .*stream=.*eager=True"):
        build_and_launch()
    # The GPU is as it was.
    if session._core.remote:
        for array in (x, y, z):
            session.accept(array)
    fine = opaque(refused(package, ""), reads={"x": x}, writes={"y": y}, captured=True)
    around(fine, x, y, z).launch()


def test_a_callable_that_enqueues_nothing_is_refused_by_name(session: eagle.Session) -> None:
    x, y, z = arrays(session)
    node = opaque(lambda: None, reads={"x": x}, writes={"y": y}, name="idle")
    with pytest.raises(eagle.GraphState, match="it enqueued nothing on the stream that is captured"):
        around(node, x, y, z).launch()


def test_what_a_captured_callable_raises_itself_is_raised(session: eagle.Session) -> None:
    x, y, z = arrays(session)

    def fails(x: Any, y: Any) -> None:
        raise ZeroDivisionError("of its own")

    with pytest.raises(ZeroDivisionError, match="of its own"):
        around(opaque(fails, reads={"x": x}, writes={"y": y}, captured=True), x, y, z).launch()


def test_a_graph_that_is_built_within_a_capture_is_refused_and_nothing_hangs(
    local: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(local)

    def builds(x: Any, y: Any) -> None:
        around(opaque(refused(package, ""), reads={"x": x}, writes={"y": y}, captured=True), x, y, z)

    with pytest.raises(eagle.GraphState, match="builds a graph on the same GPU"):
        around(opaque(builds, reads={"x": x}, writes={"y": y}, captured=True), x, y, z)


def test_two_sessions_capture_one_after_the_other_and_what_is_freed_meanwhile_is_freed_afterwards(
    local: eagle.Session, package: Package
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    order: list[str] = []
    with eagle.local() as other:
        first, second = arrays(local), arrays(other)
        loose = [local.zeros(1000, device=GPU), other.zeros(1000, device=GPU)]

        def slow(x: Any, y: Any) -> None:
            begun.set()
            assert go_on.wait(60)
            order.append("first")
            loose.pop()  # by the thread that captures
            package.affine(address(x), address(y), 2.0, 0.0, x.size, current_stream())

        def quick(x: Any, y: Any) -> None:
            order.append("second")
            package.affine(address(x), address(y), 3.0, 0.0, x.size, current_stream())

        def build(fn: Any, over: list[Any]) -> eagle.Graph:
            return around(opaque(fn, reads={"x": over[0]}, writes={"y": over[1]}, captured=True), *over)

        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(build, slow, first)
            assert begun.wait(60)
            two = threads.submit(build, quick, second)
            loose.pop(0)  # by another thread, while the capture is under way
            gc.collect()
            go_on.set()
            one.result(60).launch()
            two.result(60).launch()
    assert order == ["first", "second"]
    assert first[2].numpy().tolist() == [4.5] * 4


def test_an_array_whose_last_owner_goes_is_there_for_what_a_stream_still_has_to_do(
    session: eagle.Session, package: Package
) -> None:
    x, y = session.full(4, 1.0, device=GPU), package.allocate()
    large = session.full(200_000, 3.0, device=GPU)  # a plane of its own
    stream = package.stream()
    for array, result in ((x, y), (large, y + 64)):
        package.affine(address(array), result, 2.0, 0.5, 4, stream)
    del x, large, array
    gc.collect()
    session.close()
    package.wait(stream)
    assert [at(result, 4).tolist() for result in (y, y + 64)] == [[2.5] * 4, [6.5] * 4]


def test_arrays_that_go_while_a_package_captures_leave_its_capture_alone(
    session: eagle.Session, package: Package
) -> None:
    x, y = session.full(4, 1.0, device=GPU), session.zeros(4, device=GPU)
    going = [session.zeros(size, device=GPU) for size in (4, 200_000)]
    assert all(address(array) for array in going)
    stream = package.stream()
    package.begin_capture(stream)
    package.affine(address(x), address(y), 2.0, 0.5, 4, stream)
    going.clear()  # as a collection of garbage may do it
    gc.collect()
    package.launch_graph(package.end_capture(stream), stream)
    package.wait(stream)
    assert y.numpy().tolist() == [2.5] * 4


# ---- graphs that a package captured


def test_a_captured_graph_with_its_handle_is_a_node(session: eagle.Session, package: Package) -> None:
    x, y, z = arrays(session)
    owner: Any = Replayed(package, x, y)
    g = around(child(owner, reads={"x": x}, writes={"y": y}, name="model"), x, y, z)
    assert g.schedule == by_host(session, "capture")
    assert "model [child]" in str(g)
    g.launch(3)
    assert owner.replays == (0 if in_process(session) else 3)
    assert z.numpy().tolist() == [40.5] * 4
    known = weakref.ref(owner)
    del owner
    gc.collect()
    assert known() is not None  # the graph keeps it
    g.launch()
    assert z.numpy().tolist() == [50.5] * 4


class Replayed(CapturedGraph):
    """What a daemon's graph needs, too."""

    replays = 0

    def replay(self) -> None:
        self.replays += 1
        stream = self.package.stream()
        self.package.launch_graph(self.raw_cuda_graph(), stream)


def test_an_owner_without_replay_is_refused_where_the_daemon_would_need_it(
    session: eagle.Session, package: Package
) -> None:
    x, y, z = arrays(session)
    g = around(child(CapturedGraph(package, x, y), reads={"x": x}, writes={"y": y}), x, y, z)
    if in_process(session):
        g.launch()
        return
    with pytest.raises(TypeError, match="CapturedGraph has a CUDA graph and no method replay"):
        g.launch()


@pytest.mark.parametrize("again", [False, True], ids=["reset", "captured_again"])
def test_a_launch_after_a_reset_or_another_capture_is_refused_by_name(
    local: eagle.Session, package: Package, again: bool
) -> None:
    x, y, z = arrays(local)
    owner = CapturedGraph(package, x, y)
    g = around(child(owner, reads={"x": x}, writes={"y": y}, name="model"), x, y, z).launch()
    owner.reset()
    if again:
        owner.capture(x, y, 100.0)
    said = "captured again since this graph was built.*; build" if again else "reset since.*capture it again, and build"
    for _ in range(2):
        with pytest.raises(eagle.GraphState, match=f"launch: node 'model': its owner was {said} the graph anew"):
            g.launch()
    assert z.numpy().tolist() == [20.5] * 4
    if again:
        around(child(owner, reads={"x": x}, writes={"y": y}), x, y, z).launch()
        assert z.numpy().tolist() == [300.5] * 4


def test_a_reset_owner_is_refused_by_the_build(local: eagle.Session, package: Package) -> None:
    x, y, z = arrays(local)
    owner = CapturedGraph(package, x, y)
    node = child(owner, reads={"x": x}, writes={"y": y}, name="model")
    owner.reset()
    with pytest.raises(eagle.GraphState, match="node 'model': its owner has no CUDA graph now"):
        around(node, x, y, z)


def test_conditional_nodes_within_a_child_are_refused_by_the_build(local: eagle.Session, package: Package) -> None:
    x, y, z = arrays(local)
    owner = CapturedGraph(package, x, y)
    package.add_conditional(owner.raw_cuda_graph())
    with pytest.raises(eagle.GraphState, match=r"node 'model': it cannot be part of a CUDA graph: .*conditional node"):
        around(child(owner, reads={"x": x}, writes={"y": y}, name="model"), x, y, z)


# ---- graphs that only their owner can replay


def test_a_captured_graph_that_is_given_to_nobody_is_replayed_by_its_owner(session: eagle.Session) -> None:
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


def test_one_that_was_reset_says_so_itself(session: eagle.Session) -> None:
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


@pytest.mark.parametrize("given_away", [False, True])
def test_an_array_that_has_moved_since_is_refused_by_its_name(
    session: eagle.Session, package: Package, given_away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z = arrays(session)
    owner: Any = Replayed(package, x, y) if given_away else Captured(x, y)
    g = around(child(owner, reads={"x": x}, writes={"y": y}), x, y, z)
    found = _core.on_device
    monkeypatch.setattr(_core, "on_device", lambda *about: (found(*about)[0] + 256, *found(*about)[1:]))
    with pytest.raises(eagle.EagleError, match=r"child: 'x' lies at another address .* capture it again"):
        g.launch()
    assert owner.replays == 0


# ---- callables that get values


@pytest.mark.parametrize("kind", ["captured", "eager"])
def test_other_callables_get_values_and_the_schedule_says_so(session: eagle.Session, kind: str) -> None:
    x, y, z = arrays(session)

    def double(x: Any, y: Any) -> None:
        assert type(x) is np.ndarray
        y[...] = 2.0 * x

    g = around(opaque(double, reads={"x": x}, writes={"y": y}, eager=kind == "eager"), x, y, z)
    assert g.schedule == ("cuda_graph", "eager_host" if kind == "eager" else "host_call", "cuda_graph")
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
