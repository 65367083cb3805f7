"""Makes tables.h: the constants of the functions in this folder, from their definitions alone.

    python3 engine/kernel/math/tables.py            # writes tables.h
    python3 engine/kernel/math/tables.py --check    # 1 if tables.h is not what this would write

Everything is computed in decimal arithmetic of many digits and rounded once. Polynomials are the best ones of their
degree for the error that counts (Remez's exchange on a fine grid); those of erf and erfc interpolate at Chebyshev
nodes.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal as D
from decimal import getcontext, localcontext
from itertools import pairwise
from pathlib import Path

getcontext().prec = 90
ONE, TWO = D(1), D(2)


# ---- functions of many digits


def arctan(x: D) -> D:
    if abs(x) > D("0.1"):
        return 2 * arctan(x / (1 + (1 + x * x).sqrt()))
    total, term, k = D(0), x, 1
    while abs(term) > D(10) ** -(getcontext().prec + 5):
        total += term / k if k % 4 == 1 else -term / k
        term *= x * x
        k += 2
    return total


PI = 4 * arctan(ONE)
LN2 = TWO.ln()


def sine(x: D) -> D:
    total, term, k = D(0), x, 1
    while abs(term) > D(10) ** -(getcontext().prec + 5):
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def cosine(x: D) -> D:
    total, term, k = D(0), ONE, 0
    while abs(term) > D(10) ** -(getcontext().prec + 5):
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def arcsine(x: D) -> D:
    return arctan(x / (1 - x * x).sqrt())


def erf_series(x: D) -> D:
    """erf(x) exp(x^2) sqrt(pi) / 2 = sum of 2^n x^(2n+1) / (1 3 5 ... (2n+1))."""
    total, term, n = D(0), x, 0
    while term > total * D(10) ** -(getcontext().prec):
        total += term
        n += 1
        term *= 2 * x * x / (2 * n + 1)
    return total


def erf(x: D) -> D:
    return 2 / PI.sqrt() * (-x * x).exp() * erf_series(x)


def scaled_erfc(x: D) -> D:
    """exp(x^2) erfc(x)."""
    with localcontext() as context:
        context.prec = 70 + int(x * x / D("2.3"))
        pi = PI if context.prec <= 90 else _long_pi()
        return (x * x).exp() - 2 / pi.sqrt() * erf_series(x)


def _long_pi() -> D:
    """pi by Machin's formula with the digits of the longest computation here."""
    if "pi" not in _CACHE:
        with localcontext() as context:
            context.prec = 500
            scale = 10**490
            _CACHE["pi"] = D(4 * (4 * _arccot(5, scale) - _arccot(239, scale))) / scale
    return _CACHE["pi"]


_CACHE: dict[str, D] = {}


def _arccot(n: int, scale: int) -> int:
    total, term, k = 0, scale // n, 1
    while term:
        total += term // k if k % 4 == 1 else -(term // k)
        term //= n * n
        k += 2
    return total


# ---- rounding


def nearest(x: D) -> float:
    return float(x)  # correctly rounded, from any number of digits


def on_grid(x: D, bits: int) -> float:
    """The nearest multiple of 2^-bits."""
    return nearest((x * TWO**bits).to_integral_value() / TWO**bits)


def significant(x: D, bits: int) -> float:
    """The nearest number of that many significant bits."""
    if x == 0:
        return 0.0
    exponent = math.frexp(float(x))[1]
    return on_grid(x, bits - exponent) if bits >= exponent else float(x)


def halves(x: D) -> tuple[float, float]:
    hi = nearest(x)
    return hi, nearest(x - D(hi))


# ---- polynomials


def interpolate(f: Callable[[D], D], low: D, high: D, count: int) -> list[D]:
    """Coefficients of the polynomial of that many terms through f at the Chebyshev nodes of [low, high]."""
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = [middle + half * cosine(PI * (2 * k + 1) / (2 * count)) for k in range(count)]
    divided = [f(x) for x in nodes]
    for order in range(1, count):
        for k in range(count - 1, order - 1, -1):
            divided[k] = (divided[k] - divided[k - 1]) / (nodes[k] - nodes[k - order])
    coefficients = [D(0)] * count
    for k in range(count - 1, -1, -1):  # Newton's form, expanded
        shifted = [D(0), *coefficients[:-1]]
        coefficients = [a - nodes[k] * b for a, b in zip(shifted, coefficients, strict=True)]
        coefficients[0] += divided[k]
    return coefficients


