"""What threads, signals, the end of the interpreter and hostile values must not do."""

from __future__ import annotations

import copy
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import eagle
from eagle.graph import opaque


def run_python(code, *arguments):
    """The code in a process of its own; one that hangs fails here."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100, check=False
    )


@pytest.fixture(params=["local", "daemon"])
def place(request):
    """An endpoint for another process; "" is that process itself."""
    return request.getfixturevalue("endpoint") if request.param == "daemon" else ""


# ---- threads

FIRST_USE = """
import threading
import eagle

one = eagle.kernel(source='def one(x: Mutable[Scalar]):\\n    x = x + 1')
session = eagle.local()
arrays = [session.zeros(4) for _ in range(4)]
barrier = threading.Barrier(4)

def work(x):
    barrier.wait()
    eagle.plan(one).bind(x=x).launch()

threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([x.tolist() for x in arrays] == [[1.0] * 4] * 4)
"""


def test_the_first_use_may_come_from_several_threads_at_once():
    ran = run_python(FIRST_USE)
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran.stderr


def test_an_arrays_session_is_found_while_other_threads_open_sessions(local):
    x = local.zeros(3)
    kept = [eagle.local(threads=1) for _ in range(100)]  # the search takes a while
    failures, looked = [], threading.Event()

    def open_sessions():
        while not looked.is_set():
            eagle.local(threads=1)

    def look():
        try:
            for _ in range(3000):
                assert eagle.session.session_of([x]) is local
        except BaseException as error:
            failures.append(repr(error))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        opening = [threading.Thread(target=open_sessions) for _ in range(2)]
        looking = threading.Thread(target=look)
        for thread in (*opening, looking):
            thread.start()
        looking.join()
        looked.set()
        for thread in opening:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures
    assert len(kept) == 100


# ---- signals

INTERRUPTED = """
import os, signal, sys, threading
import eagle

inc = eagle.kernel(source='def inc(x: Mutable[Scalar]):\\n    x = x + 1')
spin = eagle.kernel(source='''
def spin(y: Mutable[Scalar]):
    while eagle.bounded(2**40) and y >= 0.0:
        y = y + 1
''')
session = eagle.connect(sys.argv[1]) if sys.argv[1] else eagle.local()
x, flag = session.zeros(4), session.full(1, 1, dtype="int64")
loop = eagle.repeat_while(eagle.plan(inc).bind(x=x), eagle.SkipGuard(flag), 10**15)
graph = eagle.Graph(session).add_node(loop).build()
handler = signal.getsignal(signal.SIGINT)

def interrupt():
    while not x[0]:  # the launch has begun when its state moves
        pass
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(call):
    x[:] = 0
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        call()
    except BaseException as error:
        return type(error).__name__ + " " + str(getattr(error, "reason", ""))
    finally:
        thread.join()
        session.accept(x)  # half incremented, and that is fine
        assert eagle.plan(inc).bind(x=x).launch() is not None, "the session is not usable"

print(interrupted(graph.launch))
signal.signal(signal.SIGINT, lambda *_: None)  # does not raise
print(interrupted(graph.launch))
signal.signal(signal.SIGINT, handler)
replays = eagle.Graph(session).add(eagle.plan(inc).bind(x=x)).build()
print(interrupted(lambda: replays.launch(2**62)))
spins = eagle.Graph(session).add(eagle.plan(inc).bind(x=x)).add(eagle.plan(spin).bind(y=session.zeros(4))).build()
print(interrupted(spins.launch))  # within one kernel, which loops
assert signal.getsignal(signal.SIGINT) is handler
flag[0] = 0
graph.launch()  # launchable as before
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**6):
        pass
except KeyboardInterrupt:
    print("own")
"""


def test_ctrl_c_ends_a_launch_and_the_session_stays_usable(place):
    ran = run_python(INTERRUPTED, place)
    expected = ["KeyboardInterrupt", "EagleError CANCELLED", "KeyboardInterrupt", "KeyboardInterrupt", "own"]
    assert ([line.strip() for line in ran.stdout.splitlines()], ran.returncode) == (expected, 0), ran.stderr


def test_ctrl_c_in_a_callable_is_the_callables_own(session):
    x, seen = session.zeros(3), []

    def interrupted():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            seen.append("caught")

    k = eagle.kernel(source="def k(x: Mutable[Scalar]):\n    x = x + 1")
    graph = eagle.Graph(session).add_node(opaque(interrupted, reads={"x": x}))
    graph.add(eagle.plan(k).bind(x=x)).build().launch(2)
    assert seen == ["caught", "caught"]
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_closing_the_session_ends_a_kernel_that_loops(session):
    inc = eagle.kernel(source="def inc(x: Mutable[Scalar]):\n    x = x + 1")
    spin = eagle.kernel(
        source="def spin(y: Mutable[Scalar]):\n    while eagle.bounded(2**40) and y >= 0.0:\n        y = y + 1"
    )
    x, y, raised = session.zeros(4), session.zeros(4), []
    graph = eagle.Graph(session).add(eagle.plan(inc).bind(x=x)).add(eagle.plan(spin).bind(y=y)).build()

    def launch():
        try:
            graph.launch()
        except eagle.EagleError as error:
            raised.append(error.reason)

    thread = threading.Thread(target=launch)
    thread.start()
    while not x[0]:
        pass
    session.close()
    thread.join()
    assert raised == ["SESSION_CLOSED"]


# ---- the end of the interpreter

ENDING = """
import sys, threading
import eagle
from eagle.graph import opaque

