"""Typed operations as they are recorded, and their way into the C++ builder.

The front end records before it builds, because the type in which two branches of an ``if`` meet is known
only when both were read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, NamedTuple, Union

from eagle import _core


class Type(NamedTuple):
    """Element type ("f64", "f32", "i64", "bool") and extents: () of a scalar, (w,) or (R, C)."""

    scalar: str
    extents: tuple[int, ...] = ()

    @property
    def is_real(self) -> bool:
        return self.scalar in ("f64", "f32")

    def __str__(self) -> str:
        names = {"f64": "real", "f32": "real", "i64": "integer", "bool": "boolean"}
        if not self.extents:
            return names[self.scalar]
        return f"{names[self.scalar]}[{', '.join(map(str, self.extents))}]"


BOOL = Type("bool")
INTEGER = Type("i64")


class Place(NamedTuple):
    line: int
    column: int


@dataclass(eq=False)
class Value:
    """A number of one sample, known when the kernel runs."""

    type: Type


@dataclass(frozen=True)
class Constant:
    """A number known now. It takes the type of what it meets, rounded once, as numpy's scalars do."""

    value: Union[int, float, bool]

    @property
    def is_bool(self) -> bool:
        return isinstance(self.value, bool)

    @property
    def is_real(self) -> bool:
        return isinstance(self.value, float)

    def __str__(self) -> str:
        return f"the constant {self.value!r}"


Operand = Union[Value, Constant]


@dataclass(eq=False)
class Op:
    """``code`` with operands; a constant has its number, a conversion the type of its result."""

    code: str
    operands: tuple[Value, ...]
    result: Value
    place: Place
    number: Union[int, float, bool] = 0


@dataclass(eq=False)
class If:
    condition: Value
    then: Block
    otherwise: Block
    place: Place
    results: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class Block:
    """Operations in order; ``yields`` leave a side of an ``if``."""

    ops: list[Union[Op, If]] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)

    def add(self, code: str, operands: tuple[Value, ...], type_: Type, place: Place) -> Value:
        result = Value(type_)
        self.ops.append(Op(code, operands, result, place))
        return result

    def constant(self, number: Union[int, float, bool], type_: Type, place: Place) -> Value:
        result = Value(type_)
        self.ops.append(Op("constant", (), result, place, number))
        return result


class Emitter:
    """Replays a tape into a ``KernelBuilder``."""

    def __init__(self, builder: _core.KernelBuilder, filename: str) -> None:
        self._builder = builder
        self._file = builder.source_file(filename)
        self._made: dict[Value, _core.Value] = {}

    def argument(self, value: Value, made: _core.Value) -> None:
        self._made[value] = made

    def made(self, value: Value) -> _core.Value:
        return self._made[value]

    def block(self, block: Block) -> None:
        for op in block.ops:
            self._builder.at(self._file, op.place.line, op.place.column)
            if isinstance(op, If):
                self._if(op)
            else:
                self._made[op.result] = self._op(op)

    def _op(self, op: Op) -> _core.Value:
        scalar = op.result.type.scalar
        if op.code == "constant":
            make: Callable[..., _core.Value] = self._builder.real
            if scalar == "i64":
                make = self._builder.integer
            elif scalar == "bool":
                make = self._builder.boolean
            return make(op.number)
        operands = [self._made[operand] for operand in op.operands]
        if op.code == "convert":
            return self._builder.convert(operands[0], scalar)
        return self._builder.op(op.code, operands)

    def _if(self, op: If) -> None:
        self._builder.begin_if(self._made[op.condition])
        self.block(op.then)
        self._builder.otherwise([self._made[value] for value in op.then.yields])
        self.block(op.otherwise)
        results = self._builder.end_if([self._made[value] for value in op.otherwise.yields])
        self._made.update(zip(op.results, results))
