"""Functions that a kernel may call besides those of :mod:`eagle.math`.

In a kernel they see one sample and become operations; called from Python they do the same on numbers and arrays,
so that a function which kernels call can be tried out by itself.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence, overload

import numpy as np

from eagle.errors import refusal

__all__ = [
    "bounded",
    "dispatch",
    "matrix",
    "n_samples",
    "quat",
    "sample_index",
    "select",
    "step_index",
    "vector",
]


@overload
def select(condition: bool, a: float, b: float) -> float: ...


@overload
def select(condition: Any, a: Any, b: Any) -> Any: ...


def select(condition: Any, a: Any, b: Any) -> Any:
    """``a`` where the condition holds, else ``b``, sample by sample; neither side leaves a trace.

    In a kernel both sides are numbers of one sample. Outside it works on arrays, as ``numpy.where`` does.

    >>> import eagle
    >>> @eagle.kernel
    ... def relu(x: eagle.Scalar) -> eagle.Scalar:
    ...     y = eagle.select(x > 0, x, 0.0)
    ...     return y
    >>> relu(eagle.asarray([-1.0, 2.0]))
    array([0., 2.])
    """
    return np.where(condition, a, b)


@overload
def bounded(limit: int, /) -> bool: ...


@overload
def bounded(trips: range, limit: int, /) -> range: ...


def bounded(trips: Any, limit: Any = None, /) -> Any:
    """The most trips of a loop, which every loop of a kernel has: a constant of at least 1.

    ``while eagle.bounded(100) and cond:`` stops when the condition fails, and after 100 trips in any case.
    ``for i in eagle.bounded(range(n), 100):`` takes the first 100 numbers of a range whose bounds are known when
    the kernel runs. A range of constants needs none.

    >>> import eagle
    >>> @eagle.kernel
    ... def root(x: eagle.Scalar) -> eagle.Scalar:
    ...     y = x
    ...     while eagle.bounded(60) and abs(y * y - x) > 1e-12 * x:
    ...         y = 0.5 * (y + x / y)
    ...     return y
    >>> root(eagle.asarray([4.0, 9.0])).round(9)
    array([2., 3.])
    """
    return True if limit is None else trips[:limit]


def dispatch(kind: int, branches: Sequence[Callable[[], Any]], policy: str = "auto", name: str | None = None) -> Any:
    """What ``branches[kind]()`` gives: one of several functions without arguments, chosen sample by sample.

    ``kind`` outside of the branches takes the nearest one. ``policy`` ("auto", "switch", "segmented" or
    "predicated") says how the group may run and changes no bit; ``name`` is its name in reports.

    >>> import eagle
    >>> @eagle.kernel
    ... def shape(kind: eagle.Index, x: eagle.Scalar) -> eagle.Scalar:
    ...     y = eagle.dispatch(kind, [lambda: x, lambda: x * x, lambda: 1 / x])
    ...     return y
    >>> shape(eagle.asarray([0, 1, 2]), eagle.asarray([4.0, 4.0, 4.0]))
    array([ 4.  , 16.  ,  0.25])
    """
    return branches[min(max(kind, 0), len(branches) - 1)]()


def vector(*components: Any) -> Any:
    """A vector of its components.

    >>> import eagle
    >>> eagle.vector(1.0, 2.0, 3.0)
    array([1., 2., 3.])
    """
    return np.stack(np.broadcast_arrays(*(np.asarray(c, float) for c in components)))


def matrix(rows: Sequence[Sequence[Any]]) -> Any:
    """A matrix of its rows.

    >>> import eagle
    >>> eagle.matrix([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    return np.stack([vector(*row) for row in rows])


def quat(w: Any, x: Any, y: Any, z: Any) -> Any:
    """A quaternion, w first.

    >>> import eagle
    >>> eagle.quat(1.0, 0.0, 0.0, 0.0)
    array([1., 0., 0., 0.])
    """
    return vector(w, x, y, z)


def sample_index() -> int:
    """In a kernel: the number of the sample in the whole ensemble, from 0.

    >>> import eagle
    >>> @eagle.kernel
    ... def count(x: eagle.Mutable[eagle.Index]):
    ...     x = eagle.sample_index() * 10 + eagle.n_samples()
    >>> x = eagle.zeros(3, dtype=int)
    >>> count(x); x
    array([ 3, 13, 23])
    """
    raise _in_kernels_only("sample_index")


def n_samples() -> int:
    """In a kernel: how many samples the whole ensemble has."""
    raise _in_kernels_only("n_samples")


def step_index() -> int:
    """In a kernel: how many steps the run took before this one; 0 where nothing steps."""
    raise _in_kernels_only("step_index")


def _in_kernels_only(name: str) -> Exception:
    return refusal("WRONG_TYPE", f"eagle.{name}() has a value in a kernel only; call it inside @eagle.kernel")
