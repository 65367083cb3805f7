"""`eagle.interop.import_buffer` with objects of every protocol."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import ClassVar

import eagle
import numpy as np
import pytest
from conftest import address
from eagle import Mutable, Scalar, Table, kernel


class Exporter:
    """What an object of another library shows: some protocols of an array, and nothing else."""

    def __init__(self, **shown):
        self._shown = shown

    def __getattr__(self, name):
        try:
            return self._shown[name]
        except KeyError:
            raise AttributeError(name) from None


def legacy(values):
    """DLPack as it was before versions: its exporter knows no arguments."""
    return Exporter(__dlpack__=lambda: values.__dlpack__(), __dlpack_device__=values.__dlpack_device__)


def versioned(values):
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("numpy before 2.1 exports legacy capsules alone")
    return Exporter(__dlpack__=lambda **given: values.__dlpack__(**given), __dlpack_device__=values.__dlpack_device__)


@pytest.mark.parametrize("exporter", [legacy, versioned])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "i2", "c16", "?"])
def test_dlpack_gives_the_same_memory(exporter, dtype):
    values = np.ones((3, 4), dtype)[::2, ::-1]
    found = eagle.interop.import_buffer(exporter(values))
    assert address(found) == address(values)
    assert found.strides == values.strides
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    values[0, 0] = 0
    assert not found[0, 0]


def test_a_versioned_capsule_says_who_may_write():
    values = np.zeros(3)
    assert eagle.interop.import_buffer(versioned(values)).flags.writeable
    values.flags.writeable = False
    assert not eagle.interop.import_buffer(versioned(values)).flags.writeable


def test_a_legacy_capsule_of_somebody_unknown_is_read_only():
    assert not eagle.interop.import_buffer(legacy(np.zeros(3))).flags.writeable


def test_an_array_without_elements():
    assert eagle.interop.import_buffer(legacy(np.zeros((0, 3)))).shape == (0, 3)


def test_the_memory_is_given_back_with_the_last_array():
    class Watched(np.ndarray):
        pass

    import weakref

    values = np.zeros(8).view(Watched)
    gone = weakref.ref(values)
    found = eagle.interop.import_buffer(legacy(values))
    part = found[2:]
    del values, found
    assert gone() is not None
    assert part.sum() == 0
    del part
    assert gone() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(6.0),
        lambda: array.array("d", range(6)),
        lambda: memoryview(bytearray(48)).cast("d"),
        lambda: (ctypes.c_double * 6)(),
        lambda: Exporter(__array_interface__=np.arange(6.0).__array_interface__),
    ],
    ids=["numpy", "array", "memoryview", "ctypes", "__array_interface__"],
)
def test_other_protocols_give_the_same_memory(make):
    owner = make()
    found = eagle.interop.import_buffer(owner)
    assert found.shape == (6,)
    assert found.dtype == np.float64
    assert found.flags.writeable
    if not isinstance(owner, Exporter):
        owner[2] = 9.0
        assert found[2] == 9.0


def test_bytes_are_read_only_and_a_map_of_memory_is_not():
    assert not eagle.interop.import_buffer(b"1234").flags.writeable
    with mmap.mmap(-1, 64) as memory:
        found = eagle.interop.import_buffer(memory)
        found[0] = 7
        assert memory[0] == 7
        del found


def test_all_failures_are_in_one_message():
    class Nothing:
        pass

    with pytest.raises(TypeError) as caught:
        eagle.interop.import_buffer(Nothing())
    message = str(caught.value)
    assert message.startswith("import_buffer: a ")
    assert "Nothing shows its memory in no way" in message
    for protocol in (
        "numpy.ndarray: ",
        "__dlpack__: ",
        "__array_interface__: ",
        "buffer protocol: ",
        "__cuda_array_interface__: ",
    ):
        assert f"\n  {protocol}" in message
    with pytest.raises(TypeError, match=r"copy it once: session\.asarray"):
        eagle.interop.import_buffer([1.0, 2.0])


def test_each_failure_says_why():
    def broken(**given):
        raise BufferError("gradients are watched")

    odd = Exporter(
        __dlpack__=broken,
        __dlpack_device__=lambda: (1, 0),
        __array_interface__={"version": 3, "shape": (2,), "typestr": "|O"},
    )
    with pytest.raises(TypeError) as caught:
        eagle.interop.import_buffer(odd)
    assert "__dlpack__: BufferError: gradients are watched" in str(caught.value)
    assert "__array_interface__: " in str(caught.value)
    assert "__array_interface__: not there" not in str(caught.value)


@pytest.mark.parametrize(("kind", "name"), [(10, "a ROCm GPU"), (99, "a device of kind 99")])
def test_memory_of_a_device_is_refused_with_the_way_out(kind, name):
    class OnDevice:
        def __dlpack__(self, **given):
            raise AssertionError("nobody asks for memory that cannot be used")

        def __dlpack_device__(self):
            return kind, 0

    with pytest.raises(TypeError) as caught:
        eagle.interop.import_buffer(OnDevice())
    message = str(caught.value)
    assert f"it is on {name}" in message
    assert "x.cpu()" in message


def test_memory_of_a_cuda_gpu_needs_a_driver(monkeypatch):
    class OnCuda:
        __cuda_array_interface__: ClassVar = {"shape": (2,), "typestr": "<f8", "data": (1 << 40, False), "version": 3}

    monkeypatch.setenv("EAGLE_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    with pytest.raises(RuntimeError, match=r"no CUDA driver.*install NVIDIA's driver"):
        eagle.interop.import_buffer(OnCuda())


def test_a_capsule_of_the_future_and_a_copy_are_refused():
    copied = Exporter(
        __dlpack__=lambda **given: np.zeros(2).__dlpack__(copy=True, max_version=(1, 0)),
        __dlpack_device__=lambda: (1, 0),
    )
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("numpy before 2.1 exports legacy capsules alone")
    with pytest.raises(TypeError, match="__dlpack__: it would export a copy"):
        eagle.interop.import_buffer(copied)


def test_what_is_required_is_checked_at_once():
    with pytest.raises(ValueError, match="is not what is required") as caught:
        eagle.interop.import_buffer(b"12345678", {"dtype": "f8", "shape": (1,), "writable": True, "contiguous": True})
    message = str(caught.value)
    assert "dtype: expected float64, found uint8" in message
    assert "shape: expected (1,), found (8,)" in message
    assert "writable: " in message
    assert "contiguous" not in message
    assert eagle.interop.import_buffer(np.zeros((2, 2)), {"contiguous": True, "shape": (2, 2)}).shape == (2, 2)
    with pytest.raises(ValueError, match="expected dtype, shape, writable, contiguous, found 'type'"):
        eagle.interop.import_buffer(b"", {"type": "f8"})


@kernel
def look_up(x: Mutable[Scalar], t: Table[Scalar]):
    x = x + t.at(1)


def test_weights_are_refreshed_in_place():
    weights = array.array("d", [0.0, 2.0])
    with eagle.local(threads=1) as session:
        x = session.zeros(4)
        g = eagle.Graph().add(eagle.plan(look_up).bind(x=x, t=eagle.interop.import_buffer(weights))).build().launch()
        weights[1] = 10.0
        g.launch()
        assert x.tolist() == [12.0] * 4


class Model:
    """Somebody's weights, who may get others."""

    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


