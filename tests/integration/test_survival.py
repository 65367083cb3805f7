"""What a Python program sees when processes die: of the worker nothing, but for the launch that was under way."""

import os
import signal
import subprocess
import sys
import threading

import eagle
import numpy as np
import pytest
from harness import PATIENCE_S, children, wait_until
from models import affine


def kill_worker(daemon) -> None:
    (worker,) = children(daemon.process.pid)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: children(daemon.process.pid) not in ([], [worker]), "another worker")


def stepping(session, x):
    return eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0), name="step").build()


def test_an_idle_program_does_not_notice(daemon):
    with eagle.connect(daemon.endpoint) as session:
        x = session.full(1000, 1.0)
        g = stepping(session, x)
        kill_worker(daemon)
        assert x.tolist() == [1.0] * 1000
        g.launch(2)
        assert x.tolist() == [3.0] * 1000
        assert session.info().planes >= 1
        assert stepping(session, session.zeros(5)).launch()


def test_a_launch_under_way_raises_and_the_next_one_runs(daemon):
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(8)
        g = stepping(session, x)
        killer = threading.Thread(target=lambda: (wait_until(lambda: x[0] > 0, "a launch"), kill_worker(daemon)))
        killer.start()
        with pytest.raises(eagle.WorkerRestarted) as caught:
            g.launch(2**50)
        killer.join()
        assert caught.value.reason == "WORKER_RESTARTED"
        assert isinstance(caught.value, RuntimeError)
        with pytest.raises(eagle.EagleError, match="half written"):
            g.launch(3)
        x[...] = 0.0
        session.accept(x)
        g.launch(3)
        assert x.tolist() == [3.0] * 8


def test_a_lease_outlives_its_process(daemon):
    program = (
        "import eagle, os, signal\n"
        f"s = eagle.connect({daemon.endpoint!r}, lease=600)\n"
        "x = s.full(100_000, 1.0)\n"
        "print(s.resume_token, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    with eagle.connect(daemon.endpoint, resume=died.stdout.strip()) as session:
        assert session.info().planes == 1
        kill_worker(daemon)
        assert session.info().planes == 1
    with eagle.connect(daemon.endpoint) as other:
        # Its planes are given back when this process ends, which might have mapped them.
        wait_until(lambda: other.info().sessions == 1, "a closed session to be gone, lease or not")


def test_what_cannot_be_resumed_is_refused(daemon):
    with pytest.raises(PermissionError):
        eagle.connect(daemon.endpoint, resume="0" * 16 + "-" + "0" * 64)
    with pytest.raises(ValueError, match="resume_token"):
        eagle.connect(daemon.endpoint, resume="nonsense")
    with pytest.raises(ValueError, match="lease"):
        eagle.connect(daemon.endpoint, lease=-1.0)
    assert np.isfinite(eagle.connect(daemon.endpoint).info().uptime_s)
