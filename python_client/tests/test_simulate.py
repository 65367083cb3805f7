"""Stepping a model, on both hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.examples.ensemble import oscillator


@kernel
def count(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1
    done = x >= limit


@kernel
def drift(x: Mutable[Scalar]):
    x = x + 1


def ensemble(session, n):
    planes = {"x": session.full(n, 1.0), "v": session.zeros(n), "t": session.zeros(n)}
    return {**planes, "omega": session.asarray(np.linspace(1, 3, n)), "done": session.zeros(n, dtype=bool)}


def euler(omega, dt, steps):
    """The same steps in numpy: each operation rounded once, in the kernel's order."""
    x, v = np.ones_like(omega), np.zeros_like(omega)
    for _ in range(steps):
        x, v = x + dt * v, v - dt * omega * omega * x
    return x, v


def test_the_ensemble_takes_a_thousand_steps_and_has_numpys_bits(session):
    planes = ensemble(session, 100_000)
    result = eagle.simulate(oscillator, max_steps=2000, dt=1e-3, t_end=1.0, **planes)
    assert (result.status, result.steps, result.done) == ("finished", 1000, True)
    assert (result.report.finished, result.report.n, result.report.steps) == (100_000, 100_000, 1000)
    assert result.x is planes["x"]
    assert result["v"] is planes["v"]
    assert result.finished is planes["done"]
    assert planes["done"].all()
    x, v = euler(planes["omega"], 1e-3, 1000)
    assert planes["x"].tobytes() == x.tobytes()
    assert planes["v"].tobytes() == v.tobytes()
    host = result.report.host
    assert (host.pid == os.getpid()) == (session.transport == "in process")


def test_one_oscillator_has_the_documented_values(session):
    planes = ensemble(session, 1)
    planes["omega"][0] = 2.0
    eagle.simulate(oscillator, max_steps=2000, dt=1e-3, t_end=1.0, **planes)
    # Explicit Euler in float64, each operation rounded once: the values of a plain C loop without contraction.
    assert planes["t"][0] == 1.0000000000000007
    assert planes["x"][0] == -0.41697753175791447
    assert planes["v"][0] == -1.8222378995667639


@pytest.mark.parametrize(("cap", "finished"), [(0, 0), (1, 0), (37, 0), (999, 0), (1000, 64), (1001, 64)])
def test_max_steps_is_exact(session, cap, finished):
    planes = ensemble(session, 64)
    result = eagle.simulate(oscillator, max_steps=cap, dt=1e-3, t_end=1.0, **planes)
    assert result.report.finished == finished
    assert result.status == ("finished" if finished else "max_steps")
    assert result.steps == min(cap, 1000)
    assert planes["x"].tobytes() == euler(planes["omega"], 1e-3, min(cap, 1000))[0].tobytes()


def test_samples_finish_each_at_its_own_step_and_set_ones_stay_untouched(session):
    x = session.asarray([0.0, 7.0, 2.5, 100.0])
    done = session.asarray([False, False, False, True])
    result = eagle.simulate(count, max_steps=50, x=x, limit=10.0, done=done)
    assert (result.steps, result.report.finished) == (10, 3)
    assert x.tolist() == [10.0, 10.0, 10.5, 100.0]
    again = eagle.simulate(count, max_steps=50, x=x, limit=10.0, done=done)
    assert (again.status, again.steps, again.report.launches) == ("finished", 0, 0)


def test_no_samples_are_finished_at_once(session):
    result = eagle.simulate(
        count, max_steps=5, x=session.zeros(0), limit=1.0, done=session.zeros(0, dtype=bool), session=session
    )
    assert (result.status, result.steps) == ("finished", 0)


def test_outputs_that_are_not_given_are_made(session):
    k = eagle.kernel(
        source="""
def f(x: Mutable[Scalar], done: Terminated) -> Scalar:
    x = x + 1
    done = x > 3
    square = x * x
    return square
"""
    )
    result = eagle.simulate(k, max_steps=9, x=session.zeros(2), done=session.zeros(2, dtype=bool))
    assert session.owns(result.square)
    assert result.square.tolist() == [16.0, 16.0]


def test_float32_models_step_in_float32(session):
    n = 33
    planes = ensemble(session, n)
    single = {name: session.asarray(a, dtype=None if a.dtype == bool else "float32") for name, a in planes.items()}
    eagle.simulate(oscillator, max_steps=10, dt=1e-3, t_end=1.0, **single)
    x, _ = euler(np.linspace(1, 3, n).astype(np.float32), np.float32(1e-3), 10)
    assert single["x"].tobytes() == x.tobytes()


def test_private_arrays_are_stepped_in_place_in_this_process():
    x, done = np.zeros(4), np.zeros(4, dtype=bool)
    result = eagle.simulate(count, max_steps=50, x=x, limit=3.0, done=done)
    assert result.x is x
    assert x.tolist() == [3.0] * 4


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"max_steps": 5, "limit": 1.0}, TypeError, "'done' is missing"),
        ({"max_steps": 5, "limit": 1.0, "done": "mask", "y": 1}, TypeError, "'y'"),
        ({"max_steps": 2.5, "limit": 1.0, "done": "mask"}, TypeError, "max_steps"),
        ({"max_steps": True, "limit": 1.0, "done": "mask"}, TypeError, "max_steps"),
        ({"max_steps": -1, "limit": 1.0, "done": "mask"}, ValueError, "max_steps"),
        ({"max_steps": 2**63, "limit": 1.0, "done": "mask"}, ValueError, "max_steps"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_nothing_moves(session, arguments, error, words):
    x = session.zeros(3)
    if "done" in arguments:
        arguments = {**arguments, "done": session.zeros(3, dtype=bool)}
    with pytest.raises(error, match=words) as caught:
        eagle.simulate(count, x=x, **arguments)
    assert isinstance(caught.value, eagle.EagleError)
    assert not x.any()


def test_read_only_state_is_refused(session):
    x, done = session.zeros(3), session.zeros(3, dtype=bool)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="'x'"):
        eagle.simulate(count, max_steps=5, x=x, limit=1.0, done=done)


