"""Loops: ``for`` over a range and ``while``, lowered to one kind of loop with carried values.

A loop carries every name that has a value before it and that its body changes. The type of a carried name is the
one in which its value before the loop and those after each trip meet; a body is read until that is settled.
"""

from __future__ import annotations

import ast
from typing import Callable, Optional

from eagle._data_classes import data_class
from eagle.frontend.frame import Carried
from eagle.frontend.names import Call, dotted
from eagle.frontend.returns import hidden, return_statements
from eagle.frontend.scope import UNSET, Binding, Bindings, Unbound, Unset, assigned_names, own_nodes
from eagle.frontend.statements import Statements, left, stopped
from eagle.frontend.tape import INTEGER, Block, Constant, Operand, Type, Value, While

_MOST_TRIPS = 2**40  # the default of the limit kernel_loop_trips
_BOUND_CURE = (
    "Say how many trips there are at most: `for i in eagle.bounded(range(n), 100):`, "
    "`while eagle.bounded(100) and condition:`. The number is a constant."
)


@data_class(frozen=True)
class _Range:
    """A range whose trips are counted when the kernel runs, or known now."""

    start: Operand
    stop: Operand
    step: Operand
    max_trips: int
    exact: bool
    empty: bool = False

    @property
    def may_wrap(self) -> bool:
        """Whether the number after the last one may be over the range of int64."""
        if isinstance(self.start, Constant) and isinstance(self.step, Constant):
            last = self.start.value + self.max_trips * self.step.value
            return not -(2**63) <= last < 2**63
        return not (isinstance(self.step, Constant) and abs(self.step.value) == 1)


