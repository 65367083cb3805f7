"""Kernel objects: what ``@eagle.kernel`` makes of a function."""

from __future__ import annotations

import math
import sys
import types
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, overload

import numpy as np

from eagle import frontend, language, roles
from eagle.errors import refusal

if TYPE_CHECKING:
    from eagle.session import Session


class Kernel:
    """A per-sample program. Calling it runs it over whole arrays; a graph takes it through ``eagle.plan``.

    The kernel is read again whenever it is bound: constants of its surroundings (globals, closures) have the
    values of that moment, and a change makes another kernel with another ``hash``.

    >>> import eagle
    >>> @eagle.kernel
    ... def affine(x: eagle.Scalar, a: eagle.Param, b: eagle.Param) -> eagle.Scalar:
    ...     y = a * x + b
    ...     return y
    >>> affine
    <eagle.kernel affine(x: Scalar, a: Param, b: Param) -> y>
    >>> affine(eagle.asarray([0.0, 1.0, 2.0]), 2.0, 1.0)
    array([1., 3., 5.])
    """

    def __init__(
        self, source: frontend.Source, names: frontend.Names, evaluated: Mapping[str, Any], *, open_names: bool = False
    ) -> None:
        self._source = source
        self._names = names
        self._signature = frontend.read_signature(source, names.fresh(), evaluated)
        self._arguments = tuple(argument.name for argument in self._signature.arguments)
        self._translations: dict[str, tuple[frontend.Names, tuple[Any, ...], frontend.Translation]] = {}
        try:
            self.translation("f64")
        except frontend.UnresolvedName:
            if not open_names:
                raise
            # Defined later, perhaps: the next use asks again, and refuses.

    @property
    def name(self) -> str:
        """The function's name, which is the label of its nodes."""
        return self._source.name

    @property
    def ir(self) -> str:
        """The program as text, with float64 for its reals.

        >>> import eagle
        >>> @eagle.kernel
        ... def twice(x: eagle.Scalar) -> eagle.Scalar:
        ...     return 2 * x
        >>> print(twice.ir.splitlines()[0])
        kernel @twice real=f64
        """
        return self.translation("f64").kernel.text

    @property
    def hash(self) -> str:
        """SHA-256 (64 hexadecimal digits) of what the kernel computes, with float64 for its reals.

        Names, comments and places in files do not count; roles, types and operations do.
        """
        return self.translation("f64").kernel.hash

    def ptx(self, arch: str = "sm_75", *, scalar_type: Any = None) -> str:
        """The program for NVIDIA GPUs: PTX for an architecture, "sm_75" to "sm_90"; newer ones run that of an older.

        Nothing of CUDA has to be installed. The text holds one kernel, ``eagle_kernel``; the manual (gpu) says what its
        parameter is. Every operation in it rounds as on a CPU, so it gives the same bits. ``scalar_type`` is the type
        of its reals: float64, or float32. Raises EagleError (a ValueError) for an architecture that is not known.

        >>> import eagle
        >>> @eagle.kernel
        ... def affine(x: eagle.Scalar, a: eagle.Param, b: eagle.Param) -> eagle.Scalar:
        ...     return a * x + b
        >>> text = affine.ptx("sm_80")
        >>> "mul.rn.f64" in text, "add.rn.f64" in text
        (True, True)
        """
        from eagle.plan import Plan  # here: plan.py needs Kernel

        return self.translation(Plan(self, scalar_type).scalar_type or "f64").kernel.ptx(arch)

    def source(self) -> str:
        """The Python text that the kernel was read from."""
        return self._source.text

    def translation(self, real: str) -> frontend.Translation:
        """The kernel for one type of reals ("f64" or "f32"), as its constants stand now."""
        known = self._translations.get(real)
        if known is not None and known[0].key() == known[1]:
            return known[2]
        names = self._names.fresh()
        made = frontend.translate(self._source, self._signature, names, real)
        self._translations[real] = (names, names.key(), made)
        return made

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments, in the order of a call."""
        return self._arguments

    def role(self, name: str) -> roles.Role:
        """The role of an argument."""
        return self._signature.roles[name]

    def __call__(self, *args: Any, session: Session | None = None, scalar_type: Any = None, **kwargs: Any) -> Any:
        """Runs the kernel over the whole batch and returns its outputs, as the kernel returns them.

        Arrays are numpy arrays of the shapes and dtypes that their roles say; Params are numbers. Outputs are
        fresh arrays of the session, unless one is passed by its name. Returns an array, a tuple or a dict;
        None where the kernel returns nothing and changes its Mutables in place.

        Values of one sample (numbers or 0-d arrays, (w,) for vectors, (R, C) for matrices, for all arguments) run
        as a batch of one and come back as values of one sample.

        Of ``xarray.DataArray`` arguments dimensions and coordinates are kept: outputs have those of the samples.

        Raises EagleError (a TypeError or ValueError) before anything runs where an argument does not fit.
        """
        from eagle.plan import Plan  # here: plan.py needs Kernel

        if len(args) > len(self.arguments):
            raise refusal(
                "BAD_BINDING",
                f"{self.name}: takes {len(self.arguments)} arguments ({', '.join(self.arguments)}), found {len(args)}",
            )
        given = dict(zip(self.arguments, args))
        twice = sorted(given.keys() & kwargs.keys())
        if twice:
            raise refusal("BAD_BINDING", f"{self.name}: argument '{twice[0]}' is given twice")
        every = {**given, **kwargs}
        if is_labelled(every.values()):
            from eagle.interop import xarray

            return xarray.call(self, every, session, scalar_type)
        return Plan(self, scalar_type).call(session, every)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the text with the constants and functions that it uses, as they stand now."""
        self.translation("f64")
        text, names = self._source, self._translations["f64"][0]
        roles_of = {argument.name: argument.role for argument in self._signature.arguments}
        return _thaw, (text.filename, text.first_line, text.text, names.snapshot(), roles_of, self._signature.outputs)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{argument.name}: {argument.role!r}" for argument in self._signature.arguments)
        known = self._translations.get("f64")
        outputs = ", ".join(known[2].outputs) if known is not None else ""
        return f"<eagle.kernel {self.name}({arguments}){' -> ' + outputs if outputs else ''}>"


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...


