"""Expressions of a kernel: an operand for each."""

from __future__ import annotations

import ast

from eagle.frontend import refusals
from eagle.frontend.calls import Calls
from eagle.frontend.frame import Frame, Results
from eagle.frontend.names import Call, Helper, Ruled, Tuple
from eagle.frontend.scope import Binding, TableRef
from eagle.frontend.tape import Constant, Operand, Value

_BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "+"),
    ast.Sub: ("sub", "-"),
    ast.Mult: ("mul", "*"),
    ast.Div: ("div", "/"),
}
_INTEGRAL: dict[type[ast.operator], tuple[str, str]] = {
    ast.FloorDiv: ("floor_div", "//"),
    ast.Mod: ("modulo", "%"),
    ast.LShift: ("shift_left", "<<"),
    ast.RShift: ("shift_right", ">>"),
    ast.BitAnd: ("bit_and", "&"),
    ast.BitOr: ("bit_or", "|"),
    ast.BitXor: ("bit_xor", "^"),
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
    """Reads the expressions of one function."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._source = frame.source
        self._arithmetic = frame.arithmetic
        self.calls = Calls(self)

    def operand(self, node: ast.expr) -> Operand:
        """The number, condition, vector or matrix that the expression gives."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._single(self._name(node), node)
        if isinstance(node, ast.BinOp):
            return self.binary(node.op, self.operand(node.left), node.right, node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node, self.operand(node.left), 0)
        if isinstance(node, ast.BoolOp):
            return self._logic(node)
        if isinstance(node, ast.IfExp):
            return self._arithmetic.choose(
                self.condition(node.test), lambda: self.operand(node.body), lambda: self.operand(node.orelse), node
            )
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            found = self.calls.call(node)
            if isinstance(found, list):
                self._source.refuse(node, f"this call gives {len(found)} values", "Take them apart: a, b = f(x).")
            return found
        what, cure = refusals.of_node(node)
        self._source.refuse(node, f"{what} is not accepted in a kernel", cure)

    def several(self, node: ast.expr) -> Results:
        """What stands on the right of ``=`` or after ``return``: one operand, or a list of them."""
        if isinstance(node, ast.Tuple):
            return [self.operand(item) for item in node.elts]
        if isinstance(node, ast.Call):
            return self.calls.call(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            found = self._name(node)
            if isinstance(found, Tuple):
                return [self._item(item, node) for item in found.items]
            return self._single(found, node)
        return self.operand(node)

    def argument(self, node: ast.expr) -> Binding:
        """What a called function gets: an operand, a table or a tuple of constants."""
        if isinstance(node, ast.Starred):
            self._source.refuse(node, "a starred argument is not accepted", "Give the arguments in order.")
        if isinstance(node, (ast.Name, ast.Attribute)):
            found = self._name(node)
            if isinstance(found, (Tuple, TableRef)):
                return found
            return self._single(found, node)
        return self.operand(node)

    def condition(self, node: ast.expr) -> Operand:
        """An expression that decides something, which must be a condition and not a number."""
        found = self.operand(node)
        self.require_condition(found, node)
        return found

    def require_condition(self, found: Operand, node: ast.expr) -> None:
        if not self._arithmetic.is_bool(found):
            self._source.refuse(
                node,
                f"expected a condition, found a {self._arithmetic.type_of(found)}",
                "Write a comparison, as in x != 0.",
            )

    def integer(self, node: ast.expr, user: str) -> Operand:
        """An expression that counts or chooses something."""
        found = self.operand(node)
        self.require_integer(found, node, user)
        return found

    def require_integer(self, found: Operand, node: ast.AST, user: str) -> None:
        type_ = self._arithmetic.type_of(found)
        if type_.scalar != "i64" or type_.extents:
            self._source.refuse(
                node, f"{user} takes an integer, found a {type_}", "Write int(...), which cuts towards zero."
            )

    def binary(self, operator: ast.operator, left: Operand, right: ast.expr, node: ast.AST) -> Operand:
        """``left operator right``; the left side has been read."""
        if isinstance(operator, ast.Pow):
            return self._arithmetic.power(left, self.operand(right), node)
        if isinstance(operator, ast.MatMult):
            return self.frame.vectors.algebra("matmul", "`@`", [left, self.operand(right)], node)
        if type(operator) in _INTEGRAL:
            code, symbol = _INTEGRAL[type(operator)]
            return self._arithmetic.integral(code, symbol, left, self.operand(right), node)
        code, symbol = _BINARY[type(operator)]
        return self._arithmetic.numeric(code, symbol, left, self.operand(right), node)

    def replaced(self, node: ast.Subscript, new: Operand) -> Value:
        """The vector or matrix of ``x[k]`` with that component replaced."""
        return self.frame.vectors.replaced(self._whole(node), node, self._indices(node), new)

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

    # ---- names

    def _name(self, node: ast.Name | ast.Attribute) -> Binding:
        if isinstance(node, ast.Name) and self.frame.scope.is_local(node.id):
            return self.frame.scope.read(node)
        self._refuse_local_attribute(node)
        found = self.frame.names.resolve(self._source, node)
        if isinstance(found, (Call, Helper, Ruled)):
            name = ast.unparse(node)
            self._source.refuse(node, f"the function '{name}' is not a number", f"Call it: {name}(...).")
        return found if isinstance(found, Tuple) else Constant(found)

    def _single(self, found: Binding, node: ast.expr) -> Operand:
        if isinstance(found, (Value, Constant)):
            return found
        name = ast.unparse(node)
        if isinstance(found, TableRef):
            cure = f"Read an element: {name}.at(i)."
            if found.role.kind == "accum":
                cure = f"An Accum is added to, {name}.add(value, at=i), and never read."
            self._source.refuse(node, f"'{name}' is a {found.role}, not a number", cure)
        if isinstance(found, Tuple):
            self._source.refuse(
                node, f"'{name}' is a tuple of {len(found.items)} constants", f"Take one, {name}[0], or a, b = {name}."
            )
        self._source.refuse(node, f"the function '{name}' is not a number", f"Call it: {name}(...).")

    def _item(self, item: object, node: ast.expr) -> Operand:
        if isinstance(item, (bool, int, float)):
            return Constant(item)
        self._source.refuse(
            node, f"a part of '{ast.unparse(node)}' is a tuple itself", "Take its numbers, as in T[0][1]."
        )

    def _refuse_local_attribute(self, node: ast.expr) -> None:
        head = node
        while isinstance(head, ast.Attribute):
            head = head.value
        if isinstance(node, ast.Attribute) and isinstance(head, ast.Name) and self.frame.scope.is_local(head.id):
            self._source.refuse(
                node,
                f"an attribute of '{head.id}' is not accepted in a kernel",
                "A kernel sees one sample's numbers: use the name itself, and v[0] for a component.",
            )

    # ---- components

    def _subscript(self, node: ast.Subscript) -> Operand:
        constants = self._tuple(node.value)
        if constants is not None:
            return self._constant_item(node, constants)
        found = self._whole(node)
        return self.frame.vectors.component(found, node, self._indices(node))

    def _tuple(self, node: ast.expr) -> Tuple | None:
        """The tuple of constants that an expression names, if it does."""
        if isinstance(node, ast.Subscript):
            outer = self._tuple(node.value)
            if outer is not None:
                item = outer.items[self._constant_index(node, len(outer.items))]
                return item if isinstance(item, Tuple) else None
        if isinstance(node, (ast.Name, ast.Attribute)):
            found = self._name(node)
            return found if isinstance(found, Tuple) else None
        return None

    def _constant_item(self, node: ast.Subscript, constants: Tuple) -> Operand:
        return self._item(constants.items[self._constant_index(node, len(constants.items))], node)

    def _constant_index(self, node: ast.Subscript, count: int) -> int:
        index = None if isinstance(node.slice, ast.Slice) else self.operand(node.slice)
        if not isinstance(index, Constant) or index.is_bool or index.is_real:
            self._source.refuse(
                node,
                "an item of a tuple that is no constant integer",
                "Write its number, as in T[0]; for one that is chosen when the kernel runs, pass the numbers as a "
                "Table argument and read it with .at(i).",
            )
        if not -count <= index.value < count:
            self._source.refuse(node, f"item {index.value} of {count}", f"Items count from 0 to {count - 1}.")
        return int(index.value)

    def _whole(self, node: ast.Subscript) -> Operand:
        if isinstance(node.value, ast.Name) and self.frame.scope.is_local(node.value.id):
            found = self.frame.scope.read(node.value)
            if isinstance(found, TableRef) and found.role.kind == "accum":
                self._single(found, node.value)
            if isinstance(found, TableRef):
                self._source.refuse(
                    node, f"a subscript of '{found.name}', a {found.role}", f"Read an element: {found.name}.at(i)."
                )
        return self.operand(node.value)

    def _indices(self, node: ast.Subscript) -> list[Operand]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Slice):
                what, cure = refusals.of_node(part)
                self._source.refuse(node, f"{what} is not accepted in a kernel", cure)
        return [self.operand(part) for part in parts]

    # ---- operators

    def _unary(self, node: ast.UnaryOp) -> Operand:
        if isinstance(node.op, ast.Not):
            return self._arithmetic.logical_not(self.condition(node.operand), node)
        operand = self.operand(node.operand)
        if isinstance(node.op, ast.USub):
            return self._arithmetic.unary("neg", "-", operand, node)
        if isinstance(node.op, ast.Invert):
            return self._arithmetic.invert(operand, node)
        if self._arithmetic.is_bool(operand):
            self._source.refuse(node, "`+` of a condition", "Write float(condition).")
        return operand

    def _comparison(self, node: ast.Compare, left: Operand, position: int) -> Operand:
        """``a < b <= c`` is ``a < b and b <= c`` with b read once, and c only where it is asked for."""
        operator = node.ops[position]
        if type(operator) in refusals.COMPARISONS:
            what, cure = refusals.COMPARISONS[type(operator)]
            self._source.refuse(node, f"{what} is not accepted in a kernel", cure)
        right = self.operand(node.comparators[position])
        code, symbol = _COMPARISON[type(operator)]
        one = self._arithmetic.compare(code, symbol, left, right, node)
        if position + 1 == len(node.ops):
            return one
        return self._arithmetic.logic_of("and", one, lambda: self._comparison(node, right, position + 1), node)

    def _logic(self, node: ast.BoolOp) -> Operand:
        code = "and" if isinstance(node.op, ast.And) else "or"
        return self.conditions(code, self.condition(node.values[0]), node.values[1:], node)

    def conditions(self, code: str, first: Operand, rest: list[ast.expr], node: ast.AST) -> Operand:
        """``first and a and b``; the first one has been read."""
        for item in rest:
            first = self._arithmetic.logic_of(code, first, lambda item=item: self.condition(item), node)  # type: ignore[misc]
        return first
