"""How samples lie in arguments: sizes around vectors, one sample, square arrays, many arguments."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Index, Matrix, Mutable, Param, Scalar, Table, Terminated, Vector, kernel


@kernel
def collatz(start: Index, x: Scalar) -> tuple[Index, Scalar]:
    n, steps = start, 0
    total = x
    while eagle.bounded(200) and n > 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
        total = total * 0.5 + n
        if steps > 100:
            break
    return steps, total


def collatz_in_python(n, x):
    steps = 0
    while n > 1 and steps <= 100:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        x = x * 0.5 + n
    return steps, x


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000])
def test_divergent_loops_at_sizes_around_vectors(session, n):
    start, x = np.arange(n) * 7 % 113, np.linspace(-1, 1, n)
    steps, total = collatz(session.asarray(start), session.asarray(x), session=session)
    expected = [collatz_in_python(int(s), float(v)) for s, v in zip(start, x)]
    assert steps.tolist() == [s for s, _ in expected]
    assert total.tobytes() == np.array([t for _, t in expected], float).tobytes()


def test_two_hundred_params(session):
    names = [f"p{i}" for i in range(200)]
    arguments = ", ".join(f"{name}: Param" for name in names)
    k = eagle.kernel(source=f"def f(x: Scalar, {arguments}) -> Scalar:\n    return x * ({' + '.join(names)})")
    values = np.random.default_rng(2).normal(size=200).tolist()
    total = values[0]
    for value in values[1:]:
        total = total + value
    x = np.array([1.0, -2.0, 1 / 3])
    assert k(session.asarray(x), *values, session=session).tobytes() == (x * total).tobytes()


def test_outputs_that_are_read_only_are_refused(session):
    y = session.zeros(3)
    y.flags.writeable = False
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    y = x + 1\n    return y")
    with pytest.raises(ValueError, match="'y'.*read-only"):
        k(session.zeros(3), y=y, session=session)


def test_conditions_go_through_loops_and_branches(session):
    @kernel
    def parity(n: Index, done: Terminated) -> Index:
        odd, seen = False, True
        for k in eagle.bounded(range(n), 20):
            odd = not odd
            seen = seen and k < 5
        if odd == seen:
            return 2 * int(odd) + int(seen)
        return 10 + 2 * int(odd) + int(seen)

    n = np.arange(9)
    got = parity(session.asarray(n), session.zeros(9, bool), session=session)
    expected = [(0 if (k % 2 == 1) == (k <= 5) else 10) + 2 * (k % 2) + int(k <= 5) for k in range(9)]
    assert got.tolist() == expected


# ---- one sample


@kernel
def mixed(x: Scalar, v: Vector[3], m: Matrix[2, 2], i: Index, a: Param, t: Table[Scalar]) -> dict[str, Scalar]:
    return {"s": x * v[0] + m[0, 1] * a + i, "u": t.at(i)}


def test_values_of_one_sample_run_as_a_batch_of_one(session):
    v, m, t = np.array([2.0, 3.0, 4.0]), np.array([[1.0, 5.0], [6.0, 7.0]]), session.asarray([0.5, 1.5])
    for x, i in ((3.0, 1), (np.float64(3), np.int64(1)), (np.array(3.0), np.array(1)), (3, True + 0)):
        got = mixed(x, v, m, i, 10, t, session=session)
        assert {k: (a.shape, float(a)) for k, a in got.items()} == {"s": ((), 57.0), "u": ((), 1.5)}


def test_one_sample_comes_back_in_its_own_shape_and_type(session):
    @kernel
    def shapes(v: Vector[3]) -> tuple[Vector[3], Matrix[3, 3], Scalar]:
        w, m, s = v * 2, eagle.math.outer(v, v), eagle.math.norm(v)
        return w, m, s

    v = np.array([1.0, 2.0, 2.0], np.float32)
    w, m, s = shapes(v, session=session)
    assert [a.shape for a in (w, m, s)] == [(3,), (3, 3), ()]
    assert {a.dtype for a in (w, m, s)} == {np.dtype(np.float32)}
    assert (w.tolist(), m.tolist(), float(s)) == ([2.0, 4.0, 4.0], np.outer(v, v).tolist(), 3.0)


def test_state_of_one_sample_changes_in_place(session):
    @kernel
    def step(x: Mutable[Scalar], v: Mutable[Vector[2]], done: Terminated) -> Scalar:
        x = x + 1
        v[0] = x
        done = x > 1
        y = x * 2
        return y

    x, v, done, y = np.array(1.0), np.zeros(2), np.array(False), np.array(0.0)
    assert step(x, v, done, y=y, session=session) is y
    assert (float(x), v.tolist(), bool(done), float(y)) == (2.0, [2.0, 0.0], True, 4.0)


def test_one_sample_that_cannot_be_changed_is_refused(session):
    @kernel
    def step(x: Mutable[Scalar]):
        x = x + 1

    with pytest.raises(TypeError, match=r"'x' is changed by the kernel.*np.array\(1.0\)"):
        step(1.0, session=session)
    fixed = np.array(1.0)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="'x' is a read-only array"):
        step(fixed, session=session)
    with pytest.raises(TypeError, match="'x'.*expected float64.*int64"):
        step(np.array(1), session=session)


def test_one_sample_and_batches_do_not_mix(session):
    with pytest.raises(TypeError, match="'x': expected an array, found the number"):
        mixed(3.0, session.zeros((3, 5)), session.zeros((4, 5)), session.zeros(5, int), 1, session.zeros(2))


# ---- square arrays


@kernel
def differ(v: Vector[3], m: Matrix[2, 2], w: Mutable[Vector[4]]) -> Scalar:
    w = w * 2
    return v[0] - v[1] + m[0, 0] - m[1, 1]


def test_square_arrays_are_ambiguous_until_it_is_said(session):
    @kernel
    def first(v: Mutable[Vector[3]]) -> Scalar:
        y = v[0]
        v[1] = -1
        return y

    square = session.asarray(np.arange(9.0).reshape(3, 3))
    with pytest.raises(ValueError, match="ambiguous"):
        eagle.plan(first).bind(v=square)
    bound = eagle.plan(first).bind(v=eagle.samples_last(square)).launch()
    assert bound.planes["y"].tolist() == [0.0, 1.0, 2.0]
    assert bound.planes["v"] is square
    assert square[1].tolist() == [-1.0, -1.0, -1.0]
    # Samples first in the index and last in memory: the transposed view.
    turned = session.asarray(np.arange(9.0).reshape(3, 3)).T
    assert first(eagle.samples_first(turned), session=session).tolist() == [0.0, 1.0, 2.0]
    assert turned[:, 1].tolist() == [-1.0, -1.0, -1.0]
    with pytest.raises(ValueError, match="contiguous|sample-major|stride") as caught:
        eagle.plan(first).bind(v=eagle.samples_first(square))
    assert caught.value.reason == "COPY_BOUND_PLANE"


def test_square_planes_of_matrices(session):
    @kernel
    def corner(m: Matrix[2, 2]) -> Scalar:
        return m[0, 1] * 10 + m[1, 0]

    square = session.asarray(np.arange(16.0).reshape(4, 4))
    with pytest.raises(ValueError, match="ambiguous"):
        corner(square, session=session)
    expected = (square[1] * 10 + square[2]).tolist()
    assert corner(eagle.samples_last(square), session=session).tolist() == expected
    assert corner(square.reshape(2, 2, 4), session=session).tolist() == expected


def test_a_transposed_array_with_samples_first_is_no_copy(session):
    @kernel
    def double(v: Mutable[Vector[3]]):
        v = v * 2

    memory = session.asarray(np.arange(15.0).reshape(3, 5))
    double(memory.T, session=session)
    assert memory.ravel().tolist() == [2.0 * k for k in range(15)]


@pytest.mark.parametrize("wrong", [[1.0], np.zeros(3), np.zeros((2, 2, 2))])
def test_only_arrays_of_two_axes_have_samples_first_or_last(wrong):
    for said in (eagle.samples_first, eagle.samples_last):
        with pytest.raises(eagle.EagleError, match=said.__name__):
            said(wrong)


def test_an_array_said_to_have_other_extents_is_refused_by_its_shape(session):
    k = eagle.kernel(source="def f(v: Vector[3], x: Scalar) -> Scalar:\n    return v[0] + x")
    with pytest.raises(ValueError, match=r"'v'.*\(3, N\).*\(2, 5\)"):
        k(eagle.samples_last(session.zeros((2, 5))), session.zeros(5), session=session)
