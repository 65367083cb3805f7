"""Arrays of ours in other packages: the same memory under another type."""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from eagle.errors import refusal
from eagle.interop._buffers import import_buffer
from eagle.planes import Plane
from eagle.session import Session, check_session, default_session

Module = TypeVar("Module")


def as_tensor(array: Any) -> Any:
    """A torch tensor on the CPU over the memory of ``array``. Raises MissingPackage, EagleError (a TypeError)."""
    return _over(_torch("as_tensor"), _host("as_tensor", array))


def as_jax(array: Any) -> Any:
    """A jax array over the memory of ``array``, as JAX takes it without a copy: contiguous, aligned to 64 bytes (arrays
    of a session are), and, for float64 and int64, with ``jax_enable_x64``.

    JAX believes that its arrays never change: launches that write ``array`` change what it has computed with since.
    Raises MissingPackage, EagleError (a ValueError) where JAX would copy.
    """
    jax = _package("as_jax", "jax")
    found = _host("as_jax", array)
    if found.dtype.itemsize == 8 and not jax.config.jax_enable_x64:
        raise refusal(
            "WRONG_DTYPE",
            f"as_jax: {found.dtype} would be narrowed; say jax.config.update('jax_enable_x64', True) first, or "
            "use 32 bits",
        )
    made = jax.dlpack.from_dlpack(found)
    if found.size and made.unsafe_buffer_pointer() != found.__array_interface__["data"][0]:
        raise refusal(
            "COPY_BOUND_PLANE",
            "as_jax: JAX would copy this array (it takes contiguous memory at a multiple of 64 bytes); pass an array "
            "of a session whole, or jax.numpy.asarray(array) for a copy",
        )
    return made


def as_arrow(array: Any) -> Any:
    """A pyarrow array over the memory of a one-dimensional ``array`` of numbers; pyarrow packs bools, which is a copy.

    Raises MissingPackage, EagleError (a ValueError) where pyarrow would copy.
    """
    arrow = _package("as_arrow", "pyarrow")
    found = _host("as_arrow", array)
    if found.ndim != 1 or found.dtype == np.bool_ or not found.flags.c_contiguous:
        raise refusal(
            "COPY_BOUND_PLANE",
            f"as_arrow: expected one contiguous axis of numbers, found {found.dtype} {found.shape}; pass a row of it, "
            "or pyarrow.array(array) for a copy",
        )
    return arrow.Array.from_buffers(arrow.from_numpy_dtype(found.dtype), found.size, [None, arrow.py_buffer(found)])


def tensor(session: Session, of: Any, dtype: Any = None, name: str | None = None) -> Any:
    """What :meth:`eagle.Session.tensor` returns."""
    torch = _torch("tensor")
    if session._core.copies:
        raise refusal(
            "BAD_VALUE",
            "tensor: this session's arrays are on another machine, and a tensor cannot be; connect to a unix socket",
        )
    if isinstance(of, torch.Tensor):
        if of.device.type != "cpu":
            raise refusal(
                "MIXED_DEVICES", f"tensor: it is on {of.device}, and this session computes on the CPU; pass it.cpu()"
            )
        data = of.detach()
        values: Any = import_buffer(data)
        wanted = values.dtype if dtype is None else _dtype(torch, dtype)
        if wanted == values.dtype and values.size and data.is_contiguous() and session.owns(values):
            return data
        made = _over(torch, session.empty(tuple(of.shape), wanted, name=name))
        made.copy_(data)
        return made
    if isinstance(of, np.ndarray):
        return _over(torch, session.asarray(of, None if dtype is None else _dtype(torch, dtype), name=name))
    wanted = np.dtype(np.float32) if dtype is None else _dtype(torch, dtype)  # torch's own default
    return _over(torch, session.zeros(of, wanted, name=name))


def share_parameters(module: Module, session: Session | None = None) -> Module:
    """Moves the parameters and buffers of a torch module into a session's memory; what is not there is copied once.

    From then on kernels of that session read what the optimizer has stored last, and nothing travels. It is
    ``param.data = session.tensor(param.data)`` for each: do it before anything is bound to them. Returns the module.
    """
    check_session("share_parameters", session)
    home = session or default_session()
    _torch("share_parameters")
    found: Any = module
    for held in (*found.parameters(), *found.buffers()):
        held.data = tensor(home, held.data)
    return module


def _host(method: str, array: Any) -> npt.NDArray[Any]:
    if isinstance(array, Plane):
        raise refusal(
            "WRONG_TYPE", f"{method}: an eagle.Plane is on another machine; its values are had as a copy, with .numpy()"
        )
    if not isinstance(array, np.ndarray):
        raise refusal("WRONG_TYPE", f"{method}: expected a numpy array, found {type(array).__name__}")
    plain: npt.NDArray[Any] = array.view(np.ndarray)
    return plain


def _over(torch: Any, array: npt.NDArray[Any]) -> Any:
    """The array's memory as a tensor. By DLPack, which torch and numpy of any age have in common; bools in disguise,
    because early ones have none.
    """
    if array.dtype == np.bool_:
        return torch.from_dlpack(array.view(np.uint8)).view(torch.bool)
    return torch.from_dlpack(array)


def _dtype(torch: Any, dtype: Any) -> Any:
    return np.dtype(str(dtype).rpartition(".")[2] if isinstance(dtype, torch.dtype) else dtype)


def _torch(method: str) -> Any:
    return _package(method, "torch")


def _package(method: str, name: str) -> ModuleType | Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise refusal("MISSING_PACKAGE", f"{method}: {name} is not installed; pip install {name}") from missing
