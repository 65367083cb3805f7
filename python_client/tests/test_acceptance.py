"""The kernels of the specification, whose values are known: in process and through the daemon."""

from __future__ import annotations

import math

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Table, Terminated, Vector, kernel

# Where a number is given to all of its digits, it is exact: computed independently with IEEE 754 doubles.


def test_affine(session):
    @kernel
    def affine(x: Scalar, a: Param, b: Param) -> Scalar:
        y = a * x + b
        return y

    x = session.asarray(np.arange(8.0))
    assert affine(x, 2.0, 1.0, session=session).tolist() == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]


@kernel
def oscillator(
    x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar], w: Scalar, dt: Param, t_end: Param, done: Terminated
):
    x, v = x + dt * v, v - dt * w * w * x
    t = t + dt
    done = t >= t_end


@kernel
def symplectic(
    x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar], w: Scalar, dt: Param, t_end: Param, done: Terminated
):
    x = x + dt * v
    v = v - dt * w * w * x
    t = t + dt
    done = t >= t_end


def swing(session, model, w, dt, t_end):
    n = len(w)
    planes = {"x": session.full(n, 1.0), "v": session.zeros(n), "t": session.zeros(n), "w": session.asarray(w)}
    planes["done"] = session.zeros(n, dtype=bool)
    return eagle.simulate(model, max_steps=10**6, dt=dt, t_end=t_end, session=session, **planes)


def test_oscillator_of_a_million_samples(session):
    result = swing(session, oscillator, np.linspace(1, 3, 10**6), 1e-3, 1.0)
    assert (result.status, result.steps) == ("finished", 1000)
    assert result.x[:3].tolist() == [0.5405728050653854, 0.5405711223621569, 0.540569439656762]


def test_oscillator_of_one_sample(session):
    result = swing(session, oscillator, [2.0], 1e-3, 1.0)
    found = result["t"][0], result.x[0], result.v[0]
    assert found == (1.0000000000000007, -0.41697753175791447, -1.8222378995667639)


@pytest.mark.parametrize(
    ("model", "expected"),
    [(oscillator, 4.450369930684123), (symplectic, 1.9803401412550663)],
    ids=["explicit", "x first"],
)
def test_energy_of_the_oscillator(session, model, expected):
    result = swing(session, model, [2.0], 1e-2, 20.0)
    x, v = float(result.x[0]), float(result.v[0])
    assert (v * v + 2.0 * 2.0 * x * x) / 2 == expected


def test_contact_spring(session):
    @kernel
    def spring(x: Scalar, v: Mutable[Scalar], k: Param, dt: Param, done: Terminated):
        force = -9.81 - k * x if x < 0 else -9.81
        v = v + dt * force
        done = x < -0.5

    x = np.array([0.3, 0.0, -0.1, -0.2, -0.8])
    v, done = session.full(5, -1.0), session.zeros(5, dtype=bool)
    spring(session.asarray(x), v, 1000.0, 0.01, done, session=session)
    assert done.tolist() == [False, False, False, False, True]
    assert v.tolist() == [-1.0 + 0.01 * (-9.81 - 1000.0 * p if p < 0 else -9.81) for p in x.tolist()]


def test_energy(session):
    @kernel
    def energy(v: Vector[3]) -> Scalar:
        return eagle.math.dot(v, v) / 2

    v = np.array([[1.0, 0, 0], [2, 1, 0], [3, 0, 1], [4, 1, 1]]).T
    assert energy(session.asarray(np.ascontiguousarray(v)), session=session).tolist() == [0.5, 2.5, 5.0, 9.0]


def test_gather(session):
    @kernel
    def gather(i: Index, table: Table[Scalar]) -> Scalar:
        return table.at(i)

    i = (7 * np.arange(8) + 3) % 8
    got = gather(session.asarray(i), session.asarray(3.0 * np.arange(8)), session=session)
    assert got.tolist() == [9, 6, 3, 0, 21, 18, 15, 12]


