"""Graphs and runs over arrays on a GPU that are recorded and gone back over, in process and in a daemon, on the fake
driver: what the CPU gives, bit for bit."""

from __future__ import annotations

from typing import Any

import eagle
import numpy as np
import pytest
from eagle.graph import opaque

pytestmark = pytest.mark.usefixtures("fake_gpus")

GPU = "cuda:0"
SEED = 20261202


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


@eagle.kernel
def squared(x: eagle.Scalar, a: eagle.Param) -> eagle.Scalar:
    y = a * x * x
    return y  # noqa: RET504  # it names the plane


@eagle.kernel
def drag(x: eagle.Mutable[eagle.Scalar], rate: eagle.Scalar):
    x = x - rate * x * abs(x)


@eagle.kernel
def decay(x: eagle.Mutable[eagle.Scalar], rate: eagle.Scalar, level: eagle.Param, done: eagle.Terminated):
    x = x * (1.0 - rate)
    done = x <= level


def numbers(n: int, seed: int = SEED) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2.0, n)


def both(session: eagle.Session, run: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What ``run`` gives over arrays of the host, and over those of a GPU."""
    return run(session, "cpu"), run(session, GPU)


def same(here: dict[str, np.ndarray], there: dict[str, np.ndarray]) -> None:
    assert here.keys() == there.keys()
    for name, value in here.items():
        assert np.asarray(there[name]).tobytes() == np.asarray(value).tobytes(), name


def test_a_graph_that_overwrites_its_arrays_is_gone_back_over(session: eagle.Session) -> None:
    def run(session: eagle.Session, device: str) -> dict[str, np.ndarray]:
        x, rate = session.asarray(numbers(9), device=device), session.asarray(numbers(9, 1) * 0.1, device=device)
        y, total = session.zeros(9, device=device), session.zeros(1, device=device)
        g = eagle.Graph(session, record=True)
        for _ in range(3):
            g.add(eagle.plan(drag).bind(x=x, rate=rate))
        g.add(eagle.plan(squared).bind(x=x, y=y, a=1.5)).add_node(eagle.reduce(y, total), name="total")
        g.build()
        assert g.backend == device
        g.launch()
        assert g.record.nbytes > 0
        found = dict(eagle.diff.reverse(g.record, {"total.out": [1.0]}))
        again = dict(eagle.diff.reverse(g.record, {"total.out": [1.0]}))
        same(found, again)
        return {**found, "value": np.asarray(total)}

    here, there = both(session, run)
    assert set(here) >= {"rate", "value"}
    same(here, there)


def test_loops_conditionals_and_updated_numbers(session: eagle.Session) -> None:
    def run(session: eagle.Session, device: str) -> dict[str, np.ndarray]:
        x, rate = session.asarray(numbers(7), device=device), session.asarray(numbers(7, 1) * 0.1, device=device)
        y = session.zeros(7, device=device)
        trips, flag = session.zeros(1, np.int64, device=device), session.asarray(np.ones(1, np.int64), device=device)
        wanted = session.asarray(np.array([4]), device=device)
        g = eagle.Graph(session, record=True)
        step = eagle.plan(drag).bind(x=x, rate=rate)
        guard = eagle.SkipGuard(wanted, baseline=trips)
        g.add_node(eagle.repeat_while(step, guard, 10, iteration_index=trips), name="loop")
        g.add_node(eagle.skippable(eagle.plan(squared).bind(x=x, y=y, a=1.5), eagle.SkipGuard.nonzero(flag)))
        g.build()
        g.update({"a": 2.5})
        g.launch()
        return {**dict(eagle.diff.reverse(g.record, {"y": np.ones(7)})), "value": np.asarray(y)}

    here, there = both(session, run)
    same(here, there)


def test_a_callable_with_a_derivative_of_its_own(session: eagle.Session) -> None:
    def run(session: eagle.Session, device: str) -> dict[str, np.ndarray]:
        x, y, z = (session.asarray(numbers(5), device=device), *(session.zeros(5, device=device) for _ in range(2)))

        def cubed(y: Any = y, z: Any = z) -> None:  # given where they lie on a GPU
            z[...] = y * y * y

        def derivative(primals: Any, cotangents: Any) -> dict[str, np.ndarray]:
            return {"y": 3.0 * np.asarray(primals["y"]) ** 2 * np.asarray(cotangents["z"])}

        g = eagle.Graph(session, record=True)
        g.add(eagle.plan(squared).bind(x=x, y=y, a=1.5))
        g.add_node(opaque(cubed, reads={"y": y}, writes={"z": z}), name="cube")
        g.build().launch()
        found = eagle.diff.reverse(g.record, {"z": np.ones(5)}, vjps={"cube": derivative})
        return {**dict(found), "value": np.asarray(z)}

    here, there = both(session, run)
    assert set(here) == {"x", "a", "value"}
    same(here, there)


def test_a_run_until_its_samples_are_done(session: eagle.Session) -> None:
    def run(session: eagle.Session, device: str) -> dict[str, np.ndarray]:
        made = eagle.diff.simulate(
            decay,
            max_steps=50,
            x=session.asarray(numbers(6), device=device),
            rate=session.asarray(numbers(6, 1) * 0.1, device=device),
            level=0.25,
            done=session.zeros(6, dtype=bool, device=device),
        )
        assert made.result.report.backend == device
        found = dict(eagle.diff.reverse(made.record, {"x": np.ones(6)}))
        return {**found, "value": np.asarray(made.result.x), "steps": np.asarray(made.result.steps)}

    here, there = both(session, run)
    assert set(here) >= {"x", "rate", "value"}
    same(here, there)


def test_the_record_lies_on_the_gpu_and_counts_there(session: eagle.Session) -> None:
    n = 200_000  # small arrays share a plane
    x, y = session.asarray(numbers(n), device=GPU), session.zeros(n, device=GPU)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(drag).bind(x=x, rate=y)).build().launch()
    assert {plane.name: plane.device for plane in session.planes()}["record"] == GPU
