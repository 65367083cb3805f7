"""Annotations: the arguments of a kernel, and what it returns."""

from __future__ import annotations

import ast
import typing
from typing import Any, Mapping

from eagle._data_classes import data_class, field
from eagle.frontend.names import Names, as_number, dotted
from eagle.frontend.source import Source
from eagle.roles import Reduce, Role

# Keywords of calls and binds, which an argument's name would hide.
RESERVED = ("session", "scalar_type")
_ROLES = "Scalar, Vector[w], Matrix[R, C], Quat, Index, Param, Mutable[T], Terminated, Table[T], Accum[T] or Reduce(op)"
_OUTPUTS = (
    "-> Scalar (or Vector[w], Matrix[R, C], Quat, Index, Reduce(op)), -> tuple[...] or -> dict[str, ...] of those"
)


@data_class(frozen=True)
class Argument:
    """One argument of a kernel as it is written."""

    name: str
    role: Role
    node: ast.arg


@data_class(frozen=True)
class Outputs:
    """What the kernel returns: nothing, one role, a tuple of roles or a dict of them.

    ``keys`` are known for ``-> {"a": Scalar}``; ``-> dict[str, Scalar]`` takes those of the return.
    """

    form: str = "none"  # "none", "one", "tuple", "dict"
    roles: tuple[Role, ...] = ()
    keys: tuple[str, ...] = ()


@data_class(frozen=True)
class Signature:
    """Arguments in order, and outputs."""

    arguments: tuple[Argument, ...]
    outputs: Outputs
    roles: dict[str, Role] = field(default_factory=dict)


def read_signature(source: Source, names: Names, evaluated: Mapping[str, Any]) -> Signature:
    """The signature of ``source``; ``evaluated`` holds the annotations that Python has evaluated."""
    spec = source.function.args
    for extra, what in ((spec.vararg, "*"), (spec.kwarg, "**")):
        if extra is not None:
            source.refuse(extra, f"'{what}{extra.arg}' is not accepted", "Name every argument, each with its role.")
    if spec.kwonlyargs:
        source.refuse(
            spec.kwonlyargs[0], "keyword-only arguments are not accepted", "Drop the `*`: every argument has a name."
        )
    if spec.defaults:
        source.refuse(
            spec.defaults[0], "default values are not accepted", "Give the value where the kernel is bound or called."
        )
    nodes = [*spec.posonlyargs, *spec.args]
    arguments = tuple(Argument(node.arg, _argument_role(source, names, evaluated, node), node) for node in nodes)
    masks = [argument for argument in arguments if argument.role.kind == "terminated"]
    if len(masks) > 1:
        source.refuse(
            masks[1].node, "a kernel has one Terminated argument", f"OR every condition into '{masks[0].name}'."
        )
    roles = {argument.name: argument.role for argument in arguments}
    return Signature(arguments, _outputs(source, names, evaluated), roles)


def _argument_role(source: Source, names: Names, evaluated: Mapping[str, Any], node: ast.arg) -> Role:
    if node.arg in RESERVED:
        source.refuse(node, f"'{node.arg}' is a keyword of every bind and call", "Give the argument another name.")
    if node.annotation is None:
        source.refuse(node, f"argument '{node.arg}' has no role", f"Annotate it with {_ROLES}.")
    found = _annotation(source, names, node.annotation, evaluated.get(node.arg))
    if not isinstance(found, Role):
        text = ast.unparse(node.annotation)
        source.refuse(node.annotation, f"'{text}' is not the role of an argument", f"Annotate it with {_ROLES}.")
    return found


