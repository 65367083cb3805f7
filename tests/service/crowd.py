"""One process of a crowd: many sessions, some of which launch as fast as they can.

crowd.py SESSIONS LAUNCHING SECONDS

Prints "ready", waits for a line, launches for so many seconds, and prints what came of it as JSON: launches that
were acknowledged, those that the planes did not count once, and latencies in microseconds. After another line it
closes its sessions and ends.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import eagle
from eagle import Index, Mutable, Param, kernel


@kernel
def count(n: Mutable[Index], step: Param):
    n = n + 1 if step > 0.0 else n


def launch_until(end: float, graph: eagle.Graph, latencies: list[float]) -> None:
    while (began := time.monotonic()) < end:
        graph.launch()
        latencies.append(time.monotonic() - began)


def main() -> None:
    sessions, launching, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    opened = [eagle.connect() for _ in range(sessions)]
    planes, graphs = [], []
    for session in opened[:launching]:
        planes.append(session.zeros(16, dtype="int64"))
        graph = eagle.Graph(session)
        graph.add(eagle.plan(count).bind(n=planes[-1], step=1.0), name="count")
        graphs.append(graph.build().launch())  # the first launch opens what the others use
        planes[-1][:] = 0
    print("ready", flush=True)
    sys.stdin.readline()

    latencies: list[list[float]] = [[] for _ in graphs]
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=launch_until, args=(end, graph, times))
        for graph, times in zip(graphs, latencies, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    acknowledged = [len(times) for times in latencies]
    wrong = [
        f"{told} acknowledged, {plane.tolist()} counted"
        for told, plane in zip(acknowledged, planes, strict=True)
        if plane.tolist() != [told] * 16
    ]
    every = sorted(1e6 * value for times in latencies for value in times)
    result = {
        "launches": sum(acknowledged),
        "wrong": wrong,
        "median_us": every[len(every) // 2],
        "p99_us": every[int(0.99 * len(every))],
        "max_us": every[-1],
    }
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
    del graph, graphs, planes
    for session in opened:
        session.close()


if __name__ == "__main__":
    main()
