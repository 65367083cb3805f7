"""Runs one call 200 times where it was told to and prints a digest of the bits: `same_bits.py local|ENDPOINT`.

Every call must give the bits of the first; which bits these are is compared between processes.
"""

import hashlib
import os
import sys

import eagle
import numpy as np
from models import mixed


def main(where: str) -> None:
    numbers = np.random.default_rng(11)
    session = eagle.local() if where == "local" else eagle.connect(where)
    with session:
        x, y = session.asarray(numbers.normal(size=5003)), session.asarray(numbers.normal(size=5003))
        k = session.asarray(numbers.integers(-5, 5, size=5003))
        digests = set()
        for _ in range(200):
            u, w = mixed(x, y, k, 0.37)
            digests.add(hashlib.sha256(u.tobytes() + w.tobytes()).hexdigest())
        assert len(digests) == 1, f"{len(digests)} different results in 200 calls"
        print(len(os.sched_getaffinity(0)), digests.pop())


main(sys.argv[1])