def bound(session, model):
    x = session.zeros(4)
    return x, eagle.plan(look_up).bind(x=x, t=eagle.interop.import_buffer(model))


def test_a_launch_after_the_owner_moved_is_refused_by_name():
    model = Model(np.array([0.0, 2.0]))
    with eagle.local(threads=1) as session:
        x, plan = bound(session, model)
        g = eagle.Graph().add(plan, name="model").build().launch()
        old, model.values = model.values, np.array([0.0, 5.0])
        with pytest.raises(
            eagle.GraphState, match=r"launch: node 'model': plane 't' is bound to memory that a .*Model had"
        ):
            g.launch()
        with pytest.raises(eagle.GraphState, match="enqueue: node 'model'"):
            g.enqueue()
        with pytest.raises(eagle.GraphState, match="node 'look_up': plane 't'"):
            plan.launch()
        assert x.tolist() == [2.0] * 4
        g.rebind({"model.t": eagle.interop.import_buffer(model)}).launch()
        assert x.tolist() == [7.0] * 4
        model.values = old
        with pytest.raises(eagle.GraphState, match="node 'model': plane 't'"):
            g.launch()
        g.rebind({"model.t": np.array([0.0, 1.0])}).launch()
        assert x.tolist() == [8.0] * 4


def test_a_run_after_the_owner_moved_is_refused_by_name():
    model = Model(np.array([0.0, 2.0]))

    @kernel
    def grow(x: Mutable[Scalar], t: Table[Scalar], done: eagle.Terminated):
        x = x + t.at(1)
        done = x > 3.0

    with eagle.local(threads=1) as session:
        runner = eagle.simulation(
            grow,
            max_steps=10,
            x=session.zeros(2),
            t=eagle.interop.import_buffer(model),
            done=session.zeros(2, dtype=bool),
        )
        model.values = np.array([0.0, 5.0])
        with pytest.raises(eagle.GraphState, match="node 'grow': plane 't'"):
            runner.run()


def test_results_of_arithmetic_belong_to_nobody():
    model = Model(np.array([0.0, 2.0]))
    doubled = eagle.interop.import_buffer(model) * 2
    model.values = np.zeros(2)
    with eagle.local(threads=1) as session:
        x = session.zeros(1)
        eagle.plan(look_up).bind(x=x, t=doubled).launch()
        assert x.tolist() == [4.0]
