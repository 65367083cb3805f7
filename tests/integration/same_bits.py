"""Runs the same calls 200 times where it was told to and prints a digest of the bits: `same_bits.py local|ENDPOINT`.

They hold what could go different ways, in float64 and in float32. Every time must give the bits of the first; which
bits these are is compared between processes.
"""

import hashlib
import os
import sys

import eagle
import numpy as np
from models import everything, mixed


def shared(session: eagle.Session, numbers: np.random.Generator, dtype: type, samples: int):
    """A call of `everything`, as a function that gives the bytes of all it makes."""
    x, y, table = (session.asarray(numbers.normal(size=size).astype(dtype)) for size in (samples, samples, 7))
    k = session.asarray(numbers.integers(-2, 9, size=samples))  # some outside of the table and the accumulator

    def call() -> bytes:
        h = session.zeros(7, dtype=dtype)
        found = everything(x, y, k, table, h, 0.37)
        assert found[-1].all()
        assert h.any()
        return b"".join(array.tobytes() for array in (*found, h))

    return call


def main(where: str) -> None:
    numbers = np.random.default_rng(11)
    session = eagle.local() if where == "local" else eagle.connect(where)
    with session:
        x, y = session.asarray(numbers.normal(size=5003)), session.asarray(numbers.normal(size=5003))
        k = session.asarray(numbers.integers(-5, 5, size=5003))
        # More than one tile of samples, so that the team's threads take turns.
        others = [shared(session, numbers, dtype, 20_011) for dtype in (np.float64, np.float32)]
        digests = set()
        for _ in range(200):
            u, w = mixed(x, y, k, 0.37)
            bits = u.tobytes() + w.tobytes() + b"".join(call() for call in others)
            digests.add(hashlib.sha256(bits).hexdigest())
        assert len(digests) == 1, f"{len(digests)} different results in 200 calls"
        print(len(os.sched_getaffinity(0)), digests.pop())


main(sys.argv[1])
