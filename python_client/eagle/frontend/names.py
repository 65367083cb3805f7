"""Names of the surroundings of a kernel: constants, and the functions it may call."""

from __future__ import annotations

import ast
import builtins
import math as python_math
import struct
import types
from typing import Any, Callable, Mapping, NoReturn, Union

import numpy as np

from eagle import language, math, random
from eagle._data_classes import data_class
from eagle._primitive import Primitive
from eagle.errors import KernelSyntaxError
from eagle.frontend import reals
from eagle.frontend.source import Source, from_function

Number = Union[int, float, bool]

_MISSING = object()
# Of a function with rules; each is a function of its own.
_PARTS = ("function", "vjp", "jvp")


class UnresolvedName(KernelSyntaxError):
    """A name that is not defined (yet): the kernel may be looked at again when it is used."""


# The functions that a kernel may call, by identity, with the name the translator knows them by.
CALLS: dict[Any, str] = {
    builtins.abs: "abs",
    builtins.min: "min",
    builtins.max: "max",
    builtins.float: "float",
    builtins.int: "int",
    builtins.bool: "bool",
    builtins.range: "range",
    python_math.sqrt: "sqrt",
    np.sqrt: "sqrt",
    np.absolute: "abs",
    **{getattr(language, name): name for name in language.__all__},
    **{getattr(math, name): name for name in math.__all__},
    **reals.CALLS,
    math.absolute: "abs",
    **{getattr(random, name): f"random.{name}" for name in random.__all__},
}
ACCEPTED_CALLS = (
    "abs, min, max, float, int, bool, functions of eagle.math and those of math and np that mean the same, "
    "eagle.random, eagle.select, eagle.dispatch, eagle.vector and their like, and your own plain functions"
)


@data_class(frozen=True)
class Call:
    """An accepted function, by its name in CALLS."""

    name: str


@data_class(frozen=True)
class Tuple:
    """A tuple of constants of the surroundings."""

    items: tuple[Union[Number, Tuple], ...]


@data_class(frozen=True)
class FrozenFunction:
    """A plain function as it was when a kernel that calls it was pickled."""

    filename: str
    first_line: int
    text: str
    defaults: Mapping[str, Any]
    constants: Mapping[str, Any]


@data_class(frozen=True, eq=False)
class Helper:
    """A plain function that a kernel calls: its text is read into the kernel."""

    identity: Any
    source: Source
    names: Names
    defaults: Mapping[str, Any]


@data_class(frozen=True)
class FrozenPrimitive:
    """A function with rules, as it was when a kernel that calls it was pickled."""

    name: str
    function: FrozenFunction
    vjp: FrozenFunction | None
    jvp: FrozenFunction | None


@data_class(frozen=True, eq=False)
class Ruled:
    """A plain function with rules for its derivatives, all of which are read into the kernel."""

    name: str
    function: Helper
    vjp: Helper | None
    jvp: Helper | None


Resolved = Union[Number, Tuple, Call, Helper, Ruled]


