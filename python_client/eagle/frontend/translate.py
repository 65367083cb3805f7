"""From a kernel's syntax tree to a verified kernel."""

from __future__ import annotations

import ast

from eagle import _core
from eagle._data_classes import data_class
from eagle.frontend.emit import Emitter
from eagle.frontend.frame import Context, Frame, Results
from eagle.frontend.loops import Loops
from eagle.frontend.names import Names
from eagle.frontend.returns import HelperResults, KernelOutputs, hidden, is_empty
from eagle.frontend.scope import Scope, TableRef, local_names
from eagle.frontend.signature import Signature
from eagle.frontend.source import Source
from eagle.frontend.statements import left
from eagle.frontend.tape import Constant, Operand, Type, Value
from eagle.roles import Role


@data_class(frozen=True)
class Translation:
    """A kernel, and the form in which it returns its outputs: their names, in order."""

    kernel: _core.Kernel
    form: str  # "none", "one", "tuple", "dict"
    outputs: tuple[str, ...]


def translate(source: Source, signature: Signature, names: Names, real: str) -> Translation:
    """The kernel of a function; ``real`` ("f64" or "f32") is the type of its reals."""
    try:
        scope = Scope(source, local_names(source.function.args, source.function.body))
        frame = Frame(Context(Type(real), _read_function), scope, names, chain=((source, source.name),))
        return _KernelStatements(frame, signature).translate()
    except RecursionError:
        pass
    source.refuse(
        source.function, "an expression or `if` is nested too deeply", "Split it: give its parts names of their own."
    )


class _HelperStatements(Loops):
    """The statements of a called function."""

    def __init__(self, frame: Frame, statements: list[ast.stmt]) -> None:
        super().__init__(frame)
        self.statements = statements
        self.results = HelperResults(frame.source)
        self.results.prepare(statements, self.scope.bindings)

    def give(self, node: ast.Return) -> None:
        if is_empty(node):
            self.source.refuse(node, "nothing is returned here", "Return a value: a called function has no effects.")
        assert node.value is not None
        self.results.give(node, self.expressions.several(node.value), self.scope.bindings)

    def read(self) -> Results:
        self.block(self.statements)
        if self.scope.bindings[left(0)] != Constant(True):
            self.source.refuse(
                self.statements[-1],
                "a path through this function ends without `return`",
                "End it with a `return` that every path reaches.",
            )
        found = [self.scope.bindings[hidden(i)] for i in range(self.results.count)]
        operands = [operand for operand in found if isinstance(operand, (Value, Constant))]
        return operands if self.results.is_tuple else operands[0]


def _read_function(frame: Frame, statements: list[ast.stmt]) -> Results:
    return _HelperStatements(frame, _without_docstring(statements)).read()


