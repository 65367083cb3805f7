"""Random kernels with loops, branches and integers against the same text run by Python, sample by sample."""

from __future__ import annotations

import os
import random

import numpy as np

import eagle

ROUNDS = 150 if os.environ.get("EAGLE_LONG") else 25
SEED = int(os.environ.get("EAGLE_SEED", random.SystemRandom().randrange(2**32)))
N = 19
OPERATORS = {
    *("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "~", "**", "for", "while", "if", "break", "continue"),
    *("return", "choice", "and", "or", "not", "select", "min", "max", "abs", "vector", "dispatch", "helper", "table"),
}


def helper(a, b=2.0):
    """Called by the kernels, and by Python."""
    for k in range(3):
        if a > b:
            return a - b
        a = a + k * 0.25
    return a * b


class TableOfPython:
    """What a Table is to Python: an index outside takes the nearest element."""

    def __init__(self, values):
        self._values = values

    def at(self, i):
        return self._values[min(max(i, 0), len(self._values) - 1)]


class Maker:
    """Writes one random kernel. Reals are kept small, and integers are masked, so that Python's do not grow."""

    def __init__(self, seed: int, seen: set[str]) -> None:
        self.random = random.Random(seed)
        self.seen = seen
        self.reals = ["x", "y"]
        self.integers = ["i", "j"]
        self.fresh = 0
        self.lines: list[str] = []

    def pick(self, *kinds: str) -> str:
        kind = self.random.choice(kinds)
        self.seen.add(kind)
        return kind

    def real(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice([*self.reals, repr(round(self.random.uniform(-2, 2), 2))])
        kind = self.pick(
            *("+", "-", "*", "choice", "select", "min", "max", "abs", "vector", "dispatch", "helper", "table", "int")
        )
        a, b = self.real(depth - 1), self.real(depth - 1)
        if kind in "+-":
            return f"({a} {kind} {b})"
        forms = {
            "*": f"({a} * {b} * 0.125)",
            "choice": f"({a} if {self.condition(depth - 1)} else {b})",
            "select": f"eagle.select({self.condition(depth - 1)}, {a}, {b})",
            "min": f"min({a}, {b})",
            "max": f"max({a}, {b})",
            "abs": f"abs({a})",
            "vector": f"eagle.math.dot(eagle.vector({a}, {b}), eagle.vector({b}, 0.25))",
            "dispatch": f"eagle.dispatch({self.integer(1)}, [lambda: {a}, lambda: {b}, lambda: 0.5])",
            "helper": f"helper({a}, b={b})",
            "table": f"t.at({self.integer(1)})",
            "int": f"float({self.integer(depth - 1)})",
        }
        return forms[kind]

    def integer(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice([*self.integers, str(self.random.randrange(-9, 10))])
        kind = self.pick("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "~", "**", "choice", "abs")
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        forms = {
            "//": f"({a} // (({b}) | 1))",  # an odd number is not 0
            "%": f"({a} % (({b}) | 1))",
            "<<": f"(({a}) << (({b}) & 3) & 1023)",
            ">>": f"({a} >> (({b}) & 7))",
            "~": f"(~{a})",
            "**": f"(({a}) ** 3 & 1023)",
            "choice": f"({a} if {self.condition(depth - 1)} else {b})",
            "abs": f"abs({a})",
            "*": f"(({a} * {b}) & 255)",
        }
        return forms.get(kind, f"({a} {kind} {b})")

    def condition(self, depth: int) -> str:
        if depth > 0 and self.random.random() < 0.4:
            kind = self.pick("and", "or", "not")
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return f"(not {a})" if kind == "not" else f"({a} {kind} {b})"
        sign = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        make = self.random.choice([self.real, self.integer])
        return f"({make(max(depth - 1, 0))} {sign} {make(max(depth - 1, 0))})"

    def assign(self, indent: str) -> None:
        if self.random.random() < 0.5:
            self.lines.append(f"{indent}{self.random.choice('pq')} = {self.real(2)}")
        else:
            self.lines.append(f"{indent}{self.random.choice('mn')} = ({self.integer(2)}) & 4095")

    def block(self, indent: str, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randrange(1, 4)):
            kinds = ["assign", "assign"] + (["if", "if", "for", "while"] if depth else [])
            kind = self.pick(*kinds)
            if kind == "assign":
                self.assign(indent)
            elif kind == "if":
                self.lines.append(f"{indent}if {self.condition(2)}:")
                self.block(indent + "    ", depth - 1, in_loop)
                if self.random.random() < 0.6:
                    self.lines.append(f"{indent}else:")
                    self.block(indent + "    ", depth - 1, in_loop)
            else:
                self.loop(indent, depth, kind)
        if self.random.random() < 0.3:
            leave = self.pick("return", *(("break", "continue") if in_loop else ()))
            self.lines.append(f"{indent}if {self.condition(2)}:")
            self.lines.append(f"{indent}    {f'return {self.real(1)} + 0.0' if leave == 'return' else leave}")

    def loop(self, indent: str, depth: int, kind: str) -> None:
        self.fresh += 1
        k = f"k{self.fresh}"
        if kind == "for":
            a, s = self.random.randrange(-3, 4), self.random.choice([1, 1, 2, -1, -3])
            end = self.random.choice([str(self.random.randrange(-6, 7)), f"({self.integer(1)}) % 7"])
            self.lines.append(f"{indent}for {k} in eagle.bounded(range({a}, {end}, {s}), 5):")
        else:
            # Counted in the text too, since eagle.bounded ends no loop of Python's.
            self.lines += [f"{indent}{k} = 0", f"{indent}while eagle.bounded(6) and {k} < 5 and {self.condition(2)}:"]
            self.lines.append(f"{indent}    {k} += 1")
        self.integers.append(k)
        self.block(indent + "    ", depth - 1, True)
        self.integers.remove(k)

    def make(self) -> str:
        self.lines = [
            "def made(x: Scalar, y: Scalar, i: Index, j: Index, t: Table[Scalar]) -> Scalar:",
            "    p, q, m, n = x, 0, i, 0",
        ]
        self.reals += ["p", "q"]
        self.integers += ["m", "n"]
        self.block("    ", 3, False)
        self.lines.append("    return p + q * 0.5 + m + 3 * n")
        return "\n".join(self.lines)


def as_python(text: str):
    roles = {name: getattr(eagle, name) for name in ("Scalar", "Index", "Table")}
    names = {"eagle": eagle, "helper": helper, **roles}
    exec(text, names)
    return names["made"]


def canonical(values) -> bytes:
    values = np.asarray(values, float)
    return np.where(np.isnan(values), np.nan, values).tobytes()


def test_random_programs_give_pythons_bits(session):
    print(f"seed {SEED}: repeat with EAGLE_SEED={SEED}")
    rng = np.random.default_rng(SEED)
    seen: set[str] = set()
    for number in range(ROUNDS):
        text = Maker(SEED + number, seen).make()
        x, y = rng.normal(size=N).round(3), rng.normal(size=N).round(3)
        i, j, t = rng.integers(-20, 20, N), rng.integers(-5, 5, N), rng.normal(size=6)
        made = eagle.kernel(source=text, constants={"helper": helper})
        got = made(*(session.asarray(a) for a in (x, y, i, j, t)), session=session)
        python, table = as_python(text), TableOfPython(t.tolist())
        with np.errstate(all="ignore"):
            rows = zip(x.tolist(), y.tolist(), i.tolist(), j.tolist())
            expected = [float(python(*row, table)) for row in rows]
        assert canonical(got) == canonical(expected), f"seed {SEED}, kernel {number}:\n{text}"
    if ROUNDS > 100:
        assert seen >= OPERATORS, f"not made by seed {SEED}: {OPERATORS - seen}"
