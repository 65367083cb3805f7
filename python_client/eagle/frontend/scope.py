"""What the names of one function stand for while it is read."""

from __future__ import annotations

import ast
from typing import Iterator, Union

from eagle._data_classes import data_class
from eagle.frontend.names import Tuple
from eagle.frontend.source import Source
from eagle.frontend.tape import Constant, Value
from eagle.roles import Role


@data_class(frozen=True)
class Unbound:
    """A name that has a value on some paths only: those through the ``if`` or loop in this line."""

    construct: str  # "if", "for" or "while"
    line: int


@data_class(frozen=True)
class Unset:
    """A result that is not known yet; nothing looks at it before it is."""


@data_class(frozen=True)
class TableRef:
    """A Table or Accum argument of the kernel."""

    name: str
    role: Role


@data_class(frozen=True, eq=False)
class LocalFunction:
    """A function written inside another one, whose names it sees."""

    node: Union[ast.FunctionDef, ast.Lambda]
    scope: Scope


Binding = Union[Value, Constant, Tuple, Unbound, Unset, TableRef, LocalFunction]
Bindings = dict[str, Binding]
UNSET = Unset()


class Scope:
    """The local names of one function, and the function around it if it is a local one."""

    def __init__(self, source: Source, local_names: frozenset[str], outer: Scope | None = None) -> None:
        self.source = source
        self.bindings: Bindings = {}
        self._local_names = local_names
        self._outer = outer

    def is_local(self, name: str) -> bool:
        return self._owner(name) is not None

    def read(self, node: ast.Name) -> Binding:
        owner = self._owner(node.id)
        found = None if owner is None else owner.bindings.get(node.id)
        if found is None:
            self.source.refuse(node, f"'{node.id}' is read before it has a value", "Assign it first.")
        if isinstance(found, Unbound):
            self._refuse_unbound(node, found)
        return found

    def _owner(self, name: str) -> Scope | None:
        if name in self._local_names:
            return self
        return None if self._outer is None else self._outer._owner(name)

    def _refuse_unbound(self, node: ast.Name, found: Unbound) -> None:
        if found.construct == "if":
            self.source.refuse(
                node,
                f"'{node.id}' has a value on one path only of the `if` in line {found.line}",
                f"Give '{node.id}' a value before that `if`, or on both of its sides.",
            )
        self.source.refuse(
            node,
            f"'{node.id}' gets its first value inside the `{found.construct}` loop in line {found.line}, which may "
            "run no trip",
            f"Give '{node.id}' a value before that loop.",
        )


def own_nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of these statements in order, without the insides of local functions."""
    left: list[ast.AST] = [*reversed(statements)]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            left.extend([*ast.iter_child_nodes(node)][::-1])


def assigned_names(statements: list[ast.stmt]) -> list[str]:
    """The names that these statements change, in order; a component that changes, changes its vector."""
    found: dict[str, None] = {}
    for node in own_nodes(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found[node.value.id] = None
    return list(found)


def local_names(arguments: ast.arguments, statements: list[ast.stmt]) -> frozenset[str]:
    """The names that are local to a function, as Python's own rule has it."""
    stored = (
        node.id for node in own_nodes(statements) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    functions = (statement.name for statement in statements if isinstance(statement, ast.FunctionDef))
    named = (a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])
    return frozenset([*stored, *functions, *named])
