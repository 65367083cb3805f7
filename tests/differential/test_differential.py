"""The same random graphs in this package and in raptor-eagle 0.6.2: edges, refusals, schedules, bytes.

The packages differ where docs/manual/graph_model.md says so, and nowhere else: each stated difference has a test
that shows both sides of it.
"""

from __future__ import annotations

import os
import random
from typing import Any

import eagle
import eagle.graph
import graphs
import pytest

ROUNDS = 20 if os.environ.get("EAGLE_LONG") else 4
GRAPHS = 100  # a round


def both(reference: Any, graph: graphs.GraphData) -> tuple[dict[str, Any], dict[str, Any]]:
    with eagle.local():
        ours = graphs.build(eagle, graph)
    theirs = reference.build(graph)
    assert "error" not in theirs, theirs["error"]
    return ours, theirs


def opaque(name: str, reads: dict[str, str] | None = None, writes: dict[str, str] | None = None) -> dict[str, Any]:
    return {"kind": "opaque", "name": name, "reads": reads or {}, "writes": writes or {}}


def array(*shape: int, dtype: str = "f8", seed: int = 1) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": dtype, "seed": seed}


def view(of: str, *slices: Any) -> dict[str, Any]:
    return {"array": of, "slices": list(slices), "transposed": False}


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_random_graphs_mean_the_same(reference, round_number):
    seed = int(os.environ.get("EAGLE_TEST_SEED", random.SystemRandom().getrandbits(48)))
    print(f"EAGLE_TEST_SEED={seed} makes this test do the same again")
    chance = random.Random(seed)
    refused = 0
    for _ in range(GRAPHS):
        graph = graphs.random_graph(chance)
        ours, theirs = both(reference, graph)
        assert ours["labels"] == theirs["labels"], graph
        assert ours["edges"] == theirs["edges"], graph
        assert ("refused" in ours) == ("refused" in theirs), (graph, ours, theirs)
        if "refused" in ours:
            refused += 1
            continue
        assert ours["schedule"] == theirs["schedule"], graph
        assert ours["bytes"] == theirs["bytes"], graph
    assert 0 < refused < GRAPHS  # else the graphs are too tame or too wild to compare much


# ---- the stated differences


def test_a_guard_reads_its_cell_where_the_reference_takes_the_whole_array(reference):
    graph = {
        "arrays": {"x": array(8), "count": array(3, dtype="i8", seed=-2)},
        "views": {"x": view("x", [0, 8, 1]), "other": view("count", [1, 2, 1])},
        "stages": [
            {"node": opaque("setter", writes={"w": "other"})},
            {
                "node": {
                    "kind": "skippable",
                    "name": "maybe",
                    "guard": ["count", 0],
                    "cap": 1,
                    "step": opaque("step", writes={"x": "x"}),
                }
            },
        ],
    }
    ours, theirs = both(reference, graph)
    assert ours["edges"] == []
    assert theirs["edges"] == [[0, 1, "w", "RAW"]]


def test_column_blocks_of_a_tall_matrix_are_apart_where_the_reference_sees_an_overlap(reference):
    graph = {
        "arrays": {"m": array(20_000, 8)},
        "views": {"left": view("m", [0, 20_000, 1], [0, 4, 1]), "right": view("m", [0, 20_000, 1], [4, 8, 1])},
        "stages": [{"group": [[opaque("l", writes={"a": "left"})], [opaque("r", writes={"b": "right"})]]}],
    }
    ours, theirs = both(reference, graph)
    assert "refused" not in ours
    assert "refused" in theirs


def test_conditionals_nest_where_the_reference_refuses(reference):
    inner = {
        "kind": "skippable",
        "name": "inner",
        "guard": ["g", 0],
        "cap": 1,
        "step": opaque("step", writes={"x": "x"}),
    }
    graph = {
        "arrays": {"x": array(8), "g": array(1, dtype="i8", seed=-1)},
        "views": {"x": view("x", [0, 8, 1])},
        "stages": [{"node": {"kind": "repeat_while", "name": "outer", "guard": ["g", 0], "cap": 2, "step": inner}}],
    }
    with eagle.local():
        ours = graphs.build(eagle, graph)
    assert "refused" not in ours
    assert "error" in reference.build(graph) or "refused" in reference.build(graph)


def test_a_conditional_stands_beside_others_in_a_branch_where_the_reference_refuses(reference):
    guarded = {
        "kind": "skippable",
        "name": "maybe",
        "guard": ["g", 0],
        "cap": 1,
        "step": opaque("s", writes={"x": "x"}),
    }
    graph = {
        "arrays": {"x": array(8), "y": array(8), "g": array(1, dtype="i8", seed=-1)},
        "views": {"x": view("x", [0, 8, 1]), "y": view("y", [0, 8, 1])},
        "stages": [{"group": [[guarded, opaque("after", reads={"x": "x"})], [opaque("other", writes={"y": "y"})]]}],
    }
    ours, theirs = both(reference, graph)
    assert ours["edges"] == theirs["edges"] == [[0, 1, "x", "RAW"]]
    assert "refused" not in ours
    assert "refused" in theirs


def test_racing_siblings_are_named_by_both(reference):
    graph = {
        "arrays": {"x": array(8)},
        "views": {"x": view("x", [0, 8, 1]), "tail": view("x", [4, 8, 1])},
        "stages": [{"group": [[opaque("left", writes={"p": "x"})], [opaque("right", reads={"q": "tail"})]]}],
    }
    for found in both(reference, graph):
        for word in ("left", "right", "p", "q"):
            assert word in found["refused"]