def test_running_max(session):
    @kernel
    def running_max(values: Table[Scalar], length: Param[int]) -> Scalar:
        best = values.at(0)
        for k in eagle.bounded(range(1, length), 1000):
            best = max(best, values.at(k))
        return best

    values = session.asarray([3.0, 7.0, 2.0, 9.0, 4.0])
    for length, expected in ((1, 3.0), (3, 7.0), (5, 9.0)):
        assert running_max(values, length, best=session.zeros(1), session=session).tolist() == [expected]


MU, J2, R = 1.0, 1e-3, 0.9


def acceleration(r):
    """Gravity of a point mass with its J2 term."""
    distance2 = eagle.math.dot(r, r)
    distance = math.sqrt(distance2)
    ratio = 5 * r[2] * r[2] / distance2
    factor = 1.5 * J2 * MU * R * R / (distance2 * distance2 * distance)
    point = -MU / (distance2 * distance)
    return eagle.vector(
        point * r[0] + factor * r[0] * (ratio - 1),
        point * r[1] + factor * r[1] * (ratio - 1),
        point * r[2] + factor * r[2] * (ratio - 3),
    )


@kernel
def two_body(r: Mutable[Vector[3]], v: Mutable[Vector[3]], h: Param, n: Mutable[Index], done: Terminated):
    k1r, k1v = v, acceleration(r)
    k2r, k2v = v + h / 2 * k1v, acceleration(r + h / 2 * k1r)
    k3r, k3v = v + h / 2 * k2v, acceleration(r + h / 2 * k2r)
    k4r, k4v = v + h * k3v, acceleration(r + h * k3r)
    r = r + h / 6 * (k1r + 2 * k2r + 2 * k3r + k4r)
    v = v + h / 6 * (k1v + 2 * k2v + 2 * k3v + k4v)
    n = n + 1
    done = n >= 1000


@kernel
def two_body_at_once(r: Mutable[Vector[3]], v: Mutable[Vector[3]], h: Param):
    for _step in range(1000):
        k1r, k1v = v, acceleration(r)
        k2r, k2v = v + h / 2 * k1v, acceleration(r + h / 2 * k1r)
        k3r, k3v = v + h / 2 * k2v, acceleration(r + h / 2 * k2r)
        k4r, k4v = v + h * k3v, acceleration(r + h * k3r)
        r = r + h / 6 * (k1r + 2 * k2r + 2 * k3r + k4r)
        v = v + h / 6 * (k1v + 2 * k2v + 2 * k3v + k4v)


def test_two_body_with_j2(session):
    angle = math.radians(30)
    r0, v0 = np.array([[1.0], [0.0], [0.0]]), np.array([[0.0], [math.cos(angle)], [math.sin(angle)]])
    r, v = session.asarray(r0), session.asarray(v0)
    n, done = session.zeros(1, dtype=int), session.zeros(1, dtype=bool)
    result = eagle.simulate(two_body, max_steps=2000, r=r, v=v, h=0.01, n=n, done=done, session=session)
    assert (result.status, result.steps) == ("finished", 1000)
    expected_r = [-0.8259284489702615, -0.48330076485771967, -0.28370810224984094]
    expected_v = [0.5620764682774001, -0.7196427456716374, -0.4120370202146245]
    assert np.allclose(r[:, 0], expected_r, rtol=0, atol=1e-12)
    assert np.allclose(v[:, 0], expected_v, rtol=0, atol=1e-12)
    # The same steps as a loop inside of one launch: the same bits.
    r2, v2 = session.asarray(r0), session.asarray(v0)
    two_body_at_once(r2, v2, 0.01, session=session)
    assert (r2.tobytes(), v2.tobytes()) == (r.tobytes(), v.tobytes())


def test_the_acceleration_runs_as_python_too():
    r = np.array([0.6, -0.7, 0.2])
    kernel_of_it = eagle.kernel(
        source="def f(r: Vector[3]) -> Vector[3]:\n    return acceleration(r)", constants={"acceleration": acceleration}
    )
    assert kernel_of_it(r).tolist() == acceleration(r).tolist()
