"""A package with arrays on GPUs, as CuPy and torch are: it makes memory by the driver that the engine uses, here the
fake one, and frees it with its arrays.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from gpus import DRIVER


class DriverError(RuntimeError):
    """What a call of the driver said."""


class Context:
    """The primary one of a GPU, in the very library that eagle calls."""

    def __init__(self, ordinal: int = 0) -> None:
        self._driver = ctypes.CDLL(DRIVER)
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ordinal)

    def call(self, function: str, *arguments: Any) -> None:
        """In the context."""
        self._driver.cuCtxPushCurrent_v2(self.context)
        result = getattr(self._driver, function)(*arguments)
        self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        if result != 0:
            raise DriverError(f"{function}: error {result}")


class Framework(Context):
    """What it makes there."""

    def make(self, size: int, pooled: bool = False) -> int:
        """So many bytes; of the stream-ordered pool, where that is asked for."""
        pointer = ctypes.c_uint64()
        if pooled:
            self.call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(size), None)
        else:
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer.value

    def map(self, size: int) -> int:
        """So many bytes, mapped by hand."""

        class Properties(ctypes.Structure):
            _fields_ = [(name, ctypes.c_int) for name in ("type", "handles", "location", "id")]
            _fields_ += [("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]

        class Access(ctypes.Structure):
            _fields_ = [(name, ctypes.c_int) for name in ("location", "id", "flags")]

        handle, pointer, bytes_ = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t(size)
        self.call("cuMemCreate", ctypes.byref(handle), bytes_, ctypes.byref(Properties(1, 0, 1, 0)), ctypes.c_uint64())
        self.call("cuMemAddressReserve", ctypes.byref(pointer), bytes_, ctypes.c_size_t(), ctypes.c_uint64(), 0)
        self.call("cuMemMap", pointer, bytes_, ctypes.c_size_t(), handle, ctypes.c_uint64())
        self.call("cuMemSetAccess", pointer, bytes_, ctypes.byref(Access(1, 0, 3)), ctypes.c_size_t(1))
        return pointer.value

    def array(self, values: Any, **more: Any) -> Shown:
        """An array with memory of its own."""
        held = np.ascontiguousarray(values)
        pointer = self.make(max(held.nbytes, 1), more.pop("pooled", False))
        made = Shown(pointer, held.shape, held.dtype.str, **more)
        made.frees(self)
        if held.size:
            made.values[...] = held
        return made


class Shown:
    """An array on a GPU by ``__cuda_array_interface__``."""

    def __init__(self, pointer: int, shape: tuple[int, ...], typestr: str, **more: Any) -> None:
        self.pointer, self.shape, self.typestr, self.more = pointer, shape, typestr, more
        self.owner: Any = more.pop("owner", None)
        self._framework: Framework | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shown = {"version": 3, "data": (self.pointer, False), "shape": self.shape, "typestr": self.typestr}
        shown.update({"strides": None, "stream": None, **self.more})
        return shown

    @property
    def values(self) -> np.ndarray:
        """What is there: the fake driver's memory can be looked at."""
        size = int(np.prod(self.shape)) * np.dtype(self.typestr).itemsize
        whole = (ctypes.c_uint8 * size).from_address(self.pointer)
        return np.frombuffer(whole, self.typestr).reshape(self.shape)

    def frees(self, framework: Framework) -> None:
        self._framework = framework

    def __del__(self) -> None:
        if self._framework is not None:
            self._framework.call("cuMemFree_v2", ctypes.c_uint64(self.pointer))
