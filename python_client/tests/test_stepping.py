"""Models of several parts, what a run can be asked for, and runners, on both hosts."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Terminated, kernel
from eagle.examples.ensemble import oscillator
from eagle.graph import opaque


@kernel
def kick(v: Mutable[Scalar], x: Scalar, omega: Scalar, dt: Param):
    v = v - dt * omega * omega * x


@kernel
def drift(x: Mutable[Scalar], v: Scalar, dt: Param):
    x = x + dt * v


@kernel
def clock(t: Mutable[Scalar], t_end: Scalar, dt: Param, done: Terminated):
    t = t + dt
    done = t >= t_end


@kernel
def increment(x: Mutable[Scalar]):
    x = x + 1


@kernel
def square(x: Scalar) -> Scalar:
    y = x * x
    return y


@kernel
def at_three(x: Scalar, done: Terminated):
    done = x >= 3


@kernel
def count(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1
    done = x >= limit


def bits(a, b):
    """Equal bits, NaN equal to NaN."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


# ---- one step of several kernels


def test_three_kernels_are_the_hand_written_loop(session):
    n = 1000
    rng = np.random.default_rng(20261129)
    start = {"x": rng.normal(size=n), "v": rng.normal(size=n), "t": np.zeros(n), "t_end": rng.uniform(0, 0.3, n)}
    planes = {name: session.asarray(values) for name, values in start.items()}
    omega, done = session.asarray(np.linspace(1, 3, n)), session.zeros(n, bool)
    result = eagle.simulate([kick, drift, clock], max_steps=500, omega=omega, dt=1e-3, done=done, **planes)
    x, v, t, live = start["x"].copy(), start["v"].copy(), start["t"].copy(), np.ones(n, bool)
    steps = 0
    while live.any():
        v[live] = v[live] - 1e-3 * omega[live] * omega[live] * x[live]
        x[live] = x[live] + 1e-3 * v[live]
        t[live] = t[live] + 1e-3
        live &= ~(t >= start["t_end"])
        steps += 1
    assert (result.status, result.steps, result.report.finished) == ("finished", steps, n)
    assert planes["x"].tobytes() == x.tobytes()
    assert planes["v"].tobytes() == v.tobytes()
    assert planes["t"].tobytes() == t.tobytes()


def test_a_kernel_without_a_mask_skips_finished_samples_too(session):
    x = session.asarray([0, 1, 2.5])
    result = eagle.simulate([increment, square], until=at_three, max_steps=10, x=x)
    assert (result.status, result.steps) == ("finished", 3)
    assert x.tolist() == [3.0, 3.0, 3.5]
    assert result.y.tolist() == [9.0, 9.0, 12.25]
    assert result.finished.all()


def test_the_oscillator_of_the_manual(session):
    n = 1000
    planes = {"x": session.full(n, 1.0), "v": session.zeros(n), "t": session.zeros(n)}
    planes |= {"omega": session.asarray(np.linspace(1, 3, n)), "done": session.zeros(n, bool)}
    run = eagle.simulation(oscillator, max_steps=2000, dt=1e-3, t_end=1.0, events=True, **planes)
    for cap, finished in [(37, 0), (999, 0), (2000, 1000)]:
        result = run.reset().run(cap)
        assert (result.steps, result.report.finished) == (min(cap, 1000), finished)
        assert result.status == ("finished" if finished else "max_steps")
    assert set(planes["t"]) == {1.0000000000000007}
    # Explicit Euler in float64, each operation rounded once.
    assert planes["x"][:3].tolist() == [0.5405728050653854, 0.538887335743842, 0.537199701958424]
    assert set(result.stop_step) == {1000}
    assert result.t_stop is planes["t"]


def test_a_hundred_thousand_steps_are_one_request(daemon):
    launches = daemon.info().launches
    x, done = daemon.zeros(4), daemon.zeros(4, bool)
    result = eagle.simulate(count, max_steps=10**6, x=x, limit=1e5, done=done, steps=10**5)
    assert (result.status, result.steps, result.report.launches) == ("finished", 100_000, 1)
    assert daemon.info().launches == launches + 1