def best(f: Callable[[D], D], low: D, high: D, count: int, weight: Callable[[D], D]) -> tuple[list[D], str]:
    """The polynomial of that many terms with the least max of |weight (f - polynomial)|, and that as a power of two."""
    size = 30 * count
    grid = [(low + high) / 2 - (high - low) / 2 * cosine(PI * k / size) for k in range(size + 1)]
    values, weights = [f(x) for x in grid], [weight(x) + D("1e-40") for x in grid]
    chosen = [round(k * size / count) for k in range(count + 1)]
    for _ in range(30):
        rows = [
            [grid[i] ** k for k in range(count)] + [(-1) ** n / weights[i], values[i]] for n, i in enumerate(chosen)
        ]
        *coefficients, level = _solved(rows)
        errors = [w * (v - _at(coefficients, x)) for x, v, w in zip(grid, values, weights, strict=True)]
        peaks = _peaks(errors, count + 1)
        worst = max(abs(e) for e in errors)
        if len(peaks) < count + 1 or worst < abs(level) * D("1.0001"):
            break
        chosen = peaks
    return coefficients, f"2^{math.log2(worst):.1f}"


def _at(coefficients: Sequence[D], x: D) -> D:
    total = D(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _solved(rows: list[list[D]]) -> list[D]:
    """Gauss's elimination; the last column is the right side."""
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    x = [D(0)] * n
    for k in range(n - 1, -1, -1):
        x[k] = (rows[k][n] - sum((rows[k][j] * x[j] for j in range(k + 1, n)), D(0))) / rows[k][k]
    return x


def _peaks(errors: Sequence[D], wanted: int) -> list[int]:
    """The largest error of each run of one sign; the smallest ends are left out until so many are there."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if peaks and (error > 0) == (errors[peaks[-1]] > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > wanted:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def series_quotient(f: Callable[[D], D], taylor: Sequence[D], power: int) -> Callable[[D], D]:
    """(f(x) - its first Taylor terms) / x^power, where f is given with enough digits."""

    def g(x: D) -> D:
        x = x if abs(x) > D("1e-20") else D("1e-20")  # close enough to the limit at 0
        head = sum((c * x**k for k, c in enumerate(taylor)), D(0))
        return (f(x) - head) / x**power

    return g


def of_square(f: Callable[[D], D], taylor: Sequence[D], power: int) -> Callable[[D], D]:
    g = series_quotient(f, taylor, power)
    return lambda t: g(t.sqrt())


# ---- tables.h

Lines = list[str]


def number(x: float) -> str:
    return "0.0" if x == 0 else x.hex()


def array(name: str, values: Sequence[float], comment: str) -> Lines:
    rows = [", ".join(map(number, values[i : i + 4])) for i in range(0, len(values), 4)]
    return [
        f"// {comment}",
        f"inline constexpr std::array<double, {len(values)}> {name} = {{",
        *(f"    {row}," for row in rows),
        "};",
    ]


def words(name: str, values: Sequence[int], comment: str) -> Lines:
    rows = [", ".join(f"0x{v:08x}" for v in values[i : i + 8]) for i in range(0, len(values), 8)]
    return [
        f"// {comment}",
        f"inline constexpr std::array<std::uint64_t, {len(values)}> {name} = {{",
        *(f"    {row}," for row in rows),
        "};",
    ]


def constant(name: str, value: float, comment: str) -> Lines:
    return [f"inline constexpr double {name} = {number(value)};  // {comment}"]


def pair(name: str, value: D, comment: str) -> Lines:
    hi, lo = halves(value)
    return [*constant(name, hi, comment), *constant(f"{name}_lo", lo, "the rest")]


def exponential() -> Lines:
    step, powers = LN2 / 16, [halves((LN2 * j / 16).exp()) for j in range(16)]
    high = significant(step, 38)  # times any integer below 2^15 it is exact
    radius = step / 2 * D("1.001")
    q, error = best(series_quotient(D.exp, [ONE, ONE], 2), -radius, radius, 6, lambda r: r * r)
    return [
        *constant("steps_of_exp", nearest(16 / LN2), "16 / ln 2"),
        *constant("step_of_exp", high, "ln 2 / 16: 38 bits"),
        *constant("step_of_exp_lo", nearest(step - D(high)), "the rest"),
        *array("power_of_two", [hi for hi, _ in powers], "2^(j/16)"),
        *array("power_of_two_lo", [lo for _, lo in powers], "the rest"),
        *array("exp_terms", [nearest(c) for c in q], f"(e^r - 1 - r) / r^2 for |r| <= ln 2 / 32: e^r to {error}"),
    ]


LOG_GRID = 42  # k ln 2 for |k| < 2^11 and the logarithms of the tables add exactly on it


def logarithm() -> Lines:
    inverse: list[float] = []
    for j in range(16):
        # The mantissas of entry j, in [1, 2) above the first entries and in [1/2, 1) below (logarithm.h).
        position = 0x3FE6800000000000 + (j << 48)
        low, high = (struct.unpack("<d", struct.pack("<Q", position + (d << 48)))[0] for d in (0, 1))
        inverse.append(1.0 if low < 1 < high else significant(2 / (D(low) + D(high)), 8))
    first = _log_table([D(c) for c in inverse])
    finer = [significant(1 / (1 + D(j if j < 8 else j - 16) / 224), 12) for j in range(16)]
    second = _log_table([D(c) for c in finer])
    ln2 = on_grid(LN2, LOG_GRID)
    wide, narrow = D("0.0331"), ONE / 400
    log1p = [D(0), ONE, D("-0.5")]
    q, error = best(series_quotient(lambda r: (1 + r).ln(), log1p[:2], 2), -wide, wide, 9, abs)
    cubic, finer_error = best(series_quotient(lambda r: (1 + r).ln(), log1p, 3), -narrow, narrow, 5, lambda r: r * r)
    return [
        *constant("ln_2", ln2, f"ln 2 on the grid of 2^-{LOG_GRID}"),
        *constant("ln_2_lo", nearest(LN2 - D(ln2)), "the rest"),
        *constant("ln_2_nearest", nearest(LN2), "ln 2"),
        *pair("per_ln_2", 1 / LN2, "1 / ln 2"),
        *pair("per_ln_10", 1 / D(10).ln(), "1 / ln 10"),
        *array("log_inverse", inverse, "about 1 / m for the 16 parts of the mantissas, in few bits"),
        *array("log_value", [hi for hi, _ in first], f"-ln of that, on the grid of 2^-{LOG_GRID}"),
        *array("log_value_lo", [lo for _, lo in first], "the rest"),
        *array(
            "log_terms",
            [nearest(c) for c in q],
            f"(ln(1 + r) - r) / r^2 for |r| <= 0.0331: the logarithm to {error} of itself",
        ),
        *array("finer_inverse", finer, "about 1 / (1 + j/224), j = 0..7, -8..-1, in few bits"),
        *array("finer_value", [hi for hi, _ in second], f"-ln of that, on the grid of 2^-{LOG_GRID}"),
        *array("finer_value_lo", [lo for _, lo in second], "the rest"),
        *array(
            "finer_terms",
            [nearest(c) for c in cubic],
            f"(ln(1 + r) - r + r^2/2) / r^3 for |r| <= 1/400: to {finer_error} of itself",
        ),
    ]


def _log_table(inverse: Sequence[D]) -> list[tuple[float, float]]:
    rows = []
    for c in inverse:
        value = -c.ln() if c != 1 else D(0)
        hi = on_grid(value, LOG_GRID)
        rows.append((hi, nearest(value - D(hi))))
    return rows


def trigonometric() -> Lines:
    half_pi = PI / 2
    first = significant(half_pi, 33)
    second = significant(half_pi - D(first), 33)
    third = nearest(half_pi - D(first) - D(second))
    end = (PI / 4 * D("1.0001")) ** 2
    s, sine_error = best(of_square(sine, [D(0), ONE], 3), D("1e-30"), end, 6, lambda t: t)
    c, cosine_error = best(of_square(cosine, [ONE, D(0), D("-0.5")], 4), D("1e-30"), end, 6, lambda t: t * t)
    scale, bits = 10**490, 41 * 32
    pi = 4 * (4 * _arccot(5, scale) - _arccot(239, scale))
    fraction = (scale << (bits + 1)) // pi  # 2/pi 2^bits
    chunks = [(fraction >> (32 * (40 - k))) & 0xFFFFFFFF for k in range(41)]
    return [
        *constant("per_half_pi", nearest(1 / half_pi), "2 / pi"),
        *constant("half_pi_first", first, "pi / 2: 33 bits"),
        *constant("half_pi_second", second, "the next 33"),
        *constant("half_pi_third", third, "the rest"),
        *pair("half_pi", half_pi, "pi / 2"),
        *array(
            "sin_terms",
            [nearest(x) for x in s],
            f"(sin r - r) / r^3 in r^2, for |r| <= pi/4: the sine to {sine_error} of itself",
        ),
        *array(
            "cos_terms",
            [nearest(x) for x in c],
            f"(cos r - 1 + r^2/2) / r^4 in r^2, for |r| <= pi/4: the cosine to {cosine_error}",
        ),
        *words("bits_of_per_half_pi", [0, 0, *chunks, *[0] * 21], "64 zeros, then the bits of 2/pi, 32 a word"),
    ]


def inverse_trigonometric() -> Lines:
    knots = [TWO ** ((k + 1) // 2 - 4) * (ONE if (k + 1) % 2 == 0 else D("1.5")) for k in range(15)]
    numerators, angles = [0.0], [(0.0, 0.0)]
    for low, high in pairwise(knots):
        middle = (arctan(low) + arctan(high)) / 2
        centre = significant(sine(middle) / cosine(middle), 11)
        numerators.append(centre)
        angles.append(halves(arctan(D(centre))))
    numerators.append(1.0)  # of an infinite one: the denominator is 0
    angles.append(halves(PI / 2))
    assert len(numerators) == 16
    a, atan_error = best(of_square(arctan, [D(0), ONE], 3), D("1e-30"), D("0.0995") ** 2, 6, lambda t: t)
    s, asin_error = best(of_square(arcsine, [D(0), ONE], 3), D("1e-30"), D("0.25"), 13, lambda t: t)
    return [
        *array(
            "atan_centre", numerators, "tangents between the knots 0, 3/32, 1/8, 3/16, ..., 8, 12; the last is 1 / 0"
        ),
        *array("atan_value", [hi for hi, _ in angles], "their arc tangents"),
        *array("atan_value_lo", [lo for _, lo in angles], "the rest"),
        *array(
            "atan_terms",
            [nearest(x) for x in a],
            f"(atan z - z) / z^3 in z^2, for |z| <= 0.0995: to {atan_error} of itself",
        ),
        *array(
            "asin_terms",
            [nearest(x) for x in s],
            f"(asin x - x) / x^3 in x^2, for |x| <= 1/2: to {asin_error} of itself",
        ),
    ]


def roots() -> Lines:
    third = ONE / 3
    start, error = best(lambda m: (-third * m.ln()).exp(), ONE, TWO, 6, lambda m: ONE)
    scale = [nearest((-third * k * LN2).exp()) for k in (0, 1, 2, 0)]
    return [
        *array("cbrt_start", [nearest(c) for c in start], f"m^(-1/3) for m in [1, 2) to {error}"),
        *array("cbrt_scale", scale, "2^(-k/3), k = 0, 1, 2"),
    ]


def error_function() -> Lines:
    lines: Lines = []
    width = D("0.375")
    rows = [_piece(lambda x: erf(x) / x, width * (2 * j + 1) / 2, width / 2, ERF_TERMS) for j in range(16)]
    lines += _pieces("erf", rows, "erf(x) / x around x = (2 j + 1) 0.1875")
    rows, centres = [], []
    for j in range(32):
        low = TWO ** (j // 4 - 1) * (1 + D(j % 4) / 4)
        high = TWO ** (j // 4 - 1) * (1 + D(j % 4 + 1) / 4)
        centres.append((low + high) / 2)
        rows.append(_piece(scaled_erfc, centres[-1], (high - low) / 2, ERFC_TERMS) if low < 28 else rows[-1])
    lines += array("erfc_centre", [nearest(c) for c in centres], "the middles of four parts a binade from 1/2 on")
    lines += _pieces("erfc", rows, "e^(x x) erfc(x) around those")
    return lines


ERF_TERMS, ERFC_TERMS = 15, 14


def _piece(f: Callable[[D], D], centre: D, radius: D, count: int) -> list[D]:
    return interpolate(lambda d: f(centre + d), -radius, radius, count)


def _pieces(name: str, rows: Sequence[Sequence[D]], comment: str) -> Lines:
    """One table a coefficient, and one for what the constant terms lost."""
    count = len(rows[0])
    lines = [
        f"// {comment}: coefficient, piece",
        f"inline constexpr std::array<std::array<double, {len(rows)}>, {count}> {name}_terms = {{{{",
    ]
    for k in range(count):
        values = [number(nearest(row[k])) for row in rows]
        lines.append("    {" + ",\n     ".join(", ".join(values[i : i + 4]) for i in range(0, len(values), 4)) + "},")
    lines.append("}};")
    lines += array(f"{name}_term_lo", [halves(row[0])[1] for row in rows], "the rest of the first coefficients")
    return lines


HEAD = """// Constants of the functions in this folder. Made by tables.py; change that, and run it.
#pragma once

#include <array>
#include <cstdint>

// clang-format off
namespace eagle::kernel::math {
"""


def text() -> str:
    parts = [exponential(), logarithm(), trigonometric(), inverse_trigonometric(), roots(), error_function()]
    return HEAD + "\n" + "\n\n".join("\n".join(part) for part in parts) + "\n\n}  // namespace eagle::kernel::math\n"


if __name__ == "__main__":
    target = Path(__file__).with_name("tables.h")
    made = text()
    if sys.argv[1:] == ["--check"]:
        if target.read_text() != made:
            sys.exit(f"{target} is not what {Path(__file__).name} makes; run it without --check")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        target.write_text(made)