def _outputs(source: Source, names: Names, evaluated: Mapping[str, Any]) -> Outputs:
    node = source.function.returns
    if node is None:
        return Outputs()
    found = _annotation(source, names, node, evaluated.get("return"))
    if found is None:
        return Outputs()
    form = "one"
    keys: tuple[Any, ...] = ()
    roles: tuple[Any, ...] = (found,)
    if isinstance(found, tuple):
        form, roles = "tuple", found
    elif isinstance(found, dict):
        form, keys, roles = "dict", tuple(found), tuple(found.values())
    elif typing.get_origin(found) is tuple:
        form, roles = "tuple", typing.get_args(found)
    elif typing.get_origin(found) is dict and len(typing.get_args(found)) == 2:
        form, roles = "dict", typing.get_args(found)[1:]
    readable = all(isinstance(role, Role) and role.kind in ("read", "reduce") for role in roles)
    if not roles or not readable or not all(isinstance(key, str) for key in keys):
        source.refuse(node, f"'{ast.unparse(node)}' is not what a kernel can return", f"Write {_OUTPUTS}.")
    return Outputs(form, roles, keys)


def _annotation(source: Source, names: Names, node: ast.expr, evaluated: Any) -> Any:
    """The object an annotation stands for: as Python evaluated it, else as the names stand now."""
    if evaluated is not None and not isinstance(evaluated, str):
        return evaluated
    return _evaluate(source, names, node, node)


def _evaluate(source: Source, names: Names, node: ast.expr, place: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _evaluate(source, names, _parse(source, node.value, place), place)
        if node.value is None or isinstance(node.value, int):
            return node.value
    path = dotted(node)
    if path is not None:
        if names.is_missing(path):
            source.refuse(
                place,
                f"name '{path}' of an annotation is not defined here",
                f"Import the role (from eagle import {path.split('.')[-1]}), or define the name at module level.",
            )
        found = names.find(path)
        number = as_number(found)
        return found if number is None else number
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate(source, names, item, place) for item in node.elts)
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        values = [_evaluate(source, names, value, place) for value in node.values]
        return {key.value: value for key, value in zip(node.keys, values)}  # type: ignore[union-attr]
    if isinstance(node, ast.Slice) and node.lower is not None and node.upper is not None and node.step is None:
        # The axis of a table, "row":4: its name is a text and no annotation.
        name = node.lower.value if isinstance(node.lower, ast.Constant) else None
        return slice(name, _evaluate(source, names, node.upper, place))
    if isinstance(node, ast.Subscript):
        return _subscript(source, names, node, place)
    if isinstance(node, ast.Call) and not node.keywords:
        return _reduction(source, names, node, place)
    source.refuse(place, f"'{ast.unparse(node)}' is not a role", f"Annotate with {_ROLES}.")


def _subscript(source: Source, names: Names, node: ast.Subscript, place: ast.expr) -> Any:
    base = _evaluate(source, names, node.value, place)
    index = _evaluate(source, names, node.slice, place)
    if base in (typing.Tuple, typing.Dict):
        base = typing.get_origin(base)
    if base not in (tuple, dict) and not type(base).__module__.startswith("eagle."):
        source.refuse(place, f"'{ast.unparse(node)}' is not a role", f"Annotate with {_ROLES}.")
    try:
        return base[index]
    except (TypeError, ValueError) as error:
        source.refuse(place, str(error), f"Annotate with {_ROLES}.")


def _reduction(source: Source, names: Names, node: ast.Call, place: ast.expr) -> Any:
    """``Reduce("sum")``: the one role that is called, with a text that is no annotation."""
    function = _evaluate(source, names, node.func, place)
    first = node.args[0] if node.args else None
    op = first.value if isinstance(first, ast.Constant) else None
    if function is not Reduce or not isinstance(op, str):
        source.refuse(place, f"'{ast.unparse(node)}' is not a role", f"Annotate with {_ROLES}.")
    others = [_evaluate(source, names, item, place) for item in node.args[1:]]
    try:
        return Reduce(op, *others)
    except TypeError as error:
        source.refuse(place, str(error), f"Annotate with {_ROLES}.")


def _parse(source: Source, text: str, place: ast.expr) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        source.refuse(place, f"the annotation {text!r} does not parse", f"Annotate with {_ROLES}.")
