"""Batches that outgrow one machine, sharded over many daemons by an engine that people already have.

This is what :mod:`eagle.dask`, :mod:`eagle.ray` and :mod:`eagle.cluster.job` share: how a batch is cut, what travels to
a worker (kernels as descriptions, never as code), what stays there (arrays, in the planes of the worker's daemon), what
happens when a worker is lost (its shards are run again), and how results become those of one run, bit for bit.

>>> from eagle import cluster
>>> cluster.sizes_of(1000, chunks=512)
(512, 488)
"""

from __future__ import annotations

from eagle.cluster._cuts import shards_of, sizes_of
from eagle.cluster._driver import Engine, Traffic
from eagle.cluster._graph import ShardedGraph, ShardedPlanes
from eagle.cluster._results import Sharded, ShardedArray, Worker
from eagle.cluster._sources import Filled, full, zeros

__all__ = [
    "Engine",
    "Filled",
    "Sharded",
    "ShardedArray",
    "ShardedGraph",
    "ShardedPlanes",
    "Traffic",
    "Worker",
    "full",
    "shards_of",
    "sizes_of",
    "zeros",
]
