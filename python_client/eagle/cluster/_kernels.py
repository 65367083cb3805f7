"""Kernels as they travel: what was verified, as bytes; never Python code."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from eagle import _core, frontend, roles
from eagle._derivative import _shown
from eagle._kernel import Kernel
from eagle.errors import refusal
from eagle.plan import BoundPlan, Plan


class Description(NamedTuple):
    """A kernel for one type of reals, as plain values that any process can read."""

    kernel: bytes  # eagle.v1.Kernel
    real: str  # "f64" or "f32"
    form: str
    outputs: tuple[str, ...]


class Described(Kernel):
    """A kernel that was read from its description. It has no text, and one type of reals."""

    def __init__(self, description: Sequence[Any]) -> None:
        self._description = Description(*description)
        core = _core.kernel_from_bytes(self._description.kernel)
        self._translation = frontend.Translation(core, self._description.form, tuple(self._description.outputs))

    @property
    def name(self) -> str:
        """The name that its author gave it."""
        return self._translation.kernel.name

    @property
    def real(self) -> str:
        """The type of its reals, "f64" or "f32"."""
        return self._description.real

    def translation(self, real: str) -> frontend.Translation:
        """The kernel; for other reals than its own there is none."""
        if real != self.real:
            raise refusal(
                "WRONG_DTYPE",
                f"kernel '{self.name}' was described for {self.real}, not for {real}; describe it for those",
            )
        return self._translation

    @property
    def ir(self) -> str:
        """The program as text."""
        return self._translation.kernel.text

    @property
    def hash(self) -> str:
        """SHA-256 of what it computes."""
        return self._translation.kernel.hash

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments, in the order of a call."""
        rows = self._translation.kernel.arguments
        return tuple(name for name, role, _, _ in rows if role not in ("output", "reduce"))

    def role(self, name: str) -> roles.Role:
        """The role of an argument."""
        for found, role, scalar, extents in self._translation.kernel.arguments:
            if found == name:
                element = "real" if scalar in ("f64", "f32") else scalar
                return roles.Role(role, element, tuple(extents), _shown(role, scalar, extents))
        raise KeyError(name)

    def source(self) -> str:
        """There is none: the program is ``ir``."""
        raise refusal("BAD_VALUE", f"kernel '{self.name}' came as a description, without its text; its program is .ir")

    def __reduce__(self) -> tuple[Any, ...]:
        return Described, (tuple(self._description),)

    def __repr__(self) -> str:
        return f"<eagle.kernel {self.name}, described>"


def kernel_of(where: str, part: Any) -> Kernel:
    """The kernel that a part of a model is, where it can travel."""
    kernel = part.kernel if isinstance(part, (Plan, BoundPlan)) else part
    if isinstance(part, BoundPlan):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: the plan of kernel '{kernel.name}' is bound to arrays of this process; pass the kernel, and the "
            "arrays by name",
        )
    if not isinstance(kernel, Kernel):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: expected a kernel, found {_named(part)}: workers are sent descriptions of kernels, never code; "
            "write it as an @eagle.kernel, or call it between runs",
        )
    return kernel


def described(where: str, kernel: Kernel, real: str, renamed: Sequence[tuple[str, str]] = ()) -> Description:
    """The description of a kernel for these reals, some of its arguments under other names."""
    found = kernel.translation(real)
    if found.kernel.derivative_of:
        raise refusal(
            "DERIVATIVE_KERNEL",
            f"{where}: kernel '{kernel.name}' is a derivative; runs are differentiated in one session "
            "(eagle.diff.simulate)",
        )
    names = dict(renamed)
    outputs = tuple(names.get(name, name) for name in found.outputs)
    return Description(found.kernel.to_bytes(list(renamed)), real, found.form, outputs)


def _named(part: Any) -> str:
    name = getattr(part, "__name__", None)
    return f"{type(part).__name__} '{name}'" if isinstance(name, str) else type(part).__name__
