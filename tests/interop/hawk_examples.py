"""Kernels in raptor-hawk's language, after the public examples of it: each with its arrays.

Read twice: where eagle converts the kernels, and in the environment where raptor-hawk itself runs them.
"""

import hawk
import numpy as np
from hawk import Index, Matrix, Mutable, Param, Quat, Scalar, Table, Terminated, Vector
from hawk import math as hm

N = 257


def _rng():
    return np.random.default_rng(20)


@hawk.kernel
def scale(x: Scalar, a: Param, b: Param) -> Scalar:
    return a * x + b


@hawk.kernel
def energy(v: Vector[3], out: Mutable[Scalar]):
    out = 0.5 * hm.dot(v, v)


@hawk.kernel
def running_apogee(position: Vector[3], terminated: Terminated, r_max: Mutable[Scalar]):
    r_max = hm.maximum(r_max, hm.norm(position))


@hawk.kernel
def curve(x: Scalar, theta: Vector[16], y: Mutable[Scalar]):
    u = x * 15.0
    f = hm.floor(u)
    i = hm.index(f, 15)
    y = theta[i] * (1.0 - (u - f)) + theta[i + 1] * (u - f)


@hawk.kernel
def drag(velocity: Vector[3], k: Param) -> dict:
    speed = hm.norm(velocity)
    return {"acc": (-k * speed) * velocity, "speed": speed}


@hawk.kernel
def oscillator(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    dt: Param,
    t_end: Param,
    terminated: Terminated,
):
    before = x
    x = x + dt * v
    v = v - dt * omega * omega * before
    t = t + dt
    terminated = t >= t_end


@hawk.kernel
def contact(x: Scalar, v: Mutable[Scalar], k: Param, dt: Param):
    if x < 0.0:
        a = -9.81 - k * x
    else:
        a = -9.81
    v = v + dt * a


@hawk.kernel
def series(x: Scalar, y: Mutable[Scalar]):
    s = 0.0
    term = 1.0
    for k in range(1, 12):
        s = s + term
        if hm.abs(term) < 1e-4:
            break
        term = term * x / k
    y = s


@hawk.kernel
def gather(i: Index, t: Table[Scalar], y: Mutable[Scalar]):
    y = t.at(i) * 2.0


@hawk.kernel
def gather_named(i: Index, t: Table["row":5, "column":3], y: Mutable[Scalar]):
    y = t.at(row=i, column=1) + t.at(row=0, column=2)


@hawk.kernel
def attitude(q: Quat, v: Vector[3], m: Matrix[3, 3]) -> dict:
    return {"turned": hm.quat_rotate(q, v), "product": m @ v}


@hawk.kernel
def functions(x: Scalar, y: Scalar) -> tuple:
    return (
        hm.exp(x) * hm.sin(y),
        hm.atan2(y, x) + hm.hypot(x, y),
        hm.where(x > y, hm.sqrt(hm.abs(x)), hm.log1p(hm.abs(y))),
    )


@hawk.kernel
def total(x: Scalar, out: Mutable[Scalar]):
    out = hawk.sum(x)


def examples():
    """name -> (kernel, arguments, planes to compare, ULPs of a plane's largest value that may lie between).

    raptor-hawk's compiler fuses a product and a sum into one rounding where it can; ours never does. Gathers move
    values and change none.
    """
    rng = _rng()
    x, y, v = rng.normal(size=N), rng.normal(size=N), rng.normal(size=(3, N))
    quat = rng.normal(size=(4, N))
    quat /= np.sqrt((quat**2).sum(0))
    return {
        "scale": (scale, {"x": x, "a": 2.5, "b": -1.0}, ["out"], 2),
        "energy": (energy, {"v": v, "out": np.zeros(N)}, ["out"], 2),
        "running_apogee": (
            running_apogee,
            {"position": v, "terminated": np.arange(N) % 5 == 0, "r_max": np.full(N, 1.5)},
            ["r_max"],
            2,
        ),
        "curve": (curve, {"x": rng.uniform(size=N), "theta": rng.normal(size=(16, N)), "y": np.zeros(N)}, ["y"], 2),
        "drag": (drag, {"velocity": v, "k": 0.1}, ["acc", "speed"], 2),
        "oscillator": (
            oscillator,
            {
                "x": x.copy(),
                "v": np.zeros(N),
                "t": np.zeros(N),
                "omega": rng.uniform(1, 3, N),
                "dt": 0.5,
                "t_end": 0.5,
                "terminated": np.arange(N) % 3 == 0,
            },
            ["x", "v", "t", "terminated"],
            2,
        ),
        "contact": (contact, {"x": x, "v": y.copy(), "k": 1000.0, "dt": 0.01}, ["v"], 2),
        "series": (series, {"x": x, "y": np.zeros(N)}, ["y"], 2),
        "gather": (gather, {"i": np.arange(N) % 7, "t": rng.normal(size=7), "y": np.zeros(N)}, ["y"], 0),
        "gather_named": (
            gather_named,
            {"i": np.arange(N) % 5, "t": rng.normal(size=(5, 3)), "y": np.zeros(N)},
            ["y"],
            2,
        ),
        "attitude": (attitude, {"q": quat, "v": v, "m": rng.normal(size=(9, N))}, ["turned", "product"], 4),
        "functions": (functions, {"x": x, "y": y}, ["out0", "out1", "out2"], 2),
        "total": (total, {"x": x, "out": np.zeros(1)}, ["out"], 4),
    }
