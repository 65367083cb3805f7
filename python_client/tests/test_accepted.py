"""What the front end accepts, by value: a kernel gives what Python gives for the same function, bit for bit."""

from __future__ import annotations

import builtins
import math
import struct

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Quat, Scalar, Terminated, Vector, kernel

# (name, body): each a function of the reals x and y and the integer i that returns one real, r.
BODIES = {
    "arithmetic": "r = x + y * x - y / 3.5 + -x + +y",
    "precedence": "r = (x + y) * (x - y) / (1 + x * x)",
    "chain of assignments": "a = b = x * 2\n    r = a + b",
    "simultaneous": "a, b = x, y\n    a, b = b, a\n    r = a - 2 * b",
    "augmented": "r = x\n    r += y\n    r -= 1\n    r *= x\n    r /= 3",
    "comparisons": "r = 1.0 if x < y else 2.0 if x <= 0 else 3.0 if y > 1 else 4.0 if y >= 0.5 else 5.0",
    "equality": "r = 1.0 if x == y else 0.0\n    r = r if x != 2 else 7.0",
    "chained comparison": "r = 1.0 if -1 < x <= y < 2 else 0.0",
    "and or not": "r = 1.0 if (x > 0 and y > 0) or not x < y else -1.0",
    "conditional expression": "r = x * 2 if x > y else y * 3",
    "if": "r = 0.0\n    if x > y:\n        r = x",
    "if else": "if x > y:\n        r = x * 2\n    else:\n        r = y - 1",
    "elif": "if x > 1:\n        r = 1.0\n    elif x > 0:\n        r = x\n    elif y > 0:\n        r = y\n    else:\n        r = 0.0",
    "nested if": "r = x\n    if x > 0:\n        if y > 0:\n            r = x * y\n        else:\n            r = -r\n    r = r + 1",
    "names of a branch": "if x > y:\n        a = x\n        b = a * 2\n    else:\n        a = y\n        b = 1.0\n    r = a + b",
    "integers meet reals": "if x > y:\n        a = 1\n    else:\n        a = 2.5\n    r = a * x",
    "abs": "r = abs(x) + np.abs(y - 3) + eagle.math.absolute(y)",
    "min": "r = min(x, y)",
    "max": "r = max(x, y, 0.5)",
    "min of constants": "r = x * min(3, 2.5)",
    "square root": "r = math.sqrt(x * x + y * y)",
    "constant root": "r = x * math.sqrt(2)",
    "folded constants": "r = x * (1 / 3) + 0.1 + 0.2 * 3",
    "float": "r = float(i) / 3 + float(x > y)",
    "int": "r = float(int(x * 10)) / 10",
    "bool": "r = 1.0 if bool(x) else 2.0",
    "index arithmetic": "r = x * (i * i - 2 * i + 1)",
    "index division": "r = i / 7 + x",
    "index comparison": "r = x if i > 3 else y if i == 2 else -x",
    "index min": "r = x + min(i, 4) + max(i, 2)",
    "pi": "r = x * math.pi",
    "pass": "r = x\n    if y > 0:\n        pass",
    "docstring": "'''says something'''\n    r = x",
    "early return": "if x > y:\n        return x * 2\n    r = y",
    "early returns": "if x > 1:\n        return x\n    if y > 0:\n        return y * 3\n    elif x < -1:\n        return 1.0\n    r = x + y",
    "return in both branches": "if x > y:\n        return x\n    else:\n        return y\n    r = 0.0",
    "name of the branch that stays": "if x > y:\n        z = x * 2\n    else:\n        return -1.0\n    r = z + y",
    "for": "r = 0.0\n    for k in range(5):\n        r = r * x + k",
    "for from to": "r = x\n    for k in range(2, 7):\n        r += k * y",
    "for downwards": "r = x\n    for k in range(7, -4, -3):\n        r = r * 0.5 + k",
    "for without trips": "r = x\n    for k in range(3, 3):\n        r = y\n    for k in range(0, 5, -1):\n        r = y",
    "for over an index": "r = x\n    for k in eagle.bounded(range(i), 100):\n        r = r * 0.5 + k",
    "for between indices": "r = x\n    for k in eagle.bounded(range(i, 2 * i, 2), 100):\n        r = r * 0.5 + k",
    "for with a step that is not known": "r = x\n    for k in eagle.bounded(range(0, 12, i - 15), 100):\n        r = r * 0.5 + k",
    "for with steps up and down": "r = x\n    for k in eagle.bounded(range(i, 3, 1 if i < 3 else -2), 100):\n        r = r * 0.5 + k",
    "for that assigns its variable": "r = x\n    for k in range(4):\n        k = k * k\n        r += k",
    "for whose variable is known before": "k = 99\n    r = x\n    for k in range(4):\n        r += k\n    r += k",
    "for variable after no trip": "k = 99\n    for k in range(0):\n        pass\n    r = x + k",
    "nested for": "r = 0.0\n    for k in range(4):\n        for j in range(3):\n            r = r * 0.9 + x * k - y * j",
    "triangular for": "r = 0.0\n    for k in range(4):\n        for j in eagle.bounded(range(k), 4):\n            r = r * 0.9 + x * k - y * j",
    "break": "r = 0.0\n    for k in range(10):\n        if r > x + y:\n            break\n        r = r + 0.25",
    "break first": "r = x\n    for k in range(10):\n        break\n    r = r + y",
    "break in else": "r = 0.0\n    for k in range(10):\n        if r < x:\n            r += 0.5\n        else:\n            break\n        r += 0.125",
    "continue": "r = 0.0\n    for k in range(10):\n        if k % 2 == i % 2:\n            continue\n        r = r * 0.5 + k",
    "break and continue": "r = 0.0\n    for k in range(10):\n        if k == i:\n            continue\n        if k > 7:\n            break\n        r = r * 0.5 + k",
    "break of the inner loop": "r = 0.0\n    for k in range(4):\n        for j in range(5):\n            if j > k:\n                break\n            r += x * j\n        r = r * 0.5",
    "continue of the outer loop": "r = 0.0\n    for k in range(5):\n        for j in range(2):\n            r = r + j\n        if k < i:\n            continue\n        r = r * 0.5 + x",
    "return in a loop": "r = x\n    for k in range(10):\n        r = r + 0.75\n        if r > y:\n            return r * 100\n    r = -r",
    "return in a nested loop": "r = x\n    for k in range(4):\n        for j in range(4):\n            r = r + 0.75\n            if r > y + 3:\n                return r * 100 + j\n        r = r - 0.25\n    r = -r",
    "return after break": "r = x\n    for k in range(4):\n        if k > i:\n            break\n        if x > y:\n            return 5.0\n        r += 1\n    r = -r",
    "while": "r = abs(x)\n    while eagle.bounded(100) and r > 1:\n        r = r * 0.5",
    "while with two conditions": "r = abs(x)\n    n = 0\n    while eagle.bounded(100) and r > 1 and n < 3:\n        r = r * 0.5\n        n += 1\n    r = r + n",
    "while true": "r = abs(x)\n    n = 0\n    while eagle.bounded(100):\n        if r <= 1 or n > 5:\n            break\n        r = r * 0.5\n        n += 1",
    "while in for": "r = 0.0\n    for k in range(4):\n        q = abs(x) + k\n        while eagle.bounded(50) and q > 1:\n            q *= 0.5\n        r += q",
    "integers become reals in a loop": "s = 0\n    for k in range(4):\n        s = s + x\n    r = s",
    "integers become reals late": "a = 0\n    b = 0\n    c = 0\n    for k in range(4):\n        a = b\n        b = c\n        c = c + y\n    r = a + 2 * b + 3 * c",
    "conditions are carried": "found = False\n    for k in range(5):\n        found = found or x > k\n    r = 1.0 if found else 2.0",
    "swap in a loop": "a, b = x, y\n    for k in range(3):\n        a, b = b, a\n    r = a - 2 * b",
    "loop in a branch": "r = y\n    if x > 0:\n        for k in range(3):\n            r = r * 0.5 + x\n    else:\n        r = -y",
    "branch in a loop": "r = y\n    for k in range(6):\n        if r > x:\n            r = r - 0.5\n        elif k > 3:\n            r = r * 2\n        else:\n            r = r + 0.25",
    "floor division": "r = float(i // 3) + float((i - 7) // 4) + float(-i // 3)",
    "modulo": "r = float(i % 3) + float((i - 7) % 4) * 10 + float((i - 7) % -4) * 100 + float(-i % 5) * 1000",
    "shifts": "r = float(i << 3) + float((i - 20) >> 1) + float(1 << i)",
    "bits": "r = float(i & 5) + float(i | 8) * 100 + float(i ^ 3) * 1e4 + float(~i) * 1e6",
    "augmented integers": "n = i\n    n //= 2\n    n %= 4\n    n <<= 3\n    n >>= 1\n    n |= 3\n    n &= 14\n    n ^= 5\n    r = float(n) + x",
    "folded integers": "r = x + (7 // 2) + (-7 % 3) + (1 << 5) + (255 >> 3) + (12 & 10) + (12 | 3) + (12 ^ 10) + ~4 + 2**10 + 2.0**0.5",
    "powers of integers": "n = i - 5\n    r = float(n**0 + n**1 + n**2 + n**3 + n**5)",
    "power 0 and 1": "r = x**1 + y**0",
    "square": "r = x**2\n    r **= 1",
    "matrices": "m = eagle.matrix([[x, y], [1.0, i]])\n    r = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]",
    "components": "v = eagle.vector(x, y, 2)\n    v[0] = v[1] * 3\n    v[-1] += x\n    r = v[0] - v[1] + v[2] - v[-2]",
    "local function": "def f(a, b):\n        return a * b + x\n    r = f(x, y) - f(b=x, a=2)",
    "local function sees later values": "k = 1.0\n    def f():\n        return k * x\n    k = 3.0\n    r = f()",
    "dispatch": "r = eagle.dispatch(i, [lambda: x, lambda: y * 2, lambda: x * y + 1])",
    "dispatch of functions": "def f():\n        if x > y:\n            return 1\n        return y\n    r = eagle.dispatch(i - 1, (f, lambda: x), policy='predicated', name='modes')",
    "dispatch of several values": "a, b = eagle.dispatch(i % 2, [lambda: (x, 1), lambda: (y, x)])\n    r = a - 2 * b",
    "condition that asks first": "r = 1.0 if i != 0 and 12 // i > 2 else 0.0",
    "choice that asks first": "r = float(12 // i if i != 0 else 7)",
    "booleans": "c = x > 0\n    d = y > 0\n    r = 1.0 if c != d else 2.0 if c == d else 3.0",
}
# Signs, zeros, ties, and values whose sums and products round.
XS = np.array([0.0, -0.0, 1.0, -1.0, 0.1, 2.0, -2.5, 1e-3, 3.7, 0.5, 1.5, 1e10])
YS = np.array([0.0, 0.0, 1.0, 1.0, 0.3, -2.0, 2.5, 1e3, -3.7, 0.5, 0.25, 1e-10])
IS = np.arange(12)


