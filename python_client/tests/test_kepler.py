"""Orbits around a point mass, by the Runge-Kutta-Fehlberg method of order 7(8) with a step size of each orbit's own.

The method is Table X of E. Fehlberg, Classical Fifth-, Sixth-, Seventh-, and Eighth-Order Runge-Kutta Formulas with
Stepsize Control, NASA TR R-287 (1968). Kepler's equation gives the exact positions.
"""

from __future__ import annotations

import math
import os

import numpy as np

import eagle
from eagle import Index, Mutable, Param, Scalar, Terminated, Vector, kernel

ORBITS = 10_000 if os.environ.get("EAGLE_LONG") else 1_000
T_END, TOLERANCE = 64.0, 1e-10
KNOWN_STEPS = {1_000: (324, 371, 688), 10_000: (323, 370, 691)}  # accepted: least, median, most


def pull(r):
    """The acceleration by a unit mass in the origin."""
    square = eagle.math.dot(r, r)
    return -1.0 / (square * math.sqrt(square)) * r


def worst(error, before, after, tolerance):
    """The largest component of the error, in units of what is allowed."""
    size = eagle.math.maximum(abs(before), abs(after))
    one = eagle.vector(1.0, 1.0, 1.0)
    ratio = abs(error) / (tolerance * (one + size))
    return eagle.math.maximum(ratio[0], eagle.math.maximum(ratio[1], ratio[2]))


@kernel
def fehlberg78(r: Mutable[Vector[3]], v: Mutable[Vector[3]], t: Mutable[Scalar], h: Mutable[Scalar],
               accepted: Mutable[Index], tolerance: Param, t_end: Param, done: Terminated):  # fmt: skip
    """One trial step of each orbit."""
    s = min(h, t_end - t)
    v1, a1 = v, pull(r)
    v2 = v + s * (2 / 27) * a1
    a2 = pull(r + s * (2 / 27) * v1)
    v3 = v + s * (1 / 36 * a1 + 1 / 12 * a2)
    a3 = pull(r + s * (1 / 36 * v1 + 1 / 12 * v2))
    v4 = v + s * (1 / 24 * a1 + 1 / 8 * a3)
    a4 = pull(r + s * (1 / 24 * v1 + 1 / 8 * v3))
    v5 = v + s * (5 / 12 * a1 - 25 / 16 * a3 + 25 / 16 * a4)
    a5 = pull(r + s * (5 / 12 * v1 - 25 / 16 * v3 + 25 / 16 * v4))
    v6 = v + s * (1 / 20 * a1 + 1 / 4 * a4 + 1 / 5 * a5)
    a6 = pull(r + s * (1 / 20 * v1 + 1 / 4 * v4 + 1 / 5 * v5))
    v7 = v + s * (-25 / 108 * a1 + 125 / 108 * a4 - 65 / 27 * a5 + 125 / 54 * a6)
    a7 = pull(r + s * (-25 / 108 * v1 + 125 / 108 * v4 - 65 / 27 * v5 + 125 / 54 * v6))
    v8 = v + s * (31 / 300 * a1 + 61 / 225 * a5 - 2 / 9 * a6 + 13 / 900 * a7)
    a8 = pull(r + s * (31 / 300 * v1 + 61 / 225 * v5 - 2 / 9 * v6 + 13 / 900 * v7))
    v9 = v + s * (2.0 * a1 - 53 / 6 * a4 + 704 / 45 * a5 - 107 / 9 * a6 + 67 / 90 * a7 + 3.0 * a8)
    a9 = pull(r + s * (2.0 * v1 - 53 / 6 * v4 + 704 / 45 * v5 - 107 / 9 * v6 + 67 / 90 * v7 + 3.0 * v8))
    v10 = v + s * (-91 / 108 * a1 + 23 / 108 * a4 - 976 / 135 * a5 + 311 / 54 * a6 - 19 / 60 * a7 + 17 / 6 * a8
                   - 1 / 12 * a9)  # fmt: skip
    a10 = pull(r + s * (-91 / 108 * v1 + 23 / 108 * v4 - 976 / 135 * v5 + 311 / 54 * v6 - 19 / 60 * v7 + 17 / 6 * v8
                        - 1 / 12 * v9))  # fmt: skip
    v11 = v + s * (2383 / 4100 * a1 - 341 / 164 * a4 + 4496 / 1025 * a5 - 301 / 82 * a6 + 2133 / 4100 * a7
                   + 45 / 82 * a8 + 45 / 164 * a9 + 18 / 41 * a10)  # fmt: skip
    a11 = pull(r + s * (2383 / 4100 * v1 - 341 / 164 * v4 + 4496 / 1025 * v5 - 301 / 82 * v6 + 2133 / 4100 * v7
                        + 45 / 82 * v8 + 45 / 164 * v9 + 18 / 41 * v10))  # fmt: skip
    v12 = v + s * (3 / 205 * a1 - 6 / 41 * a6 - 3 / 205 * a7 - 3 / 41 * a8 + 3 / 41 * a9 + 6 / 41 * a10)
    a12 = pull(r + s * (3 / 205 * v1 - 6 / 41 * v6 - 3 / 205 * v7 - 3 / 41 * v8 + 3 / 41 * v9 + 6 / 41 * v10))
    v13 = v + s * (-1777 / 4100 * a1 - 341 / 164 * a4 + 4496 / 1025 * a5 - 289 / 82 * a6 + 2193 / 4100 * a7
                   + 51 / 82 * a8 + 33 / 164 * a9 + 12 / 41 * a10 + a12)  # fmt: skip
    a13 = pull(r + s * (-1777 / 4100 * v1 - 341 / 164 * v4 + 4496 / 1025 * v5 - 289 / 82 * v6 + 2193 / 4100 * v7
                        + 51 / 82 * v8 + 33 / 164 * v9 + 12 / 41 * v10 + v12))  # fmt: skip

    next_r = r + s * (34 / 105 * v6 + 9 / 35 * (v7 + v8) + 9 / 280 * (v9 + v10) + 41 / 840 * (v12 + v13))
    next_v = v + s * (34 / 105 * a6 + 9 / 35 * (a7 + a8) + 9 / 280 * (a9 + a10) + 41 / 840 * (a12 + a13))
    off_r = s * (41 / 840) * (v1 + v11 - v12 - v13)
    off_v = s * (41 / 840) * (a1 + a11 - a12 - a13)
    ratio = eagle.math.maximum(worst(off_r, r, next_r, tolerance), worst(off_v, v, next_v, tolerance))
    if ratio < 1.0:
        r, v, t = next_r, next_v, t + s
        accepted = accepted + 1
        h = s * eagle.math.clip(0.9 * ratio ** (-1 / 9), 0.2, 5.0)
    else:
        h = s * eagle.math.clip(0.9 * ratio ** (-1 / 8), 0.2, 5.0)
    done = t >= t_end


