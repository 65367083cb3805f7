"""Gradients of stepped runs."""

from __future__ import annotations

import math

import eagle
import numpy as np
import pytest
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.graph import opaque


@kernel
def oscillator(
    x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar], omega: Scalar, dt: Param, t_end: Param, done: Terminated
):
    x, v = x + dt * v, v - dt * omega * omega * x
    t = t + dt
    done = t >= t_end


def planes(session, n):
    return {
        "x": session.full(n, 1.0),
        "v": session.zeros(n),
        "t": session.zeros(n),
        "omega": session.asarray(np.linspace(1.0, 3.0, n)),
        "done": session.zeros(n, dtype=bool),
    }


def test_the_ensemble_of_oscillators_over_a_thousand_steps_agrees_with_jax(session, jax):
    n, steps, dt = 257, 1000, 1e-3
    run = eagle.diff.simulate(oscillator, max_steps=2000, dt=dt, t_end=1.0, **planes(session, n))
    assert (run.result.status, run.result.steps) == ("finished", steps)
    found = eagle.diff.reverse(run.record, {"x": np.ones(n), "v": np.full(n, 0.5)})

    def objective(x, v, omega, dt):
        def step(state, _):
            x, v = state
            return (x + dt * v, v - dt * omega * omega * x), None

        (x, v), _ = jax.lax.scan(step, (x, v), None, length=steps)
        return jax.numpy.sum(x) + 0.5 * jax.numpy.sum(v)

    omega = np.linspace(1.0, 3.0, n)
    expected = jax.grad(objective, argnums=(0, 1, 2, 3))(np.ones(n), np.zeros(n), omega, dt)
    for name, value in zip(("x", "v", "omega", "dt"), expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-11, atol=1e-11)
    # Samples that end at different steps would each have taken a part of it; here all take all.
    assert found["t_end"] == 0.0


def test_samples_that_finish_at_different_steps_have_their_own_gradients(session):
    @kernel
    def grow(x: Mutable[Scalar], rate: Scalar, done: Terminated):
        x = x * rate
        done = x > 100.0

    x, rate = session.asarray([1.0, 30.0, 99.0]), session.asarray([2.0, 3.0, 1.5])
    run = eagle.diff.simulate(grow, max_steps=50, x=x, rate=rate, done=session.zeros(3, dtype=bool))
    assert run.result.steps == 7
    found = eagle.diff.reverse(run.record, {"x": np.ones(3)})
    k = np.array([7, 2, 1])  # steps: 1, 2, ..., 128; 30, 90, 270; 99, 148.5
    start, r = np.array([1.0, 30.0, 99.0]), np.array([2.0, 3.0, 1.5])
    np.testing.assert_allclose(found["x"], r**k, rtol=1e-13)
    np.testing.assert_allclose(found["rate"], k * start * r ** (k - 1), rtol=1e-13)


@pytest.mark.parametrize("checkpoint", [1, 7, 64, 5000])
def test_the_checkpoint_changes_memory_and_nothing_else(session, checkpoint):
    n = 33
    given = {"dt": 1e-2, "t_end": 3.0}
    seeds = {"x": np.ones(n)}
    first = eagle.diff.simulate(oscillator, max_steps=500, **given, **planes(session, n))
    other = eagle.diff.simulate(oscillator, max_steps=500, **given, **planes(session, n))
    usual = eagle.diff.reverse(first.record, seeds)
    found = eagle.diff.reverse(other.record, seeds, checkpoint=checkpoint)
    for name in usual:
        np.testing.assert_array_equal(usual[name], found[name])
    assert found.report.loops[0].interval == min(checkpoint, found.report.loops[0].trips)


def test_the_peak_memory_of_taking_a_run_back_grows_with_the_square_root_of_its_steps(session):
    n = 4096
    bytes_of = {}
    for steps in (256, 1024, 4096):
        run = eagle.diff.simulate(oscillator, max_steps=steps, dt=1e-3, t_end=1e9, **planes(session, n))
        assert run.result.steps == steps
        bytes_of[steps] = eagle.diff.reverse(run.record, {"x": np.ones(n)}).report.nbytes
    state = 3 * n * 8
    for steps, found in bytes_of.items():
        # States that are kept, values of the trips between two of them, and a constant number of planes.
        assert found < (3 * math.sqrt(steps) + 30) * state, steps
    # Four times the steps: twice the memory, and some that does not grow. All of the trips would be four times.
    assert bytes_of[1024] < 2.3 * bytes_of[256]
    assert bytes_of[4096] < 2.3 * bytes_of[1024]


def test_the_budget_is_charged_what_the_record_and_the_pass_report(lone_session):
    """And so it grows as they do: with the square root of the steps."""
    n = 4096
    charged, kept = {}, []  # kept: when memory of a run that is gone comes back is no part of this
    for steps in (256, 1024, 4096):
        given = planes(lone_session, n)
        before = lone_session.info().plane_bytes
        run = eagle.diff.simulate(oscillator, max_steps=steps, dt=1e-3, t_end=1e9, **given)
        report = eagle.diff.reverse(run.record, {"x": np.ones(n)}).report
        charged[steps] = lone_session.info().plane_bytes - before
        assert run.result.steps == steps
        # Each memory is whole pages; a small record finds room in a segment that is charged already.
        assert report.nbytes <= charged[steps] < report.nbytes + report.record_nbytes + 16 * 4096
        kept.append(run)
    assert charged[1024] < 2.3 * charged[256]
    assert charged[4096] < 2.3 * charged[1024]