def bits(values) -> list[int]:
    return [struct.unpack("<Q", struct.pack("<d", value))[0] for value in values]


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_gives_pythons_bits(session, name):
    body = BODIES[name]
    accepted = eagle.kernel(source=f"def f(x: Scalar, y: Scalar, i: Index) -> Scalar:\n    {body}\n    return r")
    names = {"math": math, "np": np, "eagle": eagle}
    exec(f"def f(x, y, i):\n    {body}\n    return float(r)", names)
    expected = [names["f"](float(x), float(y), int(i)) for x, y, i in zip(XS, YS, IS)]
    got = accepted(session.asarray(XS), session.asarray(YS), session.asarray(IS), session=session)
    assert bits(got) == bits(expected)


@pytest.mark.parametrize(("name", "order"), [("min", (-1, 1)), ("max", (1, -1))])
def test_min_and_max_are_pythons_own_for_nan_and_zeros(session, name, order):
    nan = math.nan
    a = np.array([nan, 1.0, 0.0, -0.0, nan])
    b = np.array([1.0, nan, -0.0, 0.0, nan])
    k = eagle.kernel(source=f"def f(a: Scalar, b: Scalar) -> Scalar:\n    return {name}(a, b)")
    expected = [getattr(builtins, name)(float(p), float(q)) for p, q in zip(a, b)]
    got = k(session.asarray(a), session.asarray(b), session=session)
    for one, other in zip(got, expected):
        assert bits([one]) == bits([other]) or (math.isnan(one) and math.isnan(other))


