"""Functions of numbers, one at a time or for every element of arrays.

In a kernel they are operations; called from Python they are computed by the code that defines those operations, so
the bits are the kernel's. Operands are numbers (bool, integers, float16, float32, float64), alone, in lists or in
arrays, and broadcast as numpy's do. float32 stays float32 where every array is, also beside Python's own numbers, which
are rounded to it; everything else is computed in float64. What is no real number (complex, text, dates, None, a masked
array, a longer float) is refused by a TypeError. What each function gives at its ends, and how exact it is:
docs/manual/numbers.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eagle import _core
from eagle.errors import refusal as _refusal

_QUESTIONS = frozenset(name for name, _, question in _core.math_functions() if question)
_PUBLIC = {"floor_quotient": "floor_divide", "abs": "absolute", "min": "minimum", "max": "maximum"}


def _numbers(name: str, value: Any) -> np.ndarray[Any, Any]:
    """The operand of eagle.math's function ``name`` as an array of real numbers; refuses anything else."""
    if isinstance(value, np.ma.MaskedArray):
        raise _not_numbers(name, "a masked array, whose mask would be lost", "pass array.filled(number)")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            return np.asarray(float(value))
        except OverflowError:
            raise _refusal(
                "BAD_VALUE",
                f"eagle.math.{name}: expected a number within the range of float64, found an integer of "
                f"{value.bit_length()} bits",
            ) from None
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise _not_numbers(name, f"{type(value).__name__} ({error})", "pass rows of one length") from None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        found = (
            type(value).__name__ if not isinstance(value, (np.ndarray, list, tuple)) else f"an array of {array.dtype}"
        )
        raise _not_numbers(name, found, "convert it, for example with np.asarray(x, np.float64)")
    return array


def _not_numbers(name: str, found: str, cure: str) -> Exception:
    return _refusal(
        "WRONG_TYPE",
        f"eagle.math.{name}: expected real numbers (bool, integers, float16, float32 or float64), found {found}; "
        f"{cure}",
    )


