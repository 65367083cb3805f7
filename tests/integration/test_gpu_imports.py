"""Memory on a GPU that another package made, as arrays of a session: a stand-in plays the package, on the fake driver.

What it frees holds other values from then on, in every process: so freeing too early shows.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eagle
import grpc
import numpy as np
import pytest
from eagle import Mutable, Scalar, Table, _core, kernel
from eagle.interop import import_buffer
from frameworks import Framework, Shown
from harness import Daemon, children, new_token, python_script, tcp_endpoint, wait_until
from models import add_into, affine
from stubs import session_at

MIB = 1 << 20

pytestmark = pytest.mark.usefixtures("fake_gpus")


@kernel
def weighted(x: Scalar, w: Table[Scalar], y: Mutable[Scalar]):
    y = w.at(0) * x + w.at(1)


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


@pytest.fixture
def framework(fake_gpus: None) -> Framework:
    return Framework()


# ---- the memory itself


def test_an_array_of_another_package_is_computed_on_where_it_lies(session: eagle.Session, framework: Framework) -> None:
    x = framework.array([1.0, 2.0, 3.0])
    shared = session.share(x, name="speed")
    assert isinstance(shared, eagle.Plane)
    assert (shared.device, shared.shape, shared.dtype, shared.read_only) == ("cuda:0", (3,), np.dtype(float), False)
    assert session.plane("speed") is shared
    assert shared.transport == ("cuda_import" if session._core.remote else "pointer")
    g = eagle.Graph().add(eagle.plan(affine).bind(x=shared, y=shared, a=2.0, b=0.5)).build()
    g.launch(2)
    assert g.backend == "cuda:0"
    assert x.values.tolist() == shared.numpy().tolist() == [5.5, 9.5, 13.5]
    x.values[0] = -1.0
    assert float(shared[0]) == -1.0
    shared[1:] = [7.0, 8.0]
    assert x.values.tolist() == [-1.0, 7.0, 8.0]
    assert shared.__cuda_array_interface__["data"] == (x.pointer, False)
    assert shared[1:].__cuda_array_interface__["data"] == (x.pointer + 8, False)


def test_import_buffer_takes_the_current_session(session: eagle.Session, framework: Framework) -> None:
    x = framework.array([1.0, 2.0])
    assert import_buffer(x, session=session).session is session
    with pytest.raises(ValueError, match="writable: its owner says that it is read-only"):
        import_buffer(read_only(framework), {"writable": True}, session)
    with session:
        taken = import_buffer(x)
        assert isinstance(taken, eagle.Plane)
        assert taken.session is session


def read_only(framework: Framework) -> Shown:
    x = framework.array([1.0, 2.0])
    x.more["data"] = (x.pointer, True)
    return x


def test_any_view_lies_where_it_does_at_its_owners(session: eagle.Session, framework: Framework) -> None:
    whole = framework.array(np.arange(24.0).reshape(4, 6))
    values = whole.values
    part = Shown(whole.pointer + 8 * (3 * 6 + 5), (2, 3), "<f8", strides=(-96, -16), owner=whole)  # from the end on
    shared = session.share(part)
    assert shared.numpy().tolist() == values[::-2, ::-2].tolist()
    shared[1, 2] = 99.0
    assert values[1, 1] == 99.0


def test_arrays_on_two_gpus_stay_where_they_are(session: eagle.Session) -> None:
    there = Framework(1).array([1.0, 2.0])
    assert session.share(there).device == "cuda:1"


def test_arrays_of_one_allocation_are_imported_side_by_side(session: eagle.Session, framework: Framework) -> None:
    pool = framework.array(np.arange(8.0))
    parts = [session.share(Shown(pool.pointer + 32 * i, (4,), "<f8", owner=pool)) for i in range(2)]
    eagle.plan(add_into).bind(x=parts[0], y=parts[0], z=parts[1]).launch()
    assert pool.values.tolist() == [0.0, 1.0, 2.0, 3.0, 0.0, 2.0, 4.0, 6.0]


def test_the_same_bytes_are_the_same_array_and_others_are_slices(session: eagle.Session, framework: Framework) -> None:
    x = framework.array(np.arange(4.0))
    first, second = session.share(x), session.share(x)
    g = eagle.Graph().add(eagle.plan(affine).bind(x=first, y=first, a=1.0, b=1.0))
    g.add(eagle.plan(affine).bind(x=second, y=second, a=10.0, b=0.0)).build()
    assert {(edge.src, edge.dst) for edge in g.edges()} == {(0, 1)}
    with pytest.raises(ValueError, match="import the larger one, and bind slices of it") as refused:
        session.share(Shown(x.pointer + 8, (2,), "<f8", owner=x))
    assert refused.value.reason == "PLANE_OVERLAP"


def test_who_gives_the_same_bytes_later_keeps_them_as_well(session: eagle.Session, framework: Framework) -> None:
    x = framework.array([1.0, 2.0])
    alive = weakref.ref(x)
    first = session.share(Shown(x.pointer, (2,), "<f8"))  # which does not keep them
    y = session.zeros(2, device="cuda:0")
    g = eagle.Graph().add(eagle.plan(affine).bind(x=first, y=y, a=1.0, b=1.0)).build()
    second = session.share(x)
    del x, second
    gc.collect()
    assert first.numpy().tolist() == [1.0, 2.0]
    g.launch()
    assert y.numpy().tolist() == [2.0, 3.0]
    del g, first
    gc.collect()
    wait_until(lambda: alive() is None, "the owner to go")


class Tensor:
    """As torch's: it has a storage, and may be given another one."""

    requires_grad = False

    def __init__(self, storage: Shown) -> None:
        self.storage = storage

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.storage.__cuda_array_interface__

    def detach(self) -> Tensor:
        return type(self)(self.storage)


