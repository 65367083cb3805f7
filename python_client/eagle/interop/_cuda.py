"""Memory of a CUDA GPU that another package made, as an array of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eagle import _core
from eagle._imported import Source, pointer_of
from eagle.errors import refusal
from eagle.planes import Plane

if TYPE_CHECKING:
    from eagle.session import Session

_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_LEGACY_STREAM = 1  # as CUDA, DLPack and the interface call the default stream


class OnGpu(NamedTuple):
    """An array on a GPU, as its owner shows it."""

    pointer: int  # of the first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: np.dtype[Any]
    read_only: bool
    stream: int | None  # to wait for
    waits: bool  # there is something to wait for: of `stream`, or of all the GPU
    keep: Any  # what keeps the memory


def on_gpu(obj: Any) -> OnGpu | None:
    """What ``obj`` shows of memory on a GPU; None where it shows none. Raises EagleError for what cannot be taken."""
    if isinstance(obj, (Plane, np.ndarray)):
        return None
    obj, keep = _held(obj)
    try:
        shown = getattr(obj, "__cuda_array_interface__", None)
    except Exception:  # torch's, of a tensor on the CPU
        shown = None
    return _by_dlpack(obj) if shown is None else _by_interface(obj, shown, keep)


def import_from_gpu(session: Session, obj: Any, found: OnGpu, name: str | None = None) -> Plane:
    """The array as one of the session's, once what its owner has under way there is done."""
    if not np.prod(found.shape, dtype=np.int64):
        raise refusal(
            "BAD_VALUE",
            f"import_buffer: a {_kind(obj)} of shape {found.shape} has no element on its GPU; make an empty array with "
            "session.zeros(shape, device=...)",
        )
    if found.waits:
        _core.wait_for_stream(_core.gpu_of(found.pointer), found.stream)
    local = session._core.import_on_device(
        found.pointer,
        found.shape,
        found.strides,
        found.dtype.str,
        found.dtype.itemsize,
        found.read_only,
        found.keep,
        name or "",
        session,
    )
    source = None if pointer_of(obj) is None else Source(obj, found.pointer, local.nbytes)
    return Plane(session, local, session._core.device_of(local), source)


# ---- what objects say


def _by_interface(obj: Any, shown: Any, keep: Any) -> OnGpu:
    """``__cuda_array_interface__``, of versions 2 and 3."""
    try:
        pointer, read_only = shown["data"]
        shape = tuple(int(extent) for extent in shown["shape"])
        dtype = np.dtype(shown["typestr"])
        strides = shown.get("strides")
        version = int(shown.get("version", 0))
        stream = shown.get("stream")
        pointer = int(pointer or 0)
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(obj, f"__cuda_array_interface__: {type(error).__name__}: {error}") from None
    if version < 2:
        raise _refused(obj, f"__cuda_array_interface__ of version {version}; expected 2 or 3")
    if shown.get("mask") is not None:
        raise _refused(obj, "a mask, whose values nobody would see; fill it in at its owner's")
    if version >= 3 and stream == 0:
        raise _refused(obj, "stream 0, which the interface does not allow; expected None, 1, 2 or a stream's handle")
    strides = _row_major(shape, dtype.itemsize) if strides is None else tuple(int(stride) for stride in strides)
    # Before version 3 nobody said on which stream, so all of them are waited for; None of version 3 says none.
    waits = version < 3 or stream is not None
    stream = None if version < 3 or stream is None else int(stream)
    read_only = bool(read_only) or _never_changes(obj)
    return _checked(obj, OnGpu(pointer, shape, strides, dtype, read_only, stream, waits, keep))


def _by_dlpack(obj: Any) -> OnGpu | None:
    export, device = getattr(obj, "__dlpack__", None), getattr(obj, "__dlpack_device__", None)
    if not callable(export) or not callable(device):
        return None
    try:
        kind = int(device()[0])
    except Exception:
        return None
    if kind not in _DLPACK_CUDA:
        return None
    try:
        try:
            capsule = export(stream=_LEGACY_STREAM, max_version=(1, 0))
        except TypeError:  # of an earlier standard
            capsule = export(stream=_LEGACY_STREAM)
    except Exception as error:
        raise _refused(obj, f"__dlpack__: {type(error).__name__}: {error}") from error
    _, pointer, shape, strides, typestr, _, read_only, states, keep = _core.take_dlpack(capsule)
    read_only = read_only if states else _never_changes(obj)
    # The capsule keeps the memory, and the owner tells whether it is still there.
    dtype = np.dtype(typestr)
    return _checked(obj, OnGpu(pointer, shape, strides, dtype, read_only, _LEGACY_STREAM, True, (keep, obj)))


def _checked(obj: Any, found: OnGpu) -> OnGpu:
    if found.dtype.hasobject or found.dtype.itemsize == 0:
        raise _refused(obj, f"elements of type {found.dtype}")
    if not found.dtype.isnative:
        raise _refused(obj, f"elements of type {found.dtype.str}, whose bytes are in the other order")
    if len(found.strides) != len(found.shape) or any(extent < 0 for extent in found.shape):
        raise _refused(obj, f"a shape of {found.shape} and strides of {found.strides}")
    return found


def _refused(obj: Any, what: str) -> Exception:
    return refusal("WRONG_TYPE", f"import_buffer: a {_kind(obj)} on a GPU shows {what}")


def _never_changes(obj: Any) -> bool:
    """Arrays of jax, which do not say so."""
    return type(obj).__module__.split(".")[0] in ("jax", "jaxlib")


def _held(obj: Any) -> tuple[Any, Any]:
    """What shows the memory that the array has now, and what keeps that, whatever the array is given later.

    A tensor of torch may get other memory (``t.data = other``, ``t.set_(...)``) and frees what it had: its storage is
    that memory. An array of jax may be donated: nobody can have what is exported as a capsule. Others keep theirs.
    """
    detach = getattr(obj, "detach", None)
    if callable(detach) and hasattr(obj, "requires_grad"):
        obj = detach()  # also of a tensor that autograd watches, which shows nothing itself
        storage = getattr(obj, "untyped_storage", None)  # one object, however often it is imported
        return obj, storage() if callable(storage) else obj
    if _never_changes(obj):
        try:
            if int(obj.__dlpack_device__()[0]) in _DLPACK_CUDA:
                return obj, (obj.__dlpack__(stream=_LEGACY_STREAM), obj)
        except Exception:  # lies on several GPUs, or is gone: the interface says that
            pass
    return obj, obj


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, size = [], itemsize
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


def _kind(obj: Any) -> str:
    return f"{type(obj).__module__.split('.')[0]}.{type(obj).__name__}"
