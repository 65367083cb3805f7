"""A client that writes wild values into all memory that it shares with the daemon while its launches run.

scribbler.py SECONDS        connects as EAGLE_ENDPOINT and the environment's TOKEN say

Prints "scribbling" once it is at it, then what came of it as JSON: values written into the ring and into planes, and
launches that ended well and badly. Its own launches may do anything but harm others: its own library reads what it
scribbles on, too.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import threading
import time
from pathlib import Path

import eagle
from eagle import Index, Mutable, Param, Scalar, Table, kernel

SEED = 20_261_130
SLOTS, HEADER_BYTES, SLOT_BYTES = 64, 128, 1024  # proto/ring/layout.h


@kernel
def gather(x: Mutable[Scalar], i: Index, t: Table[Scalar], by: Param):
    x = x + t.at(i) + by


def ring_address() -> int:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "memfd:eagle-ring" in line:
            return int(line.partition("-")[0], 16)
    raise AssertionError("this session has no ring: the test would show nothing")


class Scribbler:
    def __init__(self, graph: eagle.Graph, arrays: list, end: float) -> None:
        self.ring, self.planes, self.launched, self.failed = 0, 0, 0, 0
        self._graph, self._arrays, self._end = graph, arrays, end
        self._address = ring_address()

    def scribble_ring(self, whole: bool) -> None:
        """Any word of the ring; or, so that many launches come through, requests as they might be: fields of slots."""
        chance = random.Random(f"{SEED} {whole}")
        wild = [0, 1, 2, 3, 4, 5, 7, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
        while time.monotonic() < self._end:
            for _ in range(100):
                slot = HEADER_BYTES + SLOT_BYTES * chance.randrange(SLOTS)
                if whole:
                    word = self._address + 8 * chance.randrange((HEADER_BYTES + SLOTS * SLOT_BYTES) // 8)
                    ctypes.c_uint64.from_address(word).value = chance.choice([*wild, chance.getrandbits(64)])
                else:
                    field = chance.choice((8, 16, 24, 32, 40, 64, 72, 80, 88, 128, 136, 456))
                    ctypes.c_uint64.from_address(self._address + slot + field).value = chance.choice(wild)
                    state = chance.choice((0, 1, 1, 1, 3, 4, 5, 99))
                    ctypes.c_uint32.from_address(self._address + slot).value = state
            self.ring += 100
            time.sleep(0.0005 if whole else 0.005)

    def scribble_planes(self) -> None:
        chance = random.Random(SEED)
        while time.monotonic() < self._end:
            for array in self._arrays:
                bits = array.view("int64")
                bits[chance.randrange(len(bits))] = chance.choice((-1, 2**62, -(2**63), 0x7FF8 << 48, 0))
            self.planes += len(self._arrays)
            time.sleep(0)

    def launch(self) -> None:
        while time.monotonic() < self._end:
            try:
                self._graph.launch(timeout=0.2)
                self.launched += 1
            except eagle.EagleError:
                self.failed += 1


def main() -> None:
    session = eagle.connect(auth=os.environ.get("TOKEN"))
    assert session.transport.endswith("ring"), session.transport
    x, i, t = session.zeros(100_000), session.zeros(100_000, dtype="int64"), session.full(1000, 1.0)
    graph = eagle.Graph(session).add(eagle.plan(gather).bind(x=x, i=i, t=t, by=1.0), name="gather").build().launch()
    scribbler = Scribbler(graph, [x, i, t], time.monotonic() + float(sys.argv[1]))
    at_it = [scribbler.scribble_planes, *([scribbler.launch] * 3)]
    threads = [threading.Thread(target=work, daemon=True) for work in at_it]
    threads += [threading.Thread(target=scribbler.scribble_ring, args=(whole,), daemon=True) for whole in (False, True)]
    for thread in threads:
        thread.start()
    print("scribbling", flush=True)
    for thread in threads:
        thread.join(float(sys.argv[1]) + 5.0)  # a launch whose slot was written over may wait for ever
    told = {name: getattr(scribbler, name) for name in ("ring", "planes", "launched", "failed")}
    print(json.dumps(told), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
