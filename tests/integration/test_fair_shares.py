"""Two users of one daemon: what each gets, and waits for. The second user needs root to become it."""

import os
import subprocess

import eagle
import pytest
from eagle import Mutable, Scalar, kernel
from harness import PATIENCE_S, python_script

OTHER_UID = 12_001
OTHER = {"user": OTHER_UID, "group": OTHER_UID, "extra_groups": []}

SATURATING = """
import sys
import threading
import eagle
from eagle import Mutable, Scalar, kernel

@kernel
def grow(x: Mutable[Scalar]):
    x = x + 1.0

session = eagle.connect()
stop = threading.Event()

def work(samples, count):
    x = session.zeros(samples)
    g = eagle.Graph(session).add(eagle.plan(grow).bind(x=x, session=session)).build()
    launches = 0
    while not stop.is_set():
        g.launch(count)
        launches += 1
    assert set(x.tolist()) == {float(launches * count)}, "each launch ran once"
    done.append(launches)

done = []
threads = [threading.Thread(target=work, args=arguments) for arguments in ((2_000_000, 1), (1000, 200))]
for thread in threads:
    thread.start()
print("busy", flush=True)
sys.stdin.readline()
stop.set()
for thread in threads:
    thread.join()
print(sum(done), flush=True)
"""


@kernel
def add_one(x: Mutable[Scalar]):
    x = x + 1.0


@pytest.fixture
def open_daemon(daemon):
    """A daemon whose socket any user may connect to."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    daemon.path.parent.chmod(0o755)
    daemon.path.chmod(0o666)
    return daemon


def test_small_launches_of_one_user_get_through_beside_another_who_saturates_the_team(open_daemon):
    program = open_daemon.path.parent / "saturating.py"
    program.write_text(SATURATING)
    environment = {"EAGLE_ENDPOINT": open_daemon.endpoint, "EAGLE_CACHE_DIR": "", "HOME": "/nonexistent"}
    with python_script(program, environment=environment, stdin=subprocess.PIPE, **OTHER) as other:
        assert other.stdout.readline() == "busy\n", other.stderr.read()
        with eagle.connect(open_daemon.endpoint) as session:
            x = session.zeros(100)
            g = eagle.Graph(session).add(eagle.plan(add_one).bind(x=x, session=session)).build()
            for _ in range(200):
                g.launch()
            assert x.tolist() == [200.0] * 100
        other.stdin.write("\n")
        other.stdin.flush()
        launches = int(other.stdout.readline() or other.stderr.read())
        assert other.wait(PATIENCE_S) == 0, other.stderr.read()
    assert launches > 0


def test_launches_over_the_same_bytes_wait_for_each_other(daemon):
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(500_000)
        graphs = [eagle.Graph(session).add(eagle.plan(add_one).bind(x=x, session=session)).build() for _ in range(4)]
        for g in graphs:
            g.enqueue(50)
        for g in graphs:
            g.synchronize()
        assert set(x.tolist()) == {200.0}, "no update was lost"
