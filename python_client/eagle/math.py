"""Functions of numbers, vectors, matrices and quaternions, for kernels.

Called from Python they work on numpy arrays with the components first, as planes have them: ``(3,)`` is one vector,
``(3, N)`` is N of them.

Sums add in index order and nothing is fused, here and in kernels. Quaternions are (w, x, y, z). Functions of numbers
(`exp`, `sqrt`, `pow`, `minimum` and their like) are computed by the kernels' own code here too. Functions of vectors,
matrices and quaternions are numpy's ``+ - * /`` in the kernel's order: the same bits where this process rounds to
nearest and keeps subnormals, as it does unless a library has changed that. All take real numbers only; anything else is
a TypeError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eagle._functions import (
    _numbers,
    _of,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    clip,
    copysign,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    fdim,
    floor,
    floor_divide,
    fma,
    fmod,
    hypot,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    pow,
    remainder,
    rint,
    round,
    rsqrt,
    sign,
    sin,
    sinh,
    tan,
    tanh,
    trunc,
)

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "cross",
    "dot",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fdim",
    "floor",
    "floor_divide",
    "fma",
    "fmod",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "maximum",
    "min",
    "minimum",
    "norm",
    "outer",
    "pow",
    "quat_conjugate",
    "quat_multiply",
    "quat_normalize",
    "quat_rotate",
    "remainder",
    "rint",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "transpose",
    "trunc",
]


def absolute(x: Any) -> Any:
    """``|x|``, component by component; integers stay integers."""
    found = _numbers("absolute", x)
    return np.abs(found) if found.dtype.kind in "iu" else _of("abs", x)


def sqrt(x: Any) -> Any:
    """The square root, component by component, rounded correctly; NaN below 0."""
    return _of("sqrt", x)


def minimum(a: Any, b: Any) -> Any:
    """The smaller one, component by component; a NaN is ignored, and a tie gives ``a``. Integers stay integers.

    >>> import eagle
    >>> eagle.math.minimum([1.0, float("nan")], 2.0)
    array([1., 2.])
    """
    integers = _numbers("minimum", a).dtype.kind in "iu" and _numbers("minimum", b).dtype.kind in "iu"
    return np.minimum(a, b) if integers else _of("min", a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger one, component by component; a NaN is ignored, and a tie gives ``a``. Integers stay integers."""
    integers = _numbers("maximum", a).dtype.kind in "iu" and _numbers("maximum", b).dtype.kind in "iu"
    return np.maximum(a, b) if integers else _of("max", a, b)


def sum(v: Any) -> Any:
    """The sum of the components of a vector."""
    first, *rest = _numbers("sum", v)
    for component in rest:
        first = first + component
    return first


def dot(u: Any, v: Any) -> Any:
    """The dot product of two vectors.

    >>> import eagle
    >>> float(eagle.math.dot([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    32.0
    """
    return sum(_numbers("dot", u) * _numbers("dot", v))


def norm(v: Any) -> Any:
    """The length of a vector, ``sqrt(dot(v, v))``."""
    return _of("sqrt", dot(v, v))


def cross(u: Any, v: Any) -> Any:
    """The cross product of two vectors of three components.

    >>> import eagle
    >>> eagle.math.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    u, v = _numbers("cross", u), _numbers("cross", v)
    return np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])


def transpose(m: Any) -> Any:
    """The transpose of a matrix."""
    return np.swapaxes(_numbers("transpose", m), 0, 1)


def outer(u: Any, v: Any) -> Any:
    """The matrix of all products ``u[i] * v[j]``."""
    return _numbers("outer", u)[:, None] * _numbers("outer", v)[None, :]


def quat_multiply(p: Any, q: Any) -> Any:
    """The Hamilton product of two quaternions.

    >>> import eagle
    >>> i, j = eagle.quat(0.0, 1.0, 0.0, 0.0), eagle.quat(0.0, 0.0, 1.0, 0.0)
    >>> eagle.math.quat_multiply(i, j)
    array([0., 0., 0., 1.])
    """
    (a, b, c, d), (w, x, y, z) = _numbers("quat_multiply", p), _numbers("quat_multiply", q)
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
    w, x, y, z = _numbers("quat_conjugate", q)
    return np.stack([w, -x, -y, -z])


def quat_normalize(q: Any) -> Any:
    """The quaternion divided by its length; NaN for the zero quaternion."""
    return _numbers("quat_normalize", q) / norm(q)


def quat_rotate(q: Any, v: Any) -> Any:
    """The vector ``v`` turned by the unit quaternion ``q``.

    >>> import eagle
    >>> half = 0.5**0.5
    >>> eagle.math.quat_rotate(eagle.quat(half, 0.0, 0.0, half), [1.0, 0.0, 0.0]).round(12)
    array([0., 1., 0.])
    """
    (w, x, y, z), (a, b, c) = _numbers("quat_rotate", q), _numbers("quat_rotate", v)
    tw, ta = -(x * a) - y * b - z * c, w * a + y * c - z * b
    tb, tc = w * b - x * c + z * a, w * c + x * b - y * a
    return np.stack(
        [
            ta * w - tw * x - tb * z + tc * y,
            tb * w - tw * y + ta * z - tc * x,
            tc * w - tw * z - ta * y + tb * x,
        ]
    )


# The builtins' names, with the meaning above (Python's own `min` takes the first operand on a NaN).
abs = absolute
min = minimum
max = maximum
