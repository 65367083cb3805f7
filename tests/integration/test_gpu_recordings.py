"""Sessions with arrays on a GPU, recorded and replayed on the fake driver: on a GPU, and where there is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT, Daemon, eaglectl

PROGRAM = """
import ctypes
import sys
sys.path.insert(0, {models!r})
import numpy as np
import eagle
from eagle.graph import opaque
from models import affine, count_up

GPU = "cuda:0"
session = eagle.connect({endpoint!r}) if {endpoint!r} else eagle.local()
x, y = session.asarray(np.arange(300.0), device=GPU), session.zeros(300, device=GPU)
g = eagle.Graph(session, name="affine").add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0)).build()
assert g.backend == GPU
g.launch(2)
x[...] = 3.0
g.launch()
assert float(y[0]) == 7.0


def double(x, y):
    y[...] = 2 * x


def on_gpu(plane):  # as torch has it
    at = plane.__cuda_array_interface__["data"][0]
    return np.ctypeslib.as_array((ctypes.c_double * plane.size).from_address(at))


def five_times(x, y):
    on_gpu(y)[...] = 5 * on_gpu(x)


h = eagle.Graph(session, name="callable")
h.add_node(opaque(double, reads={{"x": x}}, writes={{"y": y}}), name="double")
h.add(eagle.plan(affine).bind(x=y, y=x, a=1.0, b=0.5))
h.build().launch()
assert float(x[1]) == 6.5

k = eagle.Graph(session, name="stream")
k.add_node(opaque(five_times, reads={{"x": x}}, writes={{"y": y}}, stream=0), name="torch")
k.add(eagle.plan(affine).bind(x=y, y=x, a=1.0, b=0.5))
k.build().launch()
assert float(x[1]) == 33.0

done = session.zeros(300, dtype=bool, device=GPU)
result = eagle.simulate(count_up, max_steps=50, x=x, step=session.full(300, 1.0, device=GPU), limit=40.0, done=done)
assert result.report.backend == GPU and result.steps == 7
session.close()
"""


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Path]:
    def run(endpoint: str, *options: str) -> Path:
        script, file = tmp_path / "program.py", tmp_path / "run.eaglerec"
        script.write_text(PROGRAM.format(models=str(ROOT / "tests/integration"), endpoint=endpoint))
        eaglectl("record", str(file), *options, "--", sys.executable, str(script))
        return file

    return run


def replayed(file: Path, *options: str, endpoint: str = "") -> dict[str, Any]:
    where = ("--endpoint", endpoint) if endpoint else ()
    return json.loads(eaglectl(*where, "--json", "replay", str(file), "--verify", *options, check=False).stdout)


def bits(found: dict[str, Any]) -> list[str]:
    assert found["different"] == 0, found
    return [one["bits"] for one in found["requests"] if one["kind"] in ("launch", "run")]


@pytest.mark.parametrize("where", ["daemon", "local"])
def test_a_recording_is_replayed_on_a_gpu_and_without_one(
    gpu_daemon: Callable[..., Daemon], record: Callable[..., Path], where: str
) -> None:
    daemon = gpu_daemon()
    file = record(daemon.endpoint if where == "daemon" else "", "--with-contents")
    said = json.loads(eaglectl("--json", "replay", str(file), "--info").stdout)
    assert (said["gpu_planes"], said["with_contents"]) == (4, True)
    assert "on a GPU)" in eaglectl("replay", str(file), "--info").stdout
    there = replayed(file, endpoint=daemon.endpoint)
    assert there["elsewhere"] == {}
    assert bits(there) == ["equal"] * 5
    assert bits(replayed(file, "--in-process")) == ["equal"] * 5
    # The same bits where the CPU computes: because one wants it to, or for want of a GPU.
    on_host = replayed(file, "--on-host", endpoint=daemon.endpoint)
    assert (bits(on_host), on_host["elsewhere"]) == (["equal"] * 5, {})
    without = replayed(file, endpoint=gpu_daemon("--devices", "none").endpoint)
    assert bits(without) == ["equal"] * 5
    assert list(without["elsewhere"]) == ["cuda:0"]


def test_a_replay_without_a_gpu_says_where_its_arrays_lay(
    gpu_daemon: Callable[..., Daemon], record: Callable[..., Path]
) -> None:
    file = record(gpu_daemon().endpoint, "--with-contents")
    daemon = gpu_daemon("--devices", "none")
    said = eaglectl("--endpoint", daemon.endpoint, "replay", str(file), "--verify").stdout
    assert "arrays of cuda:0 lay in memory of the host, and their graphs ran on its CPU: device 'cuda:0'" in said
    assert "0 not as recorded; bits compared" in said


def test_a_gpu_that_is_full_refuses_a_replay(gpu_daemon: Callable[..., Daemon], record: Callable[..., Path]) -> None:
    file = record(gpu_daemon().endpoint, "--with-contents")
    small = gpu_daemon("--device-budget", "4M")
    done = eaglectl("--endpoint", small.endpoint, "replay", str(file), check=False)
    assert done.returncode != 0
    assert "does not fit on cuda:0" in done.stderr


def test_without_contents_there_are_no_values(gpu_daemon: Callable[..., Daemon], record: Callable[..., Path]) -> None:
    daemon = gpu_daemon()
    file = record(daemon.endpoint)
    found = replayed(file, endpoint=daemon.endpoint)
    assert (found["verified"], found["recording"]["with_contents"]) == (False, False)
    assert [one["kind"] for one in found["requests"] if one["kind"] in ("launch", "run")] == ["launch"] * 4 + ["run"]