class TensorOfToday(Tensor):
    def untyped_storage(self) -> Shown:
        return self.storage


@pytest.mark.parametrize("kind", [Tensor, TensorOfToday])
def test_the_storage_that_a_tensor_had_is_kept(
    session: eagle.Session, framework: Framework, kind: type[Tensor]
) -> None:
    tensor, other = kind(framework.array([1.0, 2.0])), framework.array([8.0, 9.0])
    alive = weakref.ref(tensor.storage)
    shared = session.share(tensor)
    tensor.storage = other  # t.data = other
    gc.collect()
    assert shared.numpy().tolist() == [1.0, 2.0]
    y = session.zeros(2, device="cuda:0")
    with pytest.raises(eagle.GraphState, match="its owner has other memory now"):
        eagle.Graph().add(eagle.plan(affine).bind(x=shared, y=y, a=1.0, b=0.0)).build().launch()
    gc.collect()
    del shared
    gc.collect()
    wait_until(lambda: alive() is None, "the storage to go")


class Donated:
    """An array of jax: who donates it gives its memory back, unless a capsule has it."""

    __module__ = "jax.stand_in"

    def __init__(self, plane: Any) -> None:
        self.plane = plane

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.plane.__cuda_array_interface__, "stream": None}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.plane.__dlpack_device__()

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.plane.__dlpack__()


def test_an_array_of_jax_keeps_its_memory_when_it_is_donated(session: eagle.Session, framework: Framework) -> None:
    with eagle.local() as theirs:
        x = Donated(theirs.share(framework.array([1.0, 2.0])))
        shared = session.share(x)
        x.plane = None
        gc.collect()
        assert shared.read_only
        assert shared.numpy().tolist() == [1.0, 2.0]


def test_an_array_of_the_session_that_comes_back_is_itself(fake_gpus: None) -> None:
    with eagle.local() as session:
        x = session.zeros(8, device="cuda:0", name="speed")
        x[...] = np.arange(8.0)
        first = x.__cuda_array_interface__["data"][0]
        again = session.share(Shown(first, (8,), "<f8", owner=x))
        part = session.share(Shown(first + 56, (3,), "<f8", strides=(-16,), owner=x))
        assert part.numpy().tolist() == [7.0, 5.0, 3.0]
        assert len(session.planes()) == 1
        g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
        g.add(eagle.plan(affine).bind(x=again, y=again, a=10.0, b=0.0))
        tail = session.share(Shown(first + 40, (3,), "<f8", owner=x))
        g.add(eagle.plan(affine).bind(x=tail, y=tail, a=1.0, b=0.5)).build().launch()
        assert {(edge.src, edge.dst) for edge in g.edges()} >= {(0, 1), (1, 2)}
        assert x.numpy().tolist() == [10.0, 20.0, 30.0, 40.0, 50.0, 60.5, 70.5, 80.5]
        assert part.__cuda_array_interface__["data"][0] == first + 56
        beyond = Shown(first + 32, (8,), "<f8", owner=x)
        with pytest.raises(ValueError, match=r"some with the array 'speed' of 64 bytes on cuda:0.*itself") as refused:
            session.share(beyond)
        assert refused.value.reason == "PLANE_OVERLAP"


