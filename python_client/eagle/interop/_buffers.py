"""import_buffer: the memory of an object of any library, as an array."""

from __future__ import annotations

import sys
from typing import Any, Callable, Mapping

import numpy as np

from eagle import _core
from eagle._imported import Imported
from eagle.errors import refusal
from eagle.interop._cuda import import_from_gpu, on_gpu
from eagle.planes import Plane
from eagle.session import Session, check_session, default_session

_DEVICES = {1: "the CPU", 2: "a CUDA GPU", 3: "CUDA's pinned memory", 10: "a ROCm GPU", 13: "CUDA's managed memory"}
_HOST_MEMORY = (1, 3, 11)  # pinned memory of CUDA and ROCm is the host's
_KEYS = ("dtype", "shape", "writable", "contiguous")


class _Failed(Exception):
    """Why a protocol gave nothing."""


def import_buffer(
    obj: Any, require: Mapping[str, Any] | None = None, session: Session | None = None
) -> Imported | Plane:
    """The memory of ``obj`` as an array: nothing is copied, and what one side stores the other sees.

    ``obj`` is a numpy array, a torch tensor on the CPU (of one that needs a gradient its data), a jax array, a pyarrow
    array or buffer, or anything that speaks DLPack (versioned or legacy), ``__array_interface__`` or the buffer
    protocol. ``require`` is what the array has to be: ``{"dtype": "float32", "shape": (64, 32), "writable": True,
    "contiguous": True}``, each left out where it does not matter.

    Memory of a CUDA GPU (``__cuda_array_interface__``, or DLPack: CuPy, torch, jax, warp) becomes an array of
    ``session``, of the current one where none is given: an :class:`eagle.Plane`, whose kernels run on that GPU. Work
    that its owner has under way on the stream that it names is waited for. In a daemon on the same host the memory has
    to be cudaMalloc's.

    The array keeps the memory alive, and remembers its owner: a launch over it is refused by name once the owner has
    other memory (``param.data = ...``). Where the owner says that its memory is not to be changed, the array is
    read-only.

    Raises EagleError: TypeError where no protocol gives the memory, with every one that was tried and why it did not;
    ValueError where the array is not what is required, with all that is not.

    >>> import array, eagle
    >>> weights = array.array("d", [0.5, 2.0])
    >>> w = eagle.interop.import_buffer(weights)
    >>> weights[0] = 3.0
    >>> w.tolist()
    [3.0, 2.0]
    """
    wanted = _checked(require)
    check_session("import_buffer", session)
    there = on_gpu(obj)
    if there is not None:
        plane = import_from_gpu(session or default_session(), obj, there)
        _meet(obj, plane._local, wanted)
        return plane
    failures: list[str] = []
    for name, take in _PROTOCOLS:
        try:
            found = take(obj)
        except _Failed as why:
            failures.append(f"{name}: {why}")
            continue
        _meet(obj, found, wanted)
        return Imported.of(found, obj)
    failures.append("__cuda_array_interface__: not there")
    listed = "".join(f"\n  {failure}" for failure in failures)
    raise refusal(
        "WRONG_TYPE",
        f"import_buffer: a {_kind(obj)} shows its memory in no way that can be used without a copy:{listed}\n"
        f"{_cure(obj)}",
    )


# ---- what objects say


def _own(obj: Any) -> np.ndarray[Any, Any]:
    """A numpy array is its memory already."""
    if isinstance(obj, Plane):
        raise _Failed(f"an eagle.Plane, which is {obj._where()}; bind it as it is, or take its .numpy()")
    if not isinstance(obj, np.ndarray):
        raise _Failed("it is none")
    if isinstance(obj, np.ma.MaskedArray):
        raise _Failed("a masked array has values that nobody would see; pass .filled(value)")
    if obj.dtype.hasobject:
        raise _Failed("an array of Python objects; pass .astype(float)")
    return obj


def _dlpack(obj: Any) -> np.ndarray[Any, Any]:
    """A capsule, of the versioned kind where the object knows it."""
    export, device = getattr(obj, "__dlpack__", None), getattr(obj, "__dlpack_device__", None)
    if not callable(export) or not callable(device):
        raise _Failed("not there")
    obj, element = _exportable(obj)
    export = obj.__dlpack__
    kind, number = _said(obj.__dlpack_device__)
    if int(kind) not in _HOST_MEMORY:
        where = _DEVICES.get(int(kind), f"a device of kind {int(kind)}")
        raise _Failed(f"it is on {where} (number {number}), and eagle computes on CPUs and CUDA GPUs; copy it, x.cpu()")
    errors: list[str] = []
    for arguments in ({"max_version": (1, 0), "copy": False}, {"max_version": (1, 0)}, {}):
        try:
            capsule = export(**arguments)
            break
        except TypeError as error:  # an exporter of an earlier standard
            errors.append(str(error))
        except Exception as error:
            raise _Failed(f"{type(error).__name__}: {_line(error)}") from error
    else:
        raise _Failed(f"TypeError: {errors[-1].splitlines()[0]}")
    try:
        array, states_access = _core.import_dlpack(capsule)
    except Exception as error:
        raise _Failed(_line(error)) from error
    if not states_access and not _is_writable(obj):
        array.flags.writeable = False
    found: np.ndarray[Any, Any] = array if element is None else array.view(element)
    return found


