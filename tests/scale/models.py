"""Models whose bits say whether a sharded run was the run of the whole."""

from __future__ import annotations

from typing import Any

import eagle
import numpy as np
from eagle import Accum, Index, Mutable, Param, Reduce, Scalar, Table, Terminated, kernel


@kernel
def walk(x: Mutable[Scalar], life: Mutable[Scalar], rate: Param, done: Terminated):
    """Noise by sample and step; each sample ends when its life is over."""
    x = x + rate * eagle.random.normal(seed=5, counter=4 * eagle.step_index()) / eagle.n_samples()
    life = life - eagle.random.uniform(seed=6, counter=eagle.step_index())
    done = life <= 0


@kernel
def measure(
    x: Scalar, kind: Index, offsets: Table[Scalar], seen: Accum[Index]
) -> {"total": Reduce("sum"), "least": Reduce("min"), "kinds": Reduce("sum", Index)}:
    """What all samples make together, which depends on the order of its additions."""
    seen.add(1, at=kind)
    return {"total": x + offsets.at(kind), "least": x, "kinds": kind}


@kernel
def tally(x: Scalar, sum: Accum[Scalar], done: Terminated):
    """Reals added in the order of samples."""
    sum.add(x, at=0)
    done = x > 1e9


@kernel
def scaled(x: Scalar, a: Param) -> Scalar:
    y = a * x + 1e-3 * eagle.sample_index()
    return y


@kernel
def drift(v: Mutable[Scalar], y: Scalar):
    v = v + y * eagle.math.sin(v)


@kernel
def energy(v: Scalar) -> Reduce("sum"):
    e = v * v
    return e


@kernel
def sums(x: Scalar, done: Terminated) -> {"total": Reduce("sum")}:
    done = x > 9.0
    return {"total": x}


@kernel
def part(y: Mutable[Scalar], total: Table[Scalar], done: Terminated):
    y = y / total.at(0)
    done = y > 9.0


MODEL = [walk, measure]
OFFSETS = np.array([0.5, -0.25, 0.125])
STATE = ("x", "life", "done")
MADE = ("total", "least", "kinds", "seen")


def batch(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """One element a sample."""
    x, life = rng.normal(0, 20, n), rng.exponential(30.0, n) + 0.01
    life[rng.random(n) < 0.05] = np.nan  # never ends
    return {"x": x, "life": life, "kind": rng.integers(-1, 4, n)}


def arguments(planes: dict[str, Any]) -> dict[str, Any]:
    """What a sharded run is given besides max_steps."""
    return {"rate": 0.5, "offsets": OFFSETS, "seen": np.zeros(3, np.int64), **planes}


def whole(session: eagle.Session, planes: dict[str, np.ndarray], max_steps: int, **options: Any) -> eagle.SimResult:
    """The one unsharded run."""
    n = len(planes["x"])
    given = {name: session.asarray(np.array(value)) for name, value in planes.items()}
    return eagle.simulate(
        MODEL,
        max_steps=max_steps,
        rate=0.5,
        offsets=session.asarray(OFFSETS),
        seen=session.zeros(3, np.int64),
        done=session.zeros(n, dtype=bool),
        session=session,
        **given,
        **options,
    )


def expect_same(found: Any, expected: eagle.SimResult, told: str = "") -> None:
    """Status, steps and every plane, bit for bit."""
    assert (found.status, found.steps, found.report.finished) == (
        expected.status,
        expected.steps,
        expected.report.finished,
    ), told
    moved = found.gather(*STATE, *MADE)
    for name in (*STATE, *MADE):
        mine = moved[name]
        assert mine.dtype == expected[name].dtype, (told, name)
        assert mine.tobytes() == np.asarray(expected[name]).tobytes(), (told, name)
