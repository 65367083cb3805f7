"""The numbers that cases and peers begin with. Needs numpy alone: peers import it in an environment of their own."""

from __future__ import annotations

import math

import numpy as np

SEED = 20261130
DT, DAMPING = 1e-3, 0.1
J2_STEP = 0.01


def chain_links() -> np.ndarray:
    """(a, b) of sixteen y = a x + b."""
    i = np.arange(16.0)
    return np.stack([1.0 + i / 64, 0.5 - i / 32], axis=1)


def chain_start(n: int) -> np.ndarray:
    return 1.0 + np.arange(n) % 1000 / 1000


def oscillators(n: int, spread: bool, ordered: bool = False) -> dict[str, np.ndarray]:
    """n oscillators that end together at t = 1, or spread over (0, 1]; ``ordered``: sorted by end."""
    omega, t_end = 1.0 + 2.0 * np.arange(n) / n, np.ones(n)
    if spread:
        t_end = 1.0 - np.random.default_rng(SEED).random(n)
    if ordered:
        order = np.argsort(t_end, kind="stable")
        omega, t_end = omega[order], t_end[order]
    return {"x": np.ones(n), "v": np.zeros(n), "t": np.zeros(n), "omega": omega, "t_end": t_end}


def satellites(n: int) -> dict[str, np.ndarray]:
    """n circular orbits, of inclinations from 0 to 90 degrees; 1,000 steps of J2_STEP."""
    angle = np.linspace(0.0, math.pi / 2, n)
    r, v = np.zeros((3, n)), np.zeros((3, n))
    r[0], v[1], v[2] = 1.0, np.cos(angle), np.sin(angle)
    return {"r": r, "v": v, "t": np.zeros(n), "t_end": np.full(n, 1000 * J2_STEP - J2_STEP / 2)}


def reals(n: int, low: float = -4.0, high: float = 4.0, seed: int = SEED) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, n)


def keys(n: int, cells: int, kind: str) -> np.ndarray:
    """``kind``: uniform, sorted or one-hot."""
    if kind == "one-hot":
        return np.full(n, cells // 2)
    found = np.random.default_rng(SEED).integers(0, cells, n)
    return np.sort(found) if kind == "sorted" else found


def aligned(n: int) -> np.ndarray:
    """n zeros from an address that any vector may be streamed to."""
    whole = np.zeros(n + 8)
    first = -whole.ctypes.data // 8 % 8
    return whole[first : first + n]
