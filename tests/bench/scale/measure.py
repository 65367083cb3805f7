"""Measures what sharding costs on this machine: 1, 2 and 4 processes beside one daemon, and the costs of `simulate.py`.

    tests/bench/scale/measure.py [--samples 1048576] [--repeats 5] [--engines dask,ray] [--write]

Run it with the Python of the scale suite (`tests/scale/make_venv.sh build/release .venv/bin/python` prints it). Bits
are compared before anything is timed. `--write` keeps the table in docs/measurements/scale.md and the costs
in costs.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
for folder in ("tests/scale", "tests/integration"):
    sys.path.insert(0, str(ROOT / folder))

import eagle  # noqa: E402
import numpy as np  # noqa: E402
from eagle import Mutable, Param, Reduce, Scalar, Terminated, _core, cluster, kernel  # noqa: E402
from eagle.cluster import _node  # noqa: E402

STEPS = 1000


@kernel
def oscillator(
    x: Mutable[Scalar], v: Mutable[Scalar], omega: Scalar, dt: Param, done: Terminated
) -> {"energy": Reduce("sum")}:
    """The main job's model, and a sum whose order tells."""
    x, v = x + dt * v, v - dt * omega * omega * x
    done = x > 1e6
    return {"energy": v * v + omega * omega * x * x}


def arguments(n: int) -> dict[str, Any]:
    """What every form is given."""
    return {"x": cluster.full(n, 1.0), "v": cluster.zeros(n), "omega": np.linspace(1, 3, n), "dt": 1e-3}


def one_daemon(n: int) -> tuple[Callable[[], Any], eagle.SimResult]:
    """The batch in one run through a daemon, as a call to time; and its bits."""
    session = eagle.connect()
    omega = session.asarray(np.linspace(1, 3, n))
    last: list[eagle.SimResult] = []

    def call() -> None:
        x, v, done = session.full(n, 1.0), session.zeros(n), session.zeros(n, dtype=bool)
        last[:] = [eagle.simulate(oscillator, max_steps=STEPS, x=x, v=v, omega=omega, dt=1e-3, done=done)]

    call()
    return call, last[0]


@contextmanager
def dask_of(processes: int) -> Iterator[tuple[Callable[..., Any], int]]:
    """A call that runs a batch over so many Dask workers, and the scheduler's process."""
    import distributed
    import eagle.dask
    from clusters import DaskCluster

    with (
        tempfile.TemporaryDirectory() as folder,
        DaskCluster(Path(folder), workers=processes) as made,
        distributed.Client(made.address) as client,
    ):
        client.wait_for_workers(processes)
        yield lambda *parts, **options: eagle.dask.simulate(client, *parts, **options), made.scheduler.pid


@contextmanager
def ray_of(processes: int) -> Iterator[tuple[Callable[..., Any], int]]:
    """The same over Ray actors; there is no process that hands shards out but the asker's."""
    import eagle.ray
    import ray

    # Ray gives a process the threads that its num_cpus are worth, and its daemon takes them: all, as Dask's have.
    threads = len(os.sched_getaffinity(0))
    if not ray.is_initialized():
        ray.init(num_cpus=4 * threads, include_dashboard=False, log_to_driver=False)
    with eagle.ray.Pool(processes, num_cpus=threads) as pool:
        yield lambda *parts, **options: eagle.ray.simulate(pool, *parts, **options), os.getpid()


ENGINES = {"dask": dask_of, "ray": ray_of}


