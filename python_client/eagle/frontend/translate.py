"""Statements and expressions of a kernel."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Union

from eagle import _core
from eagle.frontend import refusals
from eagle.frontend.arithmetic import Arithmetic
from eagle.frontend.expressions import Expressions
from eagle.frontend.names import Names
from eagle.frontend.signature import Outputs, Signature
from eagle.frontend.source import Source
from eagle.frontend.tape import BOOL, Block, Constant, Emitter, If, Operand, Place, Type, Value
from eagle.roles import Role


@dataclass(frozen=True)
class Translation:
    """A kernel, and the form in which it returns its outputs: their names, in order."""

    kernel: _core.Kernel
    form: str  # "none", "one", "tuple", "dict"
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Unbound:
    """A name that has a value on one path only."""

    line: int


Bindings = dict[str, Union[Operand, Unbound]]


def translate(source: Source, signature: Signature, names: Names, real: str) -> Translation:
    """The kernel of a function; ``real`` ("f64" or "f32") is the type of its reals."""
    try:
        return _Translator(source, signature, names, real).run()
    except RecursionError:
        pass
    source.refuse(
        source.function, "an expression or `if` is nested too deeply", "Split it: give its parts names of their own."
    )


class _Translator:
    """One translation: bindings of names, and the tape that fills."""

    def __init__(self, source: Source, signature: Signature, names: Names, real: str) -> None:
        self.source = source
        self.signature = signature
        self.roles = signature.roles
        self.bindings: Bindings = {}
        self.arithmetic = Arithmetic(source, real)
        self.expressions = Expressions(source, names, self.arithmetic, self._read, _assigned_names(source.function))
        self.entry: dict[str, Value] = {}
        self.returned: dict[str, Value] = {}

    def run(self) -> Translation:
        for argument in self.signature.arguments:
            self.entry[argument.name] = Value(self._type(argument.role))
        self.bindings.update(self.entry)
        body = self.source.function.body
        if ast.get_docstring(self.source.function, clean=False) is not None:
            body = body[1:]
        last = body[-1] if body else None
        for statement in body:
            if statement is last and isinstance(statement, ast.Return):
                self._return(statement)
            else:
                self._statement(statement)
        self._check_outputs()
        return self._emit()

    # ---- names

    def _type(self, role: Role) -> Type:
        scalar = self.arithmetic.real.scalar if role.scalar == "real" else role.scalar
        return Type(scalar, role.extents)

    def _read(self, node: ast.Name) -> Operand:
        found = self.bindings.get(node.id)
        if found is None:
            self.source.refuse(node, f"'{node.id}' is read before it has a value", "Assign it first.")
        if isinstance(found, Unbound):
            self.source.refuse(
                node,
                f"'{node.id}' has a value on one path only of the `if` in line {found.line}",
                f"Give '{node.id}' a value before that `if`, or on both of its sides.",
            )
        return found

    def _assign(self, target: ast.expr, operand: Operand) -> None:
        if not isinstance(target, ast.Name):
            what, cure = refusals.of_node(target)
            if isinstance(target, ast.Attribute):
                what, cure = "an attribute", "State belongs into arguments annotated Mutable[T]."
            self.source.refuse(target, f"assigning to {what} is not accepted", f"Assign to a name. {cure}")
        role = self.roles.get(target.id)
        if role is None:
            self.bindings[target.id] = operand
        elif role.kind == "mutable":
            self.bindings[target.id] = self._as_role(operand, role, target.id, target)
        elif role.kind == "terminated":
            self.bindings[target.id] = self._terminate(target, operand)
        else:
            cure = f"Use another name; annotate it Mutable[{role}] if it is state that the kernel changes."
            if role.kind == "param":
                cure = "Use another name: a Param is one number for the whole launch."
            self.source.refuse(target, f"'{target.id}' is a {role}, which is only read", cure)

    def _terminate(self, target: ast.Name, operand: Operand) -> Value:
        """ORs a condition into the mask, which is false while a sample runs."""
        if not self.arithmetic.is_bool(operand):
            self.source.refuse(
                target, f"'{target.id}' (Terminated) takes a condition", "Write a comparison, as in done = t >= t_end."
            )
        before = self.bindings[target.id]
        if before is self.entry[target.id] or not isinstance(before, Value):
            return self.arithmetic.value(operand, target)
        return self.arithmetic.value(self.arithmetic.logic("or", before, operand, target), target)

    def _as_role(self, operand: Operand, role: Role, name: str, node: ast.AST) -> Value:
        """The operand as what is stored in a plane of this role."""
        wanted, found = self._type(role), self.arithmetic.type_of(operand)
        cure = ""
        if found == BOOL:
            cure = f"Write {'int' if wanted.scalar == 'i64' else 'float'}(condition), or a choice of two numbers."
        elif wanted.extents != found.extents:
            cure = "Combine values of equal extents."
        elif wanted.scalar == "i64" and found.is_real:
            cure = "Write int(...), which cuts towards zero."
        if cure:
            self.source.refuse(node, f"'{name}' is a {role} ({wanted}), the value a {found}", cure)
        return self.arithmetic.as_type(operand, wanted, node)

    # ---- statements

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self._assignment(node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.Return):
            self.source.refuse(
                node,
                "`return` before the end is not accepted",
                "Return once, as the last statement; choose values with if/else or `a if condition else b`.",
            )
        elif isinstance(node, ast.Expr):
            self._refuse_expression_statement(node.value)
        elif not isinstance(node, ast.Pass):
            what, cure = refusals.of_node(node)
            self.source.refuse(node, f"{what} is not accepted in a kernel", cure)

    def _refuse_expression_statement(self, node: ast.expr) -> None:
        table = refusals.EXPRESSIONS.get(type(node).__name__)
        what, cure = table or ("an expression on its own", "Assign its value to a name, or leave it out.")
        self.source.refuse(node, f"{what} is not accepted in a kernel", cure)

    def _assignment(self, node: ast.Assign) -> None:
        # The right side first, all of it: `x, v = v, x` swaps.
        if isinstance(node.value, ast.Tuple):
            operands = [self.expressions.operand(item) for item in node.value.elts]
            for target in node.targets:
                self._assign_tuple(target, operands, node.value)
            return
        operand = self.expressions.operand(node.value)
        for target in node.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                self.source.refuse(target, "taking one value apart is not accepted", "Write a, b = x, y.")
            self._assign(target, operand)

    def _assign_tuple(self, target: ast.expr, operands: list[Operand], value: ast.expr) -> None:
        if not isinstance(target, (ast.Tuple, ast.List)):
            what, cure = refusals.of_node(value)
            self.source.refuse(value, f"{what} is not accepted in a kernel", cure)
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
        if not isinstance(node.target, ast.Name):
            self._assign(node.target, Constant(0))
            return
        name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        self._assign(node.target, self.expressions.binary(node.op, self._read(name), node.value, node))

    def _if(self, node: ast.If) -> None:
        arithmetic = self.arithmetic
        condition = arithmetic.value(self.expressions.condition(node.test), node.test)
        before, outer = self.bindings, arithmetic.block
        sides: list[tuple[Block, Bindings]] = []
        for statements in (node.body, node.orelse):
            arithmetic.block, self.bindings = Block(), dict(before)
            for statement in statements:
                self._statement(statement)
            sides.append((arithmetic.block, self.bindings))
        (then, then_bindings), (otherwise, else_bindings) = sides
        op = If(condition, then, otherwise, arithmetic.place(node))
        self.bindings = self._merge(node, op, then_bindings, else_bindings)
        arithmetic.block = outer
        if op.results:
            outer.ops.append(op)

    def _merge(self, node: ast.If, op: If, then: Bindings, otherwise: Bindings) -> Bindings:
        merged: Bindings = {}
        for name in dict.fromkeys([*then, *otherwise]):
            a, b = then.get(name), otherwise.get(name)
            if a is None or b is None or isinstance(a, Unbound) or isinstance(b, Unbound):
                known = a if isinstance(a, Unbound) else b
                merged[name] = known if isinstance(known, Unbound) else Unbound(self.source.line_of(node))
            elif a is b or (isinstance(a, Constant) and isinstance(b, Constant) and _same(a, b)):
                merged[name] = a
            else:
                merged[name] = self._join(node, op, name, a, b)
        return merged

    def _join(self, node: ast.If, op: If, name: str, a: Operand, b: Operand) -> Value:
        """One value for a name that the two sides gave different ones."""
        arithmetic = self.arithmetic
        type_ = arithmetic.common_type(a, b)
        if type_ is None:
            one, other = arithmetic.type_of(a), arithmetic.type_of(b)
            self.source.refuse(
                node,
                f"'{name}' becomes a {one} on one side of this `if` and a {other} on the other",
                "Give it the same kind of value on both sides.",
            )
        for block, operand in ((op.then, a), (op.otherwise, b)):
            arithmetic.block = block
            block.yields.append(arithmetic.as_type(operand, type_, node))
        result = Value(type_)
        op.results.append(result)
        return result

    # ---- outputs

    def _return(self, node: ast.Return) -> None:
        outputs = self.signature.outputs
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            return
        if outputs.form == "none":
            self.source.refuse(
                node, "the kernel returns a value that its signature does not have", "Annotate it, as in `-> Scalar`."
            )
        parts = self._returned_parts(node.value, outputs)
        for (name, part), role in zip(parts, outputs.roles * (len(parts) if len(outputs.roles) == 1 else 1)):
            if name in self.roles:
                self.source.refuse(
                    part,
                    f"the output '{name}' has the name of an argument",
                    f"Return it under another name ({name}_new = ...); a Mutable needs no return.",
                )
            if name in self.returned:
                self.source.refuse(part, f"'{name}' is returned twice", "Return it once.")
            self.returned[name] = self._as_role(self.expressions.operand(part), role, name, part)

    def _returned_parts(self, value: ast.expr, outputs: Outputs) -> list[tuple[str, ast.expr]]:
        """(plane name, expression): the name of the variable or the key, else ``out``."""
        if outputs.form == "dict":
            return self._returned_dict(value, outputs)
        if outputs.form == "one":
            return [(value.id if isinstance(value, ast.Name) else "out", value)]
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(outputs.roles):
            self.source.refuse(
                value,
                f"the signature has a tuple of {len(outputs.roles)} outputs",
                f"Return {len(outputs.roles)} values, separated by commas.",
            )
        return [(item.id if isinstance(item, ast.Name) else f"out{i}", item) for i, item in enumerate(value.elts)]

    def _returned_dict(self, value: ast.expr, outputs: Outputs) -> list[tuple[str, ast.expr]]:
        cure = 'Return {"name": value, ...} with a text for each key.'
        if not isinstance(value, ast.Dict) or not value.keys:
            self.source.refuse(value, "the signature has a dict of outputs", cure)
        parts: dict[str, ast.expr] = {}
        for key, item in zip(value.keys, value.values):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or not key.value:
                self.source.refuse(key or item, "a key that is not a text", cure)
            if key.value in parts:
                self.source.refuse(key, f"'{key.value}' is returned twice", "Return it once.")
            parts[key.value] = item
        keys = outputs.keys or tuple(parts)
        if set(keys) != set(parts):
            self.source.refuse(
                value, f"the signature has the outputs {', '.join(keys)}", "Return exactly those, by name."
            )
        return [(key, parts[key]) for key in keys]

    def _check_outputs(self) -> None:
        function = self.source.function
        if self.signature.outputs.form != "none" and not self.returned:
            self.source.refuse(
                function.returns or function,
                "the signature has outputs, but nothing is returned",
                "End the kernel with `return`, or drop the annotation.",
            )
        if not self.returned and not any(r.kind in ("mutable", "terminated") for r in self.roles.values()):
            self.source.refuse(
                function,
                "the kernel stores nothing",
                "Return an output (`-> Scalar`), or annotate what it changes Mutable[T].",
            )

    # ---- the kernel

    def _emit(self) -> Translation:
        real = self.arithmetic.real.scalar
        builder = _core.KernelBuilder(self.source.name, real)
        emitter = Emitter(builder, self.source.filename)
        for argument in self.signature.arguments:
            place = self.arithmetic.place(argument.node)
            builder.at(0, place.line, place.column)
            emitter.argument(self.entry[argument.name], _declare(builder, argument.name, argument.role, real))
        for name, value in self.returned.items():
            builder.declare_output(name, value.type.scalar, list(value.type.extents))
        emitter.block(self.arithmetic.block)
        for name, value in self._commits().items():
            builder.commit(name, emitter.made(value))
        return Translation(builder.finish(), self.signature.outputs.form, tuple(self.returned))

    def _commits(self) -> dict[str, Value]:
        commits = dict(self.returned)
        for name, role in self.roles.items():
            value = self.bindings[name]
            if role.kind in ("mutable", "terminated") and isinstance(value, Value):
                commits[name] = value
        return commits


def _declare(builder: _core.KernelBuilder, name: str, role: Role, real: str) -> _core.Value:
    scalar = real if role.scalar == "real" else role.scalar
    if role.kind == "param":
        return builder.param(name, scalar)
    if role.kind == "terminated":
        return builder.terminated(name)
    if role.kind == "mutable":
        return builder.state(name, scalar, list(role.extents))
    return builder.read(name, scalar, list(role.extents))


def _same(a: Constant, b: Constant) -> bool:
    """Equal in type and bits; 0.0 and -0.0 are not the same constant."""
    return type(a.value) is type(b.value) and repr(a.value) == repr(b.value)


def _assigned_names(function: ast.FunctionDef) -> frozenset[str]:
    """The names that are local to the function, as Python's own rule has it."""
    stored = (node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    arguments = (argument.arg for argument in [*function.args.posonlyargs, *function.args.args])
    return frozenset([*stored, *arguments])


__all__ = ["Place", "Translation", "translate"]
