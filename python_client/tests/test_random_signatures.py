"""Random lists of roles, types and shapes: called with arrays, launched as a plan, in a graph, and after an update of the
numbers, they give the same bits, which are those of numpy."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np

import eagle

ROUNDS = 200 if os.environ.get("EAGLE_LONG") else 25
TYPES = {"Scalar": 1, "Vector[2]": 2, "Vector[3]": 3, "Quat": 4, "Matrix[2, 3]": 6, "Matrix[3, 3]": 9}


class Signature:
    """A kernel of random arguments: y = sum of all components it is given, in the order of its arguments; state
    components grow by that; outputs are multiples of it."""

    def __init__(self, chance: random.Random) -> None:
        self.real = chance.choice([np.float64, np.float32])
        self.n = chance.choice([0, 1, 5, 7, 8, 16, 17, 33, 64, 100])  # no number of components: square is ambiguous
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        self.arguments: dict[str, tuple[str, str]] = {}  # name -> role, type
        for number in range(chance.randint(1, 12)):
            role = chance.choice(["read", "read", "state", "param", "integer param", "index", "table"])
            kind = chance.choice(list(TYPES)) if role in ("read", "state") else "Scalar"
            self.arguments[f"a{number}"] = (role, kind)
        self.arguments.setdefault("first", ("read", "Scalar"))
        self.outputs = [chance.choice(["Scalar", "Vector[3]"]) for _ in range(chance.randint(1, 3))]

    def source(self) -> str:
        annotations = {
            "read": "{}",
            "state": "Mutable[{}]",
            "param": "Param",
            "integer param": "Param",
            "index": "Index",
            "table": "Table[Scalar]",
        }
        heads = [f"{name}: {annotations[role].format(kind)}" for name, (role, kind) in self.arguments.items()]
        lines = [f"def f({', '.join(heads)}) -> tuple[{', '.join(self.outputs)},]:", "    y = first * 0.5"]
        for name, (role, kind) in self.arguments.items():
            lines += [f"    y = y + {component}" for component in self.components(name, role, kind)]
        for name, (role, kind) in self.arguments.items():
            if role == "state":
                lines.append(f"    {name} = {name} + y" if kind == "Scalar" else f"    {name} = {name} * 2.0")
        for number, kind in enumerate(self.outputs):
            lines.append(f"    o{number} = y * {number + 2}.0" if kind == "Scalar" else f"    o{number} = {VECTOR}")
        return "\n".join([*lines, f"    return {', '.join(f'o{i}' for i in range(len(self.outputs)))},"])

    def components(self, name: str, role: str, kind: str) -> list[str]:
        if role == "index":
            return [f"float({name} % 5)"]
        if role == "integer param":
            return [f"float({name})"]
        if role == "table":
            return [f"{name}.at(1)"]
        if kind == "Scalar":
            return [name]
        if kind.startswith("Matrix"):
            rows, columns = eval(kind[6:])
            return [f"{name}[{row}, {column}]" for row in range(rows) for column in range(columns)]
        return [f"{name}[{i}]" for i in range(TYPES[kind])]

    def names(self, *roles: str) -> list[str]:
        return [name for name, (role, _) in self.arguments.items() if role in roles]

    def placed(self, session: eagle.Session, values: dict[str, Any]) -> dict[str, Any]:
        """The values, with copies of the arrays in memory of the session."""
        return {
            name: session.asarray(np.array(value)) if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }

    def values(self) -> dict[str, Any]:
        """Fresh random values of all arguments."""
        return {name: self.value(role, kind) for name, (role, kind) in self.arguments.items()}

    def value(self, role: str, kind: str) -> Any:
        if role == "param":
            return float(self.numbers.normal())
        if role == "integer param":
            return int(self.numbers.integers(-9, 9))
        if role == "index":
            return self.numbers.integers(-9, 9, self.n)
        shape = (4,) if role == "table" else (self.n,) if kind == "Scalar" else (TYPES[kind], self.n)
        return self.numbers.normal(size=shape).astype(self.real)

    def expected(self, values: dict[str, Any]) -> dict[str, np.ndarray]:
        """What numpy makes of it, one operation after the other, in the kernel's type."""
        real = self.real
        y = values["first"] * real(0.5)
        for name, (role, _) in self.arguments.items():
            value = values[name]
            if role == "index":
                terms = [(value % 5).astype(real)]
            elif role in ("param", "integer param"):
                terms = [real(value)]
            elif role == "table":
                terms = [value[1]]
            else:
                terms = [value] if value.ndim == 1 else list(value)
            for term in terms:
                y = y + term
        found = {}
        for name, (role, kind) in self.arguments.items():
            if role == "state":
                found[name] = values[name] + y if kind == "Scalar" else values[name] * real(2)
        for number, kind in enumerate(self.outputs):
            found[f"o{number}"] = y * real(number + 2) if kind == "Scalar" else np.stack([y, y * real(0.25), -y])
        return found


VECTOR = "eagle.vector(y, y * 0.25, -y)"


def bits(arrays: dict[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in sorted(arrays.items())}


def test_every_way_to_run_a_kernel_gives_the_same_bits(session):
    seed = int(os.environ.get("EAGLE_TEST_SEED", random.SystemRandom().getrandbits(48)))
    print(f"EAGLE_TEST_SEED={seed} makes this test do the same again")
    chance = random.Random(seed)
    for _ in range(ROUNDS):
        one = Signature(chance)
        k = eagle.kernel(source=one.source(), constants={"eagle": eagle})
        params = one.names("param", "integer param")
        states = one.names("state")
        outputs = [f"o{i}" for i in range(len(one.outputs))]
        values, others = one.values(), one.values()
        expected = bits(one.expected(values))

        called = one.placed(session, values)
        results = k(**called, session=session)
        found = {**{name: called[name] for name in states}, **dict(zip(outputs, results))}
        assert bits(found) == expected, one.source()

        bound = eagle.plan(k).bind(session=session, **one.placed(session, values))
        bound.launch()
        assert bits({name: bound.planes[name] for name in [*states, *outputs]}) == expected, one.source()

        bound = eagle.plan(k).bind(session=session, **one.placed(session, values))
        g = eagle.Graph(session).add(bound).build().launch()
        assert bits({name: bound.planes[name] for name in [*states, *outputs]}) == expected, one.source()

        for name in [*states, "first"]:
            bound.planes[name][...] = values[name]  # as at the start
        changed = {name: others[name] for name in params}
        if changed:
            g.update(changed)
        g.launch()
        expected = bits(one.expected({**values, **changed}))
        assert bits({name: bound.planes[name] for name in [*states, *outputs]}) == expected, one.source()
