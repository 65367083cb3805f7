"""The edges are what the order needs: every order that keeps them gives the bits of the serial one, none is idle where
data flows, and accepted siblings may run in any order."""

from __future__ import annotations

import itertools
import os
import random
from typing import Callable

import numpy as np
import pytest

import eagle
from eagle.graph import opaque

# A prime so large that two orders hardly ever agree by chance, and whose square fits 64 bits.
MODULUS = 2**31 - 1
GRAPHS = 400 if os.environ.get("EAGLE_LONG") else 60


class Program:
    """Random nodes over random views of a few arrays. Each node reads, and writes what depends on all it read and on what
    was there, so that the order of two nodes on one byte shows."""

    def __init__(self, chance: random.Random, nodes: int) -> None:
        self.start = [np.array([chance.randrange(101) for _ in range(24)]) for _ in range(chance.randint(1, 4))]
        self.arrays = [array.copy() for array in self.start]
        self.touches = [(self.views(chance, 0, 2), self.views(chance, 1, 2)) for _ in range(nodes)]
        self.seen: dict[int, int] = {}

    def views(self, chance: random.Random, least: int, most: int) -> list[np.ndarray]:
        return [self.view(chance) for _ in range(chance.randint(least, most))]

    def view(self, chance: random.Random) -> np.ndarray:
        array = chance.choice(self.arrays)
        if chance.random() < 0.5:
            array = array.reshape(6, 4)[:, chance.randrange(4)]
        start, stop = sorted(chance.sample(range(len(array) + 1), 2))
        return array[start : stop : chance.choice([1, 1, 2, 3])]

    def node(self, number: int) -> Callable[[], None]:
        reads, writes = self.touches[number]

        def work() -> None:
            total = sum(int(view.sum()) for view in reads)
            self.seen[number] = total
            for view in writes:
                view[...] = (view * view + 7 * total + number + 1) % MODULUS

        return work

    def graph(self) -> eagle.Graph:
        g = eagle.Graph()
        for number in range(len(self.touches)):
            g.add_node(self.opaque(number))
        return g

    def opaque(self, number: int) -> eagle.graph.Node:
        reads, writes = self.touches[number]
        # A node that writes sees what was there: it updates in place.
        return opaque(self.node(number), reads=[*reads, *writes], writes=writes)

    def run(self, order: list[int]) -> tuple[bytes, dict[int, int]]:
        self.reset()
        for number in order:
            self.node(number)()
        return b"".join(array.tobytes() for array in self.arrays), dict(self.seen)

    def reset(self) -> None:
        self.seen.clear()
        for array, start in zip(self.arrays, self.start):
            array[...] = start


def any_order(chance: random.Random, nodes: int, edges: set[tuple[int, int]]) -> list[int]:
    """A random order of the nodes that keeps the edges."""
    before = {node: {src for src, dst in edges if dst == node} for node in range(nodes)}
    order: list[int] = []
    while len(order) < nodes:
        ready = [node for node in before if node not in order and before[node] <= set(order)]
        order.append(chance.choice(ready))
    return order


def swapped(nodes: int, edges: set[tuple[int, int]], src: int, dst: int) -> list[int] | None:
    """An order that keeps all other edges and has `dst` before `src`; None where those force the order."""
    rest = edges - {(src, dst)} | {(dst, src)}
    order: list[int] = []
    while len(order) < nodes:
        ready = [n for n in range(nodes) if n not in order and all(s in order for s, d in rest if d == n)]
        if not ready:
            return None
        order.append(ready[0])
    return order


@pytest.fixture
def chance():
    seed = int(os.environ.get("EAGLE_TEST_SEED", random.SystemRandom().getrandbits(48)))
    print(f"EAGLE_TEST_SEED={seed} makes this test do the same again")
    return random.Random(seed)


@pytest.fixture(autouse=True)
def _in_process():
    with eagle.local():
        yield


def test_every_order_that_keeps_the_edges_gives_the_bits_of_the_serial_one(chance):
    for _ in range(GRAPHS):
        nodes = chance.randint(2, 60)
        program = Program(chance, nodes)
        edges = {(edge.src, edge.dst) for edge in program.graph().edges()}
        expected = program.run(list(range(nodes)))
        for _ in range(5):
            order = any_order(chance, nodes, edges)
            assert program.run(order) == expected, order


def test_no_edge_along_which_data_flows_can_be_left_out(chance):
    tried = 0
    for _ in range(GRAPHS):
        nodes = chance.randint(2, 12)
        program = Program(chance, nodes)
        listed = program.graph().edges()
        edges = {(edge.src, edge.dst) for edge in listed}
        expected = program.run(list(range(nodes)))
        for src, dst in sorted({(edge.src, edge.dst) for edge in listed if edge.kind == "RAW"}):
            order = swapped(nodes, edges, src, dst)
            if order is None:
                continue
            assert any_order(chance, nodes, edges) != order  # that is what the edge forbids
            assert program.run(order) != expected, (src, dst, order)
            tried += 1
    assert tried > GRAPHS


def test_accepted_siblings_may_run_in_any_order(chance):
    accepted = 0
    while accepted < GRAPHS // 4:
        nodes = chance.randint(2, 4)
        program = Program(chance, nodes)
        results = set()
        try:
            for order in itertools.permutations(range(nodes)):
                g = eagle.Graph().add_group([program.opaque(number) for number in order]).build()
                program.reset()
                g.launch()
                results.add(b"".join(array.tobytes() for array in program.arrays))
        except eagle.RacingSiblings:
            assert not results  # refused in every order
            continue
        accepted += 1
        assert len(results) == 1
