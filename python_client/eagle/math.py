"""Functions of numbers, vectors, matrices and quaternions, for kernels.

Called from Python they work on numpy arrays with the components first, as planes have them: ``(3,)`` is one vector,
``(3, N)`` is N of them.

Sums add in index order and nothing is fused, here and in kernels. Quaternions are (w, x, y, z).
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "absolute",
    "cross",
    "dot",
    "maximum",
    "minimum",
    "norm",
    "outer",
    "quat_conjugate",
    "quat_multiply",
    "quat_normalize",
    "quat_rotate",
    "sqrt",
    "sum",
    "transpose",
]


def absolute(x: Any) -> Any:
    """``|x|``, component by component."""
    return np.abs(x)


def sqrt(x: Any) -> Any:
    """The square root, component by component, rounded correctly; NaN below 0."""
    return np.sqrt(x)


def minimum(a: Any, b: Any) -> Any:
    """The smaller one, component by component; a NaN is ignored, and a tie gives ``a``.

    >>> import eagle
    >>> eagle.math.minimum([1.0, float("nan")], 2.0)
    array([1., 2.])
    """
    a, b = np.broadcast_arrays(a, b)
    return np.where((b < a) | np.isnan(a), b, a)


def maximum(a: Any, b: Any) -> Any:
    """The larger one, component by component; a NaN is ignored, and a tie gives ``a``."""
    a, b = np.broadcast_arrays(a, b)
    return np.where((b > a) | np.isnan(a), b, a)


def sum(v: Any) -> Any:
    """The sum of the components of a vector."""
    first, *rest = np.asarray(v)
    for component in rest:
        first = first + component
    return first


def dot(u: Any, v: Any) -> Any:
    """The dot product of two vectors.

    >>> import eagle
    >>> float(eagle.math.dot([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    32.0
    """
    return sum(np.asarray(u) * np.asarray(v))


def norm(v: Any) -> Any:
    """The length of a vector, ``sqrt(dot(v, v))``."""
    return np.sqrt(dot(v, v))


def cross(u: Any, v: Any) -> Any:
    """The cross product of two vectors of three components.

    >>> import eagle
    >>> eagle.math.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    u, v = np.asarray(u), np.asarray(v)
    return np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])


def transpose(m: Any) -> Any:
    """The transpose of a matrix."""
    return np.swapaxes(m, 0, 1)


def outer(u: Any, v: Any) -> Any:
    """The matrix of all products ``u[i] * v[j]``."""
    return np.asarray(u)[:, None] * np.asarray(v)[None, :]


def quat_multiply(p: Any, q: Any) -> Any:
    """The Hamilton product of two quaternions.

    >>> import eagle
    >>> i, j = eagle.quat(0.0, 1.0, 0.0, 0.0), eagle.quat(0.0, 0.0, 1.0, 0.0)
    >>> eagle.math.quat_multiply(i, j)
    array([0., 0., 0., 1.])
    """
    (a, b, c, d), (w, x, y, z) = np.asarray(p), np.asarray(q)
    return np.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )


def quat_conjugate(q: Any) -> Any:
    """``(w, -x, -y, -z)``."""
    w, x, y, z = np.asarray(q)
    return np.stack([w, -x, -y, -z])


def quat_normalize(q: Any) -> Any:
    """The quaternion divided by its length; NaN for the zero quaternion."""
    return np.asarray(q) / norm(q)


def quat_rotate(q: Any, v: Any) -> Any:
    """The vector ``v`` turned by the unit quaternion ``q``.

    >>> import eagle
    >>> half = 0.5**0.5
    >>> eagle.math.quat_rotate(eagle.quat(half, 0.0, 0.0, half), [1.0, 0.0, 0.0]).round(12)
    array([0., 1., 0.])
    """
    (w, x, y, z), (a, b, c) = np.asarray(q), np.asarray(v)
    tw, ta = -(x * a) - y * b - z * c, w * a + y * c - z * b
    tb, tc = w * b - x * c + z * a, w * c + x * b - y * a
    return np.stack(
        [
            ta * w - tw * x - tb * z + tc * y,
            tb * w - tw * y + ta * z - tc * x,
            tc * w - tw * z - ta * y + tb * x,
        ]
    )