def test_a_model_is_made_of_kernels(session):
    with pytest.raises(TypeError, match="@eagle.kernel"):
        eagle.simulate([count, lambda: None], max_steps=5)
    hidden = eagle.kernel(source="def f(max_steps: Mutable[Scalar], done: Terminated):\n    done = max_steps > 1")
    with pytest.raises(TypeError, match="'max_steps'"):
        eagle.simulate(hidden, max_steps=5)


def test_results_explain_themselves(session):
    result = eagle.simulate(count, max_steps=50, x=session.zeros(2), limit=3.0, done=session.zeros(2, dtype=bool))
    assert set(result) == set(result.keys()) == {"x", "limit", "done"} - {"limit"}
    assert "x" in dir(result)
    assert repr(result).startswith("<eagle.SimResult finished: 3 steps, 2 of 2 samples finished")
    with pytest.raises(AttributeError, match="its arrays are x, done"):
        result.velocity  # noqa: B018


def test_a_second_run_of_the_same_kernel_compiles_nothing(session):
    unique = eagle.kernel(
        source="def f(x: Mutable[Scalar], done: Terminated):\n    x = x + step\n    done = x > 1",
        constants={"step": 1 + int.from_bytes(os.urandom(4), "little")},
    )
    compiled = [
        eagle.simulate(unique, max_steps=3, x=session.zeros(2), done=session.zeros(2, dtype=bool)).report.compiled
        for _ in range(2)
    ]
    assert compiled == [True, False]


def test_runs_of_several_threads_go_side_by_side(session):
    results = {}

    def work(number):
        x, done = session.zeros(1000), session.zeros(1000, dtype=bool)
        results[number] = eagle.simulate(count, max_steps=10_000, x=x, limit=100.0 * number, done=done).steps

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {1: 100, 2: 200, 3: 300, 4: 400}


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
import eagle

endless = eagle.kernel(source='''
def endless(x: Mutable[Scalar], y: Mutable[Scalar], done: Terminated):
    x, y = x + 1, y + 1
    done = x < 0
''')
session = eagle.connect(sys.argv[1]) if sys.argv[1] else eagle.local()
x, y, done = session.zeros(1000), session.zeros(1000), session.zeros(1000, dtype=bool)

def interrupt():
    while not x[0]:  # the run has begun when its state moves
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    eagle.simulate(endless, max_steps=2**62, x=x, y=y, done=done)
except KeyboardInterrupt:
    assert x.tobytes() == y.tobytes(), "not at a whole step"
    x[:] = -5
    assert eagle.simulate(endless, max_steps=3, x=x, y=y, done=done).status == "finished"
    print("interrupted")
"""


@pytest.mark.parametrize("where", ["local", "daemon"])
def test_ctrl_c_ends_a_run_at_a_whole_step_and_the_session_stays_usable(where, request):
    place = request.getfixturevalue("endpoint") if where == "daemon" else ""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, place], capture_output=True, text=True, timeout=100, check=False
    )
    assert (ran.stdout, ran.returncode) == ("interrupted\n", 0), ran.stderr


def test_a_signal_handler_that_does_not_raise_ends_nothing(session):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        x, done = session.zeros(1000), session.zeros(1000, dtype=bool)
        os.kill(os.getpid(), signal.SIGUSR1)
        result = eagle.simulate(count, max_steps=3000, x=x, limit=2000.0, done=done)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (result.status, result.steps, seen) == ("finished", 2000, [1])


class Stop(Exception):
    """What a handler raises."""


def test_a_signal_handler_may_run_one_while_another_is_under_way(session):
    inner = []

    def handler(*_):
        x, done = session.zeros(10), session.zeros(10, dtype=bool)
        inner.append(eagle.simulate(count, max_steps=30, x=x, limit=20.0, done=done).steps)
        if len(inner) == 2:
            raise Stop
        signal.setitimer(signal.ITIMER_REAL, 0.02)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        x, done = session.zeros(10), session.zeros(10, dtype=bool)
        with pytest.raises(Stop):
            eagle.simulate(count, max_steps=2**62, x=x, limit=1e300, done=done)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert inner == [20, 20]
    assert (x > 0).all()


FORKED = """
import os, sys
import eagle
count = eagle.kernel(source='''
def count(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1
    done = x >= limit
''')
def run():
    session = eagle.local(threads=2)
    x, done = session.zeros(1000), session.zeros(1000, dtype=bool)
    return eagle.simulate(count, max_steps=30, x=x, limit=20.0, done=done).steps
print(run(), flush=True)
child = os.fork()
print(run(), flush=True)
if child == 0:
    sys.stdout.flush()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_child_of_a_fork_runs_like_its_parent():
    ran = subprocess.run(
        [sys.executable, "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ran.stdout.split(), ran.returncode) == (["20", "20", "20", "0"], 0), ran.stderr


def test_a_model_without_a_mask_runs_to_its_cap_or_is_refused_by_name(session):
    x = session.zeros(3)
    try:
        result = eagle.simulate(drift, max_steps=5, x=x)
    except eagle.EagleError as error:
        assert "drift" in str(error)
        assert not x.any()
    else:
        assert (result.status, result.steps, result.finished) == ("max_steps", 5, None)
        assert x.tolist() == [5.0, 5.0, 5.0]
