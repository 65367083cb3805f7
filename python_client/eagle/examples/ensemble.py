"""An ensemble of oscillators: a million samples, a thousand steps, through eagled or in this process.

Usage: ``python -m eagle.examples.ensemble [--local] [--samples N]``
"""

from __future__ import annotations

import argparse

import numpy as np

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.graph import opaque


@kernel
def oscillator(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    dt: Param,
    t_end: Param,
    done: Terminated,
) -> None:
    """One explicit Euler step; a sample is finished when its time is up."""
    x, v = x + dt * v, v - dt * omega * omega * x
    t = t + dt
    done = t >= t_end


@kernel
def energy(x: Scalar, v: Scalar, omega: Scalar) -> Scalar:
    """Energy of one oscillator of unit mass."""
    e = 0.5 * (v * v + omega * omega * x * x)
    return e


def first_graph() -> eagle.Graph:
    """Two callables over arrays; their order follows from the arrays they declare."""
    x, y, z = np.zeros(8), np.zeros(8), np.zeros(8)
    g = eagle.Graph()
    g.add_node(opaque(lambda: np.multiply(x, 2.0, out=y), reads={"x": x}, writes={"y": y}), name="double")
    g.add_node(opaque(lambda: np.add(y, 1.0, out=z), reads={"y": y}, writes={"z": z}), name="shift")
    return g.build().launch()


def run(session: eagle.Session, samples: int) -> eagle.SimResult:
    """Steps the ensemble in ``session`` and prints what came of it."""
    x, v, t = session.full(samples, 1.0), session.zeros(samples), session.zeros(samples)
    omega, done = session.asarray(np.linspace(1, 3, samples)), session.zeros(samples, dtype=bool)
    result = eagle.simulate(oscillator, max_steps=2000, x=x, v=v, t=t, omega=omega, dt=1e-3, t_end=1.0, done=done)
    print(
        f"{samples:,} oscillators: {result.steps:,} steps, {result.report.finished:,} finished, "
        f"status {result.status}, {result.wall_s:.3f} s"
    )
    print("x[:3] =", ", ".join(repr(float(value)) for value in x[:3]))
    host = result.report.host
    print(f"computed by process {host.pid} on {host.name}, {result.report.threads} threads, {session.transport}")
    print(f"mean energy {energy(x, v, omega, session=session).mean():.6f}")
    return result


def main(arguments: list[str] | None = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m eagle.examples.ensemble", description=__doc__.split("\n")[0])
    parser.add_argument("--local", action="store_true", help="run in this process instead of in eagled")
    parser.add_argument("--samples", type=int, default=1_000_000, help="size of the ensemble (default: a million)")
    options = parser.parse_args(arguments)
    if options.samples < 1:
        parser.error("--samples: give at least 1")
    with eagle.local() if options.local else eagle.connect() as session:
        run(session, options.samples)
        g = first_graph()
        print("\nThe first graph, its schedule and its picture:")
        print(", ".join(g.schedule))
        print(g)
    print("\nWhat to try next:")
    print("  python -m eagle.examples.ensemble --local       the same bits in this process")
    print("  print(eagle.examples.ensemble.oscillator.ir)    the program that the kernel became")
    print("  eaglectl info                                   what a running eagled is doing")


if __name__ == "__main__":
    main()
