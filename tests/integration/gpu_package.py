"""A package that works on GPUs, played over the fake driver: streams, kernels, captures, as torch or warp would have.

It calls the driver's own entry points, in the very library that eagle calls. What it enqueues is done when the driver
comes to it, and not before: whoever does not wait reads old bytes.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import eagle
import pytest
from frameworks import Context
from models import affine

_FIRST_ARGUMENT = 12  # word of a kernel's parameter, as docs/manual/gpu.md lists them


class Package(Context):
    """``affine`` on a stream: y = a x + b."""

    def __init__(self, ordinal: int = 0) -> None:
        super().__init__(ordinal)
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadDataEx", ctypes.byref(module), affine.ptx("sm_75").encode() + b"\0", 0, None, None)
        self.call("cuModuleGetFunction", ctypes.byref(self._function), module, b"eagle_kernel")
        self._beside = ctypes.c_uint64(self.allocate())  # counters that kernels add to, and words that they look at
        self.call("cuMemsetD8_v2", self._beside, 0, ctypes.c_size_t(256))

    def stream(self) -> int:
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), 1)
        return int(made.value or 0)

    def affine(self, x: int, y: int, a: float, b: float, size: int, stream: int) -> None:
        """From address to address."""
        bits = [struct.unpack("<Q", struct.pack("<d", number))[0] for number in (a, b)]
        beside = self._beside.value
        words = [0, size, 1, 0, size, beside, beside + 8, 0, beside + 64, 0, 0, 0]
        assert len(words) == _FIRST_ARGUMENT
        for argument in ([x, 8 * size, size], [y, 8 * size, size], [bits[0], 0, 1], [bits[1], 0, 1]):
            words.extend(argument)
        parameter = (ctypes.c_uint64 * len(words))(*words)
        parameters = (ctypes.c_void_p * 1)(ctypes.cast(parameter, ctypes.c_void_p))
        one = (1, 1, 1)
        self.call("cuLaunchKernel", self._function, *one, 4, 1, 1, 0, ctypes.c_void_p(stream), parameters, None)

    def allocate(self, bytes: int = 256) -> int:
        made = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(bytes))
        return made.value

    def allocate_on(self, stream: int) -> None:
        self.call("cuMemAllocAsync", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(256), ctypes.c_void_p(stream))

    def wait(self, stream: int) -> None:
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def order(self, earlier: int, later: int) -> None:
        """What ``later`` is given from now on begins once ``earlier`` has come so far."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 2)
        self.call("cuEventRecord", event, ctypes.c_void_p(earlier))
        self.call("cuStreamWaitEvent", ctypes.c_void_p(later), event, 0)
        self.call("cuEventDestroy_v2", event)

    def begin_capture(self, stream: int) -> None:
        self.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), 0)

    def end_capture(self, stream: int) -> int:
        graph = ctypes.c_void_p()
        self.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        return int(graph.value or 0)

    def destroy_graph(self, graph: int) -> None:
        self.call("cuGraphDestroy", ctypes.c_void_p(graph))

    def launch_graph(self, graph: int, stream: int) -> None:
        made = ctypes.c_void_p()
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(made), ctypes.c_void_p(graph), ctypes.c_uint64(0))
        self.call("cuGraphLaunch", made, ctypes.c_void_p(stream))

    def add_conditional(self, graph: int) -> None:
        """A node that runs nothing, once a number is not 0."""
        handle = ctypes.c_uint64()
        self.call("cuGraphConditionalHandleCreate", ctypes.byref(handle), ctypes.c_void_p(graph), self.context, 0, 0)
        parameters = struct.pack("<i12xQiIQQ", 13, handle.value, 0, 1, 0, self.context.value or 0).ljust(256, b"\0")
        self.call(
            "cuGraphAddNode_v2",
            ctypes.byref(ctypes.c_void_p()),
            ctypes.c_void_p(graph),
            None,
            None,
            ctypes.c_size_t(0),
            ctypes.create_string_buffer(parameters, 256),
        )

    def call_host(self, function: Any, stream: int) -> None:
        self.call("cuLaunchHostFunc", ctypes.c_void_p(stream), function, None)


@pytest.fixture
def package(fake_gpus: None) -> Package:
    return Package()


def address(array: eagle.Plane) -> int:
    found: int = array.__cuda_array_interface__["data"][0]
    return found


class CapturedGraph:
    """As ``torch.cuda.CUDAGraph(keep_graph=True)``: y = a x + b over the addresses that the arrays had."""

    def __init__(self, package: Package, x: eagle.Plane, y: eagle.Plane, a: float = 10.0, b: float = 0.0) -> None:
        self.package = package
        self._graph = 0
        self.capture(x, y, a, b)

    def capture(self, x: eagle.Plane, y: eagle.Plane, a: float, b: float = 0.0) -> None:
        stream = self.package.stream()
        at = address(x), address(y)
        self.package.begin_capture(stream)
        self.package.affine(*at, a, b, x.size, stream)
        self._graph = self.package.end_capture(stream)

    def reset(self) -> None:
        self.package.destroy_graph(self._graph)
        self._graph = 0

    def raw_cuda_graph(self) -> int:
        if self._graph == 0:
            raise RuntimeError("there is no graph: it was reset")
        return self._graph
