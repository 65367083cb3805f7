"""Random kernels against numpy: the same expression, the same bits."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import eagle

ROUNDS = 200 if os.environ.get("EAGLE_LONG") else 20
SEED = int(os.environ.get("EAGLE_SEED", random.SystemRandom().randrange(2**32)))


class Maker:
    """Makes one random kernel and, beside it, the numpy expressions of the same meaning."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.reals = ["x", "y", "z"]

    def real(self, depth: int) -> tuple[str, str]:
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.15:
            name = pick(self.reals)
            if self.random.random() < 0.3:
                name = pick(
                    [f"({name} {pick('+-*/')} {self.constant()})", f"({self.constant()} {pick('+-*/')} {name})"]
                )
            return name, name
        kind = pick(["+", "-", "*", "/", "+", "-", "*", "neg", "abs", "sqrt", "if", "select", "min", "max"])
        a, b = self.real(depth - 1), self.real(depth - 1)
        if kind in "+-*/":
            return tuple(f"({p} {kind} {q})" for p, q in zip(a, b))
        if kind == "neg":
            return f"(-{a[0]})", f"(-{a[1]})"
        if kind == "abs":
            return f"abs({a[0]})", f"np.abs({a[1]})"
        if kind == "sqrt":
            return f"math.sqrt(abs({a[0]} + x))", f"np.sqrt(np.abs({a[1]} + x))"
        if kind in ("min", "max"):
            sign = "<" if kind == "min" else ">"
            return f"{kind}({a[0]}, {b[0]})", f"np.where({b[1]} {sign} {a[1]}, {b[1]}, {a[1]})"
        c = self.condition(depth - 1)
        spelled = f"({a[0]} if {c[0]} else {b[0]})" if kind == "if" else f"select({c[0]}, {a[0]}, {b[0]})"
        return spelled, f"np.where({c[1]}, {a[1]}, {b[1]})"

    def constant(self) -> str:
        return f"({round(self.random.uniform(-3, 3), self.random.randrange(4))!r})"

    def condition(self, depth: int) -> tuple[str, str]:
        if depth > 0 and self.random.random() < 0.4:
            kind = self.random.choice(["and", "or", "not"])
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            if kind == "not":
                return f"(not {a[0]})", f"(~{a[1]})"
            return f"({a[0]} {kind} {b[0]})", f"({a[1]} {'&' if kind == 'and' else '|'} {b[1]})"
        a, b = self.real(max(depth - 1, 0)), self.real(max(depth - 1, 0))
        if self.random.random() < 0.3:
            b = (self.constant(),) * 2
        sign = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"({a[0]} {sign} {b[0]})", f"({a[1]} {sign} {b[1]})"

    def make(self) -> tuple[str, list[str]]:
        kernel, reference = ["def made(x: Scalar, y: Scalar, z: Scalar) -> Scalar:"], []
        for number in range(self.random.randrange(1, 4)):
            name = f"t{number}"
            if self.random.random() < 0.5:
                text, twin = self.real(3)
                kernel.append(f"    {name} = {text}")
                reference.append(f"{name} = {twin}")
            else:
                c, a, b = self.condition(2), self.real(2), self.real(2)
                kernel += [f"    if {c[0]}:", f"        {name} = {a[0]}", "    else:", f"        {name} = {b[0]}"]
                reference.append(f"{name} = np.where({c[1]}, {a[1]}, {b[1]})")
            self.reals.append(name)
        text, twin = self.real(3)
        kernel.append(f"    out = {text}\n    return out")
        reference.append(f"out = {twin}")
        return "\n".join(kernel), reference


def canonical(values: np.ndarray) -> bytes:
    """The bits; a NaN is a NaN."""
    return np.where(np.isnan(values), np.array(np.nan, values.dtype), values).tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_random_kernels_give_numpys_bits(session, dtype):
    print(f"seed {SEED}: repeat with EAGLE_SEED={SEED}")
    rng = np.random.default_rng(SEED)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-40, 3e38]
    for number in range(ROUNDS):
        text, reference = Maker(SEED + number).make()
        x, y, z = (np.concatenate([rng.normal(size=53), rng.permutation(special)]).astype(dtype) for _ in range(3))
        names = {"np": np, "x": x, "y": y, "z": z}
        with np.errstate(all="ignore"):
            for line in reference:
                exec(line, names)
        made = eagle.kernel(source=text)
        got = made(*(session.asarray(a) for a in (x, y, z)), session=session)
        expected = np.asarray(names["out"])
        assert expected.dtype == dtype
        assert canonical(got) == canonical(expected), f"seed {SEED}, kernel {number}:\n{text}"