@pytest.mark.parametrize("steps", ["auto", 1, 7, 10**9])
def test_the_pace_changes_no_bit_and_no_count(session, steps):
    start = np.random.default_rng(5).uniform(0, 90, 3000)
    x, done = session.asarray(start), session.zeros(3000, bool)
    result = eagle.simulate(count, max_steps=95, x=x, limit=100.0, done=done, steps=steps)
    expected, live = start.copy(), np.ones(3000, bool)
    for _ in range(95):
        expected[live] += 1
        live &= expected < 100
    assert x.tobytes() == expected.tobytes()
    assert (result.status, result.steps) == ("max_steps", 95)
    if steps == 7:
        assert result.report.fused_steps == 7


# ---- random models against numpy


def random_run(seed):
    """A model of random kernels over random planes, and the same in numpy, step by step."""
    rng = random.Random(seed)
    values = np.random.default_rng(seed)
    n = rng.choice([0, 1, 2, 31, 32, 33, 500, 3000])
    planes = {name: values.normal(size=n) for name in ("x", "v")}
    planes["t"] = np.zeros(n)
    planes["t_end"] = np.where(values.random(n) < 0.1, np.inf, values.uniform(0, 0.06, n))
    planes["omega"] = values.uniform(1, 3, n)
    planes["done"] = values.random(n) < rng.choice([0, 0, 0.3])
    if rng.random() < 0.4 and n:
        planes["t"][values.integers(n)] = np.nan
        planes["x"][values.integers(n)] = np.nan
    model = rng.sample([kick, drift, square], rng.randint(0, 3))
    model.insert(rng.randint(0, len(model)), clock)
    return rng, n, planes, model


def numpy_step(model, p, dt, step):
    moved = False
    for part in model:
        live = ~p["done"]
        moved |= bool(live.any())
        if part is kick:
            p["v"][live] = p["v"][live] - dt * p["omega"][live] * p["omega"][live] * p["x"][live]
        elif part is drift:
            p["x"][live] = p["x"][live] + dt * p["v"][live]
        elif part is square:
            p["y"][live] = p["x"][live] * p["x"][live]
        else:
            p["t"][live] = p["t"][live] + dt
            ends = live & (p["t"] >= p["t_end"])
            p["done"] |= ends
            p["stop"][ends] = step
    return moved


@pytest.mark.parametrize("seed", range(24))
def test_random_models_are_what_numpy_makes_of_them(session, seed):
    print("seed", seed)
    rng, n, start, model = random_run(seed)
    cap, every = rng.choice([0, 1, 37, 100]), rng.choice([1, 5, 64])
    expected = {**{name: a.copy() for name, a in start.items()}, "y": np.zeros(n), "stop": np.zeros(n, np.int64)}
    rows, steps = [expected["t"].copy()], 0
    for step in range(1, cap + 1):
        if not numpy_step(model, expected, 1e-3, step):
            break
        steps = step
        if step % every == 0:
            rows.append(expected["t"].copy())
    names = {name for part in model for name in part.arguments} - {"dt"}
    planes = {name: session.asarray(start[name]) for name in names}
    if square in model:
        planes["y"] = session.zeros(n)
    result = eagle.simulate(
        model,
        max_steps=cap,
        dt=1e-3,
        record="t",
        every=every,
        events=True,
        steps=rng.choice(["auto", 3]),
        session=session,
        **planes,
    )
    for name, plane in planes.items():
        assert bits(plane, expected[name]), name
    assert result.steps == steps
    assert result.status == ("finished" if expected["done"].all() else "max_steps")
    assert result.report.finished == np.count_nonzero(expected["done"]) - np.count_nonzero(start["done"])
    assert bits(result.stop_step, expected["stop"])
    assert result.record_steps.tolist() == [every * row for row in range(len(rows))]
    assert bits(result.records["t"], np.array(rows).reshape(len(rows), n))


# ---- callables


def test_an_opaque_node_and_a_plan_run_once_a_step_each(session):
    x, done = session.asarray([0, 1, 2.5]), session.zeros(3, bool)
    seen = []

    def model():
        seen.append(x.tolist())
        np.add(x, 1, out=x, where=~done)

    node = opaque(model, reads={"done": done}, writes={"x": x}, name="model")
    runner = eagle.until_done([node, eagle.plan(at_three)], max_steps=10, terminated=done, x=x)
    result = runner.run()
    assert seen == [[0.0, 1.0, 2.5], [1.0, 2.0, 3.5], [2.0, 3.0, 3.5]]
    assert (result.steps, result.status, result.report.mode) == (3, "finished", "stepwise")
    assert (runner.finished, runner.n, runner.result("x").tolist()) == (3, 3, [3.0, 3.0, 3.5])
    assert runner.terminated is done
    again = runner.run()
    assert (again.steps, again.report.launches, len(seen)) == (0, 0, 3)


