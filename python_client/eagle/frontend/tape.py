"""Typed operations as they are recorded.

The front end records before it builds, because the types in which the two branches of an ``if`` or the trips of a
loop meet are known only when all of it was read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Union

from eagle._data_classes import NamedTuple, data_class, field


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
    file: str
    line: int
    column: int


@data_class(eq=False)
class Value:
    """A number, condition, vector or matrix of one sample, known when the kernel runs."""

    type: Type


@data_class(frozen=True)
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


@data_class(eq=False)
class Op:
    """``code`` with operands; ``detail`` is the number of a constant, a component, the table or Accum of a look-up.

    An ``accum_add`` has no result.
    """

    code: str
    operands: tuple[Value, ...]
    result: Value | None
    place: Place
    detail: Any = None


@data_class(eq=False)
class If:
    condition: Value
    then: Block
    otherwise: Block
    place: Place
    results: list[Value] = field(default_factory=list)


@data_class(eq=False)
class While:
    """A loop over carried values; the condition's yield is whether another trip follows."""

    initial: list[Value]
    condition: Block
    body: Block
    max_trips: int
    place: Place
    results: list[Value] = field(default_factory=list)


@data_class(eq=False)
class Switch:
    selector: Value
    cases: list[Block]
    group: tuple[str, str]  # name and policy
    place: Place
    results: list[Value] = field(default_factory=list)


@data_class(eq=False)
class Primitive:
    """What a function with rules computes, and its rules, each a block that sees its own arguments alone."""

    operands: list[Value]
    value: Block
    jvp: Block | None
    vjp: Block | None
    place: Place
    results: list[Value] = field(default_factory=list)


# Operations whose execution is counted (an index clamped, a division by zero): they run where they are asked for,
# and nowhere else.
_COUNTED = frozenset({"gather", "floor_div", "modulo", "accum_add"})


@data_class(eq=False)
class Block:
    """Operations in order; ``arguments`` are what a loop carries in, ``yields`` what leaves the block."""

    ops: list[Union[Op, If, While, Switch, Primitive]] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)

    def add(self, code: str, operands: tuple[Value, ...], type_: Type, place: Place, detail: Any = None) -> Value:
        result = Value(type_)
        self.ops.append(Op(code, operands, result, place, detail))
        return result

    def constant(self, number: Union[int, float, bool], type_: Type, place: Place) -> Value:
        return self.add("constant", (), type_, place, number)

    def effect(self, code: str, operands: tuple[Value, ...], place: Place, detail: Any) -> None:
        """An operation without a result."""
        self.ops.append(Op(code, operands, None, place, detail))

    @property
    def has_effects(self) -> bool:
        """Whether something in it must run even where nothing looks at its results."""
        return any(_has_effects(op) for op in self.ops)

    @property
    def is_plain(self) -> bool:
        """Whether it may as well run where its result is not wanted."""
        return all(isinstance(op, Op) and op.code not in _COUNTED for op in self.ops)


def _has_effects(op: Union[Op, If, While, Switch, Primitive]) -> bool:
    if isinstance(op, Op):
        return op.result is None
    if isinstance(op, Primitive):
        return False
    if isinstance(op, Switch):
        return any(case.has_effects for case in op.cases)
    sides = (op.then, op.otherwise) if isinstance(op, If) else (op.condition, op.body)
    return any(side.has_effects for side in sides)


class Tape:
    """The block that is being recorded."""

    def __init__(self) -> None:
        self.block = Block()

    @contextmanager
    def region(self, block: Block | None = None) -> Iterator[Block]:
        """Records into a block of its own (or on into one that stands already)."""
        outer, self.block = self.block, Block() if block is None else block
        try:
            yield self.block
        finally:
            self.block = outer
