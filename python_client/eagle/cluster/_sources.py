"""Where the arrays of a batch come from, shard by shard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, Sequence

import numpy as np
import numpy.typing as npt

from eagle.errors import refusal
from eagle.planes import Plane
from eagle.session import Array, Shape, _dtype, _shape

if TYPE_CHECKING:
    from eagle.cluster._driver import Piece


class Source(Protocol):
    """An array of the whole batch, samples along its last axis. ``sizes`` are the chunks it comes in, where it does."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sizes: tuple[int, ...] | None

    def parts(self, shards: Sequence[tuple[int, int, int]]) -> list[Any]:
        """What the workers of these shards are given: arrays, what makes one there, or an engine's references."""

    def whole(self) -> Any:
        """The same, for an argument that every shard has whole."""


class Filled:
    """An array whose elements are all one number: it is made where it is used."""

    sizes: tuple[int, ...] | None = None

    def __init__(self, shape: tuple[int, ...], value: Any, dtype: np.dtype[Any]) -> None:
        self.shape, self.value, self.dtype = shape, value, dtype

    def parts(self, shards: Sequence[tuple[int, int, int]]) -> list[Any]:
        """As many samples of it."""
        return [Filled((*self.shape[:-1], count), self.value, self.dtype) for _, count, _ in shards]

    def whole(self) -> Filled:
        """All of it."""
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.full(self.shape, self.value, self.dtype if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"<eagle.cluster.full {self.shape} of {np.asarray(self.value).item()!r}, {self.dtype}>"


def full(shape: Shape, value: Any, dtype: npt.DTypeLike | None = None) -> Filled:
    """An array of one number, (N,) or (w, N), that no scheduler and no network ever carries.

    >>> full(1_000_000_000, 1.5)
    <eagle.cluster.full (1000000000,) of 1.5, float64>
    """
    kind = _dtype(np.asarray(value).dtype if dtype is None else dtype)
    extents = tuple(_shape(shape))
    if np.ndim(value) or not extents or min(extents) < 0:
        raise refusal("BAD_VALUE", f"full: expected a shape (N,) or (w, N) and one number, found {shape!r}, {value!r}")
    return Filled(extents, kind.type(value), kind)


def zeros(shape: Shape, dtype: npt.DTypeLike = float) -> Filled:
    """:func:`full` of zeros.

    >>> zeros((3, 10), bool)
    <eagle.cluster.full (3, 10) of False, bool>
    """
    return full(shape, 0, dtype)


class Values:
    """An array of the process that asks: each shard is sent its samples, straight to its worker."""

    sizes: tuple[int, ...] | None = None

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.dtype = array.shape, array.dtype

    def parts(self, shards: Sequence[tuple[int, int, int]]) -> list[Any]:
        """The samples of each."""
        return [np.ascontiguousarray(self._array[..., base : base + count]) for base, count, _ in shards]

    def whole(self) -> Array:
        """All of it."""
        return np.ascontiguousarray(self._array)


class Of:
    """A plane of an earlier shard, which lies where that ran."""

    def __init__(self, piece: Piece, name: str) -> None:
        self.piece, self.name = piece, name


def source_of(where: str, name: str, value: Any) -> Source:
    """The source that an argument is; engines have looked for their own kinds before."""
    if isinstance(value, (np.ma.MaskedArray, Plane)):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: '{name}': found a {type(value).__name__}; pass its values (numpy.asarray) as they are to be",
        )
    if isinstance(value, np.ndarray):
        return Values(value)
    if all(hasattr(value, member) for member in ("shape", "dtype", "parts", "whole")):
        found: Source = value
        return found
    if isinstance(value, (bool, int, float, np.generic)):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: '{name}': expected an array, found the number {value!r}; only a Param takes one; "
            "eagle.cluster.full(N, value) is an array of it",
        )
    raise refusal("WRONG_TYPE", f"{where}: '{name}': expected an array, found {type(value).__name__}")


def samples_of(source: Source) -> int:
    """The extent of the last axis."""
    return int(source.shape[-1]) if source.shape else 0


def nbytes_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Bytes of an array."""
    return math.prod(shape) * int(np.dtype(dtype).itemsize)
