"""kill -9 of a client before, in the middle of and after every message that it sends or gets, step by step."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import python_script, wait_until
from stubs import Service, session_at
from watch import check_serves, keeper_of, wait_for_at_most, worker_of

STEPPER = Path(__file__).with_name("stepper.py")
FIRST = 10  # steps after which memory and descriptors are those of a daemon that has done this before


def held(service: Service) -> dict[str, Any]:
    """All that anybody but this session holds."""
    info = service.call("Admin.Info")
    return {
        "sessions": info.sessions - 1,
        "planes": info.planes,
        "plane_bytes": info.plane_bytes,
        "graphs": info.graphs,
        "jobs": info.jobs,
        "runs": len(service.call("Runs.List").runs),
    }


@pytest.mark.survives(
    "kill -9 of a client at every step of plane creation, build, launch, host call, ring, publish, open and stored run"
)
@pytest.mark.timeout(600)
def test_a_client_killed_at_every_step(daemon, tmp_path, measured):
    worker, keeper = worker_of(daemon), keeper_of(daemon)
    with session_at(daemon.path) as service:
        files = tmp_path / "files"
        files.write_bytes(service.files())
        arguments = (str(daemon.path), str(files))
        with python_script(STEPPER, *arguments, environment={}, stdin=subprocess.PIPE) as stepper:
            assert stepper.stdout.readline() == "ready\n"

            def kill_at(step: int) -> str:
                stepper.stdin.write(f"{step}\n")
                stepper.stdin.flush()
                said = stepper.stdout.readline().strip()
                nothing = dict.fromkeys(held(service), 0)
                wait_until(lambda: held(service) == nothing, f"everything to be given back, {said}: {held(service)}")
                return said

            steps = int(kill_at(1_000_000).removeprefix("ended "))  # an undisturbed client does all of it
            died = [kill_at(step) for step in range(FIRST)]
            first = {pid: wait_for_at_most(pid, 10**6, 10**9) for pid in (worker, keeper)}
            died += [kill_at(step) for step in range(FIRST, steps)]
            assert kill_at(steps) == f"ended {steps}"
            stepper.stdin.close()
        assert all(said.startswith("killed ") for said in died), died
        for pid, before in first.items():
            wait_for_at_most(pid, before.descriptors + 4, before.resident_kib + 16 * 1024)
    check_serves(daemon.endpoint)
    measured(f"{steps} steps, from '{died[0]}' to '{died[-1]}'")