def test_what_a_node_raises_reaches_the_caller(session):
    x, done = session.zeros(3), session.zeros(3, bool)

    def fail():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        eagle.run_until_done([increment, opaque(fail), at_three], max_steps=10, terminated=done, x=x)
    session.accept(x)
    session.accept(done)
    assert eagle.simulate(count, max_steps=5, x=x, limit=2.0, done=done).status == "finished"


def test_until_done_makes_the_mask_and_resets_to_where_it_began(session):
    x = session.asarray([0.0, 7.0])
    runner = eagle.until_done(eagle.plan(count), max_steps=100, x=x, limit=10.0)
    assert not runner.terminated.any()
    assert runner.run(max_steps=3).status == "max_steps"
    assert (runner.finished, runner.run().steps, x.tolist()) == (1, 7, [10.0, 10.0])
    assert runner.reset() is runner
    assert (x.tolist(), runner.finished) == ([0.0, 7.0], 0)


@pytest.mark.parametrize(
    ("step", "planes", "error", "words"),
    [
        ([], {}, ValueError, "empty step"),
        ([opaque(lambda: None)], {}, ValueError, "empty step"),
        (increment, {"x": 3}, ValueError, "no stop rule"),
        (count, {"x": 3}, TypeError, "'limit'"),
        (count, {"limit": 2.0}, TypeError, "state 'x' has no initial value"),
        (count, {"x": 3, "limit": 2.0, "speed": 3}, TypeError, "'speed'"),
        (
            [opaque(lambda: None, eager=True), count],
            {"x": 3, "limit": 2.0},
            ValueError,
            "'opaque_host': .* of your own",
        ),
        (
            [opaque(lambda: None, stream=7, name="mine"), count],
            {"x": 3, "limit": 2.0},
            ValueError,
            "'mine' .*max_steps=k",
        ),
        ([eagle.copy(np.zeros(3), np.zeros(3)), count], {"x": 3, "limit": 2.0}, TypeError, "'copy' cannot be part"),
        ([eagle.reduce(np.zeros(3), np.zeros(1)), count], {"x": 3, "limit": 2.0}, TypeError, "'reduce' cannot be part"),
        ("count", {}, TypeError, "@eagle.kernel"),
    ],
)
def test_refusals_say_what_is_wrong(session, step, planes, error, words):
    given = {name: session.zeros(value) if isinstance(value, int) else value for name, value in planes.items()}
    with pytest.raises(error, match=f"^until_done: .*{words}") as caught:
        eagle.until_done(step, max_steps=10, session=session, **given)
    assert isinstance(caught.value, eagle.EagleError)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"record": 5}, TypeError, "record: .* found int"),
        ({"record": [5]}, TypeError, "record: .* found int"),
        ({"record": "x", "record_to": 5}, TypeError, "record_to: expected a path, found int"),
        (
            {"record": "x", "record_to": "/nowhere/at/all.npy"},
            ValueError,
            "record_to: cannot write '/nowhere/at/all.npy'",
        ),
        (
            {"record": ["x", "done"], "record_to": {"x": "a", "done": "./a"}},
            ValueError,
            "record_to: 'x' and 'done' would",
        ),
        ({"until": 5}, TypeError, "until: .* found int"),
        ({"until": lambda a, b: True}, TypeError, r"until: .* found one of \(a, b\)"),
        ({"x": [1.0]}, TypeError, "kernel 'count': argument 'x'"),
        ({"dispatch": {"zz": "switch"}}, ValueError, "dispatch: .*'zz'; the model has no dispatch groups"),
    ],
)
def test_simulate_refuses_in_its_own_name(session, options, error, words):
    arguments = {"x": session.zeros(2), "limit": 4.0, "done": session.zeros(2, bool), **options}
    with pytest.raises(error, match=f"^simulate: {words}") as caught:
        eagle.simulate(count, max_steps=9, **arguments)
    assert isinstance(caught.value, eagle.EagleError)


def test_a_refusal_that_a_callable_meets_is_not_reworded(session):
    def look():
        eagle.plan(count).bind(limit=1.0)

    with pytest.raises(TypeError, match="^bind: "):
        eagle.simulate(increment, until=look, max_steps=100, x=session.zeros(2))