def test_kernels_of_one_step_share_their_planes_and_params(session, jax):
    @kernel
    def kick(v: Mutable[Scalar], x: Scalar, k: Param, dt: Param):
        v = v - dt * k * x

    @kernel
    def drift(x: Mutable[Scalar], v: Scalar, t: Mutable[Scalar], dt: Param, done: Terminated):
        x = x + dt * v
        t = t + dt
        done = t > 0.995

    n = 16
    x0 = np.linspace(0.5, 1.5, n)
    run = eagle.diff.simulate(
        [kick, drift],
        max_steps=1000,
        x=session.asarray(x0),
        v=session.zeros(n),
        t=session.zeros(n),
        k=4.0,
        dt=0.01,
        done=session.zeros(n, dtype=bool),
    )
    steps = run.result.steps
    found = eagle.diff.reverse(run.record, {"x": np.ones(n)})

    def objective(x, k, dt):
        v = jax.numpy.zeros(n)
        for _ in range(steps):
            v = v - dt * k * x
            x = x + dt * v
        return jax.numpy.sum(x)

    expected = jax.grad(objective, argnums=(0, 1, 2))(x0, 4.0, 0.01)
    for name, value in zip(("x", "k", "dt"), expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-11)


def test_a_callable_of_every_step_is_taken_back_by_its_vjp(session):
    x, force, done = session.asarray([1.0, 2.0]), session.zeros(2), session.zeros(2, dtype=bool)

    def push(x=x, done=done, force=force):  # given by name where they are on another machine
        force[...] = np.where(done, force, -0.5 * x)

    @kernel
    def move(x: Mutable[Scalar], force: Scalar, n: Mutable[Scalar], done: Terminated):
        x = x + 0.1 * force
        n = n + 1.0
        done = n >= 20.0

    node = opaque(push, reads={"x": x, "done": done}, writes={"force": force}, name="push")
    runner = eagle.diff.until_done(
        [node, eagle.plan(move)], max_steps=100, terminated=done, x=x, force=force, n=session.zeros(2)
    )
    assert runner.run().steps == 20
    found = eagle.diff.reverse(
        runner.record,
        {"x": [1.0, 1.0]},
        wrt="x",
        vjps={"push": lambda p, c: {"x": np.where(p["done"], 0.0, -0.5 * c["force"])}},
    )
    np.testing.assert_allclose(found["x"], 0.95**20, rtol=1e-13)


def test_a_run_can_be_repeated_and_taken_back_each_time(session):
    run = eagle.diff.simulation(oscillator, max_steps=400, dt=1e-2, t_end=2.0, **planes(session, 8))
    run.run()
    first = eagle.diff.reverse(run.record, {"x": np.ones(8)})
    run.reset().run()
    second = eagle.diff.reverse(run.record, {"x": np.ones(8)})
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_the_number_of_the_step_is_the_same_on_the_way_back(session):
    @kernel
    def add_step(x: Mutable[Scalar], a: Scalar, done: Terminated):
        x = x + a * eagle.step_index()
        done = eagle.step_index() >= 9

    run = eagle.diff.simulate(
        add_step, max_steps=50, x=session.zeros(3), a=session.full(3, 2.0), done=session.zeros(3, dtype=bool)
    )
    assert run.result.steps == 10
    np.testing.assert_array_equal(eagle.diff.reverse(run.record, {"x": np.ones(3)})["a"], 45.0)


def test_nothing_is_recorded_before_the_first_run(session):
    run = eagle.diff.simulation(oscillator, max_steps=400, dt=1e-2, t_end=2.0, **planes(session, 8))
    with pytest.raises(eagle.GraphState, match="nothing is recorded"):
        eagle.diff.reverse(run.record, {"x": np.ones(8)})
    with pytest.raises(eagle.EagleError, match="at most 400 steps"):
        run.run(max_steps=500)


@pytest.mark.parametrize("name", ["record", "record_to", "every", "events", "shard"])
def test_what_only_plain_runs_take_is_refused_as_that(session, name):
    with pytest.raises(ValueError, match=f"diff.simulate: {name}: eagle.simulate takes it"):
        eagle.diff.simulate(oscillator, max_steps=10, dt=1e-2, t_end=2.0, **planes(session, 8), **{name: True})


def test_a_run_that_was_cut_short_between_steps_has_no_record(session):
    @kernel
    def slow(x: Mutable[Scalar], done: Terminated):
        for _i in range(20_000):
            x = eagle.math.sin(x) + 0.1
        done = x > 10.0

    x, done = session.full(64, 1.0), session.zeros(64, dtype=bool)
    run = eagle.diff.simulation(slow, max_steps=1_000_000, progress=lambda far: far.steps < 2, x=x, done=done)
    result = run.run()
    assert result.status == "cancelled"
    if len(set(np.asarray(result.steps_taken))) > 1:
        with pytest.raises(eagle.GraphState, match="launch or run it again"):
            eagle.diff.reverse(run.record, {"x": np.ones(64)})
    else:
        assert len(eagle.diff.reverse(run.record, {"x": np.ones(64)})) == 1
