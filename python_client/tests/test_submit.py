"""Runs that outlive their client."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.graph import opaque


@kernel
def count(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1
    done = x >= limit


def test_a_submitted_run_ends_by_itself_and_gives_its_result(session):
    x, done = session.asarray([0.0, 7.0]), session.zeros(2, bool)
    run = eagle.submit(count, max_steps=100, x=x, limit=10.0, done=done, record="x", every=5, events=True)
    result = run.result()
    assert (result.status, result.steps, x.tolist()) == ("finished", 10, [10.0, 10.0])
    assert result.x is x
    assert result.records["x"].tolist() == [[0.0, 7.0], [5.0, 10.0], [10.0, 10.0]]
    assert result.stop_step.tolist() == [10, 3]
    assert run.result() is result
    assert run.ended
    assert run.progress().steps == 10
    assert session.runs() == []


def test_a_run_is_found_again_until_its_result_is_taken(session):
    x, done = session.zeros(3), session.zeros(3, bool)
    number = eagle.submit(count, max_steps=100, x=x, limit=4.0, done=done, record="x", events=True).id
    assert [run.id for run in session.runs()] == [number]
    found = session.run(number)
    result = found.result()
    assert (result.status, result.steps, result.x.tolist()) == ("finished", 4, [4.0, 4.0, 4.0])
    assert result.x is not x
    assert result.finished.all()
    assert result.records["x"][:, 0].tolist() == [0, 1, 2, 3, 4]
    assert result.stop_step.tolist() == [4, 4, 4]
    assert session.runs() == []
    with pytest.raises(eagle.EagleError, match=f"no run {number}") as unknown:
        session.run(number)
    assert unknown.value.reason == "UNKNOWN_RUN"
    assert isinstance(unknown.value, ValueError)


def test_a_run_that_does_not_end_is_cancelled_at_whole_steps(session):
    x, done = session.zeros(1000), session.zeros(1000, bool)
    run = eagle.submit(count, max_steps=2**62, x=x, limit=np.inf, done=done, name="long")
    while run.progress().steps == 0:
        pass
    assert not run.ended
    with pytest.raises(TimeoutError, match="goes on"):
        run.result(timeout=0.01)
    run.cancel()
    result = run.result()
    assert result.status == "cancelled"
    assert x.max() == result.steps > 0


def test_what_needs_the_client_is_refused(session):
    x, done = session.zeros(3), session.zeros(3, bool)
    with pytest.raises(RuntimeError, match="outlives its client"):
        eagle.submit([count, opaque(lambda: None)], max_steps=3, x=x, limit=4.0, done=done)
    with pytest.raises(TypeError, match="until"):
        eagle.submit(count, until=lambda: True, max_steps=3, x=x, limit=4.0, done=done)
    with pytest.raises(ValueError, match="lease"):
        eagle.submit(count, max_steps=3, x=x, limit=4.0, done=done, lease=0)
    with pytest.raises(TypeError, match="lease"):
        eagle.submit(count, max_steps=3, x=x, limit=4.0, done=done, lease="day")
    assert session.runs() == []


SUBMIT = """
import sys
import numpy as np
import eagle
count = eagle.kernel(source='''
def count(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1
    done = x >= limit
''')
s = eagle.connect(sys.argv[1])
x, done = s.asarray(np.arange(5.0)), s.zeros(5, dtype=bool)
print(eagle.submit(count, max_steps=10**9, x=x, limit=2e6, done=done, name="far").id)
"""


def test_a_run_outlives_the_process_that_submitted_it(daemon, endpoint):
    ran = subprocess.run(
        [sys.executable, "-c", SUBMIT, endpoint], capture_output=True, text=True, timeout=100, check=True
    )
    run = daemon.run(int(ran.stdout))
    result = run.result()
    assert (result.status, result.steps) == ("finished", 2_000_000)
    assert result.x.tolist() == [2e6] * 5
    assert daemon.owns(result.x)


def test_a_lease_that_is_over_ends_the_run(daemon):
    x, done = daemon.zeros(8), daemon.zeros(8, bool)
    number = eagle.submit(count, max_steps=2**62, x=x, limit=np.inf, done=done, lease=0.05).id
    while [run for run in daemon.runs() if run.id == number]:
        pass
    with pytest.raises(ValueError, match="its lease is over"):
        daemon.run(number)


def test_a_user_has_so_many_and_no_more(daemon):
    runs = []
    x, done = daemon.zeros(2), daemon.zeros(2, bool)
    with pytest.raises(eagle.LimitExceeded, match="kept_runs"):
        for _ in range(65):
            runs.append(eagle.submit(count, max_steps=1, x=x, limit=np.inf, done=done))
    assert len(runs) == 64
    for run in runs:
        run.result()
    assert daemon.runs() == []