def test_numbers_become_integers_towards_zero_saturating_and_nan_becomes_zero(session):
    x = session.asarray([2.9, -2.9, math.nan, 1e300, -math.inf])
    k = eagle.kernel(source="def f(x: Scalar) -> Index:\n    return int(x)")
    assert k(x, session=session).tolist() == [2, -2, 0, 2**63 - 1, -(2**63)]


def test_select_leaves_no_trace_of_the_other_side(session):
    x = session.asarray([4.0, -1.0, 0.0])
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return select(x > 0, 1 / math.sqrt(x), 9)")
    assert k(x, session=session).tolist() == [0.5, 9.0, 9.0]


def test_vectors_combine_with_their_equals(session):
    @kernel
    def combine(p: Vector[3], q: Vector[3], x: Scalar) -> Vector[3]:
        if x > 0:
            r = p + q * q
        else:
            r = -p
        return abs(r)

    rng = np.random.default_rng(7)
    p, q, x = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), np.array([1.0, -1, 1, -1, 1])
    expected = np.abs(np.where(x > 0, p + q * q, -p))
    got = combine(session.asarray(p), session.asarray(q), session.asarray(x), session=session)
    assert got.shape == (3, 5)
    assert got.tobytes() == expected.tobytes()


def test_quaternions_have_four_components(session):
    @kernel
    def conjugate_twice(q: Mutable[Quat]):
        q = -(-q)

    q = session.asarray(np.arange(8.0).reshape(4, 2))
    conjugate_twice(q, session=session)
    assert q.ravel().tolist() == list(range(8))


