"""Oscillators that are stepped until t >= t_end, of which lines 6 to 8 are made. The twins (``stepping_twin.cpp``) have
the same operations in the same order."""

from __future__ import annotations

from typing import Any

import eagle
import numpy as np
from cases.inputs import DAMPING, DT, oscillators
from eagle import Mutable, Param, Scalar, Terminated, kernel
from frame import LIMIT, TWIN, Bench, Form
from twins import EULER, RK4


@kernel
def oscillator(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    t_end: Scalar,
    dt: Param,
    done: Terminated,
):
    x, v = x + dt * v, v - dt * omega * omega * x
    t = t + dt
    done = t >= t_end


@kernel
def damped_rk4(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    t_end: Scalar,
    dt: Param,
    c: Param,
    done: Terminated,
):
    half = 0.5 * dt
    k1x = v
    k1v = -(omega * omega * x) - c * v
    k2x = v + half * k1v
    k2v = -(omega * omega * (x + half * k1x)) - c * (v + half * k1v)
    k3x = v + half * k2v
    k3v = -(omega * omega * (x + half * k2x)) - c * (v + half * k2v)
    k4x = v + dt * k3v
    k4v = -(omega * omega * (x + dt * k3x)) - c * (v + dt * k3v)
    x = x + dt / 6 * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
    v = v + dt / 6 * (k1v + 2.0 * k2v + 2.0 * k3v + k4v)
    t = t + dt
    done = t >= t_end


NUMBERS: dict[int, dict[str, float]] = {EULER: {"dt": DT}, RK4: {"dt": DT, "c": DAMPING}}
KERNELS = {EULER: oscillator, RK4: damped_rk4}


class Planes:
    """State in memory of a session, or without one in numpy's own, that goes back to its start before each run."""

    def __init__(self, start: dict[str, np.ndarray], session: Any = None) -> None:
        self.start = start
        n = start["t"].shape[-1]
        self.arrays = {name: a.copy() if session is None else session.asarray(a.copy()) for name, a in start.items()}
        self.arrays["done"] = np.zeros(n, dtype=bool) if session is None else session.zeros(n, dtype=bool)

    def reset(self) -> None:
        for name, array in self.arrays.items():
            array[...] = self.start.get(name, False)


def run_form(name: str, session: Any, n: int, method: int, spread: bool) -> Form:
    planes = Planes(oscillators(n, spread), session)
    arrays = {**planes.arrays, **NUMBERS[method]}

    def run() -> None:
        result = eagle.simulate(KERNELS[method], max_steps=2000, session=session, **arrays)
        assert result.status == "finished", result.status

    return Form(name, run, reset=planes.reset, answer=lambda: [planes.arrays[k] for k in ("x", "v", "t")])


def twin_form(bench: Bench, n: int, method: int, spread: bool, ordered: bool) -> Form:
    """Vectors side by side, the state in registers. ``ordered``: its samples come sorted by end, for nothing, which is
    what packing can reach at best; its answer is put back into the order of the others."""
    planes = Planes(oscillators(n, spread, ordered))
    back = np.argsort(np.argsort(oscillators(n, spread)["t_end"], kind="stable")) if ordered else np.arange(n)

    def run() -> None:
        bench.twins.step_damped(planes.arrays, method, DT, DAMPING)

    name = f"{TWIN}, sorted" if ordered else TWIN
    answer = lambda: [planes.arrays[k][back] for k in ("x", "v", "t")]  # noqa: E731
    return Form(name, run, LIMIT, reset=planes.reset, answer=answer)