def test_what_must_not_be_changed_is_not(session: eagle.Session, framework: Framework) -> None:
    x = read_only(framework)
    shared = session.share(x)
    assert shared.read_only
    y = session.zeros(2, device="cuda:0")
    eagle.plan(affine).bind(x=shared, y=y, a=2.0, b=0.0).launch()
    assert y.numpy().tolist() == [2.0, 4.0]
    with pytest.raises(eagle.EagleError) as refused:
        eagle.plan(affine).bind(x=y, y=shared, a=2.0, b=0.0).launch()
    assert refused.value.reason == "READ_ONLY_ARRAY"
    with pytest.raises(eagle.EagleError, match="its memory is not to be changed"):
        shared[0] = 1.0
    assert x.values.tolist() == [1.0, 2.0]


class Exporting:
    """An array that speaks DLPack alone."""

    def __init__(self, session: eagle.Session, plane: Any, versioned: bool) -> None:
        self._plane, self._versioned = plane, versioned
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._plane.__dlpack_device__()

    def __dlpack__(self, stream: Any = None, **more: Any) -> Any:
        if more and not self._versioned:
            raise TypeError("an exporter of an earlier standard")
        self.streams.append(stream)
        return self._plane.__dlpack__(**more)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_will_do(session: eagle.Session, framework: Framework, versioned: bool) -> None:
    x = framework.array([1.0, 2.0, 3.0])
    with eagle.local() as other:
        exporting = Exporting(other, other.share(x)[1:], versioned)
        shared = session.share(exporting)
        assert exporting.streams == [1]
        # Whether it may be changed an earlier capsule does not say.
        assert shared.numpy().tolist() == [2.0, 3.0]
        if versioned:
            shared[0] = 5.0
            assert x.values.tolist() == [1.0, 5.0, 3.0]


# ---- what its owner has under way


@pytest.mark.parametrize(
    ("more", "waited"),
    [
        ({"stream": None}, []),
        ({"stream": 1}, [1]),
        ({"stream": 2}, [2]),
        ({"version": 2}, [None]),  # which says nothing of streams: all of the GPU
    ],
)
def test_the_stream_that_the_owner_names_is_waited_for(
    framework: Framework, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], waited: list[Any]
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(_core, "wait_for_stream", lambda uuid, stream: found.append((uuid[:4], stream)))
    with eagle.local() as session:
        session.share(framework.array([1.0], **more))
    assert found == [("GPU-", stream) for stream in waited]


def test_a_stream_that_is_none_is_named(session: eagle.Session, framework: Framework) -> None:
    with pytest.raises(TypeError, match="stream 0, which the interface does not allow"):
        session.share(framework.array([1.0], stream=0))
    with pytest.raises(eagle.EagleError, match="cuStreamSynchronize: CUDA_ERROR_INVALID_HANDLE"):
        session.share(framework.array([1.0], stream=12345))


# ---- how long it stays


def test_the_owner_is_kept_until_nobody_computes_there(session: eagle.Session, framework: Framework) -> None:
    x = framework.array([1.0, 2.0])
    alive = weakref.ref(x)
    shared = session.share(x)
    g = eagle.Graph().add(eagle.plan(affine).bind(x=shared, y=shared, a=2.0, b=0.0)).build()
    result = shared[1:]
    del x, shared
    gc.collect()
    g.launch()
    assert result.numpy().tolist() == [4.0]
    del result
    gc.collect()
    g.launch()
    owner = alive()
    assert owner is not None
    assert owner.values.tolist() == [4.0, 8.0]
    del owner, g

    def is_gone() -> bool:
        gc.collect()
        return alive() is None

    wait_until(is_gone, "the worker to let go of the memory, and then its owner to go")


def test_an_array_of_a_closed_session_goes_with_its_last_use(
    gpu_daemon: Callable[..., Daemon], framework: Framework
) -> None:
    x = framework.array([1.0, 2.0])
    alive = weakref.ref(x)
    session = eagle.connect(gpu_daemon().endpoint)
    shared = session.share(x)
    session.close()
    del x, shared, session
    gc.collect()
    wait_until(lambda: alive() is None, "the owner to go")


