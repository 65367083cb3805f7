"""Calls: the functions a kernel knows, look-ups in tables, dispatch, and functions of the user's own."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Union

from eagle import random
from eagle.frontend.frame import Results
from eagle.frontend.functions import call_branch, call_helper, call_local
from eagle.frontend.names import ACCEPTED_CALLS, Call, Helper, Ruled, dotted
from eagle.frontend.primitives import call_primitive
from eagle.frontend.reals import FUNCTIONS
from eagle.frontend.scope import LocalFunction, TableRef
from eagle.frontend.tape import BOOL, INTEGER, Block, Constant, Operand, Switch, Type, Value
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
    **dict.fromkeys(("power", "//", "%"), (2, 2)),
    **{name: (count, count) for name, (count, _, _) in ALGEBRA.items()},
    **{name: (count, count) for name, (count, _) in FUNCTIONS.items()},
}
# What the functions of eagle.random take, in order.
RANDOM: dict[str, tuple[str, ...]] = {
    name: tuple(inspect.signature(getattr(random, name)).parameters) for name in random.__all__
}
RANDOM_DEFAULTS: dict[str, float] = {
    parameter.name: parameter.default
    for name in random.__all__
    for parameter in inspect.signature(getattr(random, name)).parameters.values()
    if parameter.default is not parameter.empty
}
_TO_INTEGERS = {"floor_int": "floor", "ceil_int": "ceil", "round_int": "rint"}
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
        if isinstance(called, Ruled):
            return call_primitive(self._expressions, node, called)
        if called.name == "dispatch":
            return self._dispatch(node)
        if called.name == "matrix":
            return self._matrix(node)
        if called.name.startswith("random."):
            return self._random(node, called.name)
        if called.name in ("range", "bounded"):
            self._source.refuse(
                node,
                f"{ast.unparse(node.func)} stands in the head of a loop only",
                "Write `for i in range(n):`, `for i in eagle.bounded(range(n), 100):` or "
                "`while eagle.bounded(100) and condition:`.",
            )
        return self._known(node, called.name)

    def _called(self, node: ast.Call) -> Union[Call, Helper, Ruled, LocalFunction]:
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
        if not isinstance(called, (Call, Helper, Ruled)):
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
        if name in FUNCTIONS:
            return self._arithmetic.function(name, name, operands, node)
        if name in _TO_INTEGERS:
            return self._arithmetic.to_integer(_TO_INTEGERS[name], first, node)
        if name == "power":
            return self._arithmetic.power(first, operands[1], node)
        if name in ("//", "%"):
            code = "floor_div" if name == "//" else "modulo"
            return self._arithmetic.integral(code, name, first, operands[1], node)
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
                node,
                f"{ast.unparse(node.func)} takes {wanted} argument(s), found {len(node.args)}",
                "Give single numbers, in order.",
            )
        return operands

    def _random(self, node: ast.Call, called: str) -> Operand:
        name = called.split(".")[1]
        parameters = RANDOM[name]
        given: dict[str, ast.expr] = dict(zip(parameters, node.args))
        takes = f"{called}({', '.join(parameters)})"
        for keyword in node.keywords:
            if keyword.arg not in parameters or keyword.arg in given:
                self._source.refuse(keyword, f"{called} takes no '{keyword.arg}' here", f"Write {takes}.")
            given[keyword.arg] = keyword.value
        missing = [p for p in parameters if p not in given and p not in RANDOM_DEFAULTS]
        if len(node.args) > len(parameters) or missing or any(isinstance(a, ast.Starred) for a in node.args):
            what = (
                f"'{missing[0]}' of {called} is missing" if missing else f"{called} takes {len(parameters)} arguments"
            )
            self._source.refuse(node, what, f"Write {takes}.")
        # Parameters with defaults are all given or none: the plain distribution has a form of its own.
        optional = [p for p in parameters if p in RANDOM_DEFAULTS and any(o in given for o in RANDOM_DEFAULTS)]
        operands = [
            self._random_operand(called, p, given[p]) if p in given else self._default(RANDOM_DEFAULTS[p], node)
            for p in parameters
            if p not in RANDOM_DEFAULTS or p in optional
        ]
        extents = self._covariate_extents(operands, node) if name == "multivariate_normal" else ()
        result = {"uniform_int": INTEGER, "bernoulli": BOOL}.get(name, self._arithmetic.real._replace(extents=extents))
        return self._frame.tape.block.add("random", tuple(operands), result, self._arithmetic.place(node), name)

    def _covariate_extents(self, operands: list[Value], node: ast.Call) -> tuple[int, ...]:
        mean, factor = operands[2].type.extents, operands[3].type.extents
        if len(mean) != 1 or factor != (*mean, *mean):
            found = f"a {operands[2].type} and a {operands[3].type}"
            self._source.refuse(
                node, f"random.multivariate_normal of {found}", "Give a vector of n and an n by n matrix."
            )
        return mean

    def _default(self, number: float, node: ast.Call) -> Value:
        return self._arithmetic.as_type(Constant(number), self._arithmetic.real, node)

    def _random_operand(self, called: str, parameter: str, node: ast.expr) -> Value:
        """An operand of a random number; seeds are 64 bits, which Python writes without a sign."""
        operand = self._expressions.operand(node)
        integers = ("seed", "counter") if called != "random.uniform_int" else ("seed", "counter", "low", "high")
        if parameter in integers:
            number = operand.value if isinstance(operand, Constant) else 0
            if parameter in ("seed", "counter") and isinstance(number, int) and 2**63 <= number < 2**64:
                operand = Constant(number - 2**64)
            if self._arithmetic.type_of(operand) != INTEGER:
                found = self._arithmetic.type_of(operand)
                self._source.refuse(node, f"'{parameter}' of {called} is an integer, found a {found}", "Write an int.")
            return self._arithmetic.as_type(operand, INTEGER, node)
        wanted = self._arithmetic.real._replace(extents=self._arithmetic.extents(operand))
        if self._arithmetic.is_bool(operand) or (wanted.extents and called != "random.multivariate_normal"):
            found = self._arithmetic.type_of(operand)
            self._source.refuse(
                node, f"'{parameter}' of {called} is a number, found a {found}", "Give a single number."
            )
        return self._arithmetic.as_type(operand, wanted, node)

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
        name = function.value.id
        if found.role.kind == "accum":
            cure = f"An Accum is added to by a statement of its own, {name}.add(value, at=i), and never read."
            self._source.refuse(function, f"'{ast.unparse(function)}' gives no value", cure)
        if function.attr != "at":
            self._source.refuse(function, f"a Table has no '{function.attr}'", f"Read an element: {name}.at(i).")
        return found

    def addition(self, node: ast.expr) -> bool:
        """Reads ``h.add(value, at=i)``, a statement of its own; False for anything else."""
        function = node.func if isinstance(node, ast.Call) else None
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return False
        if not self._frame.scope.is_local(function.value.id):
            return False
        accum = self._frame.scope.read(function.value)
        if not isinstance(accum, TableRef) or accum.role.kind != "accum":
            return False
        assert isinstance(node, ast.Call)
        self._add(node, function, accum)
        return True

    def _add(self, node: ast.Call, function: ast.Attribute, accum: TableRef) -> None:
        axes = [name for name, _ in accum.role.axes] or ["at"]
        wanted = f"{accum.name}.add(value, {', '.join(f'{axis}=i' for axis in axes)})"
        if function.attr != "add" or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
            self._source.refuse(node, f"'{ast.unparse(node)}' is not how an Accum is used", f"Write {wanted}.")
        given = {keyword.arg or "": keyword.value for keyword in node.keywords}
        at = given.get("at")
        if at is not None and len(given) == 1:  # one index, or all of them in order
            indices = at.elts if isinstance(at, ast.Tuple) else [at]
            given = dict(zip(axes, indices)) if len(indices) == len(axes) else {}
        if set(given) != set(axes):
            self._source.refuse(node, f"'{accum.name}' takes {len(axes)} index(es)", f"Write {wanted}.")
        type_ = Type(self._scalar(accum), accum.role.extents)
        operand = self._expressions.operand(node.args[0])
        name = f"the value for '{accum.name}'"
        value = self._arithmetic.stored(operand, type_, name, accum.role, node.args[0])
        places = [
            self._arithmetic.as_type(self._expressions.integer(index, f"'{accum.name}.add'"), INTEGER, index)
            for index in (given[axis] for axis in axes)
        ]
        self._frame.tape.block.effect("accum_add", (value, *places), self._arithmetic.place(node), accum.name)

    def _scalar(self, table: TableRef) -> str:
        return self._frame.context.real.scalar if table.role.scalar == "real" else table.role.scalar

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
        type_ = Type(self._scalar(table), table.role.extents)
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
