"""Arrays in GPU memory that the daemon owns and clients open, on the fake driver: memory there is a memfd, so that what
one process stores another one sees, and what was freed too early shows.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import eagle
import numpy as np
import pytest
from eagle import _core
from eagle.graph import opaque
from harness import ROOT, Daemon, children, eaglectl, new_token, python_script, tcp_endpoint, wait_until
from models import affine

MIB = 1 << 20
GPU_0 = "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a00"
WAYS = {"cuda_vmm_fd": "devices=2,descriptors=1", "cuda_ipc": "devices=2,descriptors=0"}

pytestmark = pytest.mark.usefixtures("fake_gpus")


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


def seen(plane: eagle.Plane) -> np.ndarray:
    """The array that CUDA in this process has: memory of the fake driver can be looked at."""
    return _core.import_dlpack(plane.__dlpack__(max_version=(1, 0)))[0]


# ---- arrays


def test_an_array_on_a_gpu_holds_values(session: eagle.Session) -> None:
    x = session.zeros((3, 4), device="cuda:1", name="field")
    assert isinstance(x, eagle.Plane)
    assert (x.device, x.shape, x.dtype, x.nbytes) == ("cuda:1", (3, 4), np.dtype(float), 96)
    assert repr(x) == "<eagle.Plane float64 (3, 4) on cuda:1>"
    assert not x.numpy().any()
    x[...] = np.arange(12.0).reshape(3, 4)
    x[1] = 7.5  # one number for many elements
    x[:, ::2] = [[-1.0, -2.0]] * 3  # elements that lie apart
    expected = np.arange(12.0).reshape(3, 4)
    expected[1], expected[:, ::2] = 7.5, [[-1.0, -2.0]] * 3
    assert x.numpy().tolist() == expected.tolist()
    assert x.T[::-1, 1:].numpy().tolist() == expected.T[::-1, 1:].tolist()
    assert float(x[2, 3]) == 11.0
    assert np.asarray(x).sum() == expected.sum()
    assert session.plane("field") is x


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_every_dtype_goes_there_and_back(session: eagle.Session, dtype: str) -> None:
    values = (np.arange(1000) % 3).astype(dtype)
    x = session.asarray(values, device="cuda:0")
    assert x.dtype == values.dtype
    assert x.numpy().tolist() == values.tolist()
    assert session.full(5, 1, dtype=dtype, device="cuda").numpy().tolist() == np.full(5, 1, dtype).tolist()
    assert session.empty((0, 3), dtype=dtype, device="cuda").numpy().shape == (0, 3)


def test_asarray_leaves_an_array_where_it_is_wanted(session: eagle.Session) -> None:
    x = session.asarray([1.0, 2.0], device="cuda:0")
    assert session.asarray(x) is x
    assert session.asarray(x, device="cuda:0") is x
    assert session.asarray(x, device="cuda") is x
    other = session.asarray(x, device="cuda:1")
    assert other.device == "cuda:1"
    assert other.numpy().tolist() == [1.0, 2.0]
    host = session.asarray(x, device="cpu")
    assert np.asarray(host).tolist() == [1.0, 2.0]
    assert not isinstance(host, eagle.Plane)
    assert session.owns(x)


def test_a_large_array_goes_in_pieces(session: eagle.Session) -> None:
    values = np.random.default_rng(5).integers(0, 255, 9 * MIB, dtype=np.int64)
    x = session.zeros(values.size, dtype=np.int64, device="cuda:0")
    told: list[int] = []
    x.send(values, progress=lambda done, all: told.append(done))
    assert told[-1] == values.nbytes
    assert (x.numpy() == values).all()


# ---- for CUDA in this process


def check_is_opened(x: eagle.Plane) -> None:
    interface = x.__cuda_array_interface__
    assert interface["version"] == 3
    assert interface["shape"] == x.shape
    pointer, read_only = interface["data"]
    assert not read_only
    assert ctypes.c_double.from_address(pointer).value == 0.0
    ctypes.c_double.from_address(pointer).value = 4.5
    assert float(x[0, 0]) == 4.5
    assert x.__dlpack_device__() == (2, 0)
    here = seen(x)
    here[1] = [1.0, 2.0, 3.0]
    assert x.numpy().tolist() == [[4.5, 0.0, 0.0], [1.0, 2.0, 3.0]]
    x[1, 2] = 9.0
    assert here[1, 2] == 9.0
    # Views lie where they do in the array.
    assert seen(x[1, ::2]).tolist() == [1.0, 9.0]
    assert x[1].__cuda_array_interface__["data"][0] == pointer + 24
    assert x[:, 1].__cuda_array_interface__["strides"] == (24,)
    assert x.__cuda_array_interface__["strides"] is None


@pytest.mark.parametrize("way", WAYS)
def test_a_client_opens_the_memory_that_the_daemon_owns(gpu_daemon: Callable[..., Daemon], way: str) -> None:
    with eagle.connect(gpu_daemon(pretend=WAYS[way]).endpoint) as session:
        x = session.zeros((2, 3), device="cuda:0")
        assert x.transport == way
        assert ("descriptor" in x.transport_why) == (way == "cuda_ipc")
        assert [plane.opened_by for plane in session.planes()] == [0]
        check_is_opened(x)
        row = session.planes()[0]
        assert (row.device, row.transport, row.opened_by) == ("cuda:0", way, 1)


def test_in_process_it_is_the_pointer_itself() -> None:
    with eagle.local() as session:
        x = session.zeros((2, 3), device="cuda:0")
        assert x.transport == "pointer"
        assert session.planes()[0].device == "cuda:0"
        check_is_opened(x)


def test_a_capsule_keeps_the_memory(session: eagle.Session) -> None:
    x = session.asarray([1.0, 2.0, 3.0], device="cuda:0")
    here = seen(x)
    legacy, states_access = _core.import_dlpack(x.__dlpack__())
    assert not states_access
    untaken = x.__dlpack__(max_version=(1, 0))
    del x, untaken
    assert here.tolist() == legacy.tolist() == [1.0, 2.0, 3.0]


def test_what_a_capsule_cannot_say_is_refused(session: eagle.Session) -> None:
    x = session.zeros(4, device="cuda:0")
    with pytest.raises(BufferError, match="a copy is asked for"):
        x.__dlpack__(copy=True)
    with pytest.raises(BufferError, match=r"on DLPack device \(2, 0\), not on \(1, 0\)"):
        x.__dlpack__(dl_device=(1, 0))


def test_memory_of_the_host_has_no_cuda_interface(gpu_daemon: Callable[..., Daemon]) -> None:
    token, row = new_token("one")
    tokens = Path(gpu_daemon().path.parent / "tokens")
    tokens.write_text(row + "\n")
    daemon = gpu_daemon("--listen", "dns:127.0.0.1:0", "--tokens", str(tokens))
    with eagle.connect(tcp_endpoint(daemon), auth=token) as session:
        assert not hasattr(session.zeros(3), "__cuda_array_interface__")
        # Over TCP an array on a GPU is had by its values.
        x = session.asarray([1.0, 2.0], device="cuda:0")
        assert (x.device, x.transport) == ("cuda:0", "copy")
        assert x.numpy().tolist() == [1.0, 2.0]
        with pytest.raises(eagle.EagleError, match="cannot be opened over TCP"):
            x.__dlpack_device__()


# ---- whose memory it is


@pytest.mark.parametrize("way", WAYS)
def test_memory_that_somebody_has_open_is_not_freed(gpu_daemon: Callable[..., Daemon], way: str) -> None:
    daemon = gpu_daemon(pretend=WAYS[way])
    owner, other = eagle.connect(daemon.endpoint), eagle.connect(daemon.endpoint)
    x = owner.publish(owner.asarray([1.0, 2.0], device="cuda:0"), "speed")
    y = other.open("speed")
    assert isinstance(y, eagle.Plane)
    assert (y.device, y.transport) == ("cuda:0", way)
    here = seen(y)
    del x
    owner.close()
    assert here.tolist() == [1.0, 2.0]
    here[0] = 5.0
    assert y.numpy().tolist() == [5.0, 2.0]
    # The session ends before the array: the process still has it open.
    other.close()
    assert here.tolist() == [5.0, 2.0]
    with eagle.connect(daemon.endpoint) as third:
        third.asarray(np.zeros(1000), device="cuda:0")  # in other memory
    assert here.tolist() == [5.0, 2.0]


def test_part_of_an_array_is_published_as_a_copy_on_its_gpu(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon().endpoint) as session:
        x = session.asarray(np.arange(10.0), device="cuda:1")
        part = session.publish(x[1::3], "part")
        assert isinstance(part, eagle.Plane)
        assert part.device == "cuda:1"
        x[1] = -1.0
        assert part.numpy().tolist() == [1.0, 4.0, 7.0]
        session.withdraw("part")


def test_moving_bytes_away_on_a_gpu_is_refused(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon().endpoint) as session:
        session.publish(session.zeros(4, device="cuda:0"), "speed")
        with pytest.raises(eagle.EagleError, match="cannot be moved away from who has opened it"):
            session.withdraw("speed", seal_off=True)


def test_planes_of_a_client_that_is_killed_are_freed(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = gpu_daemon("--device-budget", "4M", pretend=WAYS["cuda_ipc"])
    script = tmp_path / "client.py"
    script.write_text(
        "import sys, eagle\n"
        "session = eagle.connect(sys.argv[1])\n"
        "x = session.zeros(4 << 17, device='cuda:0')\n"
        "print(x.__cuda_array_interface__['data'][0] != 0, flush=True)\n"
        "input()\n"
    )
    client = python_script(script, daemon.endpoint, environment={}, stdin=-1)
    assert client.stdout
    assert client.stdout.readline() == "True\n"
    with eagle.connect(daemon.endpoint) as session:
        with pytest.raises(MemoryError, match=r"4194304 of its budget of 4194304"):
            session.zeros(1, device="cuda:0")
        client.kill()
        client.wait()

        def fits() -> bool:
            try:
                return session.zeros(1, device="cuda:0").size == 1
            except MemoryError:
                return False

        wait_until(fits, "the memory of a client that was killed")
    client.communicate()


# ---- small arrays, which lie together


def test_small_arrays_share_what_the_smallest_piece_takes(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon("--device-budget", "2M").endpoint) as session:
        arrays = [session.full(10, float(i), device="cuda:0", name=f"a{i}") for i in range(100)]
        assert [(plane.nbytes, plane.name) for plane in session.planes()] == [(2 * MIB, "small arrays")]
        assert [x.numpy().tolist() for x in arrays] == [[float(i)] * 10 for i in range(100)]
        pointers = {x.__cuda_array_interface__["data"][0] for x in arrays}
        assert len(pointers) == 100
        assert all(pointer % 256 == 0 for pointer in pointers)
        assert max(pointers) - min(pointers) < 2 * MIB
        assert [plane.opened_by for plane in session.planes()] == [1]
        # A graph over several of them has the edges of their bytes, and the array beside stays as it is.
        g = eagle.Graph().add(eagle.plan(affine).bind(x=arrays[1], y=arrays[2], a=3.0, b=0.0))
        g.add(eagle.plan(affine).bind(x=arrays[2], y=arrays[4], a=2.0, b=1.0)).build().launch()
        assert {(edge.src, edge.dst) for edge in g.edges()} == {(0, 1)}
        assert [float(x[9]) for x in arrays[:6]] == [0.0, 1.0, 3.0, 3.0, 7.0, 5.0]


def test_a_callable_gets_small_arrays_by_their_values(session: eagle.Session) -> None:
    x, y, z = (session.full(4, value, device="cuda:0") for value in (1.0, 2.0, 3.0))

    def double(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = 2.0 * x

    eagle.Graph().add_node(opaque(double, reads={"x": x}, writes={"y": y})).build().launch()
    assert [float(one[3]) for one in (x, y, z)] == [1.0, 2.0, 3.0]


def test_memory_that_is_used_again_is_zeros(session: eagle.Session) -> None:
    for _ in range(3):
        x = session.zeros(1000, device="cuda:0")
        assert not x.numpy().any()
        x[...] = 7.0
        del x


def test_what_is_kept_for_small_arrays_makes_room_for_large_ones(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon("--device-budget", "4M").endpoint) as session:
        small = session.full(10, 1.0, device="cuda:0")
        del small
        large = session.zeros(4 * MIB // 8, device="cuda")
        assert [plane.nbytes for plane in session.planes()] == [4 * MIB]
        del large
        again = session.full(10, 2.0, device="cuda")  # another name of the same GPU
        beside = session.full(10, 3.0, device="cuda:0")
        assert again.size == beside.size
        assert [plane.nbytes for plane in session.planes()] == [2 * MIB]


@pytest.mark.parametrize("way", WAYS)
def test_who_opens_a_small_array_of_another_session_sees_nothing_beside_it(
    gpu_daemon: Callable[..., Daemon], way: str
) -> None:
    daemon = gpu_daemon(pretend=WAYS[way])
    with eagle.connect(daemon.endpoint) as owner, eagle.connect(daemon.endpoint) as other:
        before, x, behind = (owner.full(32, value, device="cuda:0") for value in (7.0, 1.0, 7.0))
        own = other.full(32, 5.0, device="cuda:0")  # in a segment of that session's own
        published = owner.publish(x, "speed", mode="rw")
        opened = other.open("speed")
        assert isinstance(opened, eagle.Plane)
        pointer = opened.__cuda_array_interface__["data"][0]
        allocation = np.frombuffer((ctypes.c_uint8 * (2 * MIB)).from_address(pointer), float)
        assert allocation[:32].tolist() == [1.0] * 32
        assert not allocation[32:].any()
        allocation[0] = 9.0
        allocation[32:] = 3.0
        assert float(published[0]) == 9.0
        assert [one.numpy().tolist() for one in (before, behind, own)] == [[7.0] * 32, [7.0] * 32, [5.0] * 32]


# ---- accounts


def test_each_gpu_has_a_budget_of_its_own(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon("--device-budget", "4M")
    with eagle.connect(daemon.endpoint) as session:
        first = session.zeros(MIB // 8, device="cuda:0")
        second = session.zeros(2 * MIB // 8, device="cuda:0")
        with pytest.raises(MemoryError, match=r"does not fit on cuda:0 \(fake GPU 0, GPU-.*--device-budget") as refused:
            session.zeros(1, device="cuda:0")
        assert refused.value.reason == "PLANE_BUDGET"
        other = session.zeros(1, device="cuda:1")
        del first
        third = session.zeros(1, device="cuda:0")
        metrics = eaglectl("--endpoint", daemon.endpoint, "metrics").stdout
        assert 'eagled_gpu_plane_bytes{device="cuda:0"' in metrics
        planes = eaglectl("--endpoint", daemon.endpoint, "planes").stdout
        assert "cuda:0" in planes
        assert "cuda:1" in planes
        assert second.size + other.size + third.size > 0


def test_a_gpu_whose_memory_others_have_refuses_with_both_sizes_and_loses_nothing(
    gpu_daemon: Callable[..., Daemon],
) -> None:
    daemon = gpu_daemon("--device-budget", "1G", pretend="bytes=6000000")
    with eagle.connect(daemon.endpoint) as session:
        x = session.asarray(np.arange(1000.0), device="cuda:0")
        with pytest.raises(MemoryError, match="3902848 bytes free of 6000000, and 80000000 were asked for") as refused:
            session.zeros(10_000_000, device="cuda:0")
        assert refused.value.reason == "OUT_OF_MEMORY"
        assert (x.numpy() == np.arange(1000.0)).all()
        y = session.full(10, 2.0, device="cuda:0")
        assert y.numpy().tolist() == [2.0] * 10


def test_a_tenant_has_a_quota_of_gpu_memory(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    config = tmp_path / "eagled.toml"
    config.write_text(f'[[tenant]]\nprincipal = "uid:{os.getuid()}"\ngpu_bytes = "2M"\n')
    with eagle.connect(gpu_daemon("--config", str(config)).endpoint) as session:
        x = session.zeros(1, device="cuda:0")
        with pytest.raises(eagle.EagleError, match="tenant_gpu_bytes"):
            session.zeros(1, device="cuda:1")
        assert x.size == 1


# ---- what goes wrong


def test_a_gpu_that_this_process_does_not_see_is_named(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = gpu_daemon()
    script = tmp_path / "client.py"
    script.write_text(
        "import sys, eagle\n"
        "session = eagle.connect(sys.argv[1])\n"
        "x = session.full(3, 1.5, device='cuda:0')\n"
        "try:\n"
        "    x.__cuda_array_interface__\n"
        "except eagle.EagleError as error:\n"
        "    print(error.reason, error)\n"
        "print(x.numpy().tolist())\n"
    )

    def said(**environment: str) -> str:
        client = python_script(script, daemon.endpoint, environment=environment)
        out, err = client.communicate(timeout=60)
        assert client.returncode == 0, err
        return out

    other = said(EAGLE_FAKE_CUDA="uuid=17")
    assert other.startswith("MIXED_DEVICES")
    assert GPU_0 in other
    assert "GPU-11111111" in other
    assert "CUDA_VISIBLE_DEVICES" in other
    assert other.endswith("[1.5, 1.5, 1.5]\n")
    none = said(EAGLE_CUDA_DRIVER="/nowhere/libcuda.so.1")
    assert "no CUDA driver" in none
    assert "install NVIDIA's driver" in none
    assert none.endswith("[1.5, 1.5, 1.5]\n")


def test_a_daemon_without_a_driver_names_the_cure(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon(EAGLE_CUDA_DRIVER="/nowhere/libcuda.so.1").endpoint) as session:
        with pytest.raises(RuntimeError, match=r"device 'cuda:0': no CUDA driver.*install NVIDIA's driver"):
            session.zeros(3, device="cuda:0")
        assert session.zeros(3).tolist() == [0.0] * 3


def test_devices_that_are_none_are_refused_with_those_that_are(gpu_daemon: Callable[..., Daemon]) -> None:
    with eagle.connect(gpu_daemon().endpoint) as session:
        with pytest.raises(ValueError, match=r"device 'cuda:7': there is none.*cuda:1 \(fake GPU 1"):
            session.zeros(3, device="cuda:7")
        with pytest.raises(ValueError, match="device 'tpu': expected 'cpu', 'cuda:0'"):
            session.zeros(3, device="tpu")
        assert session.zeros(3, device=GPU_0).device == "cuda:0"
    none = pytest.raises(ValueError, match=r"device 'cuda:0': there is none.*nvidia-smi")
    with eagle.connect(gpu_daemon(pretend="devices=0").endpoint) as session, none:
        session.zeros(3, device="cuda:0")


def test_an_operator_chooses_the_gpus(gpu_daemon: Callable[..., Daemon]) -> None:
    none = pytest.raises(ValueError, match="--devices none")
    with eagle.connect(gpu_daemon("--devices", "none").endpoint) as session, none:
        session.zeros(3, device="cuda")
    with eagle.connect(gpu_daemon("--devices", GPU_0[:-1] + "1").endpoint) as session:
        assert session.zeros(3, device="cuda").device == "cuda:1"
        with pytest.raises(ValueError, match="device 'cuda:0': there is none"):
            session.zeros(3, device="cuda:0")


def test_a_graph_of_the_cpu_refuses_an_array_on_a_gpu_by_both_names(session: eagle.Session) -> None:
    x, y = session.zeros(3, device="cuda:0", name="speed"), session.zeros(3, name="place")
    with pytest.raises(eagle.MixedDevices, match=r"'speed' lies on cuda:0"):
        eagle.plan(affine).bind(x=x, y=y, a=1.0, b=1.0).launch()


def test_what_lay_on_a_gpu_is_lost_with_the_worker_and_named(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x, y = session.zeros(3, device="cuda:0"), session.full(3, 2.0)
        os.kill(daemon.pid, signal.SIGKILL)
        wait_until(lambda: children(daemon.process.pid) not in ([], [daemon.pid]), "another worker")
        with pytest.raises(eagle.EagleError, match="lost with its worker: make the array again"):
            x.numpy()
        assert y.tolist() == [2.0] * 3
        again = session.full(3, 1.0, device="cuda:0")
        assert again.numpy().tolist() == [1.0] * 3
        del x
        assert again.numpy().tolist() == [1.0] * 3


def test_the_programs_of_the_page_run(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    page = (ROOT / "docs/manual/gpu.md").read_text()
    program = tmp_path / "page.py"
    program.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)))
    ran = python_script(program, environment={"EAGLE_ENDPOINT": gpu_daemon().endpoint})
    _, err = ran.communicate(timeout=60)
    assert ran.returncode == 0, err
