"""Graphs over arrays on a GPU, in process and in a daemon, on the fake driver: the CPU's bits, reports, refusals."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable
from pathlib import Path

import eagle
import numpy as np
import pytest
from eagle.graph import opaque
from harness import Daemon, eaglectl, wait_until
from models import add_into, affine

pytestmark = pytest.mark.usefixtures("fake_gpus")


@eagle.kernel
def wind(
    x: eagle.Scalar,
    y: eagle.Scalar,
    k: eagle.Index,
    u: eagle.Mutable[eagle.Scalar],
    v: eagle.Mutable[eagle.Scalar],
    a: eagle.Param,
):
    u, v = x, y
    while eagle.bounded(40) and u * u < 9.0:
        u = u * 1.125 + a * v / (1.0 + x * x)
        v = v - u * 0.25
        if k % 3 == 0:
            v = v + eagle.math.exp(-u * u)


@eagle.kernel
def histogram(key: eagle.Index, weight: eagle.Scalar, h: eagle.Accum[eagle.Scalar]):
    h.add(weight, at=key)


@eagle.kernel
def doubled(x: eagle.Scalar) -> eagle.Scalar:
    y = 2.0 * x
    return y  # noqa: RET504  # it names the plane


GPU = "cuda:0"
MIB = 1 << 20


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


def test_a_graph_runs_where_its_arrays_are(session: eagle.Session) -> None:
    x = session.asarray(np.arange(100.0), device=GPU)
    y, z = session.zeros(100, device=GPU), session.zeros(100, device=GPU)
    g = eagle.Graph()
    g.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0), name="scale")
    g.add(eagle.plan(add_into).bind(x=x, y=y, z=z), name="sum")
    g.build()
    assert (g.backend, g.schedule) == (GPU, ("cuda_graph", "cuda_graph"))
    assert "backend: cuda:0" in str(g)
    g.launch(3)
    assert g.report is not None
    assert g.report.launches == 3
    assert (y.numpy() == 2.0 * np.arange(100.0) + 1.0).all()
    assert (z.numpy() == 3.0 * np.arange(100.0) + 1.0).all()
    assert [(edge.src, edge.dst) for edge in g.edges()] == [(0, 1)]
    assert "cuda_graph" in str(g.explain("sum"))
    g.update({"a": -1.0})
    g.launch()
    assert (y.numpy() == -1.0 * np.arange(100.0) + 1.0).all()


def test_the_bits_are_the_cpus(session: eagle.Session) -> None:
    generator = np.random.default_rng(11)
    x, y = generator.normal(size=200), generator.normal(size=200)
    k = generator.integers(0, 7, 200)

    def run(**where: str) -> list[np.ndarray]:
        arrays = {name: session.asarray(value, **where) for name, value in (("x", x), ("y", y), ("k", k))}
        outputs = {name: session.zeros(200, **where) for name in ("u", "v")}
        total = session.zeros(1, **where)
        g = eagle.Graph()
        g.add(eagle.plan(wind).bind(**arrays, **outputs, a=1.25))
        g.add_node(eagle.graph.reduce(outputs["u"], total))
        g.build().launch()
        return [np.asarray(array) for array in (*outputs.values(), total)]

    for cpu, gpu in zip(run(), run(device=GPU), strict=True):
        assert cpu.tobytes() == gpu.tobytes()


def test_planes_are_bound_again(session: eagle.Session) -> None:
    x, y = session.full(10, 1.0, device=GPU), session.zeros(10, device=GPU)
    other = session.full(10, 5.0, device=GPU)
    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=0.0)).build()
    g.update({"b": 3.0})
    g.rebind(x=other)
    del x
    g.launch()
    assert y.numpy().tolist() == [13.0] * 10  # the number that was given stays
    with pytest.raises(eagle.MixedDevices, match=r"memory of the host.*lies on cuda:0"):
        g.rebind(x=session.zeros(10))


def test_launches_are_enqueued(session: eagle.Session) -> None:
    x = session.zeros(4, device=GPU)
    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build()
    g.enqueue(300)  # more than are under way at a time
    g.synchronize()
    assert x.numpy().tolist() == [300.0] * 4


def test_a_callable_sees_what_kernels_stored_and_they_what_it_stores(session: eagle.Session) -> None:
    x, y, z = (session.full(4, 1.0, device=GPU) for _ in range(3))
    seen: list[list[float]] = []

    def double(y: np.ndarray, x: np.ndarray) -> None:
        seen.append(x.tolist())
        y[...] = 2.0 * x

    g = eagle.Graph()
    g.add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
    g.add_node(opaque(double, reads={"x": x}, writes={"y": y}))
    g.add(eagle.plan(affine).bind(x=y, y=z, a=1.0, b=0.5))
    g.build()
    assert g.schedule == ("cuda_graph", "host_call", "cuda_graph")
    g.launch(2)
    assert seen == [[2.0] * 4, [3.0] * 4]
    assert (y.numpy().tolist(), z.numpy().tolist()) == ([6.0] * 4, [6.5] * 4)


def test_a_callable_that_raises_leaves_the_graph_launchable(session: eagle.Session) -> None:
    x = session.zeros(4, device=GPU)
    calls: list[int] = []

    def fails_once(x: np.ndarray) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("mine")

    g = eagle.Graph()
    g.add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
    g.add_node(opaque(fails_once, reads={"x": x}))
    g.build()
    with pytest.raises(KeyError, match="mine"):
        g.launch(3)
    if session._core.remote:
        session.accept(x)  # the launch stopped in the middle of a replay
    g.launch()
    assert x.numpy().tolist() == [2.0] * 4


def test_scratch_lies_on_the_gpu(session: eagle.Session) -> None:
    x, y = session.full(10, 1.0, device=GPU), session.zeros(10, device=GPU)
    g = eagle.Graph()
    between = g.scratch(10)
    g.add(eagle.plan(affine).bind(x=x, y=between, a=2.0, b=1.0))
    g.add(eagle.plan(affine).bind(x=between, y=y, a=10.0, b=0.0))
    g.build().launch()
    assert y.numpy().tolist() == [30.0] * 10


@pytest.mark.parametrize("pretend", ["version=12040", "version=12010"])
def test_loops_are_the_devices_or_the_hosts(gpu_daemon: Callable[..., Daemon], pretend: str) -> None:
    with eagle.connect(gpu_daemon(pretend=pretend).endpoint) as session:
        x, left = session.zeros(4, device=GPU), session.asarray(np.array([3]), device=GPU)
        index, one = session.zeros(1, dtype=np.int64, device=GPU), session.zeros(1, device=GPU)
        body = [eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)]
        loop = eagle.repeat_while(body, eagle.SkipGuard.nonzero(left), 7, iteration_index=index)
        g = eagle.Graph().add_node(loop).add_node(eagle.copy(index, one)).build()
        assert g.schedule[0] == ("cuda_graph" if pretend == "version=12040" else "host_loop")
        g.launch()
        assert x.numpy().tolist() == [7.0] * 4
        assert one.numpy().tolist() == [7.0]


# ---- what a graph makes there for itself


def held(daemon: Daemon) -> tuple[int, int]:
    """Bytes on the first GPU: of its budget, and of the tenant's."""
    info = daemon.info()
    return info["gpus"][0]["plane_bytes"], info["tenants"][0]["gpu_bytes"]


