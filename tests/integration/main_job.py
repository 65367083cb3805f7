"""The main job as a program of its own: one oscillator, a million samples, a thousand steps.

Usage: main_job.py connect|local FOLDER
It connects to EAGLE_ENDPOINT, or stays in this process, and leaves x.npy, v.npy, done.npy and report.json in FOLDER.
"""

import json
import os
import resource
import sys
from pathlib import Path

import eagle
import numpy as np
from eagle import Mutable, Param, Scalar, Terminated, kernel


@kernel
def oscillator(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    dt: Param,
    t_end: Param,
    done: Terminated,
):
    x, v = x + dt * v, v - dt * omega * omega * x
    t = t + dt
    done = t >= t_end


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(where: str, folder: Path) -> None:
    session = eagle.connect() if where == "connect" else eagle.local()
    n = 1_000_000
    x, v, t = session.full(n, 1.0), session.zeros(n), session.zeros(n)
    omega, done = session.asarray(np.linspace(1, 3, n)), session.zeros(n, dtype=bool)
    before = cpu_seconds()
    result = eagle.simulate(oscillator, max_steps=2000, x=x, v=v, t=t, omega=omega, dt=1e-3, t_end=1.0, done=done)
    after = cpu_seconds()
    for name, array in {"x": x, "v": v, "done": done}.items():
        np.save(folder / f"{name}.npy", array)
    report = {
        "pid": os.getpid(),
        "host_pid": result.report.host.pid,
        "status": str(result.status),
        "steps": result.steps,
        "finished": result.report.finished,
        "wall_s": result.report.wall_s,
        "threads": result.report.threads,
        "cpu_s": after - before,
        "llvm_mapped": "libLLVM" in Path("/proc/self/maps").read_text(),
    }
    (folder / "report.json").write_text(json.dumps(report))
    session.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
