"""What a function returns: the outputs of a kernel, the results of a function it calls."""

from __future__ import annotations

import ast

from eagle.frontend.scope import UNSET, Bindings, own_nodes
from eagle.frontend.signature import Outputs
from eagle.frontend.source import Source
from eagle.frontend.tape import Operand
from eagle.roles import Role

Parts = list[tuple[str, ast.expr]]


def return_statements(statements: list[ast.stmt]) -> list[ast.Return]:
    return [node for node in own_nodes(statements) if isinstance(node, ast.Return)]


def is_empty(node: ast.Return) -> bool:
    return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)


def hidden(position: int) -> str:
    """The binding that holds a result until the function ends; no name of Python's."""
    return f"<result {position}>"


class HelperResults:
    """The results of a called function: one, or as many as every ``return`` gives."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 1
        self.is_tuple = False
        self._seen = False

    def prepare(self, statements: list[ast.stmt], bindings: Bindings) -> None:
        """Results are bound from the start, so that loops can carry them."""
        found = [node.value for node in return_statements(statements) if not is_empty(node)]
        most = max((len(value.elts) for value in found if isinstance(value, ast.Tuple)), default=1)
        bindings.update({hidden(i): UNSET for i in range(most)})

    def give(self, node: ast.AST, found: Operand | list[Operand], bindings: Bindings) -> None:
        items = found if isinstance(found, list) else [found]
        shape = (len(items), isinstance(found, list))
        if self._seen and shape != (self.count, self.is_tuple):
            self.source.refuse(
                node,
                f"this `return` gives {len(items)} value(s), another one {self.count}",
                "Return as many values everywhere.",
            )
        self._seen = True
        self.count, self.is_tuple = shape
        bindings.update({hidden(i): item for i, item in enumerate(items)})


class KernelOutputs:
    """The outputs of a kernel: names in order, each with its role."""

    def __init__(
        self, source: Source, outputs: Outputs, arguments: dict[str, Role], statements: list[ast.stmt]
    ) -> None:
        self._source = source
        self._outputs = outputs
        self._arguments = arguments
        self._parts: dict[ast.Return, Parts] = {}
        for node in return_statements(statements):
            self._read(node)
        self.names = self._common_names()
        roles = outputs.roles * (len(self.names) if len(outputs.roles) == 1 else 1)
        self.roles = dict(zip(self.names, roles))

    def prepare(self, bindings: Bindings) -> None:
        bindings.update({hidden(i): UNSET for i in range(len(self.names))})

    def expressions(self, node: ast.Return) -> list[tuple[str, ast.expr]]:
        """(output, expression) of one ``return``; none for one without a value."""
        parts = self._parts.get(node)
        if parts is None:
            return []
        if self._outputs.form == "dict":
            return parts
        return [(name, part) for name, (_, part) in zip(self.names, parts)]

    def _read(self, node: ast.Return) -> None:
        if is_empty(node):
            if self._outputs.form != "none":
                self._source.refuse(node, "nothing is returned here, but the signature has outputs", "Return them all.")
            return
        assert node.value is not None
        if self._outputs.form == "none":
            self._source.refuse(
                node, "the kernel returns a value that its signature does not have", "Annotate it, as in `-> Scalar`."
            )
        parts = self._parts[node] = self._returned_parts(node.value)
        names: set[str] = set()
        for name, part in parts:
            if name in names:
                self._source.refuse(part, f"'{name}' is returned twice", "Return it once.")
            names.add(name)

    def _common_names(self) -> list[str]:
        """The outputs in order: as every ``return`` names them, ``out`` where they do not agree."""
        every = list(self._parts.values())
        if not every:
            return []
        names = [name for name, _ in every[0]]
        for parts in every[1:]:
            if self._outputs.form == "dict":
                if {name for name, _ in parts} != set(names):
                    self._source.refuse(
                        parts[0][1], f"another `return` has the keys {', '.join(names)}", "Return the same ones."
                    )
                continue
            names = [a if a == b else _positional(i, len(names)) for i, (a, (b, _)) in enumerate(zip(names, parts))]
        for name, part in zip(names, (part for _, part in every[0])):
            if name in self._arguments:
                self._source.refuse(
                    part,
                    f"the output '{name}' has the name of an argument",
                    f"Return it under another name ({name}_new = ...); a Mutable needs no return.",
                )
        return names

    def _returned_parts(self, value: ast.expr) -> Parts:
        """(plane name, expression): the name of the variable or the key, else ``out``."""
        form, roles = self._outputs.form, self._outputs.roles
        if form == "dict":
            return self._returned_dict(value)
        if form == "one":
            return [(value.id if isinstance(value, ast.Name) else "out", value)]
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(roles):
            self._source.refuse(
                value,
                f"the signature has a tuple of {len(roles)} outputs",
                f"Return {len(roles)} values, separated by commas.",
            )
        return [(item.id if isinstance(item, ast.Name) else f"out{i}", item) for i, item in enumerate(value.elts)]

    def _returned_dict(self, value: ast.expr) -> Parts:
        cure = 'Return {"name": value, ...} with a text for each key.'
        if not isinstance(value, ast.Dict) or not value.keys:
            self._source.refuse(value, "the signature has a dict of outputs", cure)
        parts: dict[str, ast.expr] = {}
        for key, item in zip(value.keys, value.values):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or not key.value:
                self._source.refuse(key or item, "a key that is not a text", cure)
            if key.value in parts:
                self._source.refuse(key, f"'{key.value}' is returned twice", "Return it once.")
            parts[key.value] = item
        keys = self._outputs.keys or tuple(parts)
        if set(keys) != set(parts):
            self._source.refuse(
                value, f"the signature has the outputs {', '.join(keys)}", "Return exactly those, by name."
            )
        return [(key, parts[key]) for key in keys]


def _positional(index: int, count: int) -> str:
    return "out" if count == 1 else f"out{index}"
