"""The indexed job of deploy/kubernetes/job, with processes in the place of pods."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import eagle
import numpy as np
import pytest
from eagle.cluster import job
from harness import PATIENCE_S, ROOT, wait_until

MODEL = ROOT / "deploy/kubernetes/job/model.py"
N, CHUNK, PODS = 20_000, 1024, 4
SHARDS = -(-N // CHUNK)


def pod(index: int, output: Path, *more: str, program: Path = MODEL, samples: int = N) -> subprocess.Popen[str]:
    """As Kubernetes starts one: its number is in the environment."""
    options = [f"--samples={samples}", f"--chunk={CHUNK}", f"--of={PODS}", f"--output={output}"]
    return subprocess.Popen(
        [sys.executable, "-m", "eagle.cluster.job", "run", program, *options, *more],
        env={**os.environ, "JOB_COMPLETION_INDEX": str(index)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ends(process: subprocess.Popen[str], status: int = 0) -> str:
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == status, out + err
    return out + err


def combine(output: Path, status: int = 0, program: Path = MODEL) -> str:
    command = [sys.executable, "-m", "eagle.cluster.job", "combine", program, f"--output={output}"]
    return ends(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), status)


def unsharded() -> Any:
    with eagle.local(threads=2) as session:
        return job.load(MODEL).run(session, (0, N, N))


def records(output: Path) -> dict[Path, int]:
    """When each record was written."""
    return {path: path.stat().st_mtime_ns for path in sorted((output / "shards").glob("*.json"))}


@pytest.mark.parametrize("form", ["zarr", "npy"])
def test_four_processes_give_the_bits_of_one_run_though_one_is_killed(tmp_path: Path, form: str) -> None:
    expected = unsharded()
    output = tmp_path / "results"
    pods = [pod(index, output, f"--format={form}") for index in range(PODS)]
    wait_until(lambda: (output / "shards/00000001.json").is_file(), "the second pod to have a shard")
    pods[1].send_signal(signal.SIGKILL)
    pods[1].communicate(timeout=PATIENCE_S)
    before = records(output)
    assert "are not done" in combine(output, status=job._MISTAKE) or len(before) == SHARDS
    said = ends(pod(1, output, f"--format={form}"))  # Kubernetes runs it again
    assert " found done" in said
    assert " 0 found done" not in said
    for other in (0, 2, 3):
        ends(pods[other])
    assert all(path.stat().st_mtime_ns == when for path, when in before.items()), "a shard that was done was run again"
    assert combine(output) == f"{SHARDS} shards: finished, {expected.steps} steps, {N} finished\n"
    told = json.loads((output / "result.json").read_text())
    assert bytes.fromhex(told["values"]["energy"]["hex"]) == expected["energy"].tobytes()
    for name in ("x", "t"):
        assert read(output, name, form).tobytes() == expected[name].tobytes()
    assert not list(output.rglob("*.tmp"))


def read(output: Path, name: str, form: str) -> np.ndarray:
    """As anybody reads it: with numpy, or with zarr."""
    if form == "npy":
        return np.concatenate([np.load(path) for path in sorted((output / name).glob("*.npy"))])
    zarr = pytest.importorskip("zarr", reason="zarr could not be installed (tests/scale/make_venv.sh)")
    return np.asarray(zarr.open(str(output), mode="r")[name][:])


def test_a_chunk_that_is_gone_is_made_again(tmp_path: Path) -> None:
    for index in range(PODS):
        ends(pod(index, tmp_path))
    was = (tmp_path / "x/5").read_bytes()
    (tmp_path / "x/5").unlink()
    assert "5" in combine(tmp_path, status=2)
    assert "1 shards run, 4 found done" in ends(pod(1, tmp_path))
    assert (tmp_path / "x/5").read_bytes() == was


def test_another_batch_is_not_mixed_in(tmp_path: Path) -> None:
    ends(pod(0, tmp_path))
    assert "its samples is another one" in ends(pod(0, tmp_path, samples=N + 1), status=2)
    changed = tmp_path / "changed.py"
    changed.write_text(MODEL.read_text().replace("0.2", "0.3"))
    assert "its program is another one" in ends(pod(0, tmp_path, program=changed), status=2)


@pytest.mark.parametrize(
    ("program", "options", "status", "words"),
    [
        ("run = 3", (), 2, "no function run"),
        ("def run(session, shard):\n    return 3", (), 2, "returned int"),
        (None, ("--chunk=100",), 2, "a multiple of 256"),
        (None, ("--endpoint=unix:/nowhere/eagled.sock",), 75, "NO_DAEMON"),
        (None, ("--index=9",), 2, "expected 0 up to 3"),
    ],
)
def test_mistakes_and_absences_have_a_status_each(
    tmp_path: Path, program: str | None, options: tuple[str, ...], status: int, words: str
) -> None:
    """By which a Job knows whether to try again."""
    path = MODEL
    if program is not None:
        (path := tmp_path / "model.py").write_text(program)
    assert words in ends(pod(0, tmp_path / "results", *options, program=path), status)


def test_no_samples_are_a_batch_too(tmp_path: Path) -> None:
    ends(pod(0, tmp_path, samples=0))
    assert combine(tmp_path) == "1 shards: finished, 0 steps, 0 finished\n"
