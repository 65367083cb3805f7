"""Functions with derivatives of their own: ``eagle.primitive``."""

from __future__ import annotations

import types
from typing import Any, Callable, Optional

from eagle.errors import refusal

__all__ = ["Primitive", "primitive"]

Function = Callable[..., Any]


class Primitive:
    """A plain function with rules for its derivatives. Called from Python it is the function."""

    def __init__(self, name: str, function: Function, vjp: Optional[Function], jvp: Optional[Function]) -> None:
        self.name = name
        self.function = function
        self.vjp = vjp
        self.jvp = jvp
        self.__doc__ = function.__doc__
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        rules = ", ".join(rule for rule in ("vjp", "jvp") if getattr(self, rule) is not None)
        return f"<eagle.primitive {self.name} ({rules})>"


def primitive(
    name: Optional[str] = None, *, vjp: Optional[Function] = None, jvp: Optional[Function] = None
) -> Callable[[Function], Primitive]:
    """A decorator: the function keeps its meaning in kernels, and its derivative is what these rules say.

    ``vjp(*arguments, *bars)`` gets the arguments of the function and, for each of its results, the derivative of a
    number J by it; it returns the derivative of J by each argument. ``jvp(*arguments, *dots)`` gets the arguments and
    a change of each; it returns the change of each result. Both are plain functions that a kernel could call; what
    they return for an integer or a condition is not looked at, and its change is 0. A direction without a rule is
    refused where it is asked for.

    >>> import eagle
    >>> def straight(x, change):
    ...     return change
    >>> @eagle.primitive("clamp", vjp=straight, jvp=straight)
    ... def clamp(x):
    ...     return eagle.math.clip(x, 0.0, 1.0)
    >>> @eagle.kernel
    ... def quantise(x: eagle.Scalar) -> eagle.Scalar:
    ...     y = 3.0 * clamp(x)
    ...     return y
    >>> quantise(eagle.asarray([-1.0, 0.5]))
    array([0. , 1.5])
    >>> eagle.diff.vjp(quantise)(x=eagle.asarray([-1.0, 0.5]), bar_y=eagle.full(2, 1.0))["bar_x"]
    array([3., 3.])
    """
    for rule, given in (("vjp", vjp), ("jvp", jvp)):
        if given is not None:
            _check_plain(f"eagle.primitive: {rule}", given)
    if vjp is None and jvp is None:
        raise refusal("BAD_VALUE", "eagle.primitive: give vjp=, jvp= or both; without rules a plain function will do")
    if name is not None and not isinstance(name, str):
        raise refusal("WRONG_TYPE", "eagle.primitive: write @eagle.primitive('name', vjp=...), with brackets")

    def decorate(function: Function) -> Primitive:
        _check_plain("eagle.primitive", function)
        return Primitive(name or function.__name__, function, vjp, jvp)

    return decorate


def _check_plain(where: str, function: Any) -> None:
    """Kernels read the text of a function: it must have one of its own."""
    if not isinstance(function, types.FunctionType):
        raise refusal("WRONG_TYPE", f"{where}: expected a plain function, found {type(function).__name__}")
    if function.__name__ == "<lambda>":
        raise refusal("WRONG_TYPE", f"{where}: expected a function that is written with `def`, found a lambda")