def rotations(n):
    """Orbits lie in all directions: (n, 3, 3) rotation matrices from random quaternions."""
    q = np.random.default_rng(20261129).normal(size=(4, n))
    w, x, y, z = q / np.sqrt((q * q).sum(0))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def in_space(turn, flat):
    """Points of the orbits' planes, (2, n), turned into space, (3, n)."""
    return turn[:, 0] * flat[0] + turn[:, 1] * flat[1]


def exact_positions(e, t):
    """From the pericentre on, with semi-major axis 1: Newton's method for E - e sin E = t."""
    anomaly = np.full_like(e, t)
    for _ in range(100):
        anomaly = anomaly - (anomaly - e * np.sin(anomaly) - t) / (1 - e * np.cos(anomaly))
    return np.array([np.cos(anomaly) - e, np.sqrt(1 - e * e) * np.sin(anomaly)])


def test_adaptive_orbits_take_the_known_numbers_of_steps_and_end_where_kepler_says(session):
    e, turn = np.linspace(0.0, 0.9, ORBITS), rotations(ORBITS)
    start = in_space(turn, np.array([1 - e, 0 * e])), in_space(turn, np.array([0 * e, np.sqrt((1 + e) / (1 - e))]))
    r, v = (session.asarray(part) for part in start)
    t, h = session.zeros(ORBITS), session.full(ORBITS, 1.0)
    accepted, done = session.zeros(ORBITS, dtype=np.int64), session.zeros(ORBITS, dtype=bool)
    result = eagle.simulate(
        fehlberg78, max_steps=2_000, r=r, v=v, t=t, h=h, accepted=accepted, tolerance=TOLERANCE, t_end=T_END, done=done
    )
    assert result.status == "finished"
    assert (np.asarray(t) == T_END).all()

    # Exact for these directions, as every operation is. Other random directions gave 323 to 325, 368 to 382 and 682 to
    # 693: the norm takes the largest component, so an orbit's steps depend on how it lies. The least that was seen is
    # 322 (tilted by 45 degrees, e = .22), the most 693 (turned by 45 degrees in its plane, e = .9). A circle and orbits
    # in one plane, from peri- or apocentre, with root mean squares or vectors' lengths for a norm, or the old or new
    # state for a scale, lie further off.
    steps = np.asarray(accepted)
    assert (steps.min(), np.median(steps), steps.max()) == KNOWN_STEPS[ORBITS]

    off = np.asarray(r) - in_space(turn, exact_positions(e, T_END))
    distance = np.sqrt((off * off).sum(0))
    assert distance.max() < 3e-7  # about 2e-7 where the eccentricity is 0.9
    assert np.median(distance) < 1e-7