def through_scratch(session: eagle.Session, x: eagle.Plane, y: eagle.Plane, name: str) -> eagle.Graph:
    g = eagle.Graph(name=name)
    between = g.scratch(x.size)
    g.scratch(x.size)  # nobody touches it
    g.add(eagle.plan(affine).bind(x=x, y=between, a=2.0, b=1.0), name="into")
    return g.add(eagle.plan(affine).bind(x=between, y=y, a=10.0, b=0.0), name="out")


def test_scratch_and_notes_count_for_the_gpus_budget_and_go_with_their_graph(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x, y = session.full(1001, 1.0, device=GPU), session.zeros(1001, device=GPU)
        key, into = session.asarray(np.arange(1001) % 7, device=GPU), session.zeros(7, device=GPU)
        planes = 2 * MIB  # small arrays lie together
        assert held(daemon) == (planes, planes)
        g = through_scratch(session, x, y, "scratch").build().launch()
        scratch = 8192  # 8,008 bytes, in pieces of 256
        assert held(daemon) == (planes + scratch, planes + scratch)
        h = eagle.Graph(name="notes").add(eagle.plan(histogram).bind(key=key, weight=x, h=into)).build().launch()
        assert into.numpy().tolist() == [143.0] * 7
        rows = {
            row["name"]: row for row in json.loads(eaglectl("--endpoint", daemon.endpoint, "--json", "graphs").stdout)
        }
        notes = rows["notes"]["scratch_bytes"]
        assert rows["scratch"]["scratch_bytes"] == scratch
        assert notes >= 1001 * 16  # an element and a value each
        assert held(daemon) == (planes + scratch + notes, planes + scratch + notes)
        g.rebind({"into.x": y, "out.y": x})
        assert held(daemon) == (planes + scratch + notes, planes + scratch + notes)
        text = eaglectl("--endpoint", daemon.endpoint, "info").stdout
        assert "ON GPUS" in text
        del g
        gc.collect()  # a scratch plane knows its graph
        wait_until(lambda: held(daemon) == (planes + notes, planes + notes), "the scratch planes to go")
        del h
        wait_until(lambda: held(daemon) == (planes, planes), "the notes to go")


@pytest.mark.parametrize("apart", [False, True])
def test_a_graph_over_other_arrays_has_the_scratch_that_it_had(gpu_daemon: Callable[..., Daemon], apart: bool) -> None:
    """Three MiB of scratch in five: two graphs of them do not fit. Over arrays that overlap otherwise they are two."""
    daemon = gpu_daemon("--device-budget", "5M")
    with eagle.connect(daemon.endpoint) as session:
        arrays = [session.zeros(4, device=GPU) for _ in range(4)]
        x, y, other, target = arrays
        x[...], other[...] = 1.0, 10.0
        g = eagle.Graph()
        between = g.scratch(393_216)
        g.add(eagle.plan(affine).bind(x=x, y=between[:4], a=2.0, b=0.0), name="up")
        g.add(eagle.plan(affine).bind(x=between[:4], y=y, a=1.0, b=1.0), name="down")
        g.add(eagle.plan(affine).bind(x=x, y=target, a=1.0, b=0.0), name="beside")
        g.build().update({"up.a": 3.0})
        before = held(daemon)
        if apart:  # 'beside' reads what 'down' writes
            with pytest.raises((eagle.EagleError, MemoryError), match="--device-budget"):
                g.rebind({"beside.x": y})
        else:
            g.rebind({"up.x": other, "beside.x": other, "down.y": y})
        assert held(daemon) == before
        g.launch()
        assert y.numpy().tolist() == [4.0 if apart else 31.0] * 4
        assert target.numpy().tolist() == [1.0 if apart else 10.0] * 4


@pytest.mark.parametrize("bound", ["tenant_gpu_bytes", "--device-budget"])
def test_a_graph_whose_scratch_is_too_much_for_the_gpu_is_refused_with_sizes(
    gpu_daemon: Callable[..., Daemon], tmp_path: Path, bound: str
) -> None:
    options = ["--device-budget", "5M"]
    if bound == "tenant_gpu_bytes":
        config = tmp_path / "eagled.toml"
        config.write_text(f'[[tenant]]\nprincipal = "uid:{os.getuid()}"\ngpu_bytes = "5M"\n')
        options = ["--config", str(config)]
    daemon = gpu_daemon(*options)
    with eagle.connect(daemon.endpoint) as session:
        x, y = session.full(MIB // 4, 1.0, device=GPU), session.zeros(MIB // 4, device=GPU)
        g = through_scratch(session, x, y, "large")
        with pytest.raises((eagle.EagleError, MemoryError), match=bound) as refused:
            g.build()
        for size in (2 * MIB, 4 * MIB, 5 * MIB):
            assert str(size) in str(refused.value)
        assert held(daemon) == (4 * MIB, 4 * MIB)
        through_scratch(session, x[:1000], y[:1000], "small").build().launch()
        assert y[:2].numpy().tolist() == [30.0, 30.0]


# ---- refusals


def test_a_host_plane_in_a_device_graph_is_refused_by_both_names(session: eagle.Session) -> None:
    x, y = session.zeros(3, device=GPU, name="speed"), session.zeros(3, name="place")
    with pytest.raises(eagle.MixedDevices) as refused:
        eagle.Graph().add(eagle.plan(affine).bind(x=x, y=y, a=1.0, b=1.0), name="move").build()
    for words in ("'move'", "'y'", "'place'", "memory of the host", "'speed'", "cuda:0 (fake GPU 0", "device="):
        assert words in str(refused.value)


def test_arrays_on_two_gpus_are_refused_by_both(session: eagle.Session) -> None:
    x, y = session.zeros(3, device="cuda:0"), session.zeros(3, device="cuda:1")
    with pytest.raises(eagle.MixedDevices, match=r"cuda:0 \(fake GPU 0.*cuda:1 \(fake GPU 1"):
        eagle.Graph().add(eagle.plan(affine).bind(x=x, y=y, a=1.0, b=1.0)).build()


def test_the_backend_is_what_was_meant(session: eagle.Session) -> None:
    def graph(**where: str) -> eagle.Graph:
        x = session.zeros(3, **where)
        return eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))

    assert graph(device=GPU).build(backend="gpu").backend == GPU
    assert graph().build(backend="cpu").backend == "cpu"
    with pytest.raises(eagle.MixedDevices, match="lies on a GPU"):
        graph(device=GPU).build(backend="cpu")
    with pytest.raises(eagle.MixedDevices, match="live in host memory"):
        graph().build(backend="gpu")


def test_outputs_and_masks_that_nobody_gives_are_made_where_the_arrays_lie(session: eagle.Session) -> None:
    bound = eagle.plan(doubled).bind(x=session.full(3, 2.0, device=GPU))
    assert bound.planes["y"].device == GPU
    assert bound.launch().planes["y"].numpy().tolist() == [4.0] * 3


def test_an_operator_sees_where_a_graph_runs(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(3, device=GPU)
        g = eagle.Graph(name="drift").add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build().launch()
        assert "backend: cuda:0" in eaglectl("--endpoint", daemon.endpoint, "show", "drift").stdout
        assert g.backend == GPU


def test_two_sessions_build_and_launch_at_once(gpu_daemon: Callable[..., Daemon]) -> None:
    from harness import Beside

    daemon = gpu_daemon()

    def work(number: int) -> list[float]:
        with eagle.connect(daemon.endpoint) as session:
            x = session.full(50, float(number), device=GPU)
            g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build()
            for _ in range(10):
                g.launch()
            return x.numpy().tolist()

    beside = [Beside(lambda number=number: work(number)) for number in range(4)]
    for number, one in enumerate(beside):
        assert one.result() == [number + 10.0] * 50