@overload
def kernel(*, source: str, constants: Mapping[str, Any] | None = None) -> Kernel: ...


def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    source: str | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Kernel:
    """Makes a kernel of a function (as a decorator), or of its text where there is no file to read it from.

    A kernel is written for one sample. Its annotations are the roles of its arguments: see ``eagle.roles``.
    Accepted are assignments, operators, conditions, ``if``, bounded loops, and calls of a few functions and of your
    own plain ones; anything else is refused with file, line, column and what to write instead. The manual (kernels)
    has the tables.

    ``source`` is the text of one ``def``; it sees the roles, ``math``, ``np``, ``eagle`` and ``constants`` (name to
    number, tuple of numbers or plain function). Raises KernelSyntaxError.

    >>> import eagle
    >>> half = eagle.kernel(source='''
    ... def half(x: Scalar) -> Scalar:
    ...     return x * factor
    ... ''', constants={"factor": 0.5})
    >>> half(eagle.asarray([2.0, 5.0]))
    array([1. , 2.5])
    """
    if function is not None and source is None and constants is None:
        read = frontend.from_function(function)
        assert isinstance(function, types.FunctionType)  # from_function has refused everything else
        return Kernel(read, frontend.Names.of_function(function), _annotations(function), open_names=True)
    if source is None or function is not None or not isinstance(source, str):
        raise refusal("WRONG_TYPE", "eagle.kernel: decorate a function, or pass source='def ...' by name")
    names = {**_vocabulary(), **(constants or {})}
    return Kernel(frontend.from_text(source), frontend.Names.of_mapping(names), {})


def _thaw(
    filename: str,
    first_line: int,
    text: str,
    constants: Mapping[str, Any],
    arguments: Mapping[str, roles.Role],
    outputs: frontend.Outputs,
) -> Kernel:
    """A pickled kernel, whose surroundings are those of its pickling."""
    returned: Any = None
    if outputs.form == "one":
        returned = outputs.roles[0]
    elif outputs.form == "tuple":
        returned = outputs.roles
    elif outputs.form == "dict":
        keyed = dict(zip(outputs.keys, outputs.roles))
        returned = keyed or types.GenericAlias(dict, (str, outputs.roles[0]))
    evaluated = {**arguments, **({} if returned is None else {"return": returned})}
    return Kernel(frontend.Source(filename, first_line, text), frontend.Names.of_mapping(constants), evaluated)


def is_labelled(values: Iterable[Any]) -> bool:
    """Whether one is an ``xarray.DataArray``."""
    labelled = getattr(sys.modules.get("xarray"), "DataArray", ())
    return any(isinstance(value, labelled) for value in values)


def _annotations(function: types.FunctionType) -> Mapping[str, Any]:
    """The annotations as they stand; those that Python cannot evaluate are read from the text instead."""
    try:
        return dict(function.__annotations__)
    except NameError:
        return {}


def _vocabulary() -> dict[str, Any]:
    """What the text of a kernel may use without an import."""
    import eagle

    own = {name: getattr(roles, name) for name in roles.__all__ if name != "Role"}
    return {**own, "eagle": eagle, "math": math, "np": np, "numpy": np, "select": language.select}