def _interface(obj: Any) -> np.ndarray[Any, Any]:
    if getattr(obj, "__array_interface__", None) is None:
        raise _Failed("not there")
    if isinstance(obj, (np.generic,)):
        raise _Failed("a numpy scalar is a value of its own; pass an array")

    class Holder:
        """Numpy may not look for anything but the interface, which never copies."""

        __array_interface__ = obj.__array_interface__
        held = obj

    try:
        found = np.asarray(Holder())
    except Exception as error:
        raise _Failed(f"{type(error).__name__}: {_line(error)}") from error
    if found.dtype.hasobject:
        raise _Failed("its elements are Python objects")
    return found


def _buffer(obj: Any) -> np.ndarray[Any, Any]:
    try:
        view = memoryview(obj)
    except TypeError:
        raise _Failed("not there") from None
    except Exception as error:
        raise _Failed(f"{type(error).__name__}: {_line(error)}") from error
    try:
        found = np.asarray(view)
    except Exception as error:
        raise _Failed(f"{type(error).__name__}: {_line(error)}") from error
    if found.dtype.hasobject:
        raise _Failed("its elements are Python objects")
    return found


_PROTOCOLS: tuple[tuple[str, Callable[[Any], np.ndarray[Any, Any]]], ...] = (
    ("numpy.ndarray", _own),
    ("__dlpack__", _dlpack),
    ("__array_interface__", _interface),
    ("buffer protocol", _buffer),
)


# ---- details


def _exportable(obj: Any) -> tuple[Any, Any]:
    """The object to ask for a capsule, and the dtype that its array is then seen with, where that is another.

    Of a torch tensor that autograd watches its data, and one of bools as bytes: early ones refuse to export those.
    """
    detach = getattr(obj, "detach", None)
    if callable(detach) and getattr(obj, "requires_grad", False):
        obj = detach()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, torch.Tensor) and obj.dtype == torch.bool:
        return obj.view(torch.uint8), np.bool_
    return obj, None


def _is_writable(obj: Any) -> bool:
    """Whether memory may be changed of which the capsule does not say so; torch's may, and jax's never."""
    if type(obj).__module__.split(".")[0] == "torch":
        return True
    interface = getattr(obj, "__array_interface__", None)
    return interface is not None and not interface["data"][1]


def _said(device: Callable[[], Any]) -> tuple[int, int]:
    try:
        kind, number = device()
        return int(kind), int(number)
    except Exception as error:
        raise _Failed(f"__dlpack_device__: {type(error).__name__}: {_line(error)}") from error


def _kind(obj: Any) -> str:
    return f"{type(obj).__module__.split('.')[0]}.{type(obj).__name__}"


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _cure(obj: Any) -> str:
    root = type(obj).__module__.split(".")[0]
    if root == "pyarrow":
        return "pass one chunk (x.combine_chunks()) of a numeric type without nulls, or session.asarray(x.to_numpy())"
    if root == "xarray":
        return "pass its .data, or call the kernel with it (eagle.interop.xarray keeps the labels)"
    if hasattr(obj, "__array__") or isinstance(obj, (list, tuple)):
        return "copy it once: session.asarray(x) makes an array in the session's memory"
    return "expected an array of numpy, torch, jax or pyarrow, or an object with one of these protocols"


def _checked(require: Mapping[str, Any] | None) -> dict[str, Any]:
    if require is None:
        return {}
    if not isinstance(require, Mapping):
        raise refusal(
            "WRONG_TYPE",
            f"import_buffer: require: expected a dict of {', '.join(_KEYS)}, found {type(require).__name__}",
        )
    unknown = [key for key in require if key not in _KEYS]
    if unknown:
        raise refusal("BAD_VALUE", f"import_buffer: require: expected {', '.join(_KEYS)}, found {unknown[0]!r}")
    return dict(require)


def _meet(obj: Any, found: np.ndarray[Any, Any], wanted: Mapping[str, Any]) -> None:
    wrong = []
    if "dtype" in wanted and found.dtype != np.dtype(wanted["dtype"]):
        wrong.append(f"dtype: expected {np.dtype(wanted['dtype'])}, found {found.dtype}; convert it at its owner's")
    if "shape" in wanted and found.shape != tuple(wanted["shape"]):
        wrong.append(f"shape: expected {tuple(wanted['shape'])}, found {found.shape}")
    if wanted.get("writable") and not found.flags.writeable:
        wrong.append("writable: its owner says that it is read-only; pass a copy, session.asarray(x)")
    if wanted.get("contiguous") and not found.flags.c_contiguous:
        wrong.append(f"contiguous: its strides are {found.strides} bytes; pass x.contiguous() or a copy")
    if wrong:
        listed = "".join(f"\n  {what}" for what in wrong)
        raise refusal("BAD_VALUE", f"import_buffer: a {_kind(obj)} is not what is required:{listed}")