def test_the_next_worker_opens_it_anew(gpu_daemon: Callable[..., Daemon], framework: Framework) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x = framework.array([1.0, 2.0])
        alive = weakref.ref(x)
        shared = session.share(x)
        os.kill(daemon.pid, signal.SIGKILL)
        wait_until(lambda: children(daemon.process.pid) not in ([], [daemon.pid]), "another worker")
        with pytest.raises(eagle.EagleError, match="lost with its worker"):
            shared.numpy()
        del shared
        gc.collect()
        assert session.share(x).numpy().tolist() == [1.0, 2.0]  # the next worker opens it
        del x
        gc.collect()
        wait_until(lambda: alive() is None, "the owner to go")


def test_a_table_of_weights_is_refreshed_in_place(session: eagle.Session, framework: Framework) -> None:
    weights = framework.array([2.0, 1.0])
    x = session.asarray([1.0, 2.0, 3.0], device="cuda:0")
    w = import_buffer(weights, session=session)
    y = session.zeros(3, device="cuda:0")
    g = eagle.Graph().add(eagle.plan(weighted).bind(x=x, w=w, y=y)).build().launch()
    assert y.numpy().tolist() == [3.0, 5.0, 7.0]
    weights.values[...] = [10.0, 0.5]
    g.launch()
    assert y.numpy().tolist() == [10.5, 20.5, 30.5]


def test_a_launch_after_the_owners_pointer_moved_is_refused(session: eagle.Session, framework: Framework) -> None:
    weights = framework.array([2.0, 1.0])
    x = session.asarray([1.0, 2.0], device="cuda:0")
    w = import_buffer(weights, session=session)
    y = session.zeros(2, device="cuda:0")
    g = eagle.Graph().add(eagle.plan(weighted).bind(x=x, w=w[:], y=y), name="model").build().launch()
    before, other = weights.pointer, framework.array([3.0, 4.0])
    weights.pointer = other.pointer
    with pytest.raises(eagle.GraphState, match=r"node 'model': plane 'w'.*its owner has other memory now") as refused:
        g.launch()
    assert hex(before) in str(refused.value)
    g.rebind({"model.w": import_buffer(other, session=session)})
    g.launch()
    assert y.numpy().tolist() == [7.0, 10.0]
    weights.pointer = before


def test_publishing_copies_what_its_owner_may_free(gpu_daemon: Callable[..., Daemon], framework: Framework) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        x = framework.array([1.0, 2.0])
        published = session.publish(session.share(x), "speed")
        opened = other.open("speed")
        x.values[0] = -1.0
        assert published.numpy().tolist() == opened.numpy().tolist() == [1.0, 2.0]


def test_two_sessions_over_the_same_memory_wait_for_each_other(
    gpu_daemon: Callable[..., Daemon], framework: Framework
) -> None:
    daemon = gpu_daemon()
    x = framework.array(np.zeros(1000))
    with eagle.connect(daemon.endpoint) as one, eagle.connect(daemon.endpoint) as two:
        graphs = []
        for session in (one, two):
            shared = session.share(x)
            graphs.append(eagle.Graph().add(eagle.plan(affine).bind(x=shared, y=shared, a=1.0, b=1.0)).build())
        for _ in range(10):
            for g in graphs:
                g.enqueue(3)
            for g in graphs:
                g.synchronize()
    assert (x.values == 60.0).all()


def test_it_counts_for_no_budget(gpu_daemon: Callable[..., Daemon], framework: Framework) -> None:
    with eagle.connect(gpu_daemon("--device-budget", "2M").endpoint) as session:
        y = session.zeros(4, device="cuda:0")
        shared = session.share(framework.array(np.arange(4.0)))
        assert [(plane.transport, plane.device) for plane in session.planes()][1] == ("cuda_import", "cuda:0")
        eagle.plan(affine).bind(x=shared, y=y, a=1.0, b=1.0).launch()
        assert y.numpy().tolist() == [1.0, 2.0, 3.0, 4.0]


# ---- what goes wrong


