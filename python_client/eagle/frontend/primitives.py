"""Functions with rules for their derivatives: what they compute and the rules, read where they are called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Sequence, Union

from eagle.frontend.frame import Results
from eagle.frontend.functions import bind, enter_helper, read_helper
from eagle.frontend.names import FrozenFunction, Helper, Ruled
from eagle.frontend.scope import Binding
from eagle.frontend.tape import BOOL, INTEGER, Block, Constant, Operand, Primitive, Type, Value

if TYPE_CHECKING:
    from eagle.frontend.expressions import Expressions


def call_primitive(expressions: Expressions, node: ast.Call, ruled: Ruled) -> Results:
    """The function's results; the block that computes them has the rules beside it."""
    reader = _Reader(expressions, node, ruled)
    return reader.read()


def _is_same(known: object, other: object) -> bool:
    """Whether two functions are one, or one that was pickled twice."""
    if isinstance(known, FrozenFunction) and isinstance(other, FrozenFunction):
        return (known.filename, known.first_line, known.text) == (other.filename, other.first_line, other.text)
    return known is other


class _Reader:
    def __init__(self, expressions: Expressions, node: ast.Call, ruled: Ruled) -> None:
        self._expressions = expressions
        self._node = node
        self._ruled = ruled
        self._tape = expressions.frame.tape
        self._arithmetic = expressions.frame.arithmetic
        self._refuse = expressions.frame.source.refuse

    def read(self) -> Results:
        node, function = self._node, self._ruled.function
        enter_helper(self._expressions, node, function, decorated=True)
        spec = function.source.function
        bound = bind(self._expressions, node, self._ruled.name, spec.args, function.defaults)
        operands = [self._operand(name, binding) for name, binding in bound.items()]
        types = [operand.type for operand in operands]

        with self._tape.region() as value:
            value.arguments = [Value(type_) for type_ in types]
            given: dict[str, Binding] = dict(zip(bound, value.arguments))
            found = read_helper(self._expressions, node, function, given)
            results = found if isinstance(found, list) else [found]
            value.yields = [self._value(result) for result in results]
        gives = [result.type for result in value.yields]

        jvp = self._rule("jvp", self._ruled.jvp, types, types, gives)
        vjp = self._rule("vjp", self._ruled.vjp, types, gives, types)
        op = Primitive(operands, value, jvp, vjp, self._arithmetic.place(node))
        op.results = [Value(type_) for type_ in gives]
        self._tape.block.ops.append(op)
        return [*op.results] if isinstance(found, list) else op.results[0]

    def _operand(self, name: str, binding: Binding) -> Value:
        if not isinstance(binding, (Value, Constant)):
            self._refuse(
                self._node,
                f"argument '{name}' of the primitive '{self._ruled.name}' is no number",
                "Look tables up outside, and pass what was found.",
            )
        return self._value(binding)

    def _value(self, operand: Operand) -> Value:
        if isinstance(operand, Value):
            return operand
        type_ = BOOL if operand.is_bool else self._arithmetic.real if operand.is_real else INTEGER
        return self._arithmetic.as_type(operand, type_, self._node)

    def _rule(
        self, kind: str, rule: Helper | None, types: Sequence[Type], linear: Sequence[Type], gives: Sequence[Type]
    ) -> Block | None:
        """A rule, which is linear in one value of each of these types and gives one of each of those."""
        # A rule may call its function, which is read without that rule there.
        chain = self._expressions.frame.chain
        if rule is None or any(_is_same(known, rule.identity) for known, _ in chain):
            return None
        node, function = self._node, rule.source.function
        enter_helper(self._expressions, node, rule)
        wanted = len(types) + len(linear)
        names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
        if len(names) != wanted or function.args.vararg or function.args.kwonlyargs or function.args.kwarg:
            more = "one tangent for each argument" if kind == "jvp" else "one adjoint for each result"
            self._refuse(
                node,
                f"the {kind} of the primitive '{self._ruled.name}' takes {len(names)} argument(s), expected {wanted}",
                f"It takes the arguments of the function and {more}, all by position.",
            )
        with self._tape.region() as block:
            given: list[Operand] = [Value(type_) for type_ in types]
            given += [Value(type_) if type_.is_real else Constant(0.0) for type_ in linear]
            block.arguments = [value for value in given if isinstance(value, Value)]
            found = read_helper(self._expressions, node, rule, dict(zip(names, given)))
            block.yields = self._yields(kind, found, gives)
        return block

    def _yields(self, kind: str, found: Results, gives: Sequence[Type]) -> list[Value]:
        results: list[Operand] = found if isinstance(found, list) else [found]
        if len(results) != len(gives):
            of = "result" if kind == "jvp" else "argument"
            self._refuse(
                self._node,
                f"the {kind} of the primitive '{self._ruled.name}' returns {len(results)} value(s), "
                f"expected {len(gives)}",
                f"Return one for each {of} of the function, in order; 0.0 for those that are no reals.",
            )
        wanted: list[Value] = []
        for result, type_ in zip(results, gives):
            if type_.is_real:
                wanted.append(self._fitting(kind, result, type_))
        return wanted

    def _fitting(self, kind: str, result: Union[Value, Constant], type_: Type) -> Value:
        if self._arithmetic.extents(result) != type_.extents and isinstance(result, Value):
            self._refuse(
                self._node,
                f"the {kind} of the primitive '{self._ruled.name}' returns a {result.type}, expected a {type_}",
                "Return a value of the same kind as the one that it is for.",
            )
        return self._arithmetic.as_type(result, type_, self._node)
