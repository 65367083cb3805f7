"""Functions of reals: what each name of ``math``, ``numpy`` and ``eagle.math`` is in a kernel, or why it is nothing.

A name of another library keeps that library's meaning or is refused. Functions that raise for some numbers
(``math.log(-1)``) give NaN or an infinity there, as C's do: a kernel has no exceptions.
"""

from __future__ import annotations

import builtins
import math as python_math
from typing import Any

import numpy as np

from eagle import _core, math

# name -> number of operands, and whether it gives a condition
FUNCTIONS: dict[str, tuple[int, bool]] = {name: (count, asks) for name, count, asks in _core.math_functions()}

# Names of eagle.math whose operation has another one.
_OWN = {"floor_divide": "floor_quotient"}

# The same function by the same name, in `math`, in numpy, or in both.
_BOTH = [
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "copysign"),
    *("cos", "cosh", "exp", "exp2", "expm1", "fmod", "hypot", "isfinite", "isinf"),
    *("isnan", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh"),
]
_MATH = [*_BOTH, "erf", "erfc", "fma", "pow"]
_NUMPY = {
    **{name: name for name in [*_BOTH, "ceil", "clip", "floor", "rint", "sign", "trunc"]},
    **{f"arc{name[1:]}": name for name in _BOTH if name.startswith("a")},
    **{"fabs": "abs", "float_power": "pow", "pow": "power", "power": "power", "round": "rint", "around": "rint"},
    **{"floor_divide": "//", "mod": "%", "remainder": "%"},
}

# Accepted callables, by identity. Beside FUNCTIONS: "abs"; "int" cuts towards zero; "floor_int", "ceil_int" and
# "round_int" give integers, as Python's do; "power", "//" and "%" are the operators.
CALLS: dict[Any, str] = {
    builtins.pow: "power",
    builtins.round: "round_int",
    python_math.fabs: "abs",
    python_math.floor: "floor_int",
    python_math.ceil: "ceil_int",
    python_math.trunc: "int",
    **{getattr(python_math, name): name for name in _MATH if hasattr(python_math, name)},
    **{getattr(np, name): code for name, code in _NUMPY.items() if hasattr(np, name)},
    **{getattr(math, name): _OWN.get(name, name) for name in math.__all__ if _OWN.get(name, name) in FUNCTIONS},
}

_COMPARE = "Write the comparison, as in a < b."
_AND_OR = "Write `and`, `or`, `not` or `a != b` of conditions."
_BITS = "Write the operator, as in a & b, of integers."
_STATISTICS = "A kernel sees one sample; write eagle.math.sum(v), minimum or maximum of components."
# Names that are refused, with what to write instead.
CURES: dict[str, str] = {
    **dict.fromkeys(("minimum", "fmin"), "Write eagle.math.minimum, which ignores a NaN, or Python's min."),
    **dict.fromkeys(("maximum", "fmax"), "Write eagle.math.maximum, which ignores a NaN, or Python's max."),
    **dict.fromkeys(("dot", "cross", "outer", "norm", "transpose"), "Write the function of that name in eagle.math."),
    **dict.fromkeys(("matmul", "vdot", "matvec", "vecmat", "vecdot"), "Write a @ b."),
    "inner": "Write eagle.math.dot(u, v).",
    **dict.fromkeys(
        ("sum", "fsum"), "Write eagle.math.sum(v) for the components of a vector, and a + b + c for numbers."
    ),
    "prod": "Write a * b * c.",
    "sumprod": "Write eagle.math.dot(u, v).",
    "dist": "Write eagle.math.norm(p - q).",
    "where": "Write eagle.select(condition, a, b).",
    "len": "The number of components stands in the annotation; eagle.n_samples() counts the samples.",
    "print": "A kernel only computes: return the number as an output and print the array.",
    "divmod": "Write a // b, a % b.",
    **dict.fromkeys(("modf", "fix"), "Write eagle.math.trunc(x), and x - eagle.math.trunc(x) for the fraction."),
    "remainder": "math.remainder is IEEE's, of the nearest multiple: write x - y * eagle.math.rint(x / y), or "
    "eagle.math.remainder, which has the sign of y.",
    **dict.fromkeys(("degrees", "rad2deg"), "Write x * (180 / math.pi)."),
    **dict.fromkeys(("radians", "deg2rad"), "Write x * (math.pi / 180)."),
    "square": "Write x * x.",
    "reciprocal": "Write 1 / x.",
    **{name: f"Write a {sign} b." for name, sign in {"add": "+", "subtract": "-", "multiply": "*"}.items()},
    **dict.fromkeys(("divide", "true_divide"), "Write a / b."),
    "negative": "Write -x.",
    "positive": "Write x.",
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), _COMPARE),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not"), _AND_OR),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_invert", "invert"), _BITS),
    **dict.fromkeys(("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift"), _BITS),
    "bitwise_count": "Add the bits: (i >> k) & 1 in a loop.",
    "signbit": "Write eagle.math.copysign(1.0, x) < 0.",
    "heaviside": "Write eagle.select(x < 0, 0.0, eagle.select(x > 0, 1.0, h)).",
    **dict.fromkeys(("conjugate", "conj"), "Kernels have real numbers only: leave it out."),
    "ldexp": "Write x * eagle.math.exp2(float(i)).",
    "frexp": "Write e = eagle.math.floor(eagle.math.log2(abs(x))) and x / eagle.math.exp2(e).",
    **dict.fromkeys(
        ("nextafter", "spacing", "ulp"), "Kernels have no names for neighbours of a number; write x * 2**-52."
    ),
    "logaddexp": "Write eagle.math.maximum(a, b) + eagle.math.log1p(eagle.math.exp(-abs(a - b))).",
    "logaddexp2": "Write eagle.math.log2(eagle.math.exp2(a) + eagle.math.exp2(b)).",
    "sinc": "Write eagle.select(x == 0, 1.0, eagle.math.sin(math.pi * x) / (math.pi * x)).",
    **dict.fromkeys(("gamma", "lgamma", "factorial", "comb", "perm"), "There is no gamma function: use a Table."),
    **dict.fromkeys(("gcd", "lcm", "isqrt"), "Write the loop, with eagle.bounded."),
    "isclose": "Write abs(a - b) <= 1e-9 * eagle.math.maximum(abs(a), abs(b)).",
    **dict.fromkeys(
        ("isnat", "isnormal", "issubnormal"), "Write a comparison of abs(x) with the number that is meant."
    ),
    **dict.fromkeys(("mean", "std", "var", "median", "cumsum", "diff", "trapezoid"), _STATISTICS),
}