def times(call: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return found


def table(n: int, repeats: int, engines: list[str]) -> list[str]:
    """Rows: one daemon, then each engine with 1, 2 and 4 processes."""
    alone, expected = one_daemon(n)
    first = times(alone, repeats)
    rows = [
        "| who runs it | least, s | median, s | efficiency | bits |",
        "| --- | --- | --- | --- | --- |",
        f"| one daemon, one run | {min(first):.3f} | {statistics.median(first):.3f} | 1 | |",
    ]
    for name in engines:
        for processes in (1, 2, 4):
            with ENGINES[name](processes) as (simulate, _):

                def call(simulate: Callable[..., Any] = simulate, processes: int = processes) -> Any:
                    chunks = -(-n // processes // 256) * 256
                    return simulate(oscillator, max_steps=STEPS, chunks=chunks, **arguments(n))

                found = call()
                same = found["energy"].tobytes() == expected["energy"].tobytes() and all(
                    plane.tobytes() == expected[key].tobytes() for key, plane in found.gather("x", "v").items()
                )
                # In turns with the one daemon: the machine is others', too.
                mine, beside = [], []
                for _ in range(repeats):
                    mine += times(call, 1)
                    beside += times(alone, 1)
                rows.append(
                    f"| {name}, {processes} {'process' if processes == 1 else 'processes'} | {min(mine):.3f} | "
                    f"{statistics.median(mine):.3f} | {min(beside) / min(mine):.2f} | "
                    f"{'equal' if same else '**other**'} |"
                )
                print(rows[-1], flush=True)
    return rows


def machine() -> str:
    """In words."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{model.group(1) if model else platform.machine()}, {len(os.sched_getaffinity(0))} CPUs"


def costs(n: int, repeats: int) -> dict[str, Any]:
    """The measured costs of the model of very large batches, in processor time: others keep this machine busy."""
    from harness import cpu_seconds

    found: dict[str, Any] = {}
    alone, expected = one_daemon(n)
    daemon, cores = expected.report.host.pid, len(os.sched_getaffinity(0))
    before = cpu_seconds(daemon)
    times(alone, repeats)
    found["sample_s"] = (cpu_seconds(daemon) - before) / (repeats * n * cores)
    found["build_s"] = expected.report.build_s
    count = 2000
    work = cluster._work.work_of(
        "measure",
        oscillator,
        arguments(256 * count),
        until=None,
        chunks=256,
        parts=1,
        endpoint=None,
        options={"max_steps": 1},
    )
    pieces = cluster._driver.pieces_of(work)

    def told(piece: Any) -> bytes:
        kept = _node.run_shard(piece.work, piece.shard, list(piece.inputs), *piece.inputs.values())
        return _node.told_of(kept)["told"]

    told(pieces[0])
    before = cpu_seconds(daemon) + time.process_time()
    results = [told(piece) for piece in pieces]
    found["shard_s"] = (cpu_seconds(daemon) + time.process_time() - before) / count
    before = time.process_time()
    _core.combine_shards(results)
    found["combine_s"] = (time.process_time() - before) / count
    with dask_of(2) as (simulate, scheduler):
        few = 400
        simulate(oscillator, max_steps=1, chunks=256, **arguments(256 * few))
        before = cpu_seconds(scheduler)
        result = simulate(oscillator, max_steps=1, chunks=256, **arguments(256 * few))
        found["schedule_s"] = (cpu_seconds(scheduler) - before) / few
        found["sent_bytes"] = result.traffic.sent // few
        found["received_bytes"] = result.traffic.received // few
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engines", default="dask,ray")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    os.environ["EAGLE_CACHE_DIR"] = ""
    load = os.getloadavg()[0]
    engines = [name for name in asked.engines.split(",") if name]
    rows = table(asked.samples, asked.repeats, engines) if engines else []
    print("\n".join(rows))
    measured = costs(asked.samples, asked.repeats)
    print(json.dumps(measured, indent=2))
    if asked.write:
        about = f"measured by tests/bench/scale/measure.py; {machine()}; load average {load:.0f}"
        (HERE / "costs.json").write_text(json.dumps({"about": about, **measured}, indent=2) + "\n")
        if not rows:
            return 0
        page = ROOT / "docs/measurements/scale.md"
        head = page.read_text().split("<!-- made below -->")[0]
        made = f"`measure.py --samples {asked.samples} --repeats {asked.repeats}`; {about.partition('; ')[2]}.\n\n"
        page.write_text(head + "<!-- made below -->\n\n" + made + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
