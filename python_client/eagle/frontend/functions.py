"""Functions that a kernel calls: their text is read where they are called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Union

from eagle.frontend.frame import Frame, Results
from eagle.frontend.names import Helper, as_constant
from eagle.frontend.scope import Binding, Bindings, LocalFunction, Scope, local_names
from eagle.frontend.tape import Constant

if TYPE_CHECKING:
    from eagle.frontend.expressions import Expressions

_MOST_CALLS = 16_384  # more than the operations that a kernel may have


def call_helper(expressions: Expressions, node: ast.Call, helper: Helper) -> Results:
    """A plain function of the surroundings."""
    enter_helper(expressions, node, helper)
    function = helper.source.function
    bound = bind(expressions, node, function.name, function.args, helper.defaults)
    return read_helper(expressions, node, helper, bound)


def enter_helper(expressions: Expressions, node: ast.Call, helper: Helper, decorated: bool = False) -> None:
    """Refuses what cannot be read, or not to an end."""
    frame = expressions.frame
    function = helper.source.function
    _enter(frame, node, helper.identity, function.name)
    if function.decorator_list and not decorated:
        frame.source.refuse(
            node, f"the function '{function.name}' has a decorator", "Call a plain function, without decorators."
        )


def read_helper(expressions: Expressions, node: ast.Call, helper: Helper, bound: Bindings) -> Results:
    """What the function returns for these arguments."""
    frame, function = expressions.frame, helper.source.function
    caller = frame.source.title.split(" (")[0]
    source = helper.source.titled(f"function '{function.name}' (called by {caller}, line {frame.source.line_of(node)})")
    scope = Scope(source, local_names(function.args, function.body))
    inner = Frame(
        frame.context,
        scope,
        helper.names,
        frame.path_to(node),
        (*frame.chain, (helper.identity, function.name)),
    )
    scope.bindings = bound
    return frame.context.read(inner, body_of(function))


def call_local(expressions: Expressions, node: ast.Call, function: LocalFunction) -> Results:
    """A function written inside the kernel, which sees the kernel's names as they stand when it is called."""
    frame, written = expressions.frame, function.node
    name = written.name if isinstance(written, ast.FunctionDef) else "lambda"
    _enter(frame, node, written, name)
    if written.args.defaults or any(written.args.kw_defaults):
        frame.source.refuse(written, f"default values of the local function '{name}'", "Give the values in the call.")
    inner = _local_frame(frame, node, function)
    inner.scope.bindings = bind(expressions, node, name, written.args, {})
    return frame.context.read(inner, body_of(written))


def call_branch(expressions: Expressions, node: ast.expr, function: Union[LocalFunction, Helper]) -> Results:
    """A branch of a dispatch, which has no arguments."""
    call = ast.copy_location(ast.Call(node, [], []), node)
    if isinstance(function, LocalFunction):
        return call_local(expressions, call, function)
    return call_helper(expressions, call, function)


def body_of(function: Union[ast.FunctionDef, ast.Lambda]) -> list[ast.stmt]:
    """The statements of a function; a lambda returns its expression."""
    if isinstance(function, ast.FunctionDef):
        return function.body
    return [ast.copy_location(ast.Return(function.body), function.body)]


def _local_frame(frame: Frame, node: ast.expr, function: LocalFunction) -> Frame:
    own = local_names(function.node.args, body_of(function.node))
    scope = Scope(function.scope.source, own, function.scope)
    chain = (*frame.chain, (function.node, getattr(function.node, "name", "lambda")))
    return Frame(frame.context, scope, frame.names, frame.path_to(node), chain)


def _enter(frame: Frame, node: ast.AST, identity: object, name: str) -> None:
    """Refuses what would be read in for ever, or for too long."""
    if any(known is identity for known, _ in frame.chain):
        chain = " -> ".join([*(known for _, known in frame.chain), name])
        frame.source.refuse(
            node,
            f"'{name}' calls itself ({chain})",
            "Write a loop; every call is read into the kernel, once more each.",
        )
    frame.context.calls += 1
    if frame.context.calls > _MOST_CALLS:
        frame.source.refuse(
            node,
            f"more than {_MOST_CALLS:,} calls of functions would be read into this kernel",
            "Call the functions in a loop, or share what they compute.",
        )


def bind(expressions: Expressions, node: ast.Call, name: str, spec: ast.arguments, defaults: object) -> Bindings:
    """The arguments of a call, by position, by name or by default."""
    refuse = expressions.frame.source.refuse
    star = spec.vararg or spec.kwarg
    if star is not None:
        refuse(node, f"'{name}' takes any number of arguments (*{star.arg})", "Name every argument of the function.")
    positional = [a.arg for a in [*spec.posonlyargs, *spec.args]]
    keywords = {a.arg for a in [*spec.args, *spec.kwonlyargs]}
    if len(node.args) > len(positional):
        refuse(node, f"'{name}' takes {len(positional)} argument(s), found {len(node.args)}", "Give as many.")
    known = dict.fromkeys([*positional, *(a.arg for a in spec.kwonlyargs)])
    bound: dict[str, Binding] = {}
    for parameter, value in zip(positional, node.args):
        bound[parameter] = expressions.argument(value)
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg not in keywords or keyword.arg in bound:
            what = "**" if keyword.arg is None else f"'{keyword.arg}'"
            refuse(keyword, f"'{name}' takes no {what} here", f"Its arguments are {', '.join(known)}.")
        bound[keyword.arg] = expressions.argument(keyword.value)
    for parameter in known:
        if parameter not in bound:
            bound[parameter] = _default(expressions, node, name, parameter, defaults)
    return bound


def _default(expressions: Expressions, node: ast.Call, name: str, parameter: str, defaults: object) -> Binding:
    refuse = expressions.frame.source.refuse
    assert isinstance(defaults, dict)
    if parameter not in defaults:
        refuse(node, f"argument '{parameter}' of '{name}' is missing", "Give it, by position or by name.")
    value = as_constant(defaults[parameter])
    if value is None:
        found = type(defaults[parameter]).__name__
        refuse(node, f"the default of argument '{parameter}' of '{name}' is a {found}", "Give a number in the call.")
    return Constant(value) if isinstance(value, (bool, int, float)) else value