def test_a_read_before_the_write_sees_the_value_at_launch_and_the_last_value_is_stored(session):
    @kernel
    def twice(x: Mutable[Scalar]) -> Scalar:
        before = x
        x = x + 1
        x = x * 10
        return before

    x = session.asarray([1.0, 2.0])
    assert twice(x, session=session).tolist() == [1.0, 2.0]
    assert x.tolist() == [20.0, 30.0]


def test_state_that_one_path_assigns_keeps_its_value_on_the_other(session):
    @kernel
    def rise(x: Mutable[Scalar], n: Mutable[Index]):
        if x > 0:
            x += 1
            n = n + 2

    x, n = session.asarray([1.0, -1.0]), session.asarray([10, 10])
    rise(x, n, session=session)
    assert (x.tolist(), n.tolist()) == ([2.0, -1.0], [12, 10])


def test_every_assignment_to_the_mask_is_ored_and_set_samples_are_skipped(session):
    @kernel
    def stop(x: Mutable[Scalar], done: Terminated):
        done = x > 10
        if x < 0:
            done = True
        done = False
        x = x + 1

    x, done = session.asarray([11.0, -1.0, 5.0, 7.0]), session.asarray([False, False, False, True])
    stop(x, done, session=session)
    assert done.tolist() == [True, True, False, True]
    assert x.tolist() == [12.0, 0.0, 6.0, 7.0]


def test_outputs_come_back_as_the_kernel_returns_them(session):
    @kernel
    def one(x: Scalar) -> Scalar:
        return x + 1

    @kernel
    def named(x: Scalar) -> Scalar:
        y = x + 1
        return y

    @kernel
    def pair(x: Scalar) -> tuple[Scalar, Index]:
        y = x + 1
        return y, int(x)

    @kernel
    def several(x: Scalar) -> dict[str, Scalar]:
        return {"up": x + 1, "down": x - 1}

    x = session.asarray([1.0, 2.0])
    plans = {k.name: eagle.plan(k).bind(x=x, session=session) for k in (one, named, pair, several)}
    assert {name: bound.names for name, bound in plans.items()} == {
        "one": ("x", "out"),
        "named": ("x", "y"),
        "pair": ("x", "y", "out1"),
        "several": ("x", "up", "down"),
    }
    assert one(x, session=session).tolist() == [2.0, 3.0]
    first, second = pair(x, session=session)
    assert (first.tolist(), second.tolist(), second.dtype) == ([2.0, 3.0], [1, 2], np.int64)
    assert {k: v.tolist() for k, v in several(x, session=session).items()} == {"up": [2.0, 3.0], "down": [0.0, 1.0]}


def test_an_output_can_be_given(session):
    @kernel
    def double(x: Scalar) -> Scalar:
        y = 2 * x
        return y

    y = session.zeros(3)
    got = double(session.asarray([1.0, 2.0, 3.0]), y=y, session=session)
    assert got is y
    assert y.tolist() == [2.0, 4.0, 6.0]


def test_params_are_reals_and_integers_where_the_annotation_says_so(session):
    @kernel
    def scaled(i: Index, a: Param, n: Param[int]) -> tuple[Scalar, Index]:
        r, m = i * a, i + n
        return r, m

    i = session.asarray([1, 2, 3])
    r, m = scaled(i, 3, 2**62, session=session)
    assert r.dtype == np.float64
    assert (r.tolist(), m.tolist()) == ([3.0, 6.0, 9.0], [2**62 + 1, 2**62 + 2, 2**62 + 3])


def test_constants_round_once_to_the_kernels_reals(session):
    @kernel
    def third(x: Scalar) -> Scalar:
        return x * (1 / 3) + 0.1

    x = np.linspace(-2, 2, 41, dtype=np.float32)
    got = third(session.asarray(x), session=session)
    assert got.dtype == np.float32
    assert got.tobytes() == (x * np.float32(1 / 3) + np.float32(0.1)).tobytes()
