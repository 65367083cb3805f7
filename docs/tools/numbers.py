"""Writes the table of functions in docs/manual/numbers.md.

    tests/accuracy/long_run.sh DIRECTORY
    python3 docs/tools/numbers.py DIRECTORY        # keeps the measured errors in docs/manual/accuracy.txt too
    python3 docs/tools/numbers.py                  # writes the table from those kept before
    python3 docs/tools/numbers.py --check          # 1 if the page is not what this would write

Meanings and edges stand here, derivatives in engine/kernel/diff/table.h, errors come from the measurement alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import gradients

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "manual" / "numbers.md"
KEPT = ROOT / "docs" / "manual" / "accuracy.txt"
BEGIN, END = "<!-- table: python3 docs/tools/numbers.py -->\n", "<!-- end of table -->\n"

# (operations, meaning, edges)
ROWS = [
    ("abs", "`abs(x)`: absolute value", ""),
    ("min, max", "`minimum(a, b)`, `maximum(a, b)`", "a NaN is ignored; a tie gives `a`"),
    ("sqrt", "square root", "`sqrt(-0) = -0`, NaN below 0"),
    ("fma", "`a b + c`, rounded once", "as IEEE 754"),
    ("pow", "x to the power y", "C's: `pow(x, 0) = pow(1, y) = 1` for NaN too; NaN for `x < 0` and y not whole"),
    ("rsqrt", "`1 / sqrt(x)`", "`rsqrt(+-0) = +-inf`, `rsqrt(inf) = 0`, NaN below 0"),
    ("cbrt", "cube root", "odd; ends stay"),
    ("hypot", "`sqrt(x^2 + y^2)` without overflow", "infinite where one is, even beside NaN"),
    ("exp", "e^x", "`exp(-inf) = 0`; subnormal results are kept"),
    ("exp2", "2^x", "exact for whole x"),
    ("expm1", "`exp(x) - 1`", "`expm1(+-0) = +-0`, `expm1(-inf) = -1`"),
    ("log", "natural logarithm", "`log(+-0) = -inf`, NaN below 0"),
    ("log2", "logarithm to base 2", "as `log`; exact for powers of 2"),
    ("log10", "logarithm to base 10", "as `log`; exact for powers of 10"),
    ("log1p", "`log(1 + x)`", "`log1p(+-0) = +-0`, `log1p(-1) = -inf`, NaN below"),
    ("erf", "error function", "odd; `erf(+-inf) = +-1`"),
    ("erfc", "`1 - erf(x)`", "0 at inf, 2 at -inf; subnormal results are kept"),
    ("sin", "sine, of radians", "NaN for infinities; angles of any size are reduced exactly"),
    ("cos", "cosine", "as `sin`"),
    ("tan", "tangent", "as `sin`; never infinite"),
    ("asin", "arc sine, in [-pi/2, pi/2]", "NaN outside of [-1, 1]"),
    ("acos", "arc cosine, in [0, pi]", "as `asin`; `acos(1) = +0`"),
    ("atan", "arc tangent, in [-pi/2, pi/2]", "`atan(+-inf) = +-pi/2`"),
    ("atan2", "`atan2(y, x)`: angle of (x, y), in [-pi, pi]", "C's: of all zeros and infinities, with their signs"),
    ("sinh", "hyperbolic sine", "odd"),
    ("cosh", "hyperbolic cosine", "even"),
    ("tanh", "hyperbolic tangent", "odd; `tanh(+-inf) = +-1`"),
    ("asinh", "inverse of sinh", "odd"),
    ("acosh", "inverse of cosh", "`acosh(1) = +0`, NaN below 1"),
    ("atanh", "inverse of tanh", "`atanh(+-1) = +-inf`, NaN outside"),
    ("floor, ceil, trunc", "whole numbers below, above, towards zero", "the sign of x is kept, at zero too"),
    ("round", "nearest whole number, halves away from zero", "the sign of x is kept"),
    ("rint", "nearest whole number, halves to even", "the sign of x is kept"),
    ("sign", "-1, 0, 1", "`sign(+-0) = +0`, `sign(NaN) = NaN`"),
    ("copysign", "`|x|` with the sign of y", "`copysign(x, NaN) = |x|`"),
    ("fmod", "rest of `x / y`, with the sign of x", "NaN for y = 0 and x infinite; x for y infinite"),
    (
        "remainder",
        "rest of `x / y`, with the sign of y: Python's `%`",
        "as `fmod`; a zero has the sign of y; `y` for infinite y of the other sign",
    ),
    ("floor_divide", "Python's `//` of reals", "`x / y` for y = 0"),
    ("fdim", "`x - y` where positive, else 0", "NaN where one is"),
    ("clip", "x within [lo, hi]", "NaN where one is; `hi` where `lo > hi`"),
    ("isnan, isinf, isfinite", "conditions", ""),
]

# Functions whose operation has another name.
OPCODES = {"floor_divide": "floor_quotient"}

EVERY_SINGLE = 1 << 32
OF_TWO = ("atan2", "hypot", "pow")


class Largest(NamedTuple):
    error: float
    operands: int
    at: str


def largest_of(lines: Iterable[str]) -> dict[tuple[str, str], Largest]:
    """The largest error of each function and type, and the operands of all tests of it."""
    found: dict[tuple[str, str], Largest] = {}
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        name, kind, error, count, at = line.split(maxsplit=4)
        here, before = Largest(float(error), int(count), at.strip()), found.get((name, kind), Largest(-1.0, 0, ""))
        found[name, kind] = max(here, before)._replace(operands=here.operands + before.operands)
    return found


def run_of(found: dict[tuple[str, str], Largest]) -> str:
    """Which run of tests/accuracy has so many operands: every function has more than are drawn at random."""
    if not all(each.operands > 10_000_000 for (_, kind), each in found.items() if kind == "f64"):
        return "a short run of tests/accuracy (60,000 random operands a function)"
    some = sorted(name for (name, kind), each in found.items() if kind == "f32" and each.operands < EVERY_SINGLE)
    less = [name for name in some if name not in OF_TWO]
    return (
        "the long run of tests/accuracy (seed 20261129; for each function 10^7 random float64 operands, known hard "
        "ones, climbs from the worst; every float32 number for functions of one"
        + (f", but some 10^5 of them for {', '.join(less)})" if less else ")")
    )


def table() -> str:
    found = largest_of(KEPT.read_text().splitlines())
    lines = [
        "| function | meaning | edges | max. ulp f64 | f32 | derivative |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    derivatives = gradients.rules()
    for name, meaning, edges in ROWS:
        errors = ["exact", "exact"]
        if name == "sqrt":
            errors = ["0.50", "0.50"]
        if (name, "f64") in found:
            errors = [f"{found[name, kind].error:.2f}" for kind in ("f64", "f32")]
        first = name.split(",")[0]
        cells = [f"`{name}`", meaning, edges, *errors, str(derivatives[OPCODES.get(first, first)])]
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    missing = {name for name, _ in found} - {row[0] for row in ROWS}
    if missing:
        sys.exit(f"numbers.py: measured, but not in the table: {', '.join(sorted(missing))}")
    reals = sum(each.operands for (_, kind), each in found.items() if kind == "f64")
    singles = sum(each.operands for (_, kind), each in found.items() if kind == "f32")
    lines += [
        "",
        f"Measured on {reals / 1e6:.0f} million operands in float64 and {singles / 1e6:,.0f} million in float32, by "
        f"{run_of(found)}. `accuracy.txt` beside this page has more digits, and where the errors were found.",
    ]
    return "\n".join(lines) + "\n"


def keep(path: Path) -> None:
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    found = largest_of(line for file in files for line in file.read_text().splitlines())
    rows = (
        f"{name} {kind} {each.error:.6f} {each.operands} {each.at}\n" for (name, kind), each in sorted(found.items())
    )
    head = f"# function, type, largest error in ulp, operands, where: by {run_of(found)}\n"
    KEPT.write_text(head + "".join(rows))


def main(arguments: list[str]) -> None:
    check = arguments == ["--check"]
    if arguments and not check:
        keep(Path(arguments[0]))
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    made = before + BEGIN + table() + END + rest.partition(END)[2]
    if check and made != page:
        sys.exit(f"{PAGE} is not what numbers.py makes; run it")
    if not check:
        PAGE.write_text(made)


if __name__ == "__main__":
    main(sys.argv[1:])
