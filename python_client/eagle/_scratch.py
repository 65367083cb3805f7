"""Scratch planes: arrays that only the nodes of one graph touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eagle import _core
from eagle.errors import EagleError, refusal

if TYPE_CHECKING:
    from eagle.graph import Graph


class Scratch:
    """A plane of one graph, made by :meth:`eagle.Graph.scratch`; it has a shape and a dtype, and no memory here.

    Bind it like an array, or a slice of it. It holds nothing between launches, and nothing outside of the graph can
    look at it: numpy's conversions raise, and name the way out.

    >>> import eagle
    >>> g = eagle.Graph()
    >>> between = g.scratch(8, name="between")
    >>> between
    <scratch plane 'between', float64 (8,)>
    >>> between[2:6].shape
    (4,)
    """

    __array_ufunc__ = None

    def __init__(self, graph: Graph, plane: _core.ScratchPlane, base: int, ghost: np.ndarray[Any, Any]) -> None:
        self._graph = graph
        self._plane = plane
        self._base = base
        # numpy slices it as it would the array; its bytes are never touched.
        self._ghost = ghost

    @classmethod
    def of(cls, graph: Graph, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Scratch:
        """A whole plane."""
        strides: list[int] = []
        step = dtype.itemsize
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
        ghost = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides, writeable=False)
        return cls(graph, _core.scratch_plane(name, step), _address(ghost), ghost)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._ghost.shape)

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._ghost.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._ghost.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._ghost.size

    @property
    def name(self) -> str:
        """The name of the plane."""
        return self._plane.name

    @property
    def T(self) -> Scratch:
        """The same plane with its axes reversed."""
        return Scratch(self._graph, self._plane, self._base, self._ghost.T)

    def __len__(self) -> int:
        return len(self._ghost)

    def __getitem__(self, index: Any) -> Scratch:
        """A view of a part: integers, slices, ``...`` and None, as numpy takes them."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if not (part is None or part is Ellipsis or isinstance(part, slice) or hasattr(part, "__index__")):
                raise refusal(
                    "WRONG_TYPE",
                    f"{self._label()}: expected integers and slices, found {type(part).__name__}; indexing with arrays "
                    "would copy values",
                )
        padded = parts if Ellipsis in [part for part in parts if part is Ellipsis] else (*parts, Ellipsis)
        return Scratch(self._graph, self._plane, self._base, self._ghost[padded])

    def __eagle_scratch__(self) -> tuple[_core.ScratchPlane, int, str, int, tuple[int, ...], tuple[int, ...]]:
        """What the C++ library makes a view from."""
        ghost = self._ghost
        offset = _address(ghost) - self._base if ghost.size else 0
        return self._plane, offset, ghost.dtype.str, ghost.itemsize, ghost.shape, ghost.strides

    def _label(self) -> str:
        return f"scratch plane '{self.name}'"

    def _unreadable(self) -> EagleError:
        return refusal(
            "SCRATCH_PLANE",
            f"{self._label()}: it has no memory outside of its graph; add eagle.copy({self.name or 'scratch'}, array) "
            "to the graph and read the array, or use an array in its place",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._unreadable()

    def __setitem__(self, index: Any, value: Any) -> None:
        raise self._unreadable()

    def __iter__(self) -> Any:
        raise self._unreadable()

    def __float__(self) -> float:
        raise self._unreadable()

    def __int__(self) -> int:
        raise self._unreadable()

    def __bool__(self) -> bool:
        raise self._unreadable()

    def __repr__(self) -> str:
        return f"<{self._label()}, {self.dtype} {self.shape}>"


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