class Names:
    """Looks up names where a function was written: its closure, its globals, the builtins.

    Every constant and function that a translation used is remembered, with those of the functions it called, so
    that a later use can tell whether the kernel is still the same.
    """

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup
        self.used: dict[str, Any] = {}
        self._helpers: dict[str, Helper] = {}

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
        """By name, or by dotted name ("math.pi") for what was looked up before."""
        return Names(lambda name: values.get(name, getattr(builtins, name, _MISSING)))

    def fresh(self) -> Names:
        """The same surroundings, nothing remembered."""
        return Names(self._lookup)

    def find(self, path: str) -> Any:
        """The object of ``name`` or ``module.name``; only modules have their attributes looked up."""
        found = self._lookup(path)
        if found is not _MISSING:
            return found
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
        own = tuple((path, _identity(self.find(path))) for path in sorted(self.used))
        return (own, *(helper.names.key() for helper in self._helpers.values()))

    def snapshot(self) -> dict[str, Any]:
        """The names used and what they stand for, fit for pickling."""
        frozen: dict[str, Any] = {}
        for path, found in self.used.items():
            frozen[path] = found
            if isinstance(found, (Primitive, FrozenPrimitive)):
                function, vjp, jvp = (self._frozen(f"{path} {part}") for part in _PARTS)
                assert function is not None
                frozen[path] = FrozenPrimitive(found.name, function, vjp, jvp)
            elif path in self._helpers:
                frozen[path] = self._frozen(path)
        return frozen

    def _frozen(self, path: str) -> FrozenFunction | None:
        helper = self._helpers.get(path)
        if helper is None:
            return None
        source = helper.source
        return FrozenFunction(
            source.filename, source.first_line, source.text, dict(helper.defaults), helper.names.snapshot()
        )

    def resolve(self, source: Source, node: ast.expr) -> Resolved:
        """The constant or the function behind a name or ``module.name``."""
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
        constant = as_constant(found)
        if constant is not None:
            return constant
        known = _call_name(found)
        if known is not None:
            return Call(known)
        if isinstance(found, (types.FunctionType, FrozenFunction)) and not _belongs_to_a_library(found):
            return self._helper(source, node, path, found)
        if isinstance(found, (Primitive, FrozenPrimitive)):
            function, vjp, jvp = (
                None if rule is None else self._helper(source, node, f"{path} {part}", rule)
                for part, rule in zip(_PARTS, (found.function, found.vjp, found.jvp))
            )
            assert function is not None
            return Ruled(found.name, function, vjp, jvp)
        _refuse_object(source, node, path, found)

    def _helper(self, source: Source, node: ast.expr, path: str, found: Any) -> Helper:
        known = self._helpers.get(path)
        if known is None or known.identity is not found:
            known = self._helpers[path] = _helper_of(source, node, path, found)
        return known

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


def as_constant(found: Any) -> Number | Tuple | None:
    """A number, or a tuple of numbers and of such tuples."""
    if not isinstance(found, tuple):
        return as_number(found)
    items = tuple(as_constant(item) for item in found)
    return None if any(item is None for item in items) else Tuple(items)  # type: ignore[arg-type]


def _helper_of(source: Source, node: ast.expr, path: str, found: Any) -> Helper:
    if isinstance(found, FrozenFunction):
        text = Source(found.filename, found.first_line, found.text)
        return Helper(found, text, Names.of_mapping(found.constants), found.defaults)
    if hasattr(found, "__wrapped__"):
        source.refuse(
            node, f"the function '{path}' is wrapped by a decorator", "Call the plain function that it wraps."
        )
    positional = [*found.__code__.co_varnames[: found.__code__.co_argcount]]
    values = found.__defaults__ or ()
    defaults = {**dict(zip(positional[len(positional) - len(values) :], values)), **(found.__kwdefaults__ or {})}
    return Helper(found, from_function(found), Names.of_function(found), defaults)


def _belongs_to_a_library(found: Any) -> bool:
    """Functions of numpy and of this package are known by name (CALLS), or not accepted."""
    return (getattr(found, "__module__", None) or "").split(".")[0] in ("numpy", "eagle") and not isinstance(
        found, FrozenFunction
    )


def _refuse_object(source: Source, node: ast.expr, path: str, found: Any) -> NoReturn:
    from eagle._kernel import Kernel  # here: _kernel.py needs this module

    what, cure = f"a {type(found).__name__}", ""
    if isinstance(found, Kernel):
        cure = "Put what both kernels share into a plain function without @eagle.kernel, and call that."
    elif callable(found):
        cure = reals.CURES.get(path.split(".")[-1], "")
    source.refuse(
        node,
        f"'{path}' is {what}: a kernel uses constants of its surroundings and functions it can read",
        cure
        or f"Use a number or a tuple of numbers, or call one of {ACCEPTED_CALLS}; pass arrays as arguments (Table).",
    )


def _call_name(found: Any) -> str | None:
    try:
        return CALLS.get(found)
    except TypeError:  # not hashable
        return None


def _identity(found: Any) -> Any:
    if isinstance(found, tuple):
        return ("tuple", *(_identity(item) for item in found))
    if isinstance(found, types.FunctionType):
        defaults = (found.__defaults__ or (), *sorted((found.__kwdefaults__ or {}).items()))
        return ("function", id(found), id(found.__code__), _identity(defaults))
    number = as_number(found)
    if number is None:
        return ("object", id(found))
    if isinstance(number, float):
        return ("float", struct.pack("<d", number))
    return (type(number).__name__, number)
