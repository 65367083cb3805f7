"""What happens once in a process, for lines 14 and 15; prints one JSON object.

cold.py first ENDPOINT      decorator to first result of the oscillator; "" is this process
cold.py import MODULE...    each import in turn: seconds, and MiB that it added
"""

import importlib
import json
import sys
import time
from pathlib import Path


def first_result(endpoint: str) -> dict[str, float]:
    import eagle
    import numpy as np

    session = eagle.connect(endpoint) if endpoint else eagle.local()
    n = 1000
    planes = {"x": session.full(n, 1.0), "v": session.zeros(n), "t": session.zeros(n)}
    planes |= {"omega": session.asarray(np.linspace(1, 3, n)), "done": session.zeros(n, dtype=bool)}
    begin = time.perf_counter()

    @eagle.kernel
    def oscillator(
        x: eagle.Mutable[eagle.Scalar],
        v: eagle.Mutable[eagle.Scalar],
        t: eagle.Mutable[eagle.Scalar],
        omega: eagle.Scalar,
        dt: eagle.Param,
        t_end: eagle.Param,
        done: eagle.Terminated,
    ):
        x, v = x + dt * v, v - dt * omega * omega * x
        t = t + dt
        done = t >= t_end

    result = eagle.simulate(oscillator, max_steps=2000, session=session, dt=1e-3, t_end=1.0, **planes)
    took = time.perf_counter() - begin
    assert result.steps == 1000, result.steps
    x = planes["x"][0]
    session.close()
    return {"seconds": took, "x": float(x)}


def mib() -> float:
    rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    return int(rows["VmRSS"].split()[0]) / 1024


def imports(modules: list[str]) -> dict[str, list[float]]:
    found = {}
    for module in modules:
        before, begin = mib(), time.perf_counter()
        importlib.import_module(module)
        found[module] = [time.perf_counter() - begin, mib() - before]
    return found


if __name__ == "__main__":
    task, *words = sys.argv[1:]
    print(json.dumps(first_result(words[0]) if task == "first" else imports(words)))