def test_a_mask_that_is_passed_twice_is_refused(session):
    x, done = session.zeros(3), session.zeros(3, bool)
    with pytest.raises(TypeError, match="the mask is passed twice, as 'done'"):
        eagle.until_done(count, max_steps=10, terminated=done, x=x, limit=1.0, done=done)


def test_two_masks_in_one_model_are_refused_by_name(session):
    stop = eagle.kernel(source="def stop(x: Scalar, ended: Terminated):\n    ended = x > 5")
    masks = {"done": session.zeros(3, bool), "ended": session.zeros(3, bool)}
    with pytest.raises(TypeError, match="'done' and 'ended'"):
        eagle.simulate([count, stop], max_steps=10, x=session.zeros(3), limit=9.0, **masks)


def test_a_callable_looks_now_and_then_and_ends_the_run(session):
    x = session.zeros(3)
    result = eagle.simulate(increment, until=lambda planes: planes.x[0] >= 25, every=10, max_steps=1000, x=x)
    assert (result.status, result.steps, result.finished) == ("finished", 30, None)
    looks = []
    result = eagle.simulate(increment, until=lambda: looks.append(1), every=100, max_steps=1000, x=x)
    assert (result.status, result.steps, len(looks)) == ("max_steps", 1000, 10)


def test_a_deadline_ends_the_run_at_whole_steps(session):
    x, done = session.zeros(1000), session.zeros(1000, bool)
    eagle.simulate(count, max_steps=0, x=x, limit=np.inf, done=done)  # compiled, which takes from the time
    result = eagle.simulate(count, max_steps=2**62, x=x, limit=np.inf, done=done, timeout=0.05)
    assert result.status == "deadline"
    assert x.max() == result.steps
    assert (x == np.floor(x)).all()


@pytest.mark.parametrize("every", [1, 2])
def test_a_deadline_while_the_caller_looks_ends_the_run_with_its_result(session, every):
    x, done = session.zeros(1000), session.zeros(1000, bool)
    looks = []

    def look(planes):
        time.sleep(0.02)
        looks.append(set(planes.x.tolist()))

    eagle.simulate(count, max_steps=0, x=x, limit=np.inf, done=done)
    result = eagle.simulate(count, until=look, every=every, max_steps=2**62, x=x, limit=np.inf, done=done, timeout=0.1)
    assert result.status == "deadline"
    assert set(x.tolist()) == {result.steps}
    assert all(len(found) == 1 for found in looks)


@pytest.mark.parametrize("every", [1, 2])
def test_progress_that_ends_a_run_with_looks_gives_its_result(session, every):
    x, done = session.zeros(1000), session.zeros(1000, bool)
    result = eagle.simulate(
        count,
        until=lambda: time.sleep(0.01),
        every=every,
        max_steps=2**62,
        x=x,
        limit=np.inf,
        done=done,
        progress=lambda progress: progress.steps < 4,
    )
    assert result.status == "cancelled"
    assert set(x.tolist()) == {result.steps}


# ---- one caller at a time


def test_a_run_within_a_run_is_refused(session):
    x, found = session.zeros(3), []

    def look():
        for again in (run.run, run.reset):
            with pytest.raises(eagle.Busy) as caught:
                again()
            found.append(str(caught.value).split(":")[0])

    run = eagle.simulation(increment, until=look, every=2, max_steps=2, x=x)
    assert run.run().steps == 2
    assert found == ["run", "reset"]
    assert (run.reset().run(0).steps, x.tolist()) == (0, [0, 0, 0])


def test_a_second_thread_gets_busy(session):
    x, done = session.zeros(3), session.zeros(3, bool)
    inside, go_on = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert go_on.wait(60)

    runner = eagle.until_done([opaque(wait), increment, at_three], max_steps=1, terminated=done, x=x)
    first = threading.Thread(target=runner.run)
    first.start()
    assert inside.wait(60)
    try:
        with pytest.raises(eagle.Busy, match="^run: another call is still running on this Runner"):
            runner.run()
    finally:
        go_on.set()
        first.join()
    assert x.tolist() == [1, 1, 1]


# ---- planes by name