@pytest.mark.parametrize("made", ["pooled", "mapped"])
def test_memory_that_no_other_process_may_open_is_refused_with_the_cure(
    gpu_daemon: Callable[..., Daemon], framework: Framework, made: str
) -> None:
    x = framework.array([1.0], pooled=True) if made == "pooled" else Shown(framework.map(2 * MIB), (4,), "<f8")
    with eagle.connect(gpu_daemon().endpoint) as session:
        with pytest.raises(ValueError, match=r"cudaMallocAsync.*make it with cudaMalloc.*zeros\(\.\.\., device"):
            session.share(x)
        assert session.zeros(1, device="cuda:0").size == 1
    with eagle.local() as session:  # where nobody has to open it
        session.share(x)[0] = 5.0
        assert x.values[0] == 5.0


def test_bytes_that_leave_their_allocation_are_refused(session: eagle.Session, framework: Framework) -> None:
    x = framework.array(np.zeros(4))
    beyond = Shown(x.pointer + 16, (3,), "<f8", owner=x)
    with pytest.raises(ValueError, match=r"24 bytes from 0x.* reach out of their allocation, which has 32 bytes"):
        session.share(beyond)


def test_an_address_that_is_no_gpus_is_refused(session: eagle.Session) -> None:
    host = np.zeros(4)
    with pytest.raises(ValueError, match="is no memory of a GPU in this process"):
        session.share(Shown(host.ctypes.data, (4,), "<f8"))


def test_an_array_without_elements_is_refused(session: eagle.Session, framework: Framework) -> None:
    with pytest.raises(ValueError, match=r"of shape \(0, 3\) has no element"):
        session.share(framework.array(np.zeros((0, 3))))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mask": object()}, "a mask"),
        ({"version": 1}, "of version 1; expected 2 or 3"),
        ({"typestr": ">f8"}, "whose bytes are in the other order"),
        ({"typestr": "what"}, "__cuda_array_interface__: TypeError"),
        ({"shape": None}, "__cuda_array_interface__: TypeError"),
        ({"strides": (8, 8)}, r"strides of \(8, 8\)"),
    ],
)
def test_interfaces_that_are_none_are_named(
    session: eagle.Session, framework: Framework, more: dict[str, Any], said: str
) -> None:
    x = framework.array([1.0, 2.0])
    x.more.update(more)
    with pytest.raises(TypeError, match=said):
        session.share(x)


def test_memory_of_a_gpu_that_the_daemon_does_not_use_is_refused_by_name(
    gpu_daemon: Callable[..., Daemon], framework: Framework
) -> None:
    named = pytest.raises(eagle.MixedDevices, match=r"GPU-5a5a.*cannot be imported.*cuda:1 \(fake GPU 1, GPU-1111")
    with eagle.connect(gpu_daemon(pretend="devices=2,uuid=17").endpoint) as session, named:
        session.share(framework.array([1.0]))


def test_over_tcp_there_is_no_import(gpu_daemon: Callable[..., Daemon], framework: Framework) -> None:
    token, row = new_token("one")
    tokens = Path(gpu_daemon().path.parent / "tokens")
    tokens.write_text(row + "\n")
    daemon = gpu_daemon("--listen", "dns:127.0.0.1:0", "--tokens", str(tokens))
    cure = pytest.raises(ValueError, match="cannot be imported over TCP; connect to the daemon's unix socket")
    with eagle.connect(tcp_endpoint(daemon), auth=token) as session, cure:
        session.share(framework.array([1.0]))


def test_what_a_client_that_died_had_made_is_let_go(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = gpu_daemon()
    script = tmp_path / "client.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import eagle, frameworks\n"
        "session = eagle.connect(sys.argv[1], lease=3600)\n"
        "shared = session.share(frameworks.Framework().array([1.0, 2.0]))\n"
        "print(session.resume_token, flush=True)\n"
        "input()\n"
    )
    client = python_script(script, daemon.endpoint, environment={}, stdin=-1)
    assert client.stdout
    token = client.stdout.readline().strip()
    client.kill()
    client.wait()
    client.communicate()
    with eagle.connect(daemon.endpoint, resume=token) as session:
        wait_until(lambda: not session.planes(), "the import to be let go, though its session has a lease")


