"""Derivatives of kernels as kernels.

``vjp`` goes backwards: from the derivative of a number J by what the kernel gives (``bar_<output>``) to that by what
it is given (``bar_<input>``). ``jvp`` goes forwards: from a change of the inputs (``dot_<input>``) to that of the
outputs. Both are kernels: they are called, planned, printed (``.ir``) and differentiated again as any other.
"""

# A folder, as raptor-eagle has one: of two installed into one environment, whose files came last is whole then.
from __future__ import annotations

from typing import Any, Sequence, Union

from eagle._derivative import Derivative, PlaneOf, differentiate
from eagle._recorded_runs import RecordedSimulation, simulate, simulation, until_done
from eagle._records import Record
from eagle._reverse import Gradients, LoopReport, Reverse, ReverseReport, reverse

__all__ = [
    "Derivative",
    "Gradients",
    "LoopReport",
    "PlaneOf",
    "Record",
    "RecordedSimulation",
    "Reverse",
    "ReverseReport",
    "jvp",
    "reverse",
    "simulate",
    "simulation",
    "until_done",
    "vjp",
]


def vjp(
    kernel: Any,
    wrt: Union[str, Sequence[str], None] = None,
    *,
    params: str = "plane",
    accumulate: Union[str, Sequence[str]] = (),
) -> Derivative:
    """The reverse derivative of a kernel.

    It takes the inputs of the kernel as they were when its step began, ``bar_<name>`` for each real output, and gives
    ``bar_<name>`` for each input in ``wrt`` (None: every real one). A Mutable's ``bar_<name>`` goes in as the
    derivative by its value after the step and comes out as that by its value before; those of a Table are added to.
    Params have one a sample, or with ``params="sum"`` their sum in the fixed order. ``accumulate`` names inputs whose
    ``bar_<name>`` is an array that is added to. A sample whose mask is set gives 0, and leaves what its Mutables have.

    Raises EagleError for names that are none or have no derivative (integers, masks), and for kernels that give no
    real number.

    >>> import eagle
    >>> @eagle.kernel
    ... def spring(x: eagle.Scalar, k: eagle.Param) -> eagle.Scalar:
    ...     energy = 0.5 * k * x * x
    ...     return energy
    >>> back = eagle.diff.vjp(spring)
    >>> back
    <eagle.kernel spring_vjp(x: Scalar, k: Param, bar_energy: Scalar) -> bar_x, bar_k>
    >>> found = back(x=eagle.asarray([1.0, 2.0]), k=10.0, bar_energy=eagle.full(2, 1.0))
    >>> found["bar_x"], found["bar_k"]
    (array([10., 20.]), array([0.5, 2. ]))
    """
    return differentiate("vjp", kernel, wrt, params, accumulate)


def jvp(kernel: Any, wrt: Union[str, Sequence[str], None] = None) -> Derivative:
    """The forward derivative of a kernel.

    It takes the inputs of the kernel as they are when its step begins, ``dot_<name>`` for each input in ``wrt`` (None:
    every real one), and gives ``dot_<name>`` for each real output. A Mutable's goes in as the change of its value
    before the step and comes out as that of its value after.

    >>> import eagle
    >>> @eagle.kernel
    ... def spring(x: eagle.Scalar, k: eagle.Param) -> eagle.Scalar:
    ...     energy = 0.5 * k * x * x
    ...     return energy
    >>> eagle.diff.jvp(spring, wrt="x")(x=eagle.asarray([1.0, 2.0]), k=10.0, dot_x=eagle.full(2, 1.0))
    {'dot_energy': array([10., 20.])}
    """
    return differentiate("jvp", kernel, wrt)
