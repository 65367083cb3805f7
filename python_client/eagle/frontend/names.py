"""Names of the surroundings of a kernel: numeric constants, and the functions it may call."""

from __future__ import annotations

import ast
import builtins
import math
import struct
import types
from typing import Any, Callable, Mapping, Union, overload

import numpy as np

from eagle.errors import KernelSyntaxError
from eagle.frontend.source import Source

Number = Union[int, float, bool]

_MISSING = object()


class UnresolvedName(KernelSyntaxError):
    """A name that is not defined (yet): the kernel may be looked at again when it is used."""


@overload
def select(condition: bool, a: float, b: float) -> float: ...


@overload
def select(condition: Any, a: Any, b: Any) -> Any: ...


def select(condition: Any, a: Any, b: Any) -> Any:
    """``a`` where the condition holds, else ``b``, sample by sample; neither side leaves a trace.

    In a kernel both sides are numbers of one sample. Outside it works on arrays, as ``numpy.where`` does.

    >>> import eagle
    >>> @eagle.kernel
    ... def relu(x: eagle.Scalar) -> eagle.Scalar:
    ...     y = eagle.select(x > 0, x, 0.0)
    ...     return y
    >>> relu(eagle.asarray([-1.0, 2.0]))
    array([0., 2.])
    """
    return np.where(condition, a, b)


# The functions that a kernel may call, by identity, with the name the translator knows them by.
CALLS: dict[Any, str] = {
    builtins.abs: "abs",
    builtins.min: "min",
    builtins.max: "max",
    builtins.float: "float",
    builtins.int: "int",
    builtins.bool: "bool",
    math.sqrt: "sqrt",
    np.sqrt: "sqrt",
    select: "select",
}
ACCEPTED_CALLS = "abs, min, max, float, int, bool, math.sqrt, np.sqrt and eagle.select"


class Names:
    """Looks up names where the kernel was written: its closure, its globals, the builtins.

    Every constant and function that a translation used is remembered, so that a later use can tell
    whether the kernel is still the same.
    """

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup
        self.used: dict[str, Any] = {}

    @staticmethod
    def of_function(function: types.FunctionType) -> Names:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))

        def lookup(name: str) -> Any:
            if name in cells:
                try:
                    return cells[name].cell_contents
                except ValueError:  # not assigned yet
                    return _MISSING
            if name in function.__globals__:
                return function.__globals__[name]
            return getattr(builtins, name, _MISSING)

        return Names(lookup)

    @staticmethod
    def of_mapping(values: Mapping[str, Any]) -> Names:
        return Names(lambda name: values.get(name, getattr(builtins, name, _MISSING)))

    def fresh(self) -> Names:
        """The same surroundings, nothing remembered."""
        return Names(self._lookup)

    def find(self, path: str) -> Any:
        """The object of ``name`` or ``module.name``; only modules have their attributes looked up."""
        head, *rest = path.split(".")
        found = self._lookup(head)
        for attribute in rest:
            if not isinstance(found, types.ModuleType):
                return _MISSING
            found = getattr(found, attribute, _MISSING)
        return found

    def is_missing(self, path: str) -> bool:
        return self.find(path) is _MISSING

    def key(self) -> tuple[Any, ...]:
        """What the names used stand for now; equal keys give equal kernels."""
        return tuple((path, _identity(self.find(path))) for path in sorted(self.used))

    def resolve(self, source: Source, node: ast.expr) -> Any:
        """The number or the accepted function's name ("sqrt") behind a name or ``module.name``."""
        path = dotted(node)
        if path is None:
            source.refuse(
                node,
                "an attribute of a value is not accepted",
                "Bind it to a name outside the kernel (dt = config.dt) and use that name; "
                "attributes are for modules only, as in math.pi.",
            )
        found = self.find(path)
        if found is _MISSING:
            self._refuse_missing(source, node, path)
        self.used[path] = found
        constant = as_number(found)
        if constant is not None:
            return constant
        known = _call_name(found)
        if known is not None:
            return _Callable(known)
        what = type(found).__name__
        source.refuse(
            node,
            f"'{path}' is a {what}: a kernel uses numbers of its surroundings and a few functions",
            f"Use a number (int, float, bool), or one of {ACCEPTED_CALLS}; pass arrays as arguments.",
        )

    def _refuse_missing(self, source: Source, node: ast.expr, path: str) -> None:
        head, _, rest = path.partition(".")
        found = self._lookup(head)
        if rest and found is not _MISSING and not isinstance(found, types.ModuleType):
            source.refuse(
                node,
                f"'{path}': attributes of a {type(found).__name__} are not accepted",
                f"Bind it to a name outside the kernel ({rest.split('.')[-1]} = {path}) and use that name.",
            )
        source.refuse(
            node,
            f"name '{path}' is not defined",
            f"Assign it before it is read, or define the constant '{path}' outside the kernel.",
            UnresolvedName,
        )


class _Callable(str):
    """The name of an accepted function, as CALLS gives it."""


def as_call(found: Any) -> str | None:
    return str(found) if isinstance(found, _Callable) else None


def dotted(node: ast.expr) -> str | None:
    """``a`` or ``a.b.c`` as text; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return None if head is None else f"{head}.{node.attr}"
    return None


def as_number(found: Any) -> Number | None:
    """A Python number of the same value, for the kinds of number that a kernel may capture."""
    if isinstance(found, (bool, np.bool_)):
        return bool(found)
    if isinstance(found, (int, np.integer)):
        return int(found)
    if isinstance(found, (float, np.floating)):
        return float(found)
    return None


def _call_name(found: Any) -> str | None:
    try:
        return CALLS.get(found)
    except TypeError:  # not hashable
        return None


def _identity(found: Any) -> Any:
    number = as_number(found)
    if number is None:
        return ("object", id(found))
    if isinstance(number, float):
        return ("float", struct.pack("<d", number))
    return (type(number).__name__, number)
