"""Graphs as plain data, made at random, and how either package builds and runs one. Imports neither package.

A graph is a dict that JSON can carry:

    arrays  name -> {"shape": [...], "dtype": "f8", "seed": n}
    views   name -> {"array": name, "slices": [[start, stop, step] a dimension, or an index], "transposed": bool}
    stages  a list of {"node": NODE} and {"group": [[NODE, ...], ...]}
    NODE    {"kind": "opaque", "name", "reads": {plane: view}, "writes": {plane: view}}, or
            {"kind": "skippable" | "repeat_while", "name", "guard": [array, index], "step": NODE, "cap": n}
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

GraphData = dict[str, Any]


def random_graph(chance: random.Random) -> GraphData:
    """Few small arrays and many views of them, so that bytes are shared in every way; guards have arrays of their own
    of one cell, because the packages differ in what a guard reads of a longer one."""
    arrays: dict[str, Any] = {}
    for i in range(chance.randint(1, 4)):
        shape = chance.choice([[8], [12], [6, 4], [3, 5], [2, 3, 4]])
        arrays[f"a{i}"] = {"shape": shape, "dtype": chance.choice(["f8", "f4", "i8"]), "seed": chance.randrange(1000)}
    views = {f"v{i}": _random_view(chance, arrays) for i in range(chance.randint(2, 8))}
    for i in range(2):
        arrays[f"guard{i}"] = {"shape": [1], "dtype": "i8", "seed": -chance.randint(0, 3)}
    stages = [_random_stage(chance, list(views), stage) for stage in range(chance.randint(1, 7))]
    return {"arrays": arrays, "views": views, "stages": stages}


def _random_view(chance: random.Random, arrays: dict[str, Any]) -> dict[str, Any]:
    array = chance.choice(sorted(arrays))
    slices: list[Any] = []
    for extent in arrays[array]["shape"]:
        if len(arrays[array]["shape"]) > 1 and chance.random() < 0.3:
            slices.append(chance.randrange(extent))
            continue
        start = chance.randrange(extent)
        stop = chance.randint(start + 1, extent)
        step = chance.choice([1, 1, 1, 2, 3])
        if chance.random() < 0.2:
            slices.append([stop - 1, None if start == 0 else start - 1, -step])
        else:
            slices.append([start, stop, step])
    return {"array": array, "slices": slices, "transposed": chance.random() < 0.2}


def _random_stage(chance: random.Random, views: list[str], stage: int) -> dict[str, Any]:
    if chance.random() < 0.7:
        return {"node": _random_node(chance, views, f"n{stage}")}
    return {"group": [_random_branch(chance, views, f"n{stage}_{i}") for i in range(chance.randint(2, 3))]}


def _random_branch(chance: random.Random, views: list[str], name: str) -> list[dict[str, Any]]:
    """A conditional is alone in its branch: the reference wants it so."""
    first = _random_node(chance, views, f"{name}_0")
    if first["kind"] != "opaque" or chance.random() < 0.5:
        return [first]
    return [first, _random_opaque(chance, views, f"{name}_1")]


def _random_opaque(chance: random.Random, views: list[str], name: str) -> dict[str, Any]:
    def some(prefix: str, most: int) -> dict[str, str]:
        return {f"{prefix}{i}": chance.choice(views) for i in range(chance.randint(0, most))}

    return {"kind": "opaque", "name": name, "reads": some("r", 2), "writes": some("w", 2)}


def _random_node(chance: random.Random, views: list[str], name: str) -> dict[str, Any]:
    kind = chance.choices(["opaque", "skippable", "repeat_while"], [8, 1, 1])[0]
    if kind == "opaque":
        return _random_opaque(chance, views, name)
    return {
        "kind": kind,
        "name": name,
        "guard": [f"guard{chance.randrange(2)}", 0],
        "step": _random_opaque(chance, views, name + "_step"),
        "cap": chance.randint(1, 4),
    }


# ---- the same for both packages


def build(package: ModuleType, data: GraphData, threads: int = 1) -> dict[str, Any]:
    """What `package` makes of the graph: edges, labels, schedule or refusal, and the bytes after two launches."""
    arrays = {name: _array(**what) for name, what in data["arrays"].items()}
    views = {name: _view(arrays[what["array"]], what) for name, what in data["views"].items()}
    graph = package.Graph()
    for stage in data["stages"]:
        if "node" in stage:
            node = stage["node"]
            graph.add_node(_node(package, node, arrays, views), name=node["name"])
        else:
            branches = [[_node(package, node, arrays, views) for node in branch] for branch in stage["group"]]
            graph.add_group(branches)
    found: dict[str, Any] = {
        "edges": [[edge.src, edge.dst, edge.plane, edge.kind] for edge in graph.edges()],
        "labels": list(graph.node_labels()),
    }
    try:
        graph.build()
    except ValueError as refusal:
        return {**found, "refused": str(refusal)}
    graph.launch(2)
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()
    return {**found, "schedule": list(graph.schedule), "bytes": digest}


def _array(shape: list[int], dtype: str, seed: int) -> np.ndarray:
    if seed < 0:  # a guard: counts down from here
        return np.full(shape, -seed, dtype)
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)


def _view(array: np.ndarray, what: dict[str, Any]) -> np.ndarray:
    view = array[tuple(slice(*part) if isinstance(part, list) else slice(part, part + 1) for part in what["slices"])]
    return view.T if what["transposed"] else view


def _node(package: ModuleType, node: dict[str, Any], arrays: dict[str, Any], views: dict[str, Any]) -> Any:
    if node["kind"] == "opaque":
        reads = {plane: views[view] for plane, view in node["reads"].items()}
        writes = {plane: views[view] for plane, view in node["writes"].items()}
        return package.graph.opaque(_work(reads, writes), reads=reads, writes=writes, name=node["name"])
    array, index = node["guard"]
    guard = package.SkipGuard(arrays[array], index)
    step = _node(package, node["step"], arrays, views)
    if node["kind"] == "skippable":
        return package.skippable(step, guard)
    return package.repeat_while(step, guard, node["cap"])


def _work(reads: dict[str, np.ndarray], writes: dict[str, np.ndarray]) -> Callable[[], None]:
    """Small whole numbers only, so that the order of additions does not show and the order of nodes does."""

    def work() -> None:
        total = sum(int(array.sum()) for array in reads.values()) % 97
        for number, array in enumerate(writes.values()):
            array[...] = (array * 3 + total + number) % 101

    return work
