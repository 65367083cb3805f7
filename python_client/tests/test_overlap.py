"""Whether two views share a byte, against numpy: random views of every kind that people make."""

from __future__ import annotations

import os
import random

import numpy as np

import eagle
from eagle.graph import opaque

PAIRS = 100_000 if os.environ.get("EAGLE_LONG") else 20_000


def a_view(chance: random.Random, base: np.ndarray) -> np.ndarray:
    """A view of `base`: sliced, reversed, transposed, broadcast, of other items, a field, a part, a window."""
    view = any_strides(chance, base) if chance.random() < 0.3 else base
    for _ in range(chance.randint(0, 4)):
        view = chance.choice(WAYS)(chance, view)
    return view


def sliced(chance: random.Random, view: np.ndarray) -> np.ndarray:
    return view[(*(a_slice(chance, extent) for extent in view.shape), ...)]


def transposed(_: random.Random, view: np.ndarray) -> np.ndarray:
    return view.T


def repeated(chance: random.Random, view: np.ndarray) -> np.ndarray:
    return np.broadcast_to(view, (chance.randint(0, 3), *view.shape)) if view.ndim < 4 else view


def as_bytes(_: random.Random, view: np.ndarray) -> np.ndarray:
    whole = view.ndim and view.strides[-1] == view.itemsize and view.dtype.names is None
    return view.view(np.uint8) if whole else view


def a_part(chance: random.Random, view: np.ndarray) -> np.ndarray:
    """A field of a record, or the real or imaginary parts."""
    if view.dtype.names is not None:
        return view[chance.choice(view.dtype.names)]
    return chance.choice([view.real, view.imag]) if view.dtype.kind == "c" else view


def windows(chance: random.Random, view: np.ndarray) -> np.ndarray:
    one = view.ndim == 1 and view.size >= 3
    return np.lib.stride_tricks.sliding_window_view(view, chance.randint(1, 3)) if one else view


def one_row(chance: random.Random, view: np.ndarray) -> np.ndarray:
    return view[chance.randrange(view.shape[0]), ...] if view.ndim and view.shape[0] else view


WAYS = (sliced, sliced, transposed, repeated, as_bytes, a_part, windows, one_row)


def any_strides(chance: random.Random, base: np.ndarray) -> np.ndarray:
    """Strides that no slicing makes: overlapping rows, 0, bytes between items; within the memory of `base`."""
    left = base.nbytes - base.itemsize
    shape, strides = [], []
    for _ in range(chance.randint(1, 4)):
        extent, stride = chance.randint(1, 5), chance.randint(0, 40)
        if (extent - 1) * stride > left:
            extent = 1
        left -= (extent - 1) * stride
        shape.append(extent)
        strides.append(stride)
    return np.lib.stride_tricks.as_strided(base, shape, strides)


def a_slice(chance: random.Random, extent: int) -> slice:
    start, stop = sorted((chance.randint(0, extent), chance.randint(0, extent)))
    step = chance.choice([1, 1, 2, 3, 5])
    return slice(start, stop, step) if chance.random() < 0.7 else slice(None, None, -step)


def a_base(chance: random.Random) -> np.ndarray:
    dtype = chance.choice(["f8", "f4", "i8", "i2", "?", "c16", "c8", [("a", "f4"), ("b", "u1"), ("c", "f8")]])
    shape = tuple(chance.randint(1, 9) for _ in range(chance.randint(1, 3)))
    return np.zeros(shape, dtype)


def test_two_nodes_have_an_edge_where_numpy_says_that_their_arrays_share_memory():
    seed = int(os.environ.get("EAGLE_TEST_SEED", random.SystemRandom().getrandbits(48)))
    print(f"EAGLE_TEST_SEED={seed} makes this test do the same again")
    chance = random.Random(seed)
    shared = apart_within = 0
    base = a_base(chance)
    with eagle.local():
        for pair in range(PAIRS):
            if pair % 16 == 0:
                base = a_base(chance)
            one, other = a_view(chance, base), a_view(chance, base)
            if not one.flags.writeable:  # numpy's broadcast views are, and a node may not write those
                one, other = other, one
            if not one.flags.writeable:
                continue
            g = eagle.Graph().add_node(opaque(lambda: None, writes={"w": one}))
            g.add_node(opaque(lambda: None, reads={"r": other}))
            expected = np.shares_memory(one, other)
            assert [tuple(edge) for edge in g.edges()] == ([(0, 1, "w", "RAW")] if expected else []), (
                base.dtype,
                one.__array_interface__,
                other.__array_interface__,
            )
            shared += expected
            apart_within += not expected and np.may_share_memory(one, other)
    assert shared > PAIRS // 10
    assert apart_within > PAIRS // 100  # bounds alone would not do
