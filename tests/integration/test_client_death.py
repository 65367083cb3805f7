"""What a client held is given back when it goes, however it goes."""

import signal
import subprocess
import sys

import eagle
import pytest
from harness import PATIENCE_S, python_script, wait_until

HOLDING = """
import signal
import sys
import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel

@kernel
def never(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1.0
    done = x >= limit

session = eagle.connect()
x, done = session.zeros(100_000), session.zeros(100_000, dtype=bool)
print("holding", flush=True)
if sys.argv[1] == "running":
    eagle.simulate(never, max_steps=2**40, x=x, limit=1e300, done=done)
signal.pause()
"""


def start_client(daemon, tmp_path, doing: str) -> subprocess.Popen:
    program = tmp_path / "holding.py"
    program.write_text(HOLDING)
    client = python_script(program, doing, environment={"EAGLE_ENDPOINT": daemon.endpoint})
    assert client.stdout.readline() == "holding\n", client.stderr.read()
    return client


def held(daemon) -> tuple[int, int]:
    info = daemon.info()
    return int(info["plane_bytes"]), int(info["planes"])


@pytest.mark.parametrize("doing", ["idle", "running"])
def test_killed_client_frees_its_planes(daemon, tmp_path, doing):
    assert held(daemon) == (0, 0)
    with start_client(daemon, tmp_path, doing) as client:
        assert held(daemon)[0] >= 900_000
        client.kill()
    assert client.returncode == -signal.SIGKILL
    wait_until(lambda: held(daemon) == (0, 0), "the planes of a killed client to be freed")


def test_closed_session_frees_its_planes(daemon):
    session = eagle.connect(daemon.endpoint)
    x = session.full(1000, 2.5)
    assert held(daemon)[0] >= 8000
    session.close()
    assert x.tolist() == [2.5] * 1000, "arrays stay readable until their last view goes"
    del x
    wait_until(lambda: held(daemon) == (0, 0), "the planes of a closed session to be freed")


def test_private_daemon_ends_with_its_client(tmp_path):
    """connect() without an endpoint starts a daemon of the process's own."""
    program = tmp_path / "private.py"
    program.write_text("import eagle\nsession = eagle.connect()\nprint(session.info().host.pid, flush=True)\n")
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, result.stderr
    pid = int(result.stdout)
    wait_until(lambda: not is_eagled(pid), f"the private daemon {pid} to end")


def is_eagled(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except FileNotFoundError:
        return False
    return name.startswith("eagled") and not rest.strip().startswith("Z")