session = eagle.connect(sys.argv[1]) if sys.argv[1] else eagle.local()
x, begun = session.zeros(100), threading.Event()
graph = eagle.Graph().add_node(opaque(begun.set, reads={"x": x})).build()
threading.Thread(target=lambda: graph.launch(2**62), daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("round_number", range(3))
def test_a_launch_in_a_daemon_thread_does_not_outlive_the_interpreter(place, round_number):
    ran = run_python(ENDING, place)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), round_number


STUCK = """
import threading
import eagle
from eagle.graph import opaque

x, begun, never = eagle.zeros(3), threading.Event(), threading.Event()
graph = eagle.Graph().add_node(opaque(lambda: (begun.set(), never.wait()), reads={"x": x})).build()
threading.Thread(target=graph.launch, daemon=True).start()
begun.wait()
"""


def test_a_callable_that_never_ends_does_not_keep_the_process():
    ran = run_python(STUCK)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


# ---- errors that travel


@pytest.mark.parametrize("row", eagle._core.reasons(), ids=lambda row: row[0])
@pytest.mark.parametrize("travel", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_survive_pickling(row, travel):
    reason, code, made_as, _ = row
    error = eagle.errors.refusal(reason, "k: expected this, found that")
    error.lineno = 7
    back = travel(error)
    assert type(back) is made_as
    assert (back.reason, back.code, str(back)) == (reason, code, "k: expected this, found that")
    assert back.lineno == 7


class OwnError(eagle.EagleError):
    """A class of a user's."""


def test_errors_that_users_make_survive_pickling_too():
    for error in (eagle.EagleError("mine"), OwnError("mine")):
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), back.reason) == (type(error), "mine", None)


# ---- messages

KERNEL = "def add(x: Mutable[Scalar]):\n    x = x + 1"


def refused(call, builtin, reason):
    with pytest.raises(builtin) as caught:
        call()
    assert isinstance(caught.value, eagle.EagleError), repr(caught.value)
    assert caught.value.reason == reason
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ma.zeros(3), "filled"),
        (np.zeros(3, dtype=object), "astype"),
        (None, "NoneType"),
        ([1.0], "asarray"),
    ],
)
def test_what_is_no_plane_is_refused_with_the_arguments_name(value, words, local):
    k = eagle.kernel(source=KERNEL)
    message = refused(lambda: eagle.plan(k).bind(x=value), TypeError, "WRONG_TYPE")
    assert message.startswith("bind: kernel 'add': argument 'x': ")
    assert words in message
    message = refused(lambda: eagle.simulate(k, max_steps=1, x=value), TypeError, "WRONG_TYPE")
    assert "'x'" in message
    assert not local.owns(np.ma.zeros(3))


def test_messages_say_once_where_it_happened(session):
    k = eagle.kernel(source=KERNEL)
    frozen = session.zeros(3)
    frozen.flags.writeable = False
    message = refused(lambda: eagle.plan(k).bind(x=frozen), ValueError, "READ_ONLY_ARRAY")
    assert message.startswith("bind: kernel 'add': argument 'x' ")
    assert "node" not in message.split(";", maxsplit=1)[0].split("array")[0]
    graph = eagle.Graph(session).add(eagle.plan(k).bind(x=session.zeros(3))).build()
    late = eagle.plan(k).bind(x=session.zeros(3))
    session.close()
    assert refused(graph.launch, RuntimeError, "SESSION_CLOSED").count("launch: ") == 1
    assert refused(late.launch, RuntimeError, "SESSION_CLOSED").count("build: ") == 1


def test_a_closed_session_is_not_entered(session):
    session.close()
    message = refused(session.__enter__, RuntimeError, "SESSION_CLOSED")
    assert "session" in message
    assert "is closed; open another" in message
    assert not eagle.session.default_session().closed


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda bad: eagle.Graph(name=bad), "Graph: name"),
        (lambda bad: eagle.Graph().add_node(opaque(print), name=bad), "add_node: name"),
        (lambda bad: eagle.Graph().add_group([opaque(print)] * 2, names=[None, bad]), "add_group: name"),
        (lambda bad: opaque(print, name=bad), "opaque: name"),
        (lambda bad: opaque(print, reads={bad: np.zeros(3)}), "opaque: reads: name"),
        (lambda bad: eagle.zeros(3, name=bad), "zeros: name"),
        (lambda bad: eagle.connect(f"unix:/{bad}"), "connect: endpoint"),
    ],
)
def test_texts_that_are_none_are_refused_by_name(call, word):
    message = refused(lambda: call("a\ud800b"), ValueError, "BAD_VALUE")
    assert word in message
    assert "D800" in message
    k = eagle.kernel(source=KERNEL)
    assert "ud800" in refused(lambda: eagle.plan(k).bind(**{"\ud800": 1}), TypeError, "BAD_BINDING")


def test_values_of_other_types_get_errors_of_ours(local):
    assert "timeout" in refused(lambda: eagle.connect(timeout=10**400), ValueError, "BAD_VALUE")
    assert "owns" in refused(lambda: local.owns(None), TypeError, "WRONG_TYPE")
    two = [opaque(print), opaque(print)]
    assert "names" in refused(lambda: eagle.Graph().add_group(two, names=5), TypeError, "WRONG_TYPE")