class Loops(Statements):
    """Statements with loops."""

    def loop(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            self.source.refuse(
                node.orelse[0],
                "the `else` of a loop is not accepted in a kernel",
                "Set a condition before the loop (found = False), change it in the loop, and test it afterwards.",
            )
        self.depth += 1
        self.nesting += 1
        outer = self.scope.bindings
        self.scope.bindings = {**outer, stopped(self.depth): Constant(False), left(self.depth): Constant(False)}
        if isinstance(node, ast.For):
            self._for(node)
        else:
            self._while(node)
        own = (stopped(self.depth), left(self.depth), *_counter(self.depth))
        self.scope.bindings = {k: v for k, v in self.scope.bindings.items() if k not in own}
        self.depth -= 1
        self.nesting -= 1

    # ---- while

    def _while(self, node: ast.While) -> None:
        limit, conditions = self._limit_of(node)

        def holds() -> Operand:
            return self.expressions.conditions("and", Constant(True), conditions, node.test)

        self._read(node, limit, holds, lambda: self.block(node.body), [])

    def _limit_of(self, node: ast.While) -> tuple[int, list[ast.expr]]:
        """``eagle.bounded(n) and a and b``: n, and a and b."""
        test = node.test
        joined = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
        parts = test.values if joined else [test]  # type: ignore[attr-defined]
        call = parts[0]
        if not isinstance(call, ast.Call) or not self._is_call(call.func, "bounded") or len(call.args) != 1:
            self.source.refuse(node, "a `while` loop without a stated maximum of trips", _BOUND_CURE)
        return self._limit(call, 0), parts[1:]

    def _is_call(self, node: ast.expr, name: str) -> bool:
        path = dotted(node)
        if path is None or self.scope.is_local(path.split(".")[0]):
            return False
        return self.frame.names.resolve(self.source, node) == Call(name)

    def _limit(self, call: ast.Call, position: int) -> int:
        if len(call.args) <= position or call.keywords:
            self.source.refuse(call, "bounded takes the largest number of trips", _BOUND_CURE)
        node = call.args[position]
        limit = self.expressions.operand(node)
        if not isinstance(limit, Constant) or limit.is_bool or limit.is_real or not 1 <= limit.value <= _MOST_TRIPS:
            found = limit if isinstance(limit, Constant) else f"a {limit.type}"
            self.source.refuse(
                node, f"the largest number of trips is a constant from 1 to 2^40, found {found}", _BOUND_CURE
            )
        return int(limit.value)

    # ---- for

    def _for(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name):
            self.source.refuse(node.target, "the target of a `for` loop is a name", "Write `for i in range(n):`.")
        trips = self._range(node.iter)
        value, fits = _counter(self.depth)
        self.scope.bindings[value] = trips.start
        carried = [value]
        if trips.may_wrap and not trips.exact:
            self.scope.bindings[fits] = Constant(True)
            carried.append(fits)
        target = node.target

        def holds() -> Operand:
            if trips.exact:
                return Constant(not trips.empty)
            return self._in_range(node, trips, self.scope.bindings[value], self.scope.bindings.get(fits))

        def body() -> None:
            now = self.scope.bindings[value]
            assert isinstance(now, (Value, Constant))
            self.store(target, now)
            self.block(node.body)
            following = self.arithmetic.numeric("add", "+", now, trips.step, node)
            if fits in carried:
                self.scope.bindings[fits] = self._rises(node, trips.step, now, following)
            self.scope.bindings[value] = following

        self._read(node, trips.max_trips, holds, body, carried)

    def _range(self, node: ast.expr) -> _Range:
        limit: Optional[int] = None
        call = node
        if isinstance(call, ast.Call) and self._is_call(call.func, "bounded"):
            limit = self._limit(call, 1)
            call = call.args[0]
        if not isinstance(call, ast.Call) or not self._is_call(call.func, "range"):
            self.source.refuse(
                node,
                "a `for` loop over something that is no range",
                "Write `for i in range(n):`; components are v[0], v[1], elements of tables t.at(i).",
            )
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.source.refuse(
                call, "range takes 1 to 3 arguments, in order", "Write range(stop) or range(a, b, step)."
            )
        bounds = [self.expressions.integer(argument, "range") for argument in call.args]
        if len(bounds) == 1:
            bounds = [Constant(0), *bounds]
        start, stop, step = [*bounds, Constant(1)][:3]
        if isinstance(step, Constant) and step.value == 0:
            self.source.refuse(call.args[2], "a range with the step 0", "Write a step of at least 1 or at most -1.")
        if all(isinstance(bound, Constant) for bound in (start, stop, step)):
            numbers = range(*(int(bound.value) for bound in (start, stop, step)))  # type: ignore[union-attr]
            trips = _length(numbers) if limit is None else min(limit, _length(numbers))
            if trips > _MOST_TRIPS:
                self.source.refuse(call, f"{trips} trips, more than 2^40", _BOUND_CURE)
            return _Range(start, stop, step, max(trips, 1), exact=True, empty=trips == 0)
        if limit is None:
            self.source.refuse(node, "a range whose length is not known before the kernel runs", _BOUND_CURE)
        first = self.arithmetic.as_type(start, INTEGER, node)
        return _Range(start if isinstance(start, Constant) else first, stop, step, limit, exact=False)

    def _in_range(self, node: ast.For, trips: _Range, now: Binding, fits: Binding | None) -> Operand:
        assert isinstance(now, (Value, Constant))
        below = self._compare("lt", "<", now, trips.stop, node)
        above = self._compare("gt", ">", now, trips.stop, node)
        if isinstance(trips.step, Constant):
            inside: Operand = below if trips.step.value > 0 else above
        else:
            up = self._compare("gt", ">", trips.step, Constant(0), node)
            down = self._compare("lt", "<", trips.step, Constant(0), node)
            rising = self.arithmetic.logic("and", up, below, node)
            falling = self.arithmetic.logic("and", down, above, node)
            inside = self.arithmetic.logic("or", rising, falling, node)
        return inside if not isinstance(fits, (Value, Constant)) else self.arithmetic.logic("and", fits, inside, node)

    def _rises(self, node: ast.For, step: Operand, now: Operand, following: Operand) -> Operand:
        """Whether the following number lies on the step's side of the present one, and has not wrapped around."""
        up = self._compare("gt", ">", step, Constant(0), node)
        return self._compare("eq", "==", up, self._compare("gt", ">", following, now, node), node)

    def _compare(self, code: str, symbol: str, a: Operand, b: Operand, node: ast.AST) -> Operand:
        return self.arithmetic.compare(code, symbol, a, b, node)

    # ---- any loop

    def _read(
        self,
        node: ast.For | ast.While,
        max_trips: int,
        holds: Callable[[], Operand],
        body: Callable[[], None],
        counters: list[str],
    ) -> None:
        before = self.scope.bindings
        names = self._changed(node, before, counters)
        path = self.frame.path_to(node)
        guess: Carried = {name: self._carried_type(before[name]) for name in names}
        known = self.frame.context.guesses.get(path, {})
        if known.keys() == guess.keys():
            guess = known
        while True:
            op, after = self._attempt(node, max_trips, holds, body, before, guess)
            joined = {name: self._joined(node, name, type_, after[name]) for name, type_ in guess.items()}
            if joined == guess:
                break
            guess = joined
        self.frame.context.guesses[path] = guess
        self._finish(node, op, before, after, guess)

    def _changed(self, node: ast.For | ast.While, before: Bindings, counters: list[str]) -> list[str]:
        names = [*counters, *assigned_names([node])]
        if return_statements(node.body):
            names += [left(0), *(n for k in range(1, self.depth) for n in (left(k), stopped(k))), stopped(self.depth)]
            names += [name for name in before if name.startswith(hidden(0)[:7])]
        elif any(isinstance(inner, ast.Break) for inner in own_nodes(node.body)):
            names.append(stopped(self.depth))
        found = [name for name in dict.fromkeys(names) if not isinstance(before.get(name, Unbound("", 0)), Unbound)]
        for name in found:
            if not isinstance(before[name], (Value, Constant, Unset)):
                self.source.refuse(node, f"'{name}' is changed in a loop, but is no number", "Use another name.")
        return found

    def _carried_type(self, binding: Binding) -> Type | None:
        return self.arithmetic.type_of(binding) if isinstance(binding, (Value, Constant)) else None

    def _attempt(
        self,
        node: ast.For | ast.While,
        max_trips: int,
        holds: Callable[[], Operand],
        body: Callable[[], None],
        before: Bindings,
        guess: Carried,
    ) -> tuple[While, Bindings]:
        """The loop, read with these types of what it carries."""
        arithmetic, tape = self.arithmetic, self.frame.tape
        with tape.region() as condition:
            self.scope.bindings = self._carry(condition, before, guess)
            stop = self.scope.bindings[stopped(self.depth)]
            assert isinstance(stop, (Value, Constant))
            goes_on = arithmetic.logic_of("and", arithmetic.logical_not(stop, node), holds, node)
            condition.yields.append(arithmetic.value(goes_on, node))
        with tape.region() as block:
            self.scope.bindings = {**self._carry(block, before, guess), left(self.depth): Constant(False)}
            body()
        op = While([], condition, block, max_trips, arithmetic.place(node))
        return op, self.scope.bindings

    def _carry(self, block: Block, before: Bindings, guess: Carried) -> Bindings:
        bindings = dict(before)
        for name, type_ in guess.items():
            bindings[name] = UNSET if type_ is None else Value(type_)
        block.arguments = [value for name in guess if isinstance(value := bindings[name], Value)]
        return bindings

    def _joined(self, node: ast.stmt, name: str, type_: Type | None, after: Binding) -> Type | None:
        found = self._carried_type(after)
        if type_ is None or found is None:
            return type_ or found
        met = self.arithmetic.common_type(Value(type_), Value(found))
        if met is None:
            called = "what is returned" if name.startswith("<") else f"'{name}'"
            self.source.refuse(
                node,
                f"{called} is a {type_} before a trip of this loop and a {found} after it",
                "Give it the same kind of value before the loop and in it.",
            )
        return met

    def _finish(self, node: ast.For | ast.While, op: While, before: Bindings, after: Bindings, types: Carried) -> None:
        """Gives the loop its first and next values, and the names theirs afterwards."""
        tape = self.frame.tape
        self.scope.bindings = dict(before)
        for name, type_ in types.items():
            if type_ is None:
                continue
            op.initial.append(self.as_type_or_zero(before[name], type_, node))
            with tape.region(op.body):
                op.body.yields.append(self.as_type_or_zero(after[name], type_, node))
            op.results.append(Value(type_))
            self.scope.bindings[name] = op.results[-1]
        construct = "for" if isinstance(node, ast.For) else "while"
        for name in after:
            if name not in before:
                self.scope.bindings[name] = Unbound(construct, self.source.line_of(node))
        if op.results or op.body.has_effects:
            tape.block.ops.append(op)


def _counter(depth: int) -> tuple[str, str]:
    """The number that a `for` counts with, and whether the next one can be told."""
    return f"<counter {depth}>", f"<counts {depth}>"


def _length(numbers: range) -> int:
    """len() of ranges over 2^63 too."""
    span = numbers.stop - numbers.start
    return max(0, -(-span // numbers.step))
