"""In process, `enqueue` over arrays of a GPU returns before the work has run; what touches them comes behind."""

from __future__ import annotations

import ctypes
import gc
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import eagle
import numpy as np
import pytest
from eagle.graph import opaque
from models import add_into, affine

GPU = "cuda:0"
SEED = 20261201

pytestmark = pytest.mark.usefixtures("fake_gpus")


@pytest.fixture
def session(local: eagle.Session) -> eagle.Session:
    return local


@eagle.kernel
def spin(x: eagle.Mutable[eagle.Scalar]):
    i = 0
    while eagle.bounded(2**40) and i >= 0:
        i = i + 1
    x = x + i


@eagle.kernel
def climb(x: eagle.Mutable[eagle.Scalar], done: eagle.Terminated):
    x = x + 1.0
    done = x >= 1000.0


class Watched:
    """An array with what is in its memory now, which no call of the session looks at."""

    def __init__(self, session: eagle.Session, value: float = 0.0) -> None:
        self.array = session.full(4, value, device=GPU)
        pointer = self.array.__cuda_array_interface__["data"][0]
        self.memory = np.ctypeslib.as_array((ctypes.c_double * 4).from_address(pointer))

    @property
    def now(self) -> float:
        return float(self.memory[0])


class Shown:
    """An array as another package shows it."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__)
        self.owner = array


def adding(x: Any, y: Any, a: float = 1.0, b: float = 1.0) -> eagle.Graph:
    """y = a x + b."""
    return eagle.Graph().add(eagle.plan(affine).bind(x=x, y=y, a=a, b=b), name="add").build()


def test_it_returns_before_the_work_has_run_and_synchronize_collects_it(session: eagle.Session) -> None:
    x = Watched(session)
    g = adding(x.array, x.array)
    launches = eagle.counters()["launches"]
    g.enqueue(300)
    assert x.now == 0.0
    for refused in (
        g.launch,
        g.enqueue,
        lambda: g.update({"b": 2.0}),
        lambda: g.rebind(x=session.zeros(4, device=GPU)),
        g.build,
    ):
        with pytest.raises(eagle.Busy):
            refused()
    g.synchronize()
    assert x.now == 300.0
    assert eagle.counters()["launches"] == launches + 300
    g.synchronize()  # nothing is in flight
    g.update({"b": 2.0})
    g.launch()
    assert x.now == 302.0


def write(session: eagle.Session, x: Any) -> None:
    x[...] = 100.0


def fetched(session: eagle.Session, x: Any) -> None:
    assert x.numpy().tolist() == [40.0] * 4


def launched(session: eagle.Session, x: Any) -> None:
    y = session.zeros(4, device=GPU)
    adding(x, y).launch()
    assert y.numpy().tolist() == [41.0] * 4


def enqueued(session: eagle.Session, x: Any) -> None:
    y = session.zeros(4, device=GPU)
    g = adding(x, y).enqueue()
    assert g.synchronize() is g
    assert y.numpy().tolist() == [41.0] * 4


def run(session: eagle.Session, x: Any) -> None:
    eagle.simulate(climb, x=x, done=session.zeros(4, dtype=bool, device=GPU), max_steps=3)


def submitted(session: eagle.Session, x: Any) -> None:
    done = session.zeros(4, dtype=bool, device=GPU)
    eagle.submit(climb, x=x, done=done, max_steps=3).result(timeout=60)


def looked_at_by_a_callable(session: eagle.Session, x: Any) -> None:
    seen: list[list[float]] = []
    g = eagle.Graph()
    g.add_node(opaque(lambda x: seen.append(x.tolist()), reads={"x": x}), name="look")
    g.build().launch()
    assert seen == [[40.0] * 4]


def handed_to_a_package(session: eagle.Session, x: Any) -> None:
    pointer = x.__cuda_array_interface__["data"][0]
    assert (ctypes.c_double * 4).from_address(pointer)[:] == [40.0] * 4


def handed_over_by_dlpack(session: eagle.Session, x: Any) -> None:
    x.__dlpack__()


def of_another_session(session: eagle.Session, x: Any) -> None:
    with eagle.local() as other:
        same = other.share(Shown(x))
        y = other.zeros(4, device=GPU)
        adding(same, y).launch()
        assert y.numpy().tolist() == [41.0] * 4


@pytest.mark.parametrize(
    "touch",
    [
        write,
        fetched,
        launched,
        enqueued,
        run,
        submitted,
        looked_at_by_a_callable,
        handed_to_a_package,
        handed_over_by_dlpack,
        of_another_session,
    ],
)
def test_whatever_touches_what_it_writes_comes_behind_all_of_it(
    session: eagle.Session, touch: Callable[[eagle.Session, Any], None]
) -> None:
    x = Watched(session)
    g = adding(x.array, x.array)
    g.enqueue(40)
    assert x.now == 0.0
    touch(session, x.array)
    assert x.now == {write: 100.0, run: 43.0, submitted: 43.0}.get(touch, 40.0)
    g.synchronize()
    assert g.report.launches == 40


def test_two_that_only_read_the_same_array_wait_for_neither(session: eagle.Session) -> None:
    x, y, z = Watched(session, 5.0), Watched(session), Watched(session)
    one, other = adding(x.array, y.array), adding(x.array, z.array)
    one.enqueue()
    other.enqueue()
    assert x.array.numpy().tolist() == [5.0] * 4
    assert (y.now, z.now) == (0.0, 0.0)
    x.array[...] = 7.0  # which both read
    assert (y.now, z.now) == (6.0, 6.0)
    one.synchronize()
    other.synchronize()


def test_another_session_has_the_same_memory(session: eagle.Session) -> None:
    x = Watched(session)
    with eagle.local() as other:
        same = other.share(Shown(x.array))
        g, h = adding(x.array, x.array), adding(same, same, 2.0, 0.0)
        g.enqueue(3)
        assert x.now == 0.0
        h.launch()
        assert x.now == 6.0
        g.synchronize()


def test_a_deadline_and_a_cancel_stop_it_at_synchronize(session: eagle.Session) -> None:
    x = Watched(session)
    g = adding(x.array, x.array)
    g.enqueue(2**40)
    with pytest.raises(eagle.DeadlineExceeded, match="replays were whole"):
        g.synchronize(timeout=0.05)
    g.enqueue(2**40)
    g.cancel()
    with pytest.raises(eagle.EagleError, match="cancelled"):
        g.synchronize()
    x.array[...] = 0.0
    g.launch()
    assert x.now == 1.0


def test_a_launch_that_waits_for_it_heeds_its_own_deadline(session: eagle.Session) -> None:
    x = Watched(session)
    y = session.zeros(4, device=GPU)
    endless = eagle.Graph().add(eagle.plan(spin).bind(x=x.array)).build()
    behind = adding(x.array, y)
    endless.enqueue()
    with pytest.raises(eagle.DeadlineExceeded, match="enqueued over the same arrays"):
        behind.launch(timeout=0.05)
    assert y.numpy().tolist() == [0.0] * 4
    endless.cancel()
    with pytest.raises(eagle.EagleError, match="cancelled"):
        endless.synchronize()
    behind.launch()
    assert y.numpy().tolist() == [x.now + 1.0] * 4


def test_one_that_is_dropped_is_stopped(session: eagle.Session) -> None:
    x = Watched(session)
    endless = eagle.Graph().add(eagle.plan(spin).bind(x=x.array)).build()
    endless.enqueue(2**40)
    del endless
    gc.collect()
    x.array[...] = 1.0
    adding(x.array, x.array).launch()
    assert x.now == 2.0


CALLS_BACK = """
import ctypes, gc, os, sys
import eagle
from eagle.graph import opaque
driver = ctypes.CDLL(os.environ["EAGLE_CUDA_DRIVER"])
Called = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
seen = []
called = Called(lambda _: seen.append(1))
session = eagle.local()
x = session.zeros(4, device="cuda:0")
def look(x):
    driver.cuLaunchHostFunc(ctypes.c_void_p(eagle.graph.current_stream()), called, None)
