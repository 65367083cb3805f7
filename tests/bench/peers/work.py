"""What a peer's case returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Where the peer computes: "cpu", "cuda:0".
DEVICE = os.environ.get("BENCH_DEVICE", "cpu")
ON_GPU = DEVICE != "cpu"


@dataclass
class Work:
    """As ``frame.Form``: ``run`` is timed, ``reset`` is not, ``answer`` gives arrays to compare."""

    run: Callable[[], float | None]
    answer: Callable[[], Any] | None = None
    reset: Callable[[], object] = lambda: None
    units: int = 1


def state(start: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], Callable[[], None]]:
    """Copies of these arrays, and what puts them back."""
    arrays = {name: array.copy() for name, array in start.items()}

    def reset() -> None:
        for name, array in start.items():
            arrays[name][...] = array

    return arrays, reset
