"""Clients that die, hang, stop reading or fork, at every step of what they do."""

import os
import random
import signal
import threading
from pathlib import Path

import eagle
import pytest
from eagle.graph import opaque
from harness import PATIENCE_S, Daemon, python_script, wait_until
from models import count_up
from watch import check_serves, held_by, wait_for_descriptors, wait_for_nothing_held, worker_of

VICTIM = Path(__file__).with_name("victim.py")
SEED = 20_261_130


def start(daemon, doing: str):
    client = python_script(VICTIM, doing, environment={"EAGLE_ENDPOINT": daemon.endpoint})
    line = client.stdout.readline()
    assert line == "doing\n", client.stderr.read()
    return client


@pytest.mark.survives("kill -9 of a client while it connects, makes planes, builds, launches, runs, or is called back")
@pytest.mark.parametrize("doing", ["connect", "create", "build", "launch", "simulate", "call"])
def test_a_client_killed_at_work(daemon, doing):
    draw = random.Random(f"{SEED} {doing}")
    check_serves(daemon.endpoint)
    worker = worker_of(daemon)
    before = held_by(worker)
    for _ in range(5):
        with start(daemon, doing) as client:
            threading.Event().wait(draw.uniform(0.0, 0.2))  # anywhere in the middle of it
            client.kill()
        assert client.returncode == -signal.SIGKILL
        check_serves(daemon.endpoint)
    wait_for_nothing_held(daemon)
    wait_for_descriptors(worker, before.descriptors + 4)


@pytest.mark.survives("a host callback that ends its process")
def test_a_callback_that_exits(daemon):
    with start(daemon, "leave") as client:
        assert client.wait(PATIENCE_S) == 3
    check_serves(daemon.endpoint)
    wait_for_nothing_held(daemon)


@pytest.mark.survives("a host callback that hangs: others are served, and cancel ends its launch")
def test_a_callback_that_hangs(daemon):
    entered, leave = threading.Event(), threading.Event()
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(10)

        def hang() -> None:
            entered.set()
            assert leave.wait(PATIENCE_S)

        graph = eagle.Graph(session)
        graph.add_node(opaque(hang, writes={"x": x}), name="hang")
        graph.build()
        ended = []

        def run() -> None:
            try:
                graph.launch()
            except eagle.EagleError as error:
                ended.append(error)

        launching = threading.Thread(target=run)
        launching.start()
        assert entered.wait(PATIENCE_S)
        for _ in range(10):
            check_serves(daemon.endpoint)
        graph.cancel()
        leave.set()
        launching.join(PATIENCE_S)
        assert not launching.is_alive()
        assert len(ended) == 1
        graph.launch()  # it can be launched again


@pytest.mark.survives("a host callback that raises: the exception comes back, and the graph can be launched again")
def test_a_callback_that_raises(daemon):
    with eagle.connect(daemon.endpoint) as session:
        x, fail = session.zeros(10), [True]

        def maybe() -> None:
            if fail:
                fail.clear()
                raise LookupError("once")
            x[:] = 1.0

        graph = eagle.Graph(session)
        graph.add_node(opaque(maybe, writes={"x": x}), name="maybe")
        graph.build()
        with pytest.raises(LookupError, match="once"):
            graph.launch()
        graph.launch()
        assert x.tolist() == [1.0] * 10


@pytest.mark.survives("a client that stops reading (SIGSTOP) in the middle of its work: others are served")
@pytest.mark.parametrize("doing", ["simulate", "launch", "build", "create"])
def test_a_client_that_stops_reading(daemon, doing):
    worker = worker_of(daemon)
    with start(daemon, doing) as client:
        client.send_signal(signal.SIGSTOP)
        check_serves(daemon.endpoint)
        before = held_by(worker)
        for _ in range(20):
            check_serves(daemon.endpoint)
        most_kib = before.resident_kib + 16 * 1024
        wait_until(lambda: held_by(worker).resident_kib <= most_kib, f"the worker to hold at most {most_kib} KiB")
        assert int(daemon.info()["sessions"]) >= 2, "a stopped client keeps its session"
        client.send_signal(signal.SIGCONT)
        client.kill()
    wait_for_nothing_held(daemon)


@pytest.mark.survives("a client forked after connect: the child is told, and both go on")
def test_a_forked_client(daemon, tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(
        """
import os, sys, warnings
import eagle
warnings.simplefilter("ignore")  # Python's own, of forks beside threads
session = eagle.connect()
x = session.full(100, 2.0)
child = os.fork()
if child == 0:
    try:
        session.zeros(3)
    except eagle.EagleError as error:
        assert "fork" in str(error), error
        with eagle.connect() as own:
            assert own.full(3, 1.5).tolist() == [1.5] * 3
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
session.zeros(3)[:] = x[:3]
"""
    )
    with python_script(program, environment={"EAGLE_ENDPOINT": daemon.endpoint}) as client:
        _, errors = client.communicate(timeout=PATIENCE_S)
    assert client.returncode == 0, errors
    wait_for_nothing_held(daemon)


@pytest.mark.survives("two sessions interleaving on one device: both go on, each with its own numbers")
def test_two_sessions_interleave(daemon):
    with eagle.connect(daemon.endpoint) as one, eagle.connect(daemon.endpoint) as other:
        states = [(session, session.zeros(50_000), session.zeros(50_000, dtype=bool)) for session in (one, other)]
        results = [None, None]

        def run(which: int) -> None:
            session, x, done = states[which]
            with session:
                results[which] = eagle.simulate(
                    count_up, max_steps=10_000, x=x, step=session.full(50_000, 1.0 + which), limit=1e9, done=done
                )

        threads = [threading.Thread(target=run, args=(which,)) for which in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        for which, (_, x, _) in enumerate(states):
            assert results[which].steps == 10_000
            assert (x == 10_000.0 * (1.0 + which)).all()


@pytest.mark.survives("SIGTERM while a client is connected and idle, and while one waits in its callback")
def test_the_end_with_clients_there(daemon, short_path):
    folder = short_path / "second"
    folder.mkdir()
    second = Daemon(folder, "--drain-timeout", "1")
    idle = eagle.connect(second.endpoint)
    x = idle.full(10, 4.0)
    with start(second, "call") as client:
        assert second.stop() == 0, second.log()
        client.kill()
    assert x.tolist() == [4.0] * 10, "what was mapped stays readable"
    with pytest.raises(eagle.EagleError):
        idle.zeros(3)
    idle.close()
    assert not os.path.exists(second.path)
    wait_until(lambda: second.process.poll() is not None, "it to end")
