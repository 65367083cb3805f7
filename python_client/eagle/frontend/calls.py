"""Calls: the functions a kernel knows, look-ups in tables, dispatch, and functions of the user's own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Union

from eagle.frontend.frame import Results
from eagle.frontend.functions import call_branch, call_helper, call_local
from eagle.frontend.names import ACCEPTED_CALLS, Call, Helper, dotted
from eagle.frontend.scope import LocalFunction, TableRef
from eagle.frontend.tape import INTEGER, Block, Constant, Operand, Switch, Type, Value
from eagle.frontend.vectors import ALGEBRA

if TYPE_CHECKING:
    from eagle.frontend.expressions import Expressions

_ANY = 64
_ARGUMENTS = {
    "select": (3, 3),
    "min": (2, _ANY),
    "max": (2, _ANY),
    "minimum": (2, 2),
    "maximum": (2, 2),
    "vector": (1, _ANY),
    "quat": (4, 4),
    "sample_index": (0, 0),
    "n_samples": (0, 0),
    "step_index": (0, 0),
    **{name: (count, count) for name, (count, _, _) in ALGEBRA.items()},
}
_POLICIES = ("auto", "switch", "segmented", "predicated")


class Calls:
    """Reads the calls of one function."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        self._frame = expressions.frame
        self._source = expressions.frame.source
        self._arithmetic = expressions.frame.arithmetic

    def call(self, node: ast.Call) -> Results:
        table = self._table(node.func)
        if table is not None:
            return self._look_up(node, table)
        called = self._called(node)
        if isinstance(called, LocalFunction):
            return call_local(self._expressions, node, called)
        if isinstance(called, Helper):
            return call_helper(self._expressions, node, called)
        if called.name == "dispatch":
            return self._dispatch(node)
        if called.name == "matrix":
            return self._matrix(node)
        if called.name in ("range", "bounded"):
            self._source.refuse(
                node,
                f"{ast.unparse(node.func)} stands in the head of a loop only",
                "Write `for i in range(n):`, `for i in eagle.bounded(range(n), 100):` or "
                "`while eagle.bounded(100) and condition:`.",
            )
        return self._known(node, called.name)

    def _called(self, node: ast.Call) -> Union[Call, Helper, LocalFunction]:
        function, scope = node.func, self._frame.scope
        if isinstance(function, ast.Name) and scope.is_local(function.id):
            found = scope.read(function)
            if isinstance(found, LocalFunction):
                return found
        path = dotted(function)
        if path is None or scope.is_local(path.split(".")[0]):
            self._source.refuse(
                function,
                f"calling '{ast.unparse(function)}' is not accepted in a kernel",
                f"Accepted calls are {ACCEPTED_CALLS}.",
            )
        called = self._frame.names.resolve(self._source, function)
        if not isinstance(called, (Call, Helper)):
            self._source.refuse(function, f"'{path}' is a number, not a function", "Leave out the brackets.")
        return called

    # ---- known functions

    def _known(self, node: ast.Call, name: str) -> Operand:
        operands = self._operands(node, name)
        first = operands[0] if operands else Constant(0)
        if name == "select":
            self._expressions.require_condition(first, node.args[0])
            return self._arithmetic.select(first, operands[1], operands[2], node)
        if name in ("min", "max"):
            for other in operands[1:]:
                first = self._arithmetic.extreme(name, first, other, node)
            return first
        if name in ("minimum", "maximum"):
            return self._arithmetic.numeric(name[:3], name, first, operands[1], node)
        if name == "abs":
            return self._arithmetic.unary("abs", "abs", first, node)
        if name == "sqrt":
            return self._arithmetic.sqrt(first, node)
        if name in ("vector", "quat"):
            return self._frame.vectors.compose(operands, (len(operands),), node)
        if name in ALGEBRA:
            return self._frame.vectors.algebra(name, name, operands, node)
        if name in ("sample_index", "n_samples", "step_index"):
            return self._frame.tape.block.add(name, (), INTEGER, self._arithmetic.place(node))
        return self._arithmetic.convert(name, first, node)

    def _operands(self, node: ast.Call, name: str) -> list[Operand]:
        for part in [*node.args, *node.keywords]:
            if isinstance(part, (ast.Starred, ast.keyword)):
                self._source.refuse(
                    part, f"{name}: keywords and stars are not accepted", "Give the arguments in order."
                )
        operands = [self._expressions.operand(argument) for argument in node.args]
        least, most = _ARGUMENTS.get(name, (1, 1))
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} or more"
            self._source.refuse(
                node, f"{name} takes {wanted} argument(s), found {len(node.args)}", "Give single numbers, in order."
            )
        return operands

    def _matrix(self, node: ast.Call) -> Operand:
        rows = node.args[0] if len(node.args) == 1 and not node.keywords else None
        lines = rows.elts if isinstance(rows, (ast.List, ast.Tuple)) else []
        cells = [line.elts for line in lines if isinstance(line, (ast.List, ast.Tuple))]
        if not cells or len(cells) != len(lines) or len({len(line) for line in cells}) != 1 or not cells[0]:
            self._source.refuse(
                node, "matrix takes a list of rows of equal length", "Write eagle.matrix([[a, b], [c, d]])."
            )
        operands = [self._expressions.operand(cell) for line in cells for cell in line]
        return self._frame.vectors.compose(operands, (len(cells), len(cells[0])), node)

    # ---- tables

    def _table(self, function: ast.expr) -> TableRef | None:
        """The table that ``t.at`` reads."""
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return None
        if not self._frame.scope.is_local(function.value.id):
            return None
        found = self._frame.scope.read(function.value)
        if not isinstance(found, TableRef):
            return None
        if function.attr != "at":
            self._source.refuse(
                function, f"a Table has no '{function.attr}'", f"Read an element: {function.value.id}.at(i)."
            )
        return found

    def _look_up(self, node: ast.Call, table: TableRef) -> Operand:
        axes = [name for name, _ in table.role.axes] or ["i"]
        wanted = f"{table.name}.at({', '.join(axes)})"
        given: dict[str, ast.expr] = {}
        if len(node.args) > len(axes) or any(isinstance(argument, ast.Starred) for argument in node.args):
            self._source.refuse(node, f"'{table.name}' takes {len(axes)} index(es)", f"Write {wanted}.")
        given.update(zip(axes, node.args))
        for keyword in node.keywords:
            if keyword.arg not in axes or keyword.arg in given or not table.role.axes:
                self._source.refuse(keyword, f"'{table.name}' takes no '{keyword.arg}' here", f"Write {wanted}.")
            given[keyword.arg] = keyword.value
        if len(given) != len(axes):
            missing = next(axis for axis in axes if axis not in given)
            self._source.refuse(node, f"the index '{missing}' of '{table.name}' is missing", f"Write {wanted}.")
        indices = []
        for argument in [*given.values()]:
            found = self._expressions.integer(argument, f"'{table.name}.at'")
            indices.append(self._arithmetic.as_type(found, INTEGER, argument))
        by_axis = dict(zip(given, indices))
        scalar = self._frame.context.real.scalar if table.role.scalar == "real" else table.role.scalar
        type_ = Type(scalar, table.role.extents)
        operands = tuple(by_axis[axis] for axis in axes)
        return self._frame.tape.block.add("gather", operands, type_, self._arithmetic.place(node), table.name)

    # ---- dispatch

    def _dispatch(self, node: ast.Call) -> Results:
        kind, branches, group = self._dispatch_arguments(node)
        selector = self._arithmetic.as_type(self._expressions.integer(kind, "dispatch"), INTEGER, kind)
        cases: list[Block] = []
        results: list[Results] = []
        for branch in branches:
            function = self._branch(branch)
            with self._frame.tape.region() as case:
                results.append(call_branch(self._expressions, branch, function))
            cases.append(case)
        op = Switch(selector, cases, group, self._arithmetic.place(node))
        found = self._join_cases(op, branches, results)
        self._frame.tape.block.ops.append(op)
        return found

    def _dispatch_arguments(self, node: ast.Call) -> tuple[ast.expr, list[ast.expr], tuple[str, str]]:
        given = dict(zip(("kind", "branches", "policy", "name"), node.args))
        for keyword in node.keywords:
            if keyword.arg not in ("kind", "branches", "policy", "name") or keyword.arg in given:
                self._source.refuse(
                    keyword, f"dispatch takes no '{keyword.arg}' here", "Its keywords are policy and name."
                )
            given[keyword.arg] = keyword.value
        branches = given.get("branches")
        if len(node.args) > 4 or "kind" not in given or not isinstance(branches, (ast.List, ast.Tuple)):
            self._source.refuse(
                node,
                "dispatch takes an integer and a list of functions",
                "Write eagle.dispatch(kind, [f, g, lambda: 0.0]), with functions that take no arguments.",
            )
        if not 1 <= len(branches.elts) <= _ANY:
            self._source.refuse(
                branches, f"a dispatch of {len(branches.elts)} branches", f"Give 1 to {_ANY} functions."
            )
        policy = self._text(given.get("policy"), "policy") or "auto"
        if policy not in _POLICIES:
            self._source.refuse(given["policy"], f"the policy '{policy}'", f"Choose one of {', '.join(_POLICIES)}.")
        return given["kind"], branches.elts, (self._group_name(node, given.get("name")), policy)

    def _group_name(self, node: ast.Call, given: ast.expr | None) -> str:
        groups = self._frame.context.groups
        name = self._text(given, "name") or f"dispatch{len(groups)}"
        return groups.setdefault(self._frame.path_to(node), name)

    def _text(self, node: ast.expr | None, what: str) -> str:
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return ""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value:
            self._source.refuse(node, f"the {what} of a dispatch is a text", f'Write {what}="...".')
        return node.value

    def _branch(self, node: ast.expr) -> Union[Helper, LocalFunction]:
        if isinstance(node, ast.Lambda):
            return LocalFunction(node, self._frame.scope)
        if isinstance(node, ast.Name) and self._frame.scope.is_local(node.id):
            found = self._frame.scope.read(node)
            if isinstance(found, LocalFunction):
                return found
        elif dotted(node) is not None:
            resolved = self._frame.names.resolve(self._source, node)
            if isinstance(resolved, Helper):
                return resolved
        self._source.refuse(
            node,
            "a branch of a dispatch is a function without arguments",
            "Write a lambda, lambda: a + b, or the name of a function.",
        )

    def _join_cases(self, op: Switch, nodes: list[ast.expr], results: list[Results]) -> Results:
        """The types in which the branches meet; every branch yields those."""
        lists = [found if isinstance(found, list) else [found] for found in results]
        for node, items, found in zip(nodes, lists, results):
            if len(items) != len(lists[0]) or isinstance(found, list) != isinstance(results[0], list):
                self._source.refuse(
                    node,
                    f"this branch gives {len(items)} value(s), the first one {len(lists[0])}",
                    "Return as many values from every branch.",
                )
        for position in range(len(lists[0])):
            type_ = self._meeting([items[position] for items in lists], nodes)
            for case, node, items in zip(op.cases, nodes, lists):
                with self._frame.tape.region(case):
                    case.yields.append(self._arithmetic.as_type(items[position], type_, node))
            op.results.append(Value(type_))
        return [*op.results] if isinstance(results[0], list) else op.results[0]

    def _meeting(self, operands: list[Operand], nodes: list[ast.expr]) -> Type:
        met: Operand = operands[0]
        for operand, node in zip(operands, nodes):
            type_ = self._arithmetic.common_type(met, operand)
            if type_ is None:
                self._source.refuse(
                    node,
                    f"this branch gives a {self._arithmetic.type_of(operand)}, another one a "
                    f"{self._arithmetic.type_of(met)}",
                    "Return the same kind of value from every branch.",
                )
            met = Value(type_)
        return self._arithmetic.type_of(met)