def _of(name: str, *operands: Any) -> Any:
    public = _PUBLIC.get(name, name)
    arrays = [_numbers(public, operand) for operand in operands]
    # Python's own numbers take the type of what stands beside them, as numpy's rule is since its version 2.
    strong = [array.dtype for array, operand in zip(arrays, operands) if type(operand) not in (bool, int, float)]
    real = np.float32 if strong and all(dtype == np.float32 for dtype in strong) else np.float64
    with np.errstate(over="ignore"):  # what is beyond float32 is infinite, as a kernel's constant is
        arrays = [array.astype(real) for array in arrays]
    try:
        wide = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise _refusal(
            "WRONG_SHAPE",
            f"eagle.math.{public}: expected operands that broadcast as numpy's do, found the shapes {shapes}; "
            "pass arrays of one shape",
        ) from None
    out = np.empty(wide[0].shape, bool if name in _QUESTIONS else real)
    _core.apply_math(name, [np.ascontiguousarray(array).reshape(-1) for array in wide], out.reshape(-1))
    return out[()]


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once.

    >>> import eagle
    >>> float(eagle.math.fma(0.1, 10.0, -1.0))
    5.551115123125783e-17
    """
    return _of("fma", a, b, c)


def pow(x: Any, y: Any) -> Any:
    """``x`` to the power ``y``, as C's pow: NaN for a negative ``x`` and a ``y`` that is no integer.

    >>> import eagle
    >>> float(eagle.math.pow(2.0, 0.5))
    1.4142135623730951
    """
    return _of("pow", x, y)


def clip(x: Any, lo: Any, hi: Any) -> Any:
    """``x`` where it lies between ``lo`` and ``hi``, else the end it is beyond; ``hi`` where ``lo > hi``.

    NaN where one of the three is.

    >>> import eagle
    >>> eagle.math.clip([-1.0, 0.5, 3.0], 0.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    return _of("clip", x, lo, hi)


def rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``; infinite at 0."""
    return _of("rsqrt", x)


def cbrt(x: Any) -> Any:
    """The cube root."""
    return _of("cbrt", x)


def exp(x: Any) -> Any:
    """E to the power ``x``."""
    return _of("exp", x)


def exp2(x: Any) -> Any:
    """2 to the power ``x``."""
    return _of("exp2", x)


def expm1(x: Any) -> Any:
    """``exp(x) - 1``, exact around 0 too."""
    return _of("expm1", x)


def log(x: Any) -> Any:
    """The natural logarithm; -inf at 0, NaN below."""
    return _of("log", x)


def log2(x: Any) -> Any:
    """The logarithm to base 2, exact for powers of 2."""
    return _of("log2", x)


def log10(x: Any) -> Any:
    """The logarithm to base 10, exact for powers of 10."""
    return _of("log10", x)


def log1p(x: Any) -> Any:
    """``log(1 + x)``, exact around 0 too."""
    return _of("log1p", x)


def sin(x: Any) -> Any:
    """The sine of an angle in radians, of any size."""
    return _of("sin", x)


def cos(x: Any) -> Any:
    """The cosine of an angle in radians, of any size."""
    return _of("cos", x)


def tan(x: Any) -> Any:
    """The tangent of an angle in radians, of any size."""
    return _of("tan", x)


def asin(x: Any) -> Any:
    """The arc sine, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    return _of("asin", x)


def acos(x: Any) -> Any:
    """The arc cosine, in [0, pi]; NaN outside of [-1, 1]."""
    return _of("acos", x)


def atan(x: Any) -> Any:
    """The arc tangent, in [-pi/2, pi/2]."""
    return _of("atan", x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), in [-pi, pi]."""
    return _of("atan2", y, x)


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return _of("sinh", x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return _of("cosh", x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return _of("tanh", x)


def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
    return _of("asinh", x)


def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine; NaN below 1."""
    return _of("acosh", x)


def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
    return _of("atanh", x)


def hypot(x: Any, y: Any) -> Any:
    """``sqrt(x * x + y * y)``, without overflow; infinite where one is."""
    return _of("hypot", x, y)


def erf(x: Any) -> Any:
    """The error function."""
    return _of("erf", x)


def erfc(x: Any) -> Any:
    """``1 - erf(x)``, exact where that is small."""
    return _of("erfc", x)


def floor(x: Any) -> Any:
    """The largest integer not above ``x``."""
    return _of("floor", x)


def ceil(x: Any) -> Any:
    """The smallest integer not below ``x``."""
    return _of("ceil", x)


def trunc(x: Any) -> Any:
    """The integer part."""
    return _of("trunc", x)


def round(x: Any) -> Any:
    """The nearest integer, halves away from zero (`rint`, Python's and numpy's own round to the even one).

    >>> import eagle
    >>> eagle.math.round([0.5, 2.5, -0.5])
    array([ 1.,  3., -1.])
    """
    return _of("round", x)


def rint(x: Any) -> Any:
    """The nearest integer, halves to the even one."""
    return _of("rint", x)


def sign(x: Any) -> Any:
    """-1, 0 or 1; 0 for both zeros, NaN for NaN."""
    return _of("sign", x)


def copysign(x: Any, y: Any) -> Any:
    """``abs(x)`` with the sign of ``y``; a NaN has none."""
    return _of("copysign", x, y)


def fmod(x: Any, y: Any) -> Any:
    """What is left of ``x`` after whole multiples of ``y``, with the sign of ``x``; exact."""
    return _of("fmod", x, y)


def remainder(x: Any, y: Any) -> Any:
    """Python's ``x % y``: what is left of ``x`` after whole multiples of ``y``, with the sign of ``y``.

    >>> import eagle
    >>> eagle.math.remainder([5.0, -5.0], 3.0)
    array([2., 1.])
    """
    return _of("remainder", x, y)


def floor_divide(x: Any, y: Any) -> Any:
    """Python's ``x // y`` of reals; ``x / y`` where ``y`` is 0."""
    return _of("floor_quotient", x, y)


def fdim(x: Any, y: Any) -> Any:
    """``x - y`` where that is positive, else 0; NaN where one is."""
    return _of("fdim", x, y)


def isnan(x: Any) -> Any:
    """Whether ``x`` is NaN."""
    return _of("isnan", x)


def isinf(x: Any) -> Any:
    """Whether ``x`` is infinite."""
    return _of("isinf", x)


def isfinite(x: Any) -> Any:
    """Whether ``x`` is neither infinite nor NaN."""
    return _of("isfinite", x)
