"""Random numbers for kernels, counter-based: the same number for the same seed, counter and sample.

Nothing is remembered between calls. A number depends on ``seed``, ``counter`` and the sample's index in the whole
ensemble alone, so that teams, sharding and replays change nothing. Ask for another number by another counter.

The generator is Philox4x32-10. ``seed`` and ``counter`` are integers of 64 bits (a seed up to 2**64 - 1), constants or
values of the kernel. A function reads as many words of the stream as it says, from ``counter`` on: numbers whose words
overlap depend on each other. For a new number every step, count in its words: ``counter=eagle.step_index()`` for a
uniform number (one word), ``4 * eagle.step_index()`` for a normal one (four), ``4 * n * eagle.step_index()`` for
``multivariate_normal`` of n.

>>> import eagle
>>> @eagle.kernel
... def toss(x: eagle.Scalar) -> eagle.Scalar:
...     return x + eagle.random.uniform(seed=0, counter=0)
>>> toss(eagle.zeros(3)).round(6)
array([0.399046, 0.516679, 0.02493 ])
"""

from __future__ import annotations

from typing import Any

from eagle.errors import refusal

__all__ = [
    "bernoulli",
    "exponential",
    "lognormal",
    "multivariate_normal",
    "normal",
    "uniform",
    "uniform_int",
]


def uniform(seed: int, counter: int, low: float = 0.0, high: float = 1.0) -> float:
    """``low + (high - low) * u``, with u one of 2**-32, 2 * 2**-32, ..., 1; uses one word.

    Each operation is rounded, and the result is never outside of [low, high]. It is ``low`` itself only where
    ``(high - low) * u`` is lost in rounding: where reals near ``low`` are more than about ``(high - low) * 2**-32``
    apart, so now and then in float32. ``high`` where ``high - low`` overflows.
    """
    raise _in_kernels_only("uniform")


def uniform_int(seed: int, counter: int, low: int, high: int) -> int:
    """One of low, ..., high - 1, and ``low`` where there is none; uses one word.

    At most 2**32 different numbers come out, evenly spread where the range has more.
    """
    raise _in_kernels_only("uniform_int")


def normal(seed: int, counter: int, mean: float = 0.0, sd: float = 1.0) -> float:
    """A real of the normal distribution; uses four words.

    A new one every step has ``counter=4 * eagle.step_index()``; steps of one word would share three of four.
    """
    raise _in_kernels_only("normal")


def lognormal(seed: int, counter: int, mean: float = 0.0, sd: float = 1.0) -> float:
    """A real whose logarithm is ``normal(seed, counter, mean, sd)``; uses four words, as `normal`."""
    raise _in_kernels_only("lognormal")


def exponential(seed: int, counter: int, scale: float = 1.0) -> float:
    """A real of at least 0 of the exponential distribution, with the mean ``scale``; uses one word."""
    raise _in_kernels_only("exponential")


def multivariate_normal(seed: int, counter: int, mean: Any, factor: Any) -> Any:
    """A vector of n reals around ``mean``, with the covariance ``factor @ factor.T``; uses 4 n words.

    ``factor`` is (n, n) and lower triangular, as ``numpy.linalg.cholesky`` gives it: what is above its diagonal is not
    looked at. Number j of the independent normal numbers is that of ``counter + 4 * j``; a new vector every step has
    ``counter=4 * n * eagle.step_index()``.
    """
    raise _in_kernels_only("multivariate_normal")


def bernoulli(seed: int, counter: int, p: float) -> bool:
    """True with probability ``p``: never for 0, always for 1; uses one word."""
    raise _in_kernels_only("bernoulli")


def _in_kernels_only(name: str) -> Exception:
    return refusal("WRONG_TYPE", f"eagle.random.{name}() has a value in a kernel only; call it inside @eagle.kernel")