class _KernelStatements(Loops):
    """The statements of the kernel itself, whose arguments have roles."""

    def __init__(self, frame: Frame, signature: Signature) -> None:
        super().__init__(frame)
        self.signature = signature
        self.roles = signature.roles
        self.statements = _without_docstring(self.source.function.body)
        self.outputs = KernelOutputs(self.source, signature.outputs, self.roles, self.statements)
        self.entry: dict[str, Value] = {}

    def translate(self) -> Translation:
        bindings = self.scope.bindings
        for name, role in self.roles.items():
            if role.kind in ("table", "accum"):
                bindings[name] = TableRef(name, role)
            elif role.kind != "reduce":  # which has no value before it is given one
                bindings[name] = self.entry[name] = Value(self._type(role))
        self.outputs.prepare(bindings)
        self.block(self.statements)
        self._check_outputs()
        return self._emit()

    # ---- names with roles

    def _type(self, role: Role) -> Type:
        scalar = self.arithmetic.real.scalar if role.scalar == "real" else role.scalar
        return Type(scalar, role.extents)

    def store(self, target: ast.Name, operand: Operand) -> None:
        role = self.roles.get(target.id)
        if role is None:
            self.scope.bindings[target.id] = operand
        elif role.kind in ("mutable", "reduce"):
            self.scope.bindings[target.id] = self._as_role(operand, role, target.id, target)
        elif role.kind == "terminated":
            self.scope.bindings[target.id] = self._terminate(target, operand)
        else:
            cure = f"Use another name; annotate it Mutable[{role}] if it is state that the kernel changes."
            if role.kind in ("param", "table"):
                cure = f"Use another name: a {role.kind.capitalize()} is the same for all samples."
            what = "which is only read"
            if role.kind == "accum":
                what, cure = "which is only added to", f"Write {target.id}.add(value, at=i)."
            self.source.refuse(target, f"'{target.id}' is a {role}, {what}", cure)

    def _terminate(self, target: ast.Name, operand: Operand) -> Value:
        """ORs a condition into the mask, which is false while a sample runs."""
        if not self.arithmetic.is_bool(operand):
            self.source.refuse(
                target, f"'{target.id}' (Terminated) takes a condition", "Write a comparison, as in done = t >= t_end."
            )
        before = self.scope.bindings[target.id]
        if before is self.entry[target.id] or not isinstance(before, Value):
            return self.arithmetic.value(operand, target)
        return self.arithmetic.value(self.arithmetic.logic("or", before, operand, target), target)

    def _as_role(self, operand: Operand, role: Role, name: str, node: ast.AST) -> Value:
        """The operand as what is stored in a plane of this role."""
        return self.arithmetic.stored(operand, self._type(role), f"'{name}'", role, node)

    # ---- outputs

    def give(self, node: ast.Return) -> None:
        for name, part in self.outputs.expressions(node):
            value = self._as_role(self.expressions.operand(part), self.outputs.roles[name], name, part)
            self.scope.bindings[hidden(self.outputs.names.index(name))] = value

    def _check_outputs(self) -> None:
        function = self.source.function
        form = self.signature.outputs.form
        if form != "none" and not self.outputs.names:
            self.source.refuse(
                function.returns or function,
                "the signature has outputs, but nothing is returned",
                "End the kernel with `return`, or drop the annotation.",
            )
        if form != "none" and self.scope.bindings[left(0)] != Constant(True):
            self.source.refuse(
                self.statements[-1],
                "a path through the kernel ends without `return`",
                "End the kernel with a `return` that every path reaches.",
            )
        for name, role in self.roles.items():
            if role.kind == "reduce" and not isinstance(self.scope.bindings.get(name), Value):
                self.source.refuse(
                    function,
                    f"'{name}' is a {role}, but some path through the kernel gives it no value",
                    f"Assign this sample's value on every path: {name} = ...",
                )
        stored = ("mutable", "terminated", "accum", "reduce")
        if not self.outputs.names and not any(role.kind in stored for role in self.roles.values()):
            self.source.refuse(
                function,
                "the kernel stores nothing",
                "Return an output (`-> Scalar`), or annotate what it changes Mutable[T].",
            )

    # ---- the kernel

    def _emit(self) -> Translation:
        real = self.arithmetic.real.scalar
        builder = _core.KernelBuilder(self.source.name, real)
        emitter = Emitter(builder)
        for argument in self.signature.arguments:
            place = self.arithmetic.place(argument.node)
            builder.at(builder.source_file(place.file), place.line, place.column)
            made = _declare(builder, argument.name, argument.role, real)
            if made is not None:
                emitter.argument(self.entry[argument.name], made)
        for name, role in self.outputs.roles.items():
            type_ = self._type(role)
            if role.kind == "reduce":
                builder.declare_reduction(name, type_.scalar, role.op)
            else:
                builder.declare_output(name, type_.scalar, list(type_.extents))
        emitter.block(self.frame.tape.block)
        for name, value in self._commits().items():
            builder.commit(name, emitter.made(value))
        return Translation(builder.finish(), self.signature.outputs.form, tuple(self.outputs.names))

    def _commits(self) -> dict[str, Value]:
        bindings = self.scope.bindings
        commits = {name: bindings[hidden(i)] for i, name in enumerate(self.outputs.names)}
        stored = [name for name, role in self.roles.items() if role.kind in ("mutable", "terminated", "reduce")]
        commits.update({name: bindings[name] for name in stored})
        return {name: value for name, value in commits.items() if isinstance(value, Value)}


def _without_docstring(statements: list[ast.stmt]) -> list[ast.stmt]:
    first = statements[0] if statements else None
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return statements[1:] if documented else statements


def _declare(builder: _core.KernelBuilder, name: str, role: Role, real: str) -> _core.Value | None:
    """Declares an argument; what all samples share has no value of its own."""
    scalar = real if role.scalar == "real" else role.scalar
    extents = list(role.extents)
    if role.kind == "table":
        builder.table(name, scalar, extents, list(role.axes))
        return None
    if role.kind == "accum":
        builder.accumulator(name, scalar, extents, list(role.axes))
        return None
    if role.kind == "reduce":
        builder.declare_reduction(name, scalar, role.op)
        return None
    if role.kind == "param":
        return builder.param(name, scalar)
    if role.kind == "terminated":
        return builder.terminated(name)
    if role.kind == "mutable":
        return builder.state(name, scalar, extents)
    return builder.read(name, scalar, extents)
