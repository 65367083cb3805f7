"""Vectors, matrices and quaternions: components, and the operations that take them whole."""

from __future__ import annotations

import ast
from typing import Callable, Optional

from eagle.frontend.arithmetic import Arithmetic
from eagle.frontend.tape import Constant, Operand, Type, Value

_Extents = tuple[int, ...]


def _matmul(a: _Extents, b: _Extents) -> _Extents | None:
    return (*a[:-1], *b[1:]) if a and b and a[-1] == b[0] else None


# What C++ spells out (engine/kernel/algebra.h): the extents of the result, and what is expected.
ALGEBRA: dict[str, tuple[int, Callable[..., Optional[_Extents]], str]] = {
    "scale": (2, lambda s, v: v if s == () and v else None, "a number and a vector or matrix"),
    "sum": (1, lambda v: () if len(v) == 1 else None, "a vector"),
    "dot": (2, lambda u, v: () if len(u) == 1 and u == v else None, "two vectors of one length"),
    "norm": (1, lambda v: () if len(v) == 1 else None, "a vector"),
    "cross": (2, lambda u, v: u if u == v == (3,) else None, "two vectors of 3 components"),
    "matmul": (2, _matmul, "vectors or matrices, the last extent of the left one the first of the right one"),
    "transpose": (1, lambda m: m[::-1] if len(m) == 2 else None, "a matrix"),
    "outer": (2, lambda u, v: u + v if len(u) == len(v) == 1 else None, "two vectors"),
    "quat_multiply": (2, lambda p, q: p if p == q == (4,) else None, "two quaternions"),
    "quat_conjugate": (1, lambda q: q if q == (4,) else None, "a quaternion"),
    "quat_normalize": (1, lambda q: q if q == (4,) else None, "a quaternion"),
    "quat_rotate": (2, lambda q, v: v if (q, v) == ((4,), (3,)) else None, "a quaternion and a vector of 3"),
}


class Vectors:
    """Records work on vectors and matrices."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._source = arithmetic.source

    def algebra(self, code: str, symbol: str, operands: list[Operand], node: ast.AST) -> Operand:
        _, result, expected = ALGEBRA[code]
        extents = result(*(self._arithmetic.extents(operand) for operand in operands))
        if extents is None:
            found = " and ".join(f"a {self._arithmetic.type_of(operand)}" for operand in operands)
            self._source.refuse(
                node, f"{symbol} takes {expected}, found {found}", "Look at the extents of the arguments' annotations."
            )
        real = self._arithmetic.real
        values = tuple(
            self._arithmetic.as_type(operand, real._replace(extents=self._arithmetic.extents(operand)), node)
            for operand in operands
        )
        return self._add(code, values, real._replace(extents=extents), node)

    def compose(self, components: list[Operand], extents: _Extents, node: ast.AST) -> Value:
        """A vector or matrix of reals."""
        for component in components:
            self._number(component, node)
        values = tuple(self._arithmetic.as_type(component, self._arithmetic.real, node) for component in components)
        return self._add("compose", values, self._arithmetic.real._replace(extents=extents), node)

    def component(self, operand: Operand, node: ast.Subscript, indices: list[Operand]) -> Operand:
        position = self.position(operand, node, indices)
        assert isinstance(operand, Value)
        return self._extract(operand, position, node)

    def replaced(self, operand: Operand, node: ast.Subscript, indices: list[Operand], new: Operand) -> Value:
        """The value with another component."""
        position = self.position(operand, node, indices)
        assert isinstance(operand, Value)
        number = operand.type._replace(extents=())
        self._number(new, node)
        parts = [
            self._arithmetic.as_type(new, number, node) if k == position else self._extract(operand, k, node)
            for k in range(_count(operand.type.extents))
        ]
        return self._add("compose", tuple(parts), operand.type, node)

    def position(self, operand: Operand, node: ast.Subscript, indices: list[Operand]) -> int:
        """The number of a component, row by row."""
        extents = self._arithmetic.extents(operand)
        if not extents:
            self._source.refuse(
                node,
                f"a subscript of a {self._arithmetic.type_of(operand)}, which has no components",
                "A kernel sees one sample: use the name itself; look-ups are Table arguments, read with .at(i).",
            )
        if len(indices) != len(extents):
            wanted = "one index, as in v[0]" if len(extents) == 1 else "row and column, as in m[0, 1]"
            self._source.refuse(node, f"a {self._arithmetic.type_of(operand)} takes {wanted}", f"Write {wanted}.")
        position = 0
        for index, extent in zip(indices, extents):
            position = position * extent + self._index(index, extent, node)
        return position

    def _index(self, index: Operand, extent: int, node: ast.Subscript) -> int:
        if not isinstance(index, Constant) or index.is_bool or index.is_real:
            self._source.refuse(
                node,
                "a component that is no constant integer",
                "Write the number of the component, as in v[0]; for one that is chosen when the kernel runs, write "
                "eagle.dispatch(k, [lambda: v[0], lambda: v[1]]), or use a Table.",
            )
        k = int(index.value)
        if not -extent <= k < extent:
            self._source.refuse(node, f"component {k} of {extent}", f"Components count from 0 to {extent - 1}.")
        return k % extent

    def _number(self, operand: Operand, node: ast.AST) -> None:
        if self._arithmetic.is_bool(operand) or self._arithmetic.extents(operand):
            self._source.refuse(
                node,
                f"a component is a number, found a {self._arithmetic.type_of(operand)}",
                "Give single numbers; float(condition) makes one of a condition.",
            )

    def _extract(self, operand: Value, position: int, node: ast.AST) -> Value:
        place = self._arithmetic.place(node)
        return self._arithmetic.tape.block.add(
            "extract", (operand,), operand.type._replace(extents=()), place, position
        )

    def _add(self, code: str, operands: tuple[Value, ...], type_: Type, node: ast.AST) -> Value:
        return self._arithmetic.tape.block.add(code, operands, type_, self._arithmetic.place(node))


def _count(extents: _Extents) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total
