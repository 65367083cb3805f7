"""Loops, leaving early, integers: what cannot be said by one function of three numbers."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Terminated, kernel

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


@kernel
def running_max(x: Scalar, n: Param[int], length: Param[int]) -> Scalar:
    best = -1e300
    for k in eagle.bounded(range(length), 64):
        best = max(best, x + k * n)
    return best


def test_a_loop_bounded_by_a_param_takes_as_many_trips(session):
    x = session.asarray([3.0, 7.0])
    assert running_max(x, 2, 5, session=session).tolist() == [11.0, 15.0]
    assert running_max(x, 2, 0, session=session).tolist() == [-1e300, -1e300]
    assert running_max(x, 1, 1000, session=session).tolist() == [66.0, 70.0]  # no more than 64 trips


def test_while_ends_at_its_bound(session):
    @kernel
    def count(x: Scalar, limit: Scalar) -> Index:
        n = 0
        while eagle.bounded(7) and x + n < limit:
            n += 1
        return n

    x, limit = session.zeros(4), session.asarray([0.0, 3.0, 7.0, 1e9])
    assert count(x, limit, session=session).tolist() == [0, 3, 7, 7]


@pytest.mark.parametrize("start", [SMALLEST, LARGEST - 3, 0, -1])
@pytest.mark.parametrize("step", [1, -1, 2, -2, 2**62, -(2**62), LARGEST, SMALLEST, 0])
def test_ranges_at_the_ends_of_int64_do_not_wrap_around(session, start, step):
    @kernel
    def trips(start: Index, stop: Index, step: Param[int]) -> tuple[Index, Index]:
        n, last = 0, 0
        for k in eagle.bounded(range(start, stop, step), 10):
            n, last = n + 1, k
        return n, last

    stops = [SMALLEST, SMALLEST + 1, -1, 0, 1, 5, LARGEST - 1, LARGEST]
    expected = []
    for stop in stops:
        # A step of 0 is an error in Python; here there is no trip.
        numbers = [start + k * step for k in range(10)] if step else []
        taken = [k for k in numbers if (k < stop if step > 0 else k > stop)]
        expected.append((len(taken), taken[-1] if taken else 0))
    begin = session.full(len(stops), start, dtype=np.int64)
    n, last = trips(begin, session.asarray(stops), step, session=session)
    assert list(zip(n.tolist(), last.tolist())) == expected


def test_ranges_of_constants_count_exactly(session):
    rng = np.random.default_rng(5)
    for _ in range(20):
        a, b, s = (int(v) for v in rng.integers(-9, 10, 3))
        numbers = range(a, b, s or 1)
        text = f"def f(x: Mutable[Index]):\n    for k in range({a}, {b}, {s or 1}):\n        x = x * 31 + k"
        x, expected = session.asarray([1]), 1
        eagle.kernel(source=text)(x, session=session)
        for k in numbers:
            expected = expected * 31 + k
        assert x[0] == (expected + 2**63) % 2**64 - 2**63


def test_a_range_of_constants_may_be_cut_short(session):
    @kernel
    def few(x: Mutable[Index]):
        for k in eagle.bounded(range(2**62), 3):
            x = x * 10 + k

    x = session.asarray([7])
    few(x, session=session)
    assert x[0] == 7012


def test_state_and_mask_change_in_loops_and_stay_as_they_are_when_the_kernel_returns(session):
    @kernel
    def walk(x: Mutable[Scalar], n: Mutable[Index], done: Terminated):
        for k in range(10):
            if x > 3:
                done = True
                return
            x = x + 1
            n += k
        n = -1

    x, n, done = session.asarray([0.0, 5.0, -100.0, 9.0]), session.zeros(4, int), session.asarray([False] * 3 + [True])
    walk(x, n, done, session=session)
    assert x.tolist() == [4.0, 5.0, -90.0, 9.0]
    assert n.tolist() == [6, 0, -1, 0]
    assert done.tolist() == [True, True, False, True]


def test_several_returns_share_their_outputs(session):
    @kernel
    def split(x: Scalar) -> tuple[Scalar, Index]:
        if x < 0:
            return -x, 1
        for k in range(5):
            if k > x:
                return x * 10, k
        y = x
        return y, 99

    got = split(session.asarray([-2.0, 0.5, 2.0, 7.0]), session=session)
    assert [a.tolist() for a in got] == [[2.0, 5.0, 20.0, 7.0], [1, 1, 3, 99]]

    @kernel
    def keyed(x: Scalar) -> dict[str, Scalar]:
        if x < 0:
            return {"low": x, "high": 0}
        return {"high": x, "low": 0}

    got = keyed(session.asarray([-2.0, 3.0]), session=session)
    assert {k: v.tolist() for k, v in got.items()} == {"low": [-2.0, 0.0], "high": [0.0, 3.0]}


def test_a_returned_variable_names_the_output_where_every_return_agrees(session):
    @kernel
    def agreed(x: Scalar) -> Scalar:
        y = x
        if x > 0:
            return y
        y = -x
        return y

    @kernel
    def other(x: Scalar) -> Scalar:
        y = x
        if x > 0:
            return y
        return -x

    x = session.asarray([1.0])
    assert eagle.plan(agreed).bind(x=x).names == ("x", "y")
    assert eagle.plan(other).bind(x=x).names == ("x", "out")


def test_deep_loops_whose_carried_types_settle_late_are_read_quickly():
    names = "abcdefgh"
    lines = [f"    {name} = 0" for name in names]
    lines += ["    " + "    " * depth + f"for k{depth} in range(2):" for depth in range(12)]
    body = "    " * 13
    lines += [f"{body}{p} = {q}" for p, q in zip(names, names[1:])] + [f"{body}h = h + x", "    return a"]
    text = "def f(x: Scalar) -> Scalar:\n" + "\n".join(lines)
    assert eagle.kernel(source=text).ir.count("while") == 12


def test_loops_are_nested_up_to_the_limit_of_depth_which_is_named():
    def nested(depth: int) -> str:
        loops = "\n".join("    " * (d + 1) + f"for k{d} in range(2):" for d in range(depth))
        return f"def f(x: Mutable[Scalar]):\n{loops}\n{'    ' * (depth + 1)}x = x + 1"

    assert eagle.kernel(source=nested(10)).hash
    with pytest.raises((eagle.LimitExceeded, eagle.KernelSyntaxError), match="kernel_depth|nested|indent"):
        eagle.kernel(source=nested(40))


# ---- integers


@kernel
def divided(a: Index, b: Index) -> tuple[Index, Index]:
    q, r = a // b, a % b
    return q, r


def test_division_floors_and_by_zero_gives_zero_and_is_counted(session):
    a = [7, -7, 7, -7, 7, 0, SMALLEST, SMALLEST, LARGEST, SMALLEST]
    b = [2, 2, -2, -2, 0, 0, -1, 1, -1, LARGEST]
    bound = eagle.plan(divided).bind(a=session.asarray(a), b=session.asarray(b)).launch()
    q, r = bound.returned()
    expected = [(0, 0) if y == 0 else divmod(x, y) for x, y in zip(a, b)]
    expected[6] = (SMALLEST, 0)  # the quotient wraps around
    assert list(zip(q.tolist(), r.tolist())) == expected
    assert (bound.report.zero_divisions, bound.report.clamped) == (4, 0)


@pytest.mark.parametrize("form", ["if", "and", "choice", "mask", "loop"])
def test_divisions_that_a_sample_does_not_ask_for_are_neither_done_nor_counted(session, form):
    bodies = {
        "if": "if b > 0:\n        q = a // b",
        "and": "q = 9 if b > 0 and a // b == a // b else q",
        "choice": "q = a // b if b > 0 else q",
        "mask": "q = a // (b + 0)",
        "loop": "for k in eagle.bounded(range(b), 1):\n        q = a // b",
    }
    text = f"def f(q: Mutable[Index], a: Index, b: Index, done: Terminated):\n    {bodies[form]}"
    a = session.asarray([SMALLEST, 5, SMALLEST] * 11)
    b = session.asarray([0, 2, -1] * 11)
    q, done = session.full(33, -5), b <= 0 if form == "mask" else session.zeros(33, bool)
    bound = eagle.plan(eagle.kernel(source=text)).bind(q=q, a=a, b=b, done=session.asarray(done)).launch()
    assert q.tolist() == [-5, 9 if form == "and" else 2, -5] * 11
    assert bound.report.zero_divisions == 0


def test_shift_counts_outside_give_zero_or_the_sign(session):
    @kernel
    def shifted(a: Index, n: Index) -> tuple[Index, Index]:
        left, right = a << n, a >> n
        return left, right

    a, n = [1, -1, 5, -5, 3, -3], [63, 63, 64, 64, -1, -1]
    left, right = shifted(session.asarray(a), session.asarray(n), session=session)
    assert left.tolist() == [SMALLEST, SMALLEST, 0, 0, 0, 0]
    assert right.tolist() == [0, -1, 0, -1, 0, -1]


def test_integers_wrap_around(session):
    @kernel
    def wrapped(a: Index) -> tuple[Index, Index, Index]:
        p, q, r = a + 1, -a, a * a
        return p, q, r

    got = wrapped(session.asarray([LARGEST, SMALLEST]), session=session)
    assert [v.tolist() for v in got] == [[SMALLEST, SMALLEST + 1], [-LARGEST, SMALLEST], [1, 0]]


@pytest.mark.parametrize("exponent", range(17))
def test_powers_multiply_in_the_documented_order(session, exponent):
    k = eagle.kernel(source=f"def f(x: Scalar) -> Scalar:\n    return x**{exponent}")
    x = np.concatenate([np.random.default_rng(1).normal(size=40), [0.0, -0.0, np.inf, -3.0]])
    expected = np.ones_like(x)
    if exponent:
        expected = x
        for bit in bin(exponent)[3:]:
            expected = expected * expected * x if bit == "1" else expected * expected
    assert k(session.asarray(x), session=session).tobytes() == expected.tobytes()


def test_runs_report_divisions_by_zero_over_all_steps(session):
    @kernel
    def step(n: Mutable[Index], d: Mutable[Index], done: Terminated):
        n = n + 1 // d
        d = d - 1
        done = d < -1

    n, d, done = session.zeros(2, int), session.asarray([2, 0]), session.zeros(2, bool)
    result = eagle.simulate(step, max_steps=10, n=n, d=d, done=done, session=session)
    assert (result.status, result.report.zero_divisions, result.report.clamped) == ("finished", 2, 0)


def test_positions_are_those_of_the_ensemble(session):
    @kernel
    def where(i: Mutable[Index], n: Mutable[Index], s: Mutable[Index], done: Terminated):
        i, n, s = eagle.sample_index(), eagle.n_samples(), s + 10 * eagle.step_index()

    i, n, s, done = *(session.zeros(1000, int) for _ in range(3)), session.zeros(1000, bool)
    where(i, n, s, done, session=session)
    assert i.tolist() == list(range(1000))
    assert set(n.tolist()) == {1000}
    assert set(s.tolist()) == {0}
    eagle.simulate(where, max_steps=4, i=i, n=n, s=s, done=done, session=session)
    assert set(s.tolist()) == {60}


@pytest.mark.parametrize("name", ["sample_index", "n_samples", "step_index"])
def test_positions_have_no_value_outside_of_a_kernel(name):
    with pytest.raises(TypeError, match=f"eagle.{name}.*@eagle.kernel"):
        getattr(eagle, name)()