def test_one_name_for_two_arrays_is_refused_with_both_kernels(session):
    x, other = session.zeros(3), session.zeros(3)
    for model in (
        [eagle.plan(increment).bind(x=other), at_three],
        [at_three, eagle.plan(increment).bind(x=other)],
    ):
        with pytest.raises(TypeError, match="^until_done: 'x' is one array in kernel .* another one in") as caught:
            eagle.until_done(model, max_steps=9, x=x)
        assert "'increment'" in str(caught.value)
        assert "'at_three'" in str(caught.value)
    bound = [eagle.plan(increment).bind(x=x), eagle.plan(at_three).bind(x=x[:], done=session.zeros(3, bool))]
    assert eagle.run_until_done(bound, max_steps=9).steps == 3
    with pytest.raises(TypeError, match="'x' is bound already, by kernel 'increment'"):
        eagle.until_done(bound, max_steps=9, x=x)


# ---- progress


def test_progress_is_told_and_may_end_the_run(session):
    told = []

    def watch(progress):
        told.append(progress)
        return len(told) < 3

    x, done = session.zeros(1000), session.zeros(1000, bool)
    result = eagle.simulate(count, max_steps=2**62, x=x, limit=np.inf, done=done, progress=watch)
    assert (result.status, len(told)) == ("cancelled", 3)
    assert 0 < told[0].steps <= told[-1].steps <= result.steps
    assert (told[0].n, told[0].max_steps, told[0].finished) == (1000, 2**62, 0)


def test_what_a_progress_callback_raises_reaches_the_caller(session):
    def watch(progress):
        raise LookupError("mine")

    x, done = session.zeros(1000), session.zeros(1000, bool)
    with pytest.raises(LookupError, match="mine"):
        eagle.simulate(count, max_steps=2**62, x=x, limit=np.inf, done=done, progress=watch)
    assert (x == np.floor(x)).all()
    assert eagle.simulate(count, max_steps=0, x=x, limit=1.0, done=done).status == "max_steps"


def test_a_bar_is_drawn_on_a_terminal_alone(session, capfd):
    x, done = session.zeros(10), session.zeros(10, bool)
    eagle.simulate(count, max_steps=10, x=x, limit=5.0, done=done, progress=True)
    assert capfd.readouterr().err == ""


BAR = """
import eagle
grow = eagle.kernel(source='''
def grow(x: Mutable[Scalar], done: Terminated):
    x = x + 1
    done = x >= 5
''')
eagle.simulate(grow, max_steps=10, x=eagle.zeros(3), done=eagle.zeros(3, dtype=bool), progress=True)
"""


def test_the_bar_on_a_terminal_ends_full(tmp_path):
    main, side = os.openpty()
    with subprocess.Popen([sys.executable, "-c", BAR], stderr=side) as ran:
        os.close(side)
        assert ran.wait(60) == 0
    drawn = os.read(main, 10_000).decode()
    os.close(main)
    assert "100 % step 5, 3 of 3 finished" in drawn
    assert drawn.endswith("\n")


# ---- recording


def test_records_are_trimmed_to_what_was_taken(session):
    x, done = session.asarray([0, 1, 2.5]), session.zeros(3, bool)
    result = eagle.simulate(count, max_steps=1000, x=x, limit=3.0, done=done, record=True)
    assert result.records["x"].tolist() == [[0, 1, 2.5], [1, 2, 3.5], [2, 3, 3.5], [3, 3, 3.5]]
    assert result.record_steps.tolist() == [0, 1, 2, 3]
    assert session.owns(result.records["x"])


def test_vectors_are_recorded_by_component(session):
    turn = eagle.kernel(
        source="def turn(r: Mutable[Vector[2]], done: Terminated):\n    r[0] = r[0] + 1\n    done = r[0] > 9"
    )
    r, done = session.zeros((2, 3)), session.zeros(3, bool)
    result = eagle.simulate(turn, max_steps=4, r=r, done=done, record=["r"], every=2)
    assert result.records["r"].shape == (3, 2, 3)
    assert result.records["r"][:, 0, 0].tolist() == [0, 2, 4]


def test_records_that_do_not_fit_are_refused_by_their_size(session):
    x, done = session.zeros(1000), session.zeros(1000, bool)
    with pytest.raises(eagle.EagleError, match=r"'x' are \d{20,} bytes.*record_to") as caught:
        eagle.simulate(count, max_steps=2**60, x=x, limit=3.0, done=done, record="x")
    assert isinstance(caught.value, (MemoryError, eagle.LimitExceeded))
    assert not x.any()


