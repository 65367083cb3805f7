"""A tape's way into the C++ builder."""

from __future__ import annotations

from typing import Callable

from eagle import _core
from eagle.frontend.tape import Block, If, Op, Primitive, Switch, Type, Value, While
from eagle.frontend.vectors import ALGEBRA


class Emitter:
    """Replays a tape into a ``KernelBuilder``."""

    def __init__(self, builder: _core.KernelBuilder) -> None:
        self._builder = builder
        self._made: dict[Value, _core.Value] = {}

    def argument(self, value: Value, made: _core.Value) -> None:
        self._made[value] = made

    def made(self, value: Value) -> _core.Value:
        return self._made[value]

    def block(self, block: Block) -> None:
        for op in block.ops:
            self._builder.at(self._builder.source_file(op.place.file), op.place.line, op.place.column)
            if isinstance(op, If):
                self._if(op)
            elif isinstance(op, While):
                self._while(op)
            elif isinstance(op, Switch):
                self._switch(op)
            elif isinstance(op, Primitive):
                self._primitive(op)
            elif op.result is None:
                value, *indices = [self._made[operand] for operand in op.operands]
                self._builder.accum_add(op.detail, value, indices)
            else:
                self._made[op.result] = self._op(op, op.result.type)

    def _all(self, values: list[Value]) -> list[_core.Value]:
        return [self._made[value] for value in values]

    def _op(self, op: Op, type_: Type) -> _core.Value:
        builder = self._builder
        operands = [self._made[operand] for operand in op.operands]
        if op.code == "constant":
            make: Callable[..., _core.Value] = builder.real
            if type_.scalar == "i64":
                make = builder.integer
            elif type_.scalar == "bool":
                make = builder.boolean
            return make(op.detail)
        if op.code == "convert":
            return builder.convert(operands[0], type_.scalar)
        if op.code == "gather":
            return builder.gather(op.detail, operands)
        if op.code == "extract":
            return builder.extract(operands[0], op.detail)
        if op.code == "compose":
            return builder.compose(operands, type_.scalar, list(type_.extents))
        if op.code == "splat":
            return builder.splat(operands[0], list(type_.extents))
        if op.code == "random":
            return builder.random(op.detail, operands)
        if op.code in ALGEBRA:
            return builder.algebra(op.code, operands)
        return builder.op(op.code, operands)

    def _if(self, op: If) -> None:
        self._builder.begin_if(self._made[op.condition])
        self.block(op.then)
        self._builder.otherwise(self._all(op.then.yields))
        self.block(op.otherwise)
        self._results(op.results, self._builder.end_if(self._all(op.otherwise.yields)))

    def _while(self, op: While) -> None:
        self._results(op.condition.arguments, self._builder.begin_while(self._all(op.initial), op.max_trips))
        self.block(op.condition)
        self._results(op.body.arguments, self._builder.while_condition(self._made[op.condition.yields[0]]))
        self.block(op.body)
        self._results(op.results, self._builder.end_while(self._all(op.body.yields)))

    def _switch(self, op: Switch) -> None:
        self._builder.begin_switch(self._made[op.selector], *op.group)
        *most, last = op.cases
        for case in most:
            self.block(case)
            self._builder.next_case(self._all(case.yields))
        self.block(last)
        self._results(op.results, self._builder.end_switch(self._all(last.yields)))

    def _primitive(self, op: Primitive) -> None:
        builder = self._builder
        self._results(op.value.arguments, builder.begin_primitive(self._all(op.operands)))
        last = op.value
        for rule, begin in ((op.jvp, builder.primitive_jvp), (op.vjp, builder.primitive_vjp)):
            if rule is None:
                continue
            self.block(last)
            self._results(rule.arguments, begin(self._all(last.yields)))
            last = rule
        self.block(last)
        self._results(op.results, builder.end_primitive(self._all(last.yields)))

    def _results(self, values: list[Value], made: list[_core.Value]) -> None:
        self._made.update(zip(values, made))
