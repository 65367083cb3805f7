"""Operands of unlike types: what is converted, what is folded, what is refused.

- Two constants fold as Python computes them. A constant beside a value takes the value's type, rounded
  once; an integer value beside a real is converted to the kernel's real.
- Booleans are conditions, not numbers: arithmetic on them is refused.
- Vectors and matrices meet their equals only; a product with a number, and a quotient by one, excepted.
- Both sides of a choice are computed, unless what they do is counted or repeated: then only the side taken is.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import Any, Callable, NoReturn

import numpy as np

from eagle import _core
from eagle.frontend.reals import FUNCTIONS
from eagle.frontend.source import Source
from eagle.frontend.tape import BOOL, INTEGER, Block, Constant, If, Operand, Place, Tape, Type, Value

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floor_div": operator.floordiv,
    "modulo": operator.mod,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_I64 = range(-(2**63), 2**63)
_MOST_FOLDED = 1024  # bits that a folded shift or power may add: constants, not computations
_MOST_PRODUCTS = 16  # the largest exponent that is written out


_AND_OR = "Write `and`, `or`, `a != b` or `not` between conditions."
_CURES_OF_CONDITIONS = dict.fromkeys("&|^", _AND_OR)
_OF_REALS = {"//": "floor_quotient", "%": "remainder"}


class Arithmetic:
    """Records operations into the current block, with the conversions they need."""

    def __init__(self, source: Source, real: Type, tape: Tape) -> None:
        self.source = source
        self.real = real
        self.tape = tape

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
        return Place(self.source.filename, self.source.line_of(node), self.source.column_of(node))

    def stored(self, operand: Operand, wanted: Type, what: str, role: Any, node: ast.AST) -> Value:
        """The operand as what is stored in a plane: ``what`` of this role and type."""
        found = self.type_of(operand)
        cure = ""
        if (found == BOOL) != (wanted == BOOL):
            cure = f"Write {'int' if wanted.scalar == 'i64' else 'float'}(condition), or a choice of two numbers."
            if wanted == BOOL:
                cure = "Write a comparison, as in x > 0."
        elif wanted.extents != found.extents:
            cure = "Combine values of equal extents; eagle.vector(a, b, c) makes a vector of numbers."
        elif wanted.scalar == "i64" and found.is_real:
            cure = "Write int(...), which cuts towards zero."
        if cure:
            self.source.refuse(node, f"{what} is a {role} ({wanted}), the value a {found}", cure)
        return self.as_type(operand, wanted, node)

    def as_type(self, operand: Operand, type_: Type, node: ast.AST) -> Value:
        """The operand as a value of the type: a constant is rounded once, a value converted."""
        if isinstance(operand, Constant):
            return self.tape.block.constant(self._number(operand, type_, node), type_, self.place(node))
        if operand.type == type_:
            return operand
        return self.tape.block.add("convert", (operand,), type_, self.place(node))

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
        """``+ - * /``, and ``min``, ``max`` of ``eagle.math``."""
        self._refuse_booleans(symbol, (a, b), node)
        if isinstance(a, Constant) and isinstance(b, Constant) and code in _FOLD:
            return self._fold(code, a, b, node)
        if code in ("mul", "div") and self.extents(a) != self.extents(b):
            scaled = self._scaled(code, a, b, node)
            if scaled is not None:
                return scaled
        type_ = self._meet(symbol, a, b, node)
        if code == "div" and not type_.is_real:
            return self._integer_division(a, b, node)
        operands = (self.as_type(a, type_, node), self.as_type(b, type_, node))
        return self.tape.block.add(code, operands, type_, self.place(node))

    def _scaled(self, code: str, a: Operand, b: Operand, node: ast.AST) -> Value | None:
        """A vector or matrix times a number, or divided by one."""
        if self.extents(b) and not self.extents(a):
            if code == "div":
                return None
            a, b = b, a
        if self.extents(b):
            return None
        whole = self.real._replace(extents=self.extents(a))
        number, place = self.as_type(b, self.real, node), self.place(node)
        if code == "mul":
            return self.tape.block.add("scale", (number, self.as_type(a, whole, node)), whole, place)
        spread = self.tape.block.add("splat", (number,), whole, place)
        return self.tape.block.add("div", (self.as_type(a, whole, node), spread), whole, place)

    def integral(self, code: str, symbol: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        """``// % << >> & | ^``, of integers; ``//`` and ``%`` of reals too."""
        if symbol in _OF_REALS and (self.type_of(a).is_real or self.type_of(b).is_real):
            if isinstance(a, Constant) and isinstance(b, Constant):
                return self._fold(code, a, b, node)
            return self.function(_OF_REALS[symbol], f"`{symbol}`", [a, b], node)
        for operand in (a, b):
            type_ = self.type_of(operand)
            if type_ != INTEGER:
                cure = "Convert with int(...), towards zero."
                if type_.scalar == "bool":
                    cure = _CURES_OF_CONDITIONS.get(symbol, "Write `1 if condition else 0`.")
                self.source.refuse(node, f"`{symbol}` takes integers, found a {type_}", cure)
        if isinstance(a, Constant) and isinstance(b, Constant):
            if symbol in ("<<", ">>") and b.value > _MOST_FOLDED:
                self.source.refuse(node, f"a shift by {b.value}", "Write a count from 0 to 63.")
            return self._fold(code, a, b, node)
        operands = (self.as_type(a, INTEGER, node), self.as_type(b, INTEGER, node))
        return self.tape.block.add(code, operands, INTEGER, self.place(node))

    def invert(self, a: Operand, node: ast.AST) -> Operand:
        """``~x``."""
        if self.type_of(a) != INTEGER:
            self.source.refuse(
                node, f"`~` takes an integer, found a {self.type_of(a)}", "Write `not` before a condition."
            )
        if isinstance(a, Constant):
            return Constant(~int(a.value))
        return self.tape.block.add("bit_not", (a,), INTEGER, self.place(node))

    def power(self, a: Operand, b: Operand, node: ast.AST) -> Operand:
        """``a ** b``: products where b is a small constant integer, else ``pow`` of reals.

        The products go from the highest bit of b on: square, and multiply by a where the bit is 1.
        """
        self._refuse_booleans("**", (a, b), node)
        if isinstance(a, Constant) and isinstance(b, Constant):
            return self._constant_power(a, b, node)
        small = isinstance(b, Constant) and not b.is_real and 0 <= b.value <= _MOST_PRODUCTS
        if not small or self.extents(a):
            negative = isinstance(b, Constant) and b.value < 0  # Python's is a real
            if self.type_of(a).is_real or self.type_of(b).is_real or negative:
                return self.function("pow", "`**`", [a, b], node)
        if not small:
            self.source.refuse(
                node,
                f"`**` of integers takes a constant from 0 to {_MOST_PRODUCTS}, found "
                f"{b if isinstance(b, Constant) else f'a {self._kind(b)}'}",
                "Write float(a) ** b for a real, or a loop of products.",
            )
        assert isinstance(b, Constant)
        if b.value == 0:
            return Constant(1.0 if self.type_of(a).is_real else 1)
        result = a
        for bit in bin(int(b.value))[3:]:
            result = self.numeric("mul", "*", result, result, node)
            if bit == "1":
                result = self.numeric("mul", "*", result, a, node)
        return result

    # ---- functions of reals

    def function(self, code: str, symbol: str, operands: list[Operand], node: ast.AST) -> Operand:
        """A function of ``eagle.math``, component by component; integers become reals."""
        self._refuse_booleans(symbol, tuple(operands), node)
        if all(isinstance(operand, Constant) for operand in operands):
            return self._constant_function(code, symbol, operands, node)
        met = operands[0]
        for operand in operands[1:]:
            met = Value(self._meet(symbol, met, operand, node))
        extents = self.extents(met)
        if FUNCTIONS[code][1] and extents:
            self.source.refuse(node, f"{symbol} of a {self._kind(met)}", "Ask about one component: v[0].")
        type_ = self.real._replace(extents=extents)
        values = tuple(self.as_type(operand, type_, node) for operand in operands)
        return self.tape.block.add(code, values, BOOL if FUNCTIONS[code][1] else type_, self.place(node))

    def _constant_function(self, code: str, symbol: str, operands: list[Operand], node: ast.AST) -> Constant:
        numbers = [float(self._number(x, self.real, node)) for x in operands if isinstance(x, Constant)]
        out = np.empty(1, bool if FUNCTIONS[code][1] else np.float64)
        _core.apply_math(code, [np.array([number]) for number in numbers], out)
        if np.isnan(out[0]) and not any(math.isnan(number) for number in numbers):
            self.source.refuse(
                node, f"{symbol} of {', '.join(map(repr, numbers))} is no number", "Write the constant that is meant."
            )
        return Constant(out[0].item())

    def to_integer(self, code: str, a: Operand, node: ast.AST) -> Operand:
        """Python's own ``round(x)``, ``math.floor(x)``, ``math.ceil(x)``, which give integers."""
        if self.type_of(a).scalar == "i64":
            return a
        return self.convert("int", self.function(code, code, [a], node), node)

    def compare(self, code: str, symbol: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        if isinstance(a, Constant) and isinstance(b, Constant):
            return Constant(bool(_FOLD[code](a.value, b.value)))
        if code not in ("eq", "ne"):
            self._refuse_booleans(symbol, (a, b), node)
        type_ = self._meet(symbol, a, b, node)
        if type_.extents:
            self.source.refuse(node, f"`{symbol}` compares a {type_} with another", "Compare numbers: v[0] is one.")
        return self.tape.block.add(
            code, (self.as_type(a, type_, node), self.as_type(b, type_, node)), BOOL, self.place(node)
        )

    def logic_of(self, code: str, a: Operand, then: Callable[[], Operand], node: ast.AST) -> Operand:
        """``and`` and ``or``; what is counted or repeated on the right runs only where the left side asks for it."""
        with self.tape.region() as right:
            b = then()
        if right.is_plain or isinstance(a, Constant):
            if not isinstance(a, Constant) or a.value == (code == "and"):
                self.tape.block.ops += right.ops
            return self.logic(code, a, b, node)
        other = Block()
        op = If(a, *((right, other) if code == "and" else (other, right)), self.place(node))
        return self._join_sides(op, {right: b, other: Constant(code == "or")}, BOOL, node)

    def logic(self, code: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        """``and`` and ``or`` of two conditions."""
        for left, right in ((a, b), (b, a)):
            if isinstance(left, Constant):
                decided = left.value == (code == "or")
                return Constant(code == "or") if decided else right
        return self.tape.block.add(code, (self.value(a, node), self.value(b, node)), BOOL, self.place(node))

    def logical_not(self, a: Operand, node: ast.AST) -> Operand:
        if isinstance(a, Constant):
            return Constant(not a.value)
        return self.tape.block.add("not", (a,), BOOL, self.place(node))

    def unary(self, code: str, symbol: str, a: Operand, node: ast.AST) -> Operand:
        """``-x`` and ``abs(x)``."""
        self._refuse_booleans(symbol, (a,), node)
        if isinstance(a, Constant):
            return Constant(-a.value if code == "neg" else abs(a.value))
        return self.tape.block.add(code, (a,), a.type, self.place(node))

    def sqrt(self, a: Operand, node: ast.AST) -> Operand:
        self._refuse_booleans("sqrt", (a,), node)
        if isinstance(a, Constant):
            number = float(self._number(a, self.real, node))
            if number < 0:
                self.source.refuse(node, f"the square root of {number}", "Write a constant of at least 0.")
            return Constant(math.sqrt(number))
        type_ = self.real._replace(extents=a.type.extents)
        return self.tape.block.add("sqrt", (self.as_type(a, type_, node),), type_, self.place(node))

    def choose(
        self, condition: Operand, then: Callable[[], Operand], otherwise: Callable[[], Operand], node: ast.AST
    ) -> Operand:
        """``a if condition else b``."""
        with self.tape.region() as first:
            a = then()
        with self.tape.region() as second:
            b = otherwise()
        type_ = self._meet("a choice", a, b, node)
        if isinstance(condition, Constant):
            self.tape.block.ops += first.ops if condition.value else second.ops
            return a if condition.value else b
        if first.is_plain and second.is_plain:
            self.tape.block.ops += [*first.ops, *second.ops]
            return self.select(condition, a, b, node)
        return self._join_sides(If(condition, first, second, self.place(node)), {first: a, second: b}, type_, node)

    def _join_sides(self, op: If, sides: dict[Block, Operand], type_: Type, node: ast.AST) -> Value:
        for block, operand in sides.items():
            with self.tape.region(block):
                block.yields.append(self.as_type(operand, type_, node))
        result = Value(type_)
        op.results.append(result)
        self.tape.block.ops.append(op)
        return result

    def zero(self, type_: Type, node: ast.AST) -> Value:
        """A value that nothing looks at."""
        number = self.as_type(Constant(False if type_.scalar == "bool" else 0), type_._replace(extents=()), node)
        return self.tape.block.add("splat", (number,), type_, self.place(node)) if type_.extents else number

    def select(self, condition: Operand, a: Operand, b: Operand, node: ast.AST) -> Operand:
        type_ = self._meet("a choice", a, b, node)
        operands = (
            self.value(condition, node),
            self.as_type(a, type_, node),
            self.as_type(b, type_, node),
        )
        return self.tape.block.add("select", operands, type_, self.place(node))

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
        return self.as_type(self.tape.block.add("div", (left, right), wide, self.place(node)), self.real, node)

    def _fold(self, code: str, a: Constant, b: Constant, node: ast.AST) -> Constant:
        try:
            return Constant(_FOLD[code](a.value, b.value))
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            self.source.refuse(node, f"these constants do not combine: {error}", "Write the constant that is meant.")

    def _constant_power(self, a: Constant, b: Constant, node: ast.AST) -> Constant:
        if not a.is_real and not b.is_real and abs(b.value) * int(a.value).bit_length() > _MOST_FOLDED:
            self.source.refuse(node, f"the power {a.value} ** {b.value}", "Write it as a real: 1e20.")
        try:
            power = a.value**b.value
        except (ZeroDivisionError, OverflowError) as error:
            self.source.refuse(node, f"these constants do not combine: {error}", "Write the constant that is meant.")
        if isinstance(power, complex):
            self.source.refuse(node, f"{a.value} ** {b.value} is complex", "Write the constant that is meant.")
        return Constant(power)

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
            cure = (
                "Vectors and matrices meet others of equal extents; numbers multiply and divide them. "
                "Make a vector of numbers with eagle.vector(a, b, c)."
            )
        self.source.refuse(node, f"{symbol} of a {self._kind(a)} and a {self._kind(b)}", cure)

    def _kind(self, operand: Operand) -> str:
        return str(self.type_of(operand))