g = eagle.Graph()
g.add_node(opaque(look, captured=True, writes={"x": x})).build().enqueue()
{end}
gc.collect()
assert seen == [1]
"""


@pytest.mark.parametrize("end", ["del g", "g.synchronize()", "x.numpy()", "session.close()", "session.close(); del g"])
def test_work_that_calls_the_interpreter_is_waited_for_without_it(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setenv("EAGLE_FAKE_CUDA", "devices=1")
    program = [sys.executable, "-c", CALLS_BACK.replace("{end}", end)]
    done = subprocess.run(program, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_closing_the_session_stops_it() -> None:
    with eagle.local() as session:
        x = Watched(session)
        endless = eagle.Graph().add(eagle.plan(spin).bind(x=x.array)).build()
        endless.enqueue()
    with pytest.raises(eagle.SessionClosed):
        endless.synchronize()


def test_a_graph_that_calls_the_host_is_launched(session: eagle.Session) -> None:
    x = session.zeros(4, device=GPU)
    called = []
    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
    g.add_node(opaque(lambda x: called.append(1), reads={"x": x}), name="look")
    g.build().enqueue(3)
    assert called == [1, 1, 1]
    g.synchronize()


ENDS = """
import eagle
from models import affine
session = eagle.local()
x = session.zeros(4, device="cuda:0")
g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build()
g.enqueue(1000)
"""
FAULT = (
    ENDS
    + """
