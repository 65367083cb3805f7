"""How long after Ctrl-C a long run in Python has raised KeyboardInterrupt.

    PYTHONPATH=build/release/python python3 tests/bench/interrupt.py [REPEATS]

In process and through a private daemon; minimum, median and maximum in milliseconds, from the signal to the except
clause. tests/bench/stopping.cpp has what a C++ program can do.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import threading
import time

import eagle
import numpy as np
from eagle import Mutable, Scalar, Terminated, kernel


@kernel
def endless(x: Mutable[Scalar], v: Mutable[Scalar], done: Terminated):
    x, v = x + 1e-3 * v, v - 1e-3 * x
    done = x < -1e300


def interrupted(session: eagle.Session, n: int) -> float:
    planes = {"x": session.full(n, 1.0), "v": session.zeros(n), "done": session.zeros(n, dtype=bool)}
    eagle.simulate(endless, max_steps=1, **planes)  # compiles
    sent = [0.0]

    def interrupt() -> None:
        time.sleep(0.05 + 0.1 * np.random.default_rng().random())
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        eagle.simulate(endless, max_steps=2**62, **planes)
    except KeyboardInterrupt:
        took = time.perf_counter() - sent[0]
    thread.join()
    return 1e3 * took


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for name, session in (("in process", eagle.local()), ("daemon", eagle.connect())):
        for n in (1_000, 100_000):
            times = [interrupted(session, n) for _ in range(repeats)]
            print(f"{name:11}{n:>9} samples {min(times):8.2f}{statistics.median(times):8.2f}{max(times):8.2f}")
        session.close()


main()
