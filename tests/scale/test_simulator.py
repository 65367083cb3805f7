"""The model of very large batches, at a small size."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from harness import ROOT

FOLDER = ROOT / "tests/bench/scale"
sys.path.insert(0, str(FOLDER))

import simulate as model  # noqa: E402

COSTS = model.costs_of(FOLDER / "costs.json")
#: Nothing shared costs anything, nobody is slow or fails.
IDEAL = replace(
    COSTS, schedule_s=0, shard_s=0, build_s=0, combine_s=0, sent_bytes=0, received_bytes=0, latency_s=0, kept_bytes=0,
    slow_daemons=0, noise=0, failures_s=1e18,
)  # fmt: skip


def test_without_costs_it_takes_what_the_samples_take() -> None:
    out = model.simulate(IDEAL, daemons=10, samples=1e6, chunk=1000, seed=1)
    assert out.makespan_s == pytest.approx(1e6 * COSTS.sample_s / 10)
    assert (out.shards, out.failures, out.reruns, out.copies) == (1000, 0, 0, 0)


def test_the_same_seed_gives_the_same_numbers() -> None:
    rough = replace(COSTS, failures_s=5.0, back_s=1.0, detect_s=0.5, slow_daemons=0.2)
    first, again, other = (model.simulate(rough, 50, 1e8, 1 << 16, seed) for seed in (3, 3, 4))
    assert first == again
    assert first.makespan_s != other.makespan_s
    assert first.failures > 0
    assert first.reruns > 0


def test_every_shard_is_done_whoever_fails() -> None:
    rough = replace(COSTS, failures_s=2.0, back_s=0.5, detect_s=0.1)
    batch = model.Batch(rough, 20, 2e8, 1 << 18, 7)
    out = batch.run()
    assert sum(batch.done) == out.shards
    assert out.wasted_s > 0


def test_a_slow_scheduler_is_what_breaks_first() -> None:
    out = model.simulate(replace(COSTS, schedule_s=1.0), daemons=100, samples=1e8, chunk=1 << 20, seed=1)
    assert out.breaks_first == "scheduler"
    assert out.makespan_s >= out.shards * 1.0


def test_second_copies_overtake_slow_daemons() -> None:
    slow = replace(IDEAL, slow_daemons=0.1, slow_factor=10.0)
    with_copies = model.simulate(slow, 100, 1e8, 1 << 16, 1)
    without = model.simulate(replace(slow, second_copy=0.0), 100, 1e8, 1 << 16, 1)
    assert with_copies.copies > 0
    assert with_copies.makespan_s < without.makespan_s


@pytest.mark.parametrize("words", [["--daemons", "0"], ["--set", "speed=3"], ["--samples", "0"]])
def test_mistakes_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        model.main(words)
    assert ended.value.code == 2


def test_the_program_prints_its_table(tmp_path: Path) -> None:
    command = [sys.executable, FOLDER / "simulate.py", "--daemons", "20", "--samples", "1e8", "--chunk", "1048576"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=170, check=True)
    assert ran.stdout.splitlines()[-1].startswith("| 20 | 1,048,576 | 96 |")
    ran = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=170, check=True)
    assert json.loads(ran.stdout)["shards"] == 96
