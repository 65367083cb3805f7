"""Derivatives of kernels, which are kernels: what ``eagle.diff.vjp`` and ``eagle.diff.jvp`` give."""

from __future__ import annotations

from typing import Any, Iterable, Sequence, Union

from eagle import _core, frontend, roles
from eagle._data_classes import NamedTuple, data_class
from eagle._kernel import Kernel
from eagle.errors import refusal


class PlaneOf(NamedTuple):
    """What an argument of a derivative is.

    ``part`` is "primal" (an input of the kernel, as it is when its step begins), "bar" (an adjoint), "dot" (a tangent)
    or "step" (the number of the step); ``argument`` the name in the kernel that was differentiated. A primal that is
    not ``needed`` is never looked at.
    """

    part: str
    argument: str
    needed: bool


@data_class(frozen=True)
class _Asked:
    """What was asked of a derivative."""

    direction: str  # "vjp" or "jvp"
    wrt: tuple[str, ...]
    sum_params: bool
    accumulate: tuple[str, ...]
    step_param: bool


class Derivative(Kernel):
    """A derivative of a kernel, and a kernel itself: called, planned and printed as any other.

    It follows the kernel that it is of: where constants of that one change, so does this one. A graph takes it through
    ``eagle.diff`` only.
    """

    def __init__(self, of: Kernel, asked: _Asked) -> None:
        self.of = of
        self._asked = asked
        self._made: dict[str, tuple[_core.Kernel, frontend.Translation, dict[str, PlaneOf]]] = {}
        self._made_of("f64")

    @property
    def name(self) -> str:
        """The kernel's name, and ``_vjp`` or ``_jvp``."""
        return f"{self.of.name}_{self._asked.direction}"

    def source(self) -> str:
        """The Python text of the kernel that was differentiated; ``ir`` is the program of the derivative."""
        return self.of.source()

    def translation(self, real: str) -> frontend.Translation:
        """The derivative for one type of reals ("f64" or "f32"), as the kernel's constants stand now."""
        return self._made_of(real)[1]

    @property
    def planes(self) -> dict[str, PlaneOf]:
        """What each argument of the derivative is, by its name, outputs included."""
        return dict(self._made_of("f64")[2])

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments, in the order of a call."""
        rows = self.translation("f64").kernel.arguments
        return tuple(name for name, role, _, _ in rows if role not in ("output", "reduce"))

    def role(self, name: str) -> roles.Role:
        """The role of an argument."""
        for found, role, scalar, extents in self.translation("f64").kernel.arguments:
            if found == name:
                return roles.Role(
                    role, "real" if scalar == "f64" else scalar, tuple(extents), _shown(role, scalar, extents)
                )
        raise KeyError(name)

    def _made_of(self, real: str) -> tuple[_core.Kernel, frontend.Translation, dict[str, PlaneOf]]:
        primal = self.of.translation(real).kernel
        known = self._made.get(real)
        if known is not None and known[0] is primal:
            return known
        asked = self._asked
        kernel, rows = _core.derivative_of(
            primal, asked.direction, asked.wrt, asked.sum_params, asked.accumulate, asked.step_param
        )
        outputs = tuple(name for name, role, _, _ in kernel.arguments if role in ("output", "reduce"))
        translation = frontend.Translation(kernel, "dict" if outputs else "none", outputs)
        planes = {row[0]: PlaneOf(*found) for row, found in zip(kernel.arguments, rows)}
        self._made[real] = (primal, translation, planes)
        return self._made[real]

    def __reduce__(self) -> tuple[Any, ...]:
        return Derivative, (self.of, self._asked)

    def __repr__(self) -> str:
        rows = self.translation("f64").kernel.arguments
        given = [f"{name}: {self.role(name)!r}" for name, role, _, _ in rows if role not in ("output", "reduce")]
        outputs = ", ".join(self.translation("f64").outputs)
        return f"<eagle.kernel {self.name}({', '.join(given)}){' -> ' + outputs if outputs else ''}>"


def _shown(role: str, scalar: str, extents: Sequence[int]) -> str:
    """A role as an annotation would say it."""
    of = {"i64": "Index", "bool": "bool"}.get(scalar, "Scalar")
    if extents:
        of = f"Vector[{extents[0]}]" if len(extents) == 1 else f"Matrix[{extents[0]}, {extents[1]}]"
    if role == "param":
        return "Param[int]" if scalar == "i64" else "Param"
    return of if role in ("read", "output") else f"{role.capitalize()}[{of}]"


def differentiate(
    direction: str,
    of: Any,
    wrt: Union[str, Sequence[str], None],
    params: str = "plane",
    accumulate: Union[str, Sequence[str]] = (),
) -> Derivative:
    """The derivative, or a refusal in the name of the caller."""
    where = f"eagle.diff.{direction}"
    if not isinstance(of, Kernel):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: expected a kernel, found {type(of).__name__}; decorate the function with @eagle.kernel",
        )
    if params not in ("plane", "sum"):
        raise refusal("BAD_VALUE", f"{where}: params: expected 'plane' or 'sum', found {params!r}")
    names = () if wrt is None else _names(where, "wrt", wrt)
    if wrt is not None and not names:
        raise refusal("BAD_VALUE", f"{where}: wrt is empty; name real inputs of the kernel, or leave it out for all")
    asked = _Asked(direction, names, params == "sum", _names(where, "accumulate", accumulate), False)
    return Derivative(of, asked)


def _names(where: str, what: str, given: Union[str, Sequence[str]]) -> tuple[str, ...]:
    if isinstance(given, (bytes, bytearray)) or not isinstance(given, Iterable):
        raise refusal("WRONG_TYPE", f"{where}: {what}: expected names of arguments, found {type(given).__name__}")
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise refusal("WRONG_TYPE", f"{where}: {what}: expected names of arguments, found {name!r}")
    return names
