"""Vectors, matrices and quaternions against numpy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Index, Matrix, Mutable, Quat, Scalar, Vector, kernel

N = 37
RNG = np.random.default_rng(11)


def planes(session, *extents, dtype=np.float64):
    """Random planes of these extents, beside their values."""
    values = [RNG.normal(size=(*e, N)).astype(dtype) for e in extents]
    flat = [v.reshape(-1, N) if v.ndim == 3 else v for v in values]
    return values, [session.asarray(np.ascontiguousarray(v)) for v in flat]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_add_in_index_order(session, dtype):
    @kernel
    def reduced(u: Vector[5], v: Vector[5]) -> tuple[Scalar, Scalar, Scalar]:
        d, n, s = eagle.math.dot(u, v), eagle.math.norm(u), eagle.math.sum(u)
        return d, n, s

    (u, v), arrays = planes(session, (5,), (5,), dtype=dtype)
    d, n, s = reduced(*arrays, session=session)
    dot = lambda a, b: (((a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]) + a[3] * b[3]) + a[4] * b[4]  # noqa: E731
    assert d.dtype == dtype
    assert d.tobytes() == dot(u, v).tobytes()
    assert n.tobytes() == np.sqrt(dot(u, u)).tobytes()
    assert s.tobytes() == ((((u[0] + u[1]) + u[2]) + u[3]) + u[4]).tobytes()


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("u + w", lambda u, w, x: u + w),
        ("u - w * u / w", lambda u, w, x: u - w * u / w),
        ("x * u", lambda u, w, x: x * u),
        ("u * x", lambda u, w, x: x * u),
        ("u / x", lambda u, w, x: u / x),
        ("2 * u", lambda u, w, x: 2 * u),
        ("u / 3", lambda u, w, x: u / 3),
        ("-u", lambda u, w, x: -u),
        ("abs(u)", lambda u, w, x: np.abs(u)),
        ("math.sqrt(abs(u))", lambda u, w, x: np.sqrt(np.abs(u))),
        ("eagle.math.minimum(u, w)", lambda u, w, x: np.minimum(u, w)),
        ("eagle.math.maximum(u, w)", lambda u, w, x: np.maximum(u, w)),
        ("eagle.math.absolute(u)", lambda u, w, x: np.abs(u)),
        ("eagle.math.cross(u, w)", lambda u, w, x: eagle.math.cross(u, w)),
        ("u if x > 0 else w", lambda u, w, x: np.where(x > 0, u, w)),
        ("eagle.vector(w[2], x, 1)", lambda u, w, x: np.stack([w[2], x, np.ones_like(x)])),
        ("eagle.math.sum(u) * u", lambda u, w, x: ((u[0] + u[1]) + u[2]) * u),
        ("(u @ w) * u", lambda u, w, x: ((u[0] * w[0] + u[1] * w[1]) + u[2] * w[2]) * u),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_vectors(session, form, expected):
    k = eagle.kernel(source=f"def f(u: Vector[3], w: Vector[3], x: Scalar) -> Vector[3]:\n    return {form}")
    (u, w, x), arrays = planes(session, (3,), (3,), ())
    assert k(*arrays, session=session).tobytes() == np.ascontiguousarray(expected(u, w, x)).tobytes()


def test_matrices_are_row_major(session):
    @kernel
    def products(m: Matrix[2, 3], r: Matrix[3, 2], u: Vector[3], v: Vector[2]) -> dict[str, Matrix[2, 2]]:
        return {"a": m @ r, "b": eagle.math.outer(m @ u, v), "c": eagle.math.transpose(m @ r)}

    @kernel
    def rows(m: Matrix[2, 3], v: Vector[2]) -> Vector[3]:
        return v @ m + eagle.math.transpose(m) @ v

    (m, r, u, v), arrays = planes(session, (2, 3), (3, 2), (3,), (2,))
    mul = lambda a, b: (a[:, 0, None] * b[None, 0] + a[:, 1, None] * b[None, 1]) + a[:, 2, None] * b[None, 2]  # noqa: E731
    mu = (m[:, 0] * u[0] + m[:, 1] * u[1]) + m[:, 2] * u[2]
    got = products(*arrays, session=session)
    assert got["a"].tobytes() == mul(m, r).tobytes()
    assert got["b"].tobytes() == (mu[:, None] * v[None]).tobytes()
    assert got["c"].tobytes() == np.ascontiguousarray(np.swapaxes(mul(m, r), 0, 1)).tobytes()
    vm = v[0] * m[0] + v[1] * m[1]
    mv = m[0] * v[0] + m[1] * v[1]
    assert rows(arrays[0], arrays[3], session=session).tobytes() == (vm + mv).tobytes()


def test_components_are_read_and_written_from_both_ends(session):
    @kernel
    def edit(m: Mutable[Matrix[2, 2]], v: Mutable[Vector[3]], i: Index) -> Scalar:
        before = m[0, 1]
        m[0, 1] = m[-1, 0]
        m[-1, -1] *= 2
        v[0], v[2] = v[-1], v[0]
        if i > 1:
            v[1] = i
        w = v
        w[1] = 100
        return before + w[1]

    (m, v), (am, av) = planes(session, (2, 2), (3,))
    i = np.arange(N)
    got = edit(am, av, session.asarray(i), session=session)
    assert got.tobytes() == (m[0, 1] + 100).tobytes()
    assert am.tobytes() == np.stack([m[0, 0], m[1, 0], m[1, 0], m[1, 1] * 2]).tobytes()
    assert av.tobytes() == np.stack([v[2], np.where(i > 1, i, v[1]), v[0]]).tobytes()


def test_vectors_are_carried_by_loops_and_given_by_branches(session):
    @kernel
    def walk(u: Vector[2], n: Index) -> Vector[2]:
        s = u
        for k in eagle.bounded(range(n), 50):
            s = s * 0.5 + u
            s[0] = s[1]
            if s[0] > 1:
                return -s
        return s

    (u,), (au,) = planes(session, (2,))
    n = np.arange(N) % 7
    expected = np.empty_like(u)
    for j in range(N):
        s, out = u[:, j].copy(), None
        for _ in range(n[j]):
            s = s * 0.5 + u[:, j]
            s[0] = s[1]
            if s[0] > 1:
                out = -s
                break
        expected[:, j] = s if out is None else out
    assert walk(au, session.asarray(n), session=session).tobytes() == expected.tobytes()


def test_quaternions(session):
    @kernel
    def turn(p: Quat, q: Quat, v: Vector[3]) -> tuple[Quat, Quat, Quat, Vector[3], Quat]:
        product, conjugate = eagle.math.quat_multiply(p, q), eagle.math.quat_conjugate(q)
        unit = eagle.math.quat_normalize(q)
        turned, made = eagle.math.quat_rotate(unit, v), eagle.quat(v[0], 1, 0, q[0])
        return product, conjugate, unit, turned, made

    (p, q, v), arrays = planes(session, (4,), (4,), (3,))
    got = turn(*arrays, session=session)
    unit = eagle.math.quat_normalize(q)
    expected = [
        eagle.math.quat_multiply(p, q),
        eagle.math.quat_conjugate(q),
        unit,
        eagle.math.quat_rotate(unit, v),
        np.stack([v[0], np.ones(N), np.zeros(N), q[0]]),
    ]
    assert [a.tobytes() for a in got] == [np.ascontiguousarray(a).tobytes() for a in expected]
    # A quarter turn about z takes x to y.
    half = np.sqrt(0.5)
    x = turn(*(session.asarray(np.array(a)[:, None]) for a in ([1.0, 0, 0, 0], [half, 0, 0, half], [1.0, 0, 0])))[3]
    assert np.allclose(x.ravel(), [0, 1, 0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_ignore_nan_and_a_tie_gives_the_first(session, name):
    nan = np.nan
    a, b = np.array([nan, 1.0, 0.0, -0.0, nan, 2.0]), np.array([1.0, nan, -0.0, 0.0, nan, 1.0])
    k = eagle.kernel(source=f"def f(a: Scalar, b: Scalar) -> Scalar:\n    return eagle.math.{name}(a, b)")
    got = k(session.asarray(a), session.asarray(b), session=session)
    last = 1.0 if name == "minimum" else 2.0
    assert np.array_equal(got, [1.0, 1.0, 0.0, -0.0, nan, last], equal_nan=True)
    assert np.signbit(got[:4]).tolist() == [False, False, False, True]
    assert np.array_equal(getattr(eagle.math, name)(a, b), got, equal_nan=True)


def test_functions_of_eagle_math_work_on_arrays_too():
    u, v = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5))
    assert np.allclose(eagle.math.dot(u, v), (u * v).sum(0))
    assert np.allclose(eagle.math.cross(u, v), np.cross(u, v, axis=0))
    assert eagle.math.transpose(eagle.math.outer(u, v)).shape == (3, 3, 5)
    assert eagle.math.sqrt(4.0) == 2.0
    assert eagle.math.absolute(-3) == 3
