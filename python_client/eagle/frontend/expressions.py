"""Expressions of a kernel: an operand for each."""

from __future__ import annotations

import ast
from typing import Callable

from eagle.frontend import names as surroundings
from eagle.frontend import refusals
from eagle.frontend.arithmetic import Arithmetic
from eagle.frontend.names import Names
from eagle.frontend.source import Source
from eagle.frontend.tape import Constant, Operand

_BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "+"),
    ast.Sub: ("sub", "-"),
    ast.Mult: ("mul", "*"),
    ast.Div: ("div", "/"),
}
_COMPARISON: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("eq", "=="),
    ast.NotEq: ("ne", "!="),
    ast.Lt: ("lt", "<"),
    ast.LtE: ("le", "<="),
    ast.Gt: ("gt", ">"),
    ast.GtE: ("ge", ">="),
}


class Expressions:
    """Reads expressions; ``read_local`` gives the value of a name of the kernel's own."""

    def __init__(
        self,
        source: Source,
        names: Names,
        arithmetic: Arithmetic,
        read_local: Callable[[ast.Name], Operand],
        local_names: frozenset[str],
    ) -> None:
        self._source = source
        self._names = names
        self._arithmetic = arithmetic
        self._read_local = read_local
        self._local_names = local_names

    def operand(self, node: ast.expr) -> Operand:
        """The number or condition that the expression gives."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node)
        if isinstance(node, ast.BinOp):
            return self.binary(node.op, self.operand(node.left), node.right, node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BoolOp):
            return self._logic(node)
        if isinstance(node, ast.IfExp):
            condition = self.condition(node.test)
            return self._arithmetic.select(condition, self.operand(node.body), self.operand(node.orelse), node)
        if isinstance(node, ast.Call):
            return self._call(node)
        what, cure = refusals.of_node(node)
        self._source.refuse(node, f"{what} is not accepted in a kernel", cure)

    def condition(self, node: ast.expr) -> Operand:
        """An expression that decides something, which must be a condition and not a number."""
        found = self.operand(node)
        self._require_condition(found, node)
        return found

    def _require_condition(self, found: Operand, node: ast.expr) -> None:
        if not self._arithmetic.is_bool(found):
            self._source.refuse(
                node,
                f"expected a condition, found a {self._arithmetic.type_of(found)}",
                "Write a comparison, as in x != 0.",
            )

    def binary(self, operator: ast.operator, left: Operand, right: ast.expr, node: ast.AST) -> Operand:
        """``left operator right``; the left side has been read."""
        if type(operator) in refusals.BINARY:
            what, cure = refusals.BINARY[type(operator)]
            self._source.refuse(node, f"{what} is not accepted in a kernel", cure)
        code, symbol = _BINARY[type(operator)]
        return self._arithmetic.numeric(code, symbol, left, self.operand(right), node)

    def _constant(self, node: ast.Constant) -> Operand:
        if isinstance(node.value, (bool, int, float)):
            return Constant(node.value)
        what = {str: "a string", bytes: "a bytes string", type(None): "None", complex: "a complex number"}.get(
            type(node.value), f"{node.value!r}"
        )
        self._source.refuse(
            node,
            f"{what} is not accepted in a kernel",
            "A kernel computes with real numbers, integers and conditions only.",
        )

    def _name(self, node: ast.Name | ast.Attribute) -> Operand:
        if isinstance(node, ast.Name) and node.id in self._local_names:
            return self._read_local(node)
        self._refuse_local_attribute(node)
        found = self._names.resolve(self._source, node)
        called = surroundings.as_call(found)
        if called is not None:
            self._source.refuse(node, f"the function '{called}' is not a number", f"Call it: {called}(...).")
        return Constant(found)

    def _refuse_local_attribute(self, node: ast.expr) -> None:
        head = node
        while isinstance(head, ast.Attribute):
            head = head.value
        if isinstance(node, ast.Attribute) and isinstance(head, ast.Name) and head.id in self._local_names:
            self._source.refuse(
                node,
                f"an attribute of '{head.id}' is not accepted in a kernel",
                "A kernel sees one sample's numbers: use the name itself.",
            )

    def _unary(self, node: ast.UnaryOp) -> Operand:
        if isinstance(node.op, ast.Not):
            return self._arithmetic.logical_not(self.condition(node.operand), node)
        operand = self.operand(node.operand)
        if isinstance(node.op, ast.USub):
            return self._arithmetic.unary("neg", "-", operand, node)
        if isinstance(node.op, ast.UAdd):
            if self._arithmetic.is_bool(operand):
                self._source.refuse(node, "`+` of a condition", "Write float(condition).")
            return operand
        self._source.refuse(node, "`~` is not accepted in a kernel", "Write `not` before a condition.")

    def _comparison(self, node: ast.Compare) -> Operand:
        """``a < b <= c`` is ``a < b and b <= c`` with b read once."""
        left = self.operand(node.left)
        result: Operand = Constant(True)
        for operator, right_node in zip(node.ops, node.comparators):
            if type(operator) in refusals.COMPARISONS:
                what, cure = refusals.COMPARISONS[type(operator)]
                self._source.refuse(node, f"{what} is not accepted in a kernel", cure)
            right = self.operand(right_node)
            code, symbol = _COMPARISON[type(operator)]
            one = self._arithmetic.compare(code, symbol, left, right, node)
            result = self._arithmetic.logic("and", result, one, node)
            left = right
        return result

    def _logic(self, node: ast.BoolOp) -> Operand:
        code = "and" if isinstance(node.op, ast.And) else "or"
        first, *rest = (self.condition(item) for item in node.values)
        for operand in rest:
            first = self._arithmetic.logic(code, first, operand, node)
        return first

    # ---- calls

    def _call(self, node: ast.Call) -> Operand:
        name = self._called_name(node)
        for part in [*node.args, *node.keywords]:
            if isinstance(part, (ast.Starred, ast.keyword)):
                self._source.refuse(
                    part, f"{name}: keywords and stars are not accepted", "Give the arguments in order."
                )
        operands = [self.operand(argument) for argument in node.args]
        expected = {"select": (3, 3), "min": (2, 255), "max": (2, 255)}.get(name, (1, 1))
        if not expected[0] <= len(node.args) <= expected[1]:
            wanted = str(expected[0]) if expected[0] == expected[1] else f"{expected[0]} or more"
            self._source.refuse(
                node, f"{name} takes {wanted} argument(s), found {len(node.args)}", "Give single numbers, in order."
            )
        if name == "select":
            self._require_condition(operands[0], node.args[0])
            return self._arithmetic.select(operands[0], operands[1], operands[2], node)
        if name in ("min", "max"):
            best = operands[0]
            for other in operands[1:]:
                best = self._arithmetic.extreme(name, best, other, node)
            return best
        if name == "abs":
            return self._arithmetic.unary("abs", "abs", operands[0], node)
        if name == "sqrt":
            return self._arithmetic.sqrt(operands[0], node)
        return self._arithmetic.convert(name, operands[0], node)

    def _called_name(self, node: ast.Call) -> str:
        function = node.func
        path = surroundings.dotted(function)
        if path is None or path.split(".")[0] in self._local_names:
            self._source.refuse(
                function,
                f"calling '{ast.unparse(function)}' is not accepted in a kernel",
                f"Accepted calls are {surroundings.ACCEPTED_CALLS}.",
            )
        called = surroundings.as_call(self._names.resolve(self._source, function))
        if called is None:
            self._source.refuse(function, f"'{path}' is a number, not a function", "Leave out the brackets.")
        return called
