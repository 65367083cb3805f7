"""Operands of unlike types: what is converted, what is folded, what is refused.

- Two constants fold as Python computes them. A constant beside a value takes the value's type, rounded
  once; an integer value beside a real is converted to the kernel's real.
- Booleans are conditions, not numbers: arithmetic on them is refused.
- Vectors and matrices meet their equals only.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import Any, Callable, NoReturn

from eagle.frontend.source import Source
from eagle.frontend.tape import BOOL, INTEGER, Block, Constant, Operand, Place, Type, Value

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_I64 = range(-(2**63), 2**63)


class Arithmetic:
    """Records operations into the current block, with the conversions they need."""

    def __init__(self, source: Source, real: str) -> None:
        self.source = source
        self.real = Type(real)
        self.block = Block()

    # ---- types

    def is_bool(self, operand: Operand) -> bool:
        return operand.is_bool if isinstance(operand, Constant) else operand.type.scalar == "bool"

    def extents(self, operand: Operand) -> tuple[int, ...]:
        return () if isinstance(operand, Constant) else operand.type.extents

    def type_of(self, operand: Operand) -> Type:
        """The type of a value; the one that a constant has when nothing asks for another."""
        if isinstance(operand, Value):
            return operand.type
        if operand.is_bool:
            return BOOL
        return self.real if operand.is_real else INTEGER

    def common_type(self, a: Operand, b: Operand) -> Type | None:
        """The type in which two operands meet; None where there is none."""
        one, other = self.type_of(a), self.type_of(b)
        if one.extents != other.extents or (one == BOOL) != (other == BOOL):
            return None
        return self.real._replace(extents=one.extents) if one.is_real or other.is_real else one

    # ---- making values

    def place(self, node: ast.AST) -> Place:
        return Place(self.source.line_of(node), self.source.column_of(node))

    def as_type(self, operand: Operand, type_: Type, node: ast.AST) -> Value:
        """The operand as a value of the type: a constant is rounded once, a value converted."""
        if isinstance(operand, Constant):
            return self.block.constant(self._number(operand, type_, node), type_, self.place(node))
        if operand.type == type_:
            return operand
        return self.block.add("convert", (operand,), type_, self.place(node))

    def value(self, operand: Operand, node: ast.AST) -> Value:
        return self.as_type(operand, self.type_of(operand), node)

    def _number(self, constant: Constant, type_: Type, node: ast.AST) -> int | float | bool:
        if type_ == BOOL:
            return bool(constant.value)
        if type_.is_real:
            try:
                return float(constant.value)
            except OverflowError:
                self.source.refuse(node, "a constant over the range of float64", "Write a smaller constant.")
        number = int(constant.value)
        if number not in _I64:
            self.source.refuse(node, f"{number} is over the range of int64", "Write it as a real: 1e20.")
        return number

    # ---- operations

    def numeric(self, code: str, symbol: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        """``+ - * /``."""
        self._refuse_booleans(symbol, (a, b), node)
        if isinstance(a, Constant) and isinstance(b, Constant):
            return self._fold(code, a, b, node)
        type_ = self._meet(symbol, a, b, node)
        if code == "div" and not type_.is_real:
            return self._integer_division(a, b, node)
        operands = (self.as_type(a, type_, node), self.as_type(b, type_, node))
        return self.block.add(code, operands, type_, self.place(node))

    def compare(self, code: str, symbol: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        if isinstance(a, Constant) and isinstance(b, Constant):
            return Constant(bool(_FOLD[code](a.value, b.value)))
        if code not in ("eq", "ne"):
            self._refuse_booleans(symbol, (a, b), node)
        type_ = self._meet(symbol, a, b, node)
        if type_.extents:
            self.source.refuse(node, f"`{symbol}` compares a {type_} with another", "Compare Scalar arguments.")
        return self.block.add(
            code, (self.as_type(a, type_, node), self.as_type(b, type_, node)), BOOL, self.place(node)
        )

    def logic(self, code: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        """``and`` and ``or`` of two conditions."""
        for left, right in ((a, b), (b, a)):
            if isinstance(left, Constant):
                decided = left.value == (code == "or")
                return Constant(code == "or") if decided else right
        return self.block.add(code, (self.value(a, node), self.value(b, node)), BOOL, self.place(node))

    def logical_not(self, a: Operand, node: ast.AST) -> Operand:
        if isinstance(a, Constant):
            return Constant(not a.value)
        return self.block.add("not", (a,), BOOL, self.place(node))

    def unary(self, code: str, symbol: str, a: Operand, node: ast.AST) -> Operand:
        """``-x`` and ``abs(x)``."""
        self._refuse_booleans(symbol, (a,), node)
        if isinstance(a, Constant):
            return Constant(-a.value if code == "neg" else abs(a.value))
        return self.block.add(code, (a,), a.type, self.place(node))

    def sqrt(self, a: Operand, node: ast.AST) -> Operand:
        self._refuse_booleans("sqrt", (a,), node)
        if isinstance(a, Constant):
            number = float(self._number(a, self.real, node))
            if number < 0:
                self.source.refuse(node, f"the square root of {number}", "Write a constant of at least 0.")
            return Constant(math.sqrt(number))
        type_ = self.real._replace(extents=a.type.extents)
        return self.block.add("sqrt", (self.as_type(a, type_, node),), type_, self.place(node))

    def select(self, condition: Operand, a: Operand, b: Operand, node: ast.AST) -> Operand:
        type_ = self._meet("a choice", a, b, node)
        operands = (
            self.value(condition, node),
            self.as_type(a, type_, node),
            self.as_type(b, type_, node),
        )
        return self.block.add("select", operands, type_, self.place(node))

    def extreme(self, name: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        """Python's own ``min`` and ``max``: ``b if b < a else a``."""
        self._refuse_booleans(name, (a, b), node)
        if isinstance(a, Constant) and isinstance(b, Constant):
            return Constant((min if name == "min" else max)(a.value, b.value))
        code, symbol = ("lt", "<") if name == "min" else ("gt", ">")
        type_ = self._meet(name, a, b, node)
        first, second = self.as_type(a, type_, node), self.as_type(b, type_, node)
        return self.select(self.compare(code, symbol, second, first, node), second, first, node)

    def convert(self, name: str, a: Operand, node: ast.AST) -> Operand:
        """``float(x)``, ``int(x)``, ``bool(x)``."""
        if isinstance(a, Constant):
            return self._convert_constant(name, a, node)
        scalar = {"float": self.real.scalar, "int": "i64", "bool": "bool"}[name]
        if a.type.extents:
            self.source.refuse(node, f"{name}() of a {a.type}", "Convert Scalar and Index arguments.")
        return self.as_type(a, Type(scalar), node)

    # ---- refusals and details

    def _convert_constant(self, name: str, a: Constant, node: ast.AST) -> Operand:
        try:
            return Constant({"float": float, "int": int, "bool": bool}[name](a.value))
        except (OverflowError, ValueError) as error:
            self.source.refuse(node, f"{name}({a.value!r}): {error}", "Write the constant that is meant.")

    def _integer_division(self, a: Operand, b: Operand, node: ast.AST) -> Value:
        """True division of integers: in float64, then the kernel's real."""
        wide = Type("f64")
        left, right = (self.as_type(self.as_type(x, INTEGER, node), wide, node) for x in (a, b))
        return self.as_type(self.block.add("div", (left, right), wide, self.place(node)), self.real, node)

    def _fold(self, code: str, a: Constant, b: Constant, node: ast.AST) -> Constant:
        try:
            return Constant(_FOLD[code](a.value, b.value))
        except (ZeroDivisionError, OverflowError) as error:
            self.source.refuse(node, f"these constants do not combine: {error}", "Write the constant that is meant.")

    def _refuse_booleans(self, symbol: str, operands: tuple[Operand, ...], node: ast.AST) -> None:
        if any(self.is_bool(operand) for operand in operands):
            self.source.refuse(
                node,
                f"`{symbol}` of a condition: booleans are not numbers here",
                "Write `1.0 if condition else 0.0`, or float(condition).",
            )

    def _meet(self, symbol: str, a: Operand, b: Operand, node: ast.AST) -> Type:
        type_ = self.common_type(a, b)
        if type_ is None:
            self.refuse_types(symbol, a, b, node)
        return type_

    def refuse_types(self, symbol: str, a: Operand, b: Operand, node: ast.AST) -> NoReturn:
        cure = "Both are numbers, or both are conditions; compare a number (x != 0) to make a condition of it."
        if self.extents(a) != self.extents(b):
            cure = "Vectors and matrices meet others of equal extents; give single numbers as Scalar arguments."
        self.source.refuse(node, f"{symbol} of a {self._kind(a)} and a {self._kind(b)}", cure)

    def _kind(self, operand: Operand) -> str:
        return str(self.type_of(operand))
