"""Arrays and kernels of other packages, without copies.

:func:`import_buffer` takes the memory of anything that shows it; :func:`as_tensor`, :func:`as_jax` and :func:`as_arrow`
go the other way. :mod:`eagle.interop.xarray` keeps labels, :mod:`eagle.interop.hawk` turns kernels of raptor-hawk into
ours. None of these packages is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from eagle.interop._buffers import import_buffer
from eagle.interop._exports import as_arrow, as_jax, as_tensor, share_parameters

__all__ = ["as_arrow", "as_jax", "as_tensor", "import_buffer", "share_parameters"]


def __getattr__(name: str) -> Any:
    """The parts that are about one package each."""
    if name in ("hawk", "xarray"):
        return importlib.import_module(f"eagle.interop.{name}")
    raise AttributeError(f"module 'eagle.interop' has no attribute {name!r}")
