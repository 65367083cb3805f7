"""Kernels in raptor-hawk's language, after the public examples of it: each with its arrays.

Read twice: where eagle converts the kernels, and in the environment where raptor-hawk itself runs them.
"""

import hawk
import numpy as np
from hawk import Grid, Index, Matrix, Mutable, Param, Quat, Scalar, Table, Terminated, Vector
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


@hawk.kernel
def quotient(i: Index, j: Index, q: Mutable[Index], r: Mutable[Index]):
    q = i / j
    r = (i % 7) // 2


@hawk.kernel
def folded(x: Scalar, t: Table[Scalar], y: Mutable[Scalar]):
    row, column = hm.split_index(4)
    y = x + 100.0 * t.at(column) + row


@hawk.kernel
def on_a_grid(g: Grid["row":3, "col":4], x: Scalar, y: Mutable[Scalar]):
    y = x + 10.0 * g.row + g.col


@hawk.kernel
def neighbours(g: Grid["row":3, "col":4], x: Scalar, y: Mutable[Scalar]):
    y = x - x.at(row=g.row, col=0)


@hawk.kernel
def shifted(x: Scalar, y: Mutable[Scalar]):
    y = 2.0 * x.at(hm.sample_index() / 2)


@hawk.kernel
def over_columns(g: Grid["row":3, "col":4], x: Scalar) -> Scalar:
    return hawk.sum(x, over="col")


@hawk.kernel
def over_rows(g: Grid["row":3, "col":4], v: Vector[2]) -> dict:
    return {"means": hawk.mean(v, over="row"), "doubled": v * 2.0}


@hawk.kernel
def bins(k: Index, x: Scalar, h: Mutable[Scalar]):
    hawk.scatter(h)[k] += x


@hawk.kernel
def bins_named(i: Index, j: Index, x: Scalar, h: Mutable["row":5, "col":3]):
    hawk.scatter(h, policy="plain")[i, j] += x


@hawk.kernel
def bins_of_vectors(k: Index, v: Vector[3], h: Mutable[Vector[3], "bin":5]):
    hawk.scatter(h)[k] += v


@hawk.kernel
def total_of_vectors(v: Vector[3], out: Mutable[Vector[3]]):
    out = hawk.sum(v)


@hawk.kernel
def sums(x: Scalar, mean: Mutable[Scalar], up: Mutable[Scalar]):
    mean = hawk.mean(x)
    up = hawk.sum(x, where=x > 0.0)


@hawk.kernel
def highest(v: Vector[2], out: Mutable[Vector[2]]):
    out = hawk.max(v)


@hawk.kernel
def folds(m: Matrix[2, 3]) -> dict:
    return {
        "down": m.sum(axis="rows"),
        "across": m.mean(axis=1),
        "most": m.max(),
        "range": m.columns[1].max() - m.rows[0].min(),
    }


@hawk.kernel
def dispatched(k: Index, x: Scalar, y: Mutable[Scalar], z: Mutable[Scalar]):
    y = hm.dispatch(k, [x + 1.0, x * 2.0, -x], policy="predicated")
    z = hm.dispatch(k, [hm.exp(x), hm.sin(x)], policy="switch")


@hawk.kernel
def largest(v: Vector[4], at: Mutable[Index]):
    at = hm.argmax(v)


def examples():
    """name -> (kernel, arguments, planes to compare, ULPs of a plane's largest value that may lie between).

    raptor-hawk's compiler fuses a product and a sum into one rounding where it can; ours never does. Gathers move
    values and change none.
    """
    rng = _rng()
    x, y, v = rng.normal(size=N), rng.normal(size=N), rng.normal(size=(3, N))
    quat = rng.normal(size=(4, N))
    whole, cells = rng.integers(-50, 50, N), rng.normal(size=12)
    divisors = rng.choice([-7, -3, -1, 1, 2, 5], N)
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
        "quotient": (
            quotient,
            {"i": whole, "j": divisors, "q": np.zeros(N, np.int64), "r": np.zeros(N, np.int64)},
            ["q", "r"],
            0,
        ),
        "folded": (folded, {"x": x[:256].copy(), "t": np.arange(4.0), "y": np.zeros(256)}, ["y"], 2),
        "on_a_grid": (on_a_grid, {"x": cells, "y": np.zeros(12)}, ["y"], 2),
        "neighbours": (neighbours, {"x": cells, "y": np.zeros(12)}, ["y"], 0),
        "shifted": (shifted, {"x": x, "y": np.zeros(N)}, ["y"], 0),
        "over_columns": (over_columns, {"x": cells, "out": np.zeros(3)}, ["out"], 4),
        "over_rows": (over_rows, {"v": v[:2, :12].copy(), "means": np.zeros((2, 4))}, ["means", "doubled"], 4),
        "bins": (bins, {"k": np.arange(N) % 7, "x": x, "h": np.ones(7)}, ["h"], 4),
        "bins_named": (
            bins_named,
            {"i": np.arange(N) % 5, "j": np.arange(N) % 3, "x": x, "h": np.zeros((5, 3))},
            ["h"],
            4,
        ),
        "bins_of_vectors": (bins_of_vectors, {"k": np.arange(N) % 5, "v": v, "h": np.zeros((3, 5))}, ["h"], 4),
        "total_of_vectors": (total_of_vectors, {"v": v}, ["out_0", "out_1", "out_2"], 4),
        "sums": (sums, {"x": x}, ["mean", "up"], 4),
        "highest": (highest, {"v": v[:2].copy()}, ["out_0", "out_1"], 0),
        "folds": (folds, {"m": rng.normal(size=(6, N))}, ["down", "across", "most", "range"], 2),
        "dispatched": (
            dispatched,
            {"k": np.arange(N) % 6 - 2, "x": x, "y": np.zeros(N), "z": np.zeros(N)},
            ["y", "z"],
            2,
        ),
        "largest": (largest, {"v": rng.normal(size=(4, N)), "at": np.zeros(N, np.int64)}, ["at"], 0),
    }
