"""A spring's stiffness and damping, found from where 24 masses ended: gradients through a stepped run.

Usage: ``python -m eagle.examples.fitting [--local] [--plot FILE]``
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

import eagle
from eagle import Mutable, Param, Scalar, Table, Terminated, kernel

STEPS, DT = 400, 0.01
TRUE = (4.0, 0.3)  # stiffness and damping, over the mass


@kernel
def spring(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    p: Table[Scalar],  # type: ignore[type-arg]
    dt: Param,
    done: Terminated,
) -> None:
    """One step of a damped spring; ``p`` holds what is to be found."""
    v = v + dt * (-p.at(0) * x - p.at(1) * v)
    x = x + dt * v
    t = t + 1.0
    done = t >= 400.0


class Fit(NamedTuple):
    """What was found, and how the misfit went down from step to step."""

    stiffness: float
    damping: float
    misfits: list[float]


def measured(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each mass began, and where and how fast it ended, with an error of a thousandth."""
    began = np.linspace(0.5, 1.5, n)
    x, v = began.copy(), np.zeros(n)
    for _ in range(STEPS):
        v = v + DT * (-TRUE[0] * x - TRUE[1] * v)
        x = x + DT * v
    noise = np.random.default_rng(0)
    return began, x + 1e-3 * noise.standard_normal(n), v + 1e-3 * noise.standard_normal(n)


def fit(session: eagle.Session, start: tuple[float, float] = (2.5, 0.0), most: int = 200) -> Fit:
    """Goes downhill by steps of Barzilai and Borwein, at most ``most`` of them, until the slope is gone."""
    n = 24
    began, ends, speeds = measured(n)
    p = session.asarray(start)
    run = eagle.diff.simulation(
        spring,
        max_steps=STEPS,
        x=session.asarray(began),
        v=session.zeros(n),
        t=session.zeros(n),
        p=p,
        dt=DT,
        done=session.zeros(n, dtype=bool),
    )
    misfits: list[float] = []
    last: tuple[np.ndarray, np.ndarray] | None = None
    for _ in range(most):
        result = run.reset().run()
        off, fast = np.asarray(result.x) - ends, np.asarray(result.v) - speeds  # wherever they are
        misfits.append(float(np.mean(off**2 + fast**2)))
        slope = eagle.diff.reverse(run.record, {"x": 2 * off / n, "v": 2 * fast / n}, wrt="p")["p"]
        if np.linalg.norm(slope) < 1e-9:
            break
        here = np.array(p)
        length = 0.05 / np.linalg.norm(slope)
        if last is not None:
            moved, turned = here - last[0], slope - last[1]
            length = abs(moved @ moved / (moved @ turned))
        last = here, slope
        step = length * slope
        p[...] = here - step * min(1.0, 0.5 / np.linalg.norm(step))
    return Fit(float(p[0]), float(p[1]), misfits)


def plot(found: Fit, path: str) -> None:
    """The misfit by the number of steps."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(range(len(found.misfits)), found.misfits, marker="o", markersize=3)
    axes.set(xlabel="step", ylabel="misfit")
    axes.set_title(f"stiffness {found.stiffness:.4f} (true 4), damping {found.damping:.4f} (true 0.3)", fontsize=10)
    axes.grid(alpha=0.3)
    with rc_context({"svg.hashsalt": "fitting"}):  # the same file each time
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--local", action="store_true", help="run in this process instead of a daemon")
    parser.add_argument("--plot", metavar="FILE", help="draw the misfit by the number of steps (needs matplotlib)")
    options = parser.parse_args()
    with eagle.local() if options.local else eagle.connect() as session:
        found = fit(session)
    print(f"stiffness {found.stiffness:.4f}, damping {found.damping:.4f} after {len(found.misfits)} steps")
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