try:
    g.synchronize()
except eagle.EagleError as error:
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error), error
else:
    raise AssertionError("no fault")
"""
)


@pytest.mark.parametrize(("program", "pretend"), [(ENDS, "devices=1"), (FAULT, "fail_launch=3")])
def test_a_process_may_end_with_it_and_a_fault_comes_out_at_synchronize(
    monkeypatch: pytest.MonkeyPatch, program: str, pretend: str
) -> None:
    monkeypatch.setenv("EAGLE_FAKE_CUDA", pretend)
    path = ":".join(sys.path)
    monkeypatch.setenv("PYTHONPATH", path)
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_any_order_of_calls_gives_what_the_program_says(session: eagle.Session, seed: int) -> None:
    """Four arrays, six graphs over two sessions, against a list of numbers. Integers, so that all is exact."""
    chance = random.Random(seed)
    print("seed", seed)
    with eagle.local() as other:
        arrays = [session.zeros(4, device=GPU) for _ in range(4)]
        same = [other.share(Shown(array)) for array in arrays]
        model = [0.0] * 4
        graphs: list[tuple[eagle.Graph, list[int], bool]] = []
        for i in range(6):
            own = arrays if i % 2 == 0 else same
            x, y, z = (chance.randrange(4) for _ in range(3))
            while z in (x, y):
                z = chance.randrange(4)
            g = eagle.Graph().add(eagle.plan(add_into).bind(x=own[x], y=own[y], z=own[z]), name="sum")
            g.add(eagle.plan(affine).bind(x=own[z], y=own[z], a=1.0, b=float(i)), name="more")
            graphs.append((g.build(), [x, y, z, i], False))
        flying = [False] * len(graphs)

        def play(which: int, times: int) -> None:
            x, y, z, i = graphs[which][1]
            for _ in range(min(times, 1)):  # again gives the same: it does not read what it writes
                model[z] = model[x] + model[y] + i

        for _ in range(60):
            which, plane = chance.randrange(len(graphs)), chance.randrange(4)
            action = chance.choice(["enqueue", "enqueue", "launch", "sync", "read", "write", "rebind"])
            g, (x, y, z, i), _ = graphs[which]
            if action == "write":
                model[plane] = float(chance.randrange(10))
                chance.choice([arrays, same])[plane][...] = model[plane]
            elif action == "read":
                assert chance.choice([arrays, same])[plane].numpy().tolist() == [model[plane]] * 4
            elif action == "sync":
                g.synchronize()
                flying[which] = False
            elif not flying[which] and action == "rebind":
                own = arrays if which % 2 == 0 else same
                while plane == z:
                    plane = chance.randrange(4)
                g.rebind({"sum.x": own[plane]})
                graphs[which] = (g, [plane, y, z, i], False)
            elif not flying[which]:
                times = chance.randrange(4)
                (g.enqueue if action == "enqueue" else g.launch)(times)
                flying[which] = action == "enqueue"
                play(which, times)
        for plane in range(4):
            assert arrays[plane].numpy().tolist() == [model[plane]] * 4
        for g, _, _ in graphs:
            g.synchronize()
