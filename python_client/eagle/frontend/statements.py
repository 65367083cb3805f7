"""Statements of one function.

What leaves early (``break``, ``continue``, ``return``) sets a flag, and the statements behind it stand under an
``if`` on that flag. Flags are bindings with names that no Python name has, so that branches and loops treat them
like any other.
"""

from __future__ import annotations

import ast
from typing import Callable

from eagle.frontend import refusals
from eagle.frontend.expressions import Expressions
from eagle.frontend.frame import Frame
from eagle.frontend.scope import UNSET, Binding, Bindings, LocalFunction, Unbound, Unset
from eagle.frontend.tape import Block, Constant, If, Operand, Type, Value

_TRUE, _FALSE = Constant(True), Constant(False)


def left(depth: int) -> str:
    """The flag that the rest of this trip (at depth 0: of the function) is to be skipped."""
    return f"<left {depth}>"


def stopped(depth: int) -> str:
    """The flag that a loop takes no further trip."""
    return f"<stopped {depth}>"


class Statements:
    """Reads statements. ``store`` and ``give`` say what becomes of assigned and returned values."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.source = frame.source
        self.scope = frame.scope
        self.arithmetic = frame.arithmetic
        self.expressions = Expressions(frame)
        self.depth = 0  # of loops
        self.nesting = 0  # of ifs and loops
        self.scope.bindings[left(0)] = _FALSE

    def store(self, target: ast.Name, operand: Operand) -> None:
        """Gives a name its value."""
        self.scope.bindings[target.id] = operand

    def give(self, node: ast.Return) -> None:
        """Keeps what a ``return`` gives."""
        raise NotImplementedError

    def loop(self, node: ast.For | ast.While) -> None:
        """Reads a loop."""
        raise NotImplementedError

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements in order; those behind one that may leave run where it did not."""
        for position, statement in enumerate(statements):
            self._statement(statement)
            flag = self.scope.bindings[left(self.depth)]
            if flag == _FALSE:
                continue
            rest = statements[position + 1 :]
            if isinstance(flag, Value) and rest:
                self._guarded(statement, flag, rest)
            return

    def _guarded(self, node: ast.stmt, flag: Value, rest: list[ast.stmt]) -> None:
        def known() -> None:
            self.scope.bindings[left(self.depth)] = _TRUE

        self._branch(node, flag, known, lambda: self.block(rest))

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self._assignment(node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.If):
            condition = self.arithmetic.value(self.expressions.condition(node.test), node.test)
            self._branch(node, condition, lambda: self.block(node.body), lambda: self.block(node.orelse))
        elif isinstance(node, (ast.For, ast.While)):
            self.loop(node)
        elif isinstance(node, ast.Return):
            self.give(node)
            self._leave(0)
        elif isinstance(node, (ast.Break, ast.Continue)):
            self._leave_trip(node)
        elif isinstance(node, ast.FunctionDef):
            self._function(node)
        elif isinstance(node, ast.Expr):
            if not self.expressions.calls.addition(node.value):
                self._refuse_expression_statement(node.value)
        elif not isinstance(node, ast.Pass):
            what, cure = refusals.of_node(node)
            self.source.refuse(node, f"{what} is not accepted in a kernel", cure)

    def _refuse_expression_statement(self, node: ast.expr) -> None:
        table = refusals.EXPRESSIONS.get(type(node).__name__)
        what, cure = table or ("an expression on its own", "Assign its value to a name, or leave it out.")
        self.source.refuse(node, f"{what} is not accepted in a kernel", cure)

    def _function(self, node: ast.FunctionDef) -> None:
        if self.nesting:
            self.source.refuse(
                node, "a local function inside an `if` or a loop", "Write it at the top of the kernel, or outside."
            )
        if node.name in self.scope.bindings:
            self.source.refuse(node, f"'{node.name}' stands for something else already", "Use another name.")
        if node.decorator_list:
            self.source.refuse(node, f"the local function '{node.name}' has a decorator", "Leave the decorator out.")
        self.scope.bindings[node.name] = LocalFunction(node, self.scope)

    # ---- leaving

    def _leave_trip(self, node: ast.Break | ast.Continue) -> None:
        if not self.depth:
            self.source.refuse(node, "there is no loop around it", "It ends a `for` or a `while`.")
        self.scope.bindings[left(self.depth)] = _TRUE
        if isinstance(node, ast.Break):
            self.scope.bindings[stopped(self.depth)] = _TRUE

    def _leave(self, depth: int) -> None:
        """Leaves every loop down to this depth, and the function at 0."""
        self.scope.bindings[left(depth)] = _TRUE
        for inner in range(depth + 1, self.depth + 1):
            self.scope.bindings[left(inner)] = _TRUE
            self.scope.bindings[stopped(inner)] = _TRUE

    # ---- assignments

    def _assign(self, target: ast.expr, operand: Operand) -> None:
        if isinstance(target, ast.Subscript):
            self._assign_component(target, operand)
            return
        if not isinstance(target, ast.Name):
            what, cure = refusals.of_node(target)
            if isinstance(target, ast.Attribute):
                what, cure = "an attribute", "State belongs into arguments annotated Mutable[T]."
            self.source.refuse(target, f"assigning to {what} is not accepted", f"Assign to a name. {cure}")
        self.store(target, operand)

    def _assign_component(self, target: ast.Subscript, operand: Operand) -> None:
        if not isinstance(target.value, ast.Name):
            self.source.refuse(target, "a component of an expression cannot be assigned", "Assign to v[k] of a name.")
        if not self.scope.is_local(target.value.id):
            self.source.refuse(
                target, f"'{target.value.id}' is no vector of this kernel's", "Assign a vector to that name first."
            )
        whole = ast.copy_location(ast.Name(target.value.id, ast.Store()), target.value)
        self.store(whole, self.expressions.replaced(target, operand))

    def _assignment(self, node: ast.Assign) -> None:
        # The right side first, all of it: `x, v = v, x` swaps.
        found = self.expressions.several(node.value)
        for target in node.targets:
            if isinstance(found, list):
                self._assign_several(target, found, node.value)
            elif isinstance(target, (ast.Tuple, ast.List)):
                self.source.refuse(target, "taking one value apart is not accepted", "Write a, b = x, y.")
            else:
                self._assign(target, found)

    def _assign_several(self, target: ast.expr, operands: list[Operand], value: ast.expr) -> None:
        if not isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, ast.Tuple):
                what, cure = refusals.of_node(value)
                self.source.refuse(value, f"{what} is not accepted in a kernel", cure)
            self.source.refuse(value, f"{len(operands)} values for one name", "Take them apart: a, b = ...")
        for item in target.elts:
            if isinstance(item, (ast.Starred, ast.Tuple, ast.List)):
                self.source.refuse(item, "a nested or starred target is not accepted", "Write a, b = x, y.")
        if len(target.elts) != len(operands):
            self.source.refuse(
                target, f"{len(target.elts)} names for {len(operands)} values", "Write as many names as values."
            )
        for item, operand in zip(target.elts, operands):
            self._assign(item, operand)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Attribute):
            self._assign(target, Constant(0))
            return
        load = type(target)(**{**dict(ast.iter_fields(target)), "ctx": ast.Load()})
        before = self.expressions.operand(ast.copy_location(load, target))
        self._assign(target, self.expressions.binary(node.op, before, node.value, node))

    # ---- branches

    def _branch(
        self, node: ast.stmt, condition: Value, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        before = self.scope.bindings
        self.nesting += 1
        sides: list[tuple[Block, Bindings]] = []
        for read in (then, otherwise):
            self.scope.bindings = dict(before)
            with self.frame.tape.region() as block:
                read()
            sides.append((block, self.scope.bindings))
        self.nesting -= 1
        (first, first_bindings), (second, second_bindings) = sides
        op = If(condition, first, second, self.arithmetic.place(node))
        self.scope.bindings = self._merge(node, op, first_bindings, second_bindings)
        if op.results or first.has_effects or second.has_effects:
            self.frame.tape.block.ops.append(op)

    def _merge(self, node: ast.stmt, op: If, then: Bindings, otherwise: Bindings) -> Bindings:
        # A side that has left is not there to read a name: what it lacks does not matter.
        gone = [side.get(left(self.depth)) == _TRUE for side in (then, otherwise)]
        merged: Bindings = {}
        for name in dict.fromkeys([*then, *otherwise]):
            sides = [then.get(name), otherwise.get(name)]
            lacking = [side is None or isinstance(side, (Unbound, Unset)) for side in sides]
            for side in (0, 1):
                if lacking[side] and gone[side] and not isinstance(sides[side], Unset):
                    sides[side] = UNSET
            merged[name] = self._merged(node, op, name, sides[0], sides[1])
        return merged

    def _merged(self, node: ast.stmt, op: If, name: str, a: Binding | None, b: Binding | None) -> Binding:
        for one, other in ((a, b), (b, a)):
            if one is None or isinstance(one, Unbound):
                known = other if isinstance(other, Unbound) else one
                return known if isinstance(known, Unbound) else Unbound("if", self.source.line_of(node))
        assert a is not None
        assert b is not None
        if a is b or (isinstance(a, Constant) and isinstance(b, Constant) and same(a, b)):
            return a
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Unset) and not isinstance(other, Value):
                return other
        if isinstance(a, Constant) and isinstance(b, Constant) and a.is_bool and b.is_bool:
            return op.condition if a.value else self.arithmetic.logical_not(op.condition, node)
        return self._join(node, op, name, a, b)

    def _join(self, node: ast.stmt, op: If, name: str, a: Binding, b: Binding) -> Value:
        """One value for a name that the two sides gave different ones."""
        arithmetic = self.arithmetic
        known = [side for side in (a, b) if isinstance(side, (Value, Constant))]
        type_ = arithmetic.common_type(known[0], known[-1])
        if type_ is None:
            one, other = (arithmetic.type_of(side) for side in known)
            called = "what is returned" if name.startswith("<") else f"'{name}'"
            self.source.refuse(
                node,
                f"{called} becomes a {one} on one side of this `if` and a {other} on the other",
                "Give it the same kind of value on both sides.",
            )
        for block, side in ((op.then, a), (op.otherwise, b)):
            with self.frame.tape.region(block):
                block.yields.append(self.as_type_or_zero(side, type_, node))
        result = Value(type_)
        op.results.append(result)
        return result

    def as_type_or_zero(self, binding: Binding, type_: Type, node: ast.AST) -> Value:
        """The value of this type; for what is not set, one that nothing looks at."""
        if isinstance(binding, (Value, Constant)):
            return self.arithmetic.as_type(binding, type_, node)
        return self.arithmetic.zero(type_, node)


def same(a: Constant, b: Constant) -> bool:
    """Equal in type and bits; 0.0 and -0.0 are not the same constant."""
    return type(a.value) is type(b.value) and repr(a.value) == repr(b.value)