def test_a_client_that_says_too_much_of_its_memory_is_refused(
    gpu_daemon: Callable[..., Daemon], framework: Framework
) -> None:
    x = framework.array(np.arange(4.0))
    handle = ctypes.create_string_buffer(64)
    framework.call("cuIpcGetMemHandle", handle, ctypes.c_uint64(x.pointer))
    uuid = _core.gpu_of(x.pointer)
    with session_at(gpu_daemon().path) as service:

        def create(allocation: int, offset: int, size: int) -> Any:
            memory = {"uuid": uuid, "ipc": handle.raw, "allocation": allocation, "offset": offset, "bytes": size}
            return service.call("Planes.Create", planes=[{"bytes": size, "import": memory}])

        for allocation, offset, size in ((1 << 40, 32, 1 << 30), (64, 32, 32), (32, 16, 24), (32, 1 << 63, 1 << 63)):
            with pytest.raises(grpc.RpcError, match="expected"):
                create(allocation, offset, size)
        assert create(32, 16, 16).planes[0].device == "cuda:0"


# ---- a driver that takes long


def test_a_slow_driver_holds_up_who_waits_for_it_alone_and_is_named(
    gpu_daemon: Callable[..., Daemon], framework: Framework, tmp_path: Path
) -> None:
    config = tmp_path / "eagled.toml"
    config.write_text("[limits]\nimport_ms = 50\n")
    daemon = gpu_daemon("--config", str(config), pretend="devices=2,slow_open=1500")
    x = framework.array([1.0, 2.0])
    with eagle.connect(daemon.endpoint) as session:
        with pytest.raises(eagle.DeadlineExceeded, match=r"on cuda:0 \(fake GPU 0.*50 ms \(cuIpcOpenMemHandle\)"):
            session.share(x)
        y = session.zeros(2, device="cuda:0")  # while the driver is still at it
        y[...] = [3.0, 4.0]
        eagle.plan(affine).bind(x=y, y=y, a=2.0, b=0.0).launch()
        assert y.numpy().tolist() == [6.0, 8.0]
    patient = gpu_daemon(pretend="devices=2,slow_open=300")
    with eagle.connect(patient.endpoint) as session:
        assert session.share(x).numpy().tolist() == [1.0, 2.0]


def test_a_client_whose_driver_is_slow_is_told_so_and_asks_again(
    gpu_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    daemon = gpu_daemon(pretend="devices=2,descriptors=0")
    script = tmp_path / "client.py"
    script.write_text(
        "import sys, eagle\n"
        "with eagle.connect(sys.argv[1], timeout=0.5) as session:\n"
        "    x, y = session.full(3, 1.5, device='cuda:0'), session.full(3, 2.5, device='cuda:0')\n"
        "    try:\n"
        "        x.__cuda_array_interface__\n"
        "    except eagle.DeadlineExceeded as error:\n"
        "        print(error)\n"
        "    print(y.numpy().tolist())\n"  # by the daemon, meanwhile
        "    while True:\n"
        "        try:\n"
        "            there = y.__cuda_array_interface__['data'][0] - x.__cuda_array_interface__['data'][0]\n"
        "            break\n"
        "        except eagle.DeadlineExceeded:\n"
        "            pass\n"
        "    print(there, [plane.opened_by for plane in session.planes()])\n"
    )
    pretend = {"EAGLE_FAKE_CUDA": "devices=2,descriptors=0,slow_open=2000"}
    client = python_script(script, daemon.endpoint, environment=pretend)
    out, err = client.communicate(timeout=60)
    assert client.returncode == 0, err
    said, values, opened = out.splitlines()
    assert "the array on cuda:0 of the daemon: the driver has not opened the memory within 500 ms" in said
    assert "(cuIpcOpenMemHandle)" in said
    assert values == "[2.5, 2.5, 2.5]"
    assert opened == "256 [1]"


def test_an_operator_switches_imports_off(
    gpu_daemon: Callable[..., Daemon], framework: Framework, tmp_path: Path
) -> None:
    config = tmp_path / "eagled.toml"
    config.write_text("[limits]\nimport_ms = 0\n")
    daemon = gpu_daemon("--config", str(config))
    with eagle.connect(daemon.endpoint) as session:
        with pytest.raises(eagle.EagleError, match=r"import_ms = 0.*copy the values") as refused:
            session.share(framework.array([1.0, 2.0]))
        assert refused.value.reason == "PERMISSION_DENIED"
        assert session.full(2, 1.0, device="cuda:0").numpy().tolist() == [1.0, 1.0]