def test_only_what_can_be_reset_keeps_a_copy_of_the_state(session, monkeypatch):
    from eagle import _model

    def refuse(self):
        raise LookupError("a copy")

    def arrays():
        return {"x": session.zeros(3), "done": session.zeros(3, bool)}

    monkeypatch.setattr(_model.Model, "changed", refuse)
    assert eagle.simulate(count, max_steps=9, limit=2.0, **arrays()).status == "finished"
    assert eagle.run_until_done(count, max_steps=9, limit=2.0, x=session.zeros(3)).status == "finished"
    assert eagle.submit(count, max_steps=9, limit=2.0, **arrays()).result().status == "finished"
    with pytest.raises(LookupError, match="a copy"):
        eagle.simulation(count, max_steps=9, limit=2.0, **arrays())
    with pytest.raises(LookupError, match="a copy"):
        eagle.until_done(count, max_steps=9, limit=2.0, x=session.zeros(3))


def test_an_unknown_plane_is_refused_with_those_there_are(session):
    with pytest.raises(ValueError, match="no plane 'speed'; its planes are 'x'"):
        eagle.simulate(count, max_steps=9, x=session.zeros(2), limit=4.0, done=session.zeros(2, bool), record=["speed"])


# ---- dispatch


def heavy(x):
    for _ in range(30):
        x = x * 0.99 + 0.01 / (1.0 + x * x)
    return x


@kernel
def branching(x: Mutable[Scalar], kind: Index, t: Mutable[Scalar], done: Terminated):
    x = eagle.dispatch(kind, [lambda: x * 0.5, lambda: heavy(x), lambda: x + 1.0])
    t = t + 1
    done = t >= 40


def branched(session, kind, **options):
    n = len(kind)
    planes = {"x": session.full(n, 2.0), "kind": session.asarray(kind), "t": session.zeros(n)}
    return eagle.simulate(branching, max_steps=100, done=session.zeros(n, bool), **planes, **options)


def test_dispatch_is_counted_exactly(session):
    kind = np.repeat([0, 1, 2], [990, 6, 4])
    for policy in (None, "switch", "predicated", "segmented", {"dispatch0": "switch"}):
        report = branched(session, kind, dispatch=policy).report
        ran, counts, gain = report.dispatch["dispatch0"]
        assert counts == (990, 6, 4)
        assert policy is None or ran == (policy if isinstance(policy, str) else "switch")
        assert gain > 0


def test_every_policy_gives_the_same_bits(session):
    kind = np.random.default_rng(3).integers(-1, 5, 2000)
    found = [
        branched(session, kind, dispatch=policy).x.tobytes() for policy in (None, "switch", "predicated", "segmented")
    ]
    assert len(set(found)) == 1


def test_unknown_groups_and_policies_are_refused(session):
    kind = np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="no group 'force'; there is 'dispatch0'"):
        branched(session, kind, dispatch={"force": "switch"})
    with pytest.raises(ValueError, match="'split' is no policy"):
        branched(session, kind, dispatch="split")


def test_a_graph_takes_policies_that_keep_its_structure(session):
    choose = eagle.kernel(
        source="""
def choose(x: Scalar, kind: Index) -> Scalar:
    y = eagle.dispatch(kind, [lambda: x, lambda: -x, lambda: 1 / x])
    return y
"""
    )
    x, kind = session.asarray([1.0, 2.0, 4.0]), session.asarray([0, 1, 2])
    for policy, reported in [(None, "switch"), ("switch", "switch"), ("predicated", "predicated")]:
        bound = eagle.plan(choose).bind(x=x, kind=kind)
        g = eagle.Graph(session).add(bound, name="pick")
        assert g.dispatch == {}
        g.build(dispatch=policy).launch()
        assert bound.planes["y"].tolist() == [1.0, -2.0, 0.25]
        assert g.dispatch == {"pick": {"dispatch0": reported}}
    g = eagle.Graph(session).add(eagle.plan(choose).bind(x=x, kind=kind))
    with pytest.raises(ValueError, match="one fixed structure"):
        g.build(dispatch="segmented")
    assert g.build(dispatch={"dispatch0": "switch"}).backend == "cpu"


def test_a_graph_without_dispatch_groups_says_so(session):
    plain = eagle.kernel(source="def plain(x: Scalar) -> Scalar:\n    y = -x\n    return y\n")
    g = eagle.Graph(session).add(eagle.plan(plain).bind(x=session.asarray([1.0])))
    with pytest.raises(ValueError, match="no group 'zz'; the graph has no dispatch groups"):
        g.build(dispatch={"zz": "switch"})
