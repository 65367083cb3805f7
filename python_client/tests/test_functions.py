"""Functions that kernels call, dispatch, and constants: read into the kernel, and read again when they change."""

from __future__ import annotations

import functools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Table, Vector, kernel

GAINS = (0.5, 2, (True, -3))
OFFSET = 1.5


def clamped(v, low=0.0, *, high=1.0):
    """A plain function."""
    if v < low:
        return low
    return high if v > high else v


def shifted(v):
    return clamped(v) + OFFSET


def both(a, b):
    total = a + b
    return total, a - b


def looked_up(table, i):
    return table.at(i) * 2


def turned(v):
    x = v[0]
    return eagle.vector(-v[1], x)


def series(x):
    total = 0
    for k in range(4):
        if total > 8:
            return -1
        total = total + x * k
    return total


def recursive(n):
    return mutual(n)


def mutual(n):
    return recursive(n) + 1


def wrong(x):
    y = x + 1
    return y @ y


def outer_wrong(x):
    return wrong(x)


@kernel
def uses_shifted(x: Scalar) -> Scalar:
    return shifted(x) * GAINS[1]


def as_kernel(text, **names):
    return eagle.kernel(source=text, constants={**globals(), **names})


def test_arguments_go_by_position_by_name_and_by_default(session):
    k = as_kernel(
        "def f(x: Scalar) -> dict[str, Scalar]:\n"
        "    return {'a': clamped(x), 'b': clamped(x, 0.25), 'c': clamped(low=-1, v=x, high=x * 0 + 2)}"
    )
    x = np.array([-3.0, 0.125, 0.75, 5.0])
    got = k(session.asarray(x), session=session)
    assert got["a"].tolist() == [0.0, 0.125, 0.75, 1.0]
    assert got["b"].tolist() == [0.25, 0.25, 0.75, 1.0]
    assert got["c"].tolist() == [-1.0, 0.125, 0.75, 2.0]


def test_functions_give_several_values_take_tables_and_vectors_and_have_loops(session):
    k = as_kernel(
        "def f(x: Scalar, v: Vector[2], i: Index, t: Table[Scalar]) -> tuple[Scalar, Scalar, Vector[2]]:\n"
        "    s, d = both(x, 2)\n    p = series(x) + looked_up(t, i)\n    w = turned(v) * (s - d)\n    return s, p, w"
    )
    x, v, t = np.array([1.0, 3.0, 3.0]), np.array([[1.0, 2.0, 0.0], [3.0, 5.0, 0.0]]), np.array([10.0, 20.0])
    s, p, w = k(*(session.asarray(a) for a in (x, v, np.array([1, 0, 0]), t)), session=session)
    assert s.tolist() == [3.0, 5.0, 5.0]
    assert p.tolist() == [6.0 + 40.0, -1.0 + 20.0, -1.0 + 20.0]
    assert w.tolist() == [[-12.0, -20.0, 0.0], [4.0, 8.0, 0.0]]


def test_the_same_functions_run_as_python():
    assert [clamped(v) for v in (-1, 0.5, 3)] == [0.0, 0.5, 1.0]
    assert turned(np.array([1.0, 2.0])).tolist() == [-2.0, 1.0]
    assert eagle.dispatch(5, [lambda: 1, lambda: 2]) == 2
    assert list(eagle.bounded(range(10), 3)) == [0, 1, 2]
    assert eagle.bounded(3) is True
    assert eagle.matrix([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_constants_of_a_called_function_are_read_again(monkeypatch, local):
    before = uses_shifted.hash
    assert uses_shifted(local.asarray([0.25])).tolist() == [3.5]
    monkeypatch.setattr(sys.modules[__name__], "OFFSET", 0.25)
    assert uses_shifted(local.asarray([0.25])).tolist() == [1.0]
    changed = uses_shifted.hash
    monkeypatch.setattr(sys.modules[__name__], "GAINS", (0, 4))
    assert uses_shifted(local.asarray([0.25])).tolist() == [2.0]
    monkeypatch.setattr(sys.modules[__name__], "clamped", lambda_like)
    assert uses_shifted(local.asarray([0.25])).tolist() == [5.0]
    assert len({before, changed, uses_shifted.hash}) == 3


def lambda_like(v):
    return v * 4


def test_defaults_that_change_make_another_kernel(monkeypatch, local):
    before = uses_shifted.hash
    monkeypatch.setattr(clamped, "__defaults__", (0.5,))
    assert uses_shifted(local.asarray([0.25])).tolist() == [4.0]
    assert uses_shifted.hash != before


def test_tuples_of_constants_are_taken_apart(session):
    k = as_kernel(
        "def f(x: Scalar) -> Scalar:\n    a, b, c = PARTS\n"
        "    return x * a + b * c + GAINS[-2] * GAINS[2][1] if GAINS[2][0] else x",
        PARTS=(0.5, np.int64(2), np.float32(3)),
    )
    assert k(session.asarray([1.0]), session=session).tolist() == [0.5 + 6 - 6]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("GAINS", ["'GAINS' is a tuple of 3 constants", "GAINS[0]"]),
        ("GAINS[3]", ["item 3 of 3"]),
        ("GAINS[int(x)]", ["no constant integer", "Table"]),
        ("GAINS[0:1]", ["no constant integer"]),
        ("GAINS[2]", ["is a tuple itself"]),
        ("recursive(x)", ["'recursive' calls itself (f -> recursive -> mutual -> recursive)", "loop"]),
        ("uses_shifted(x)", ["'uses_shifted' is a Kernel", "without @eagle.kernel"]),
        ("wrapped(x)", ["wrapped by a decorator"]),
        ("table_like(x)", ["'table_like' is a partial"]),
        ("short(x)", ["one function written with `def`"]),
        ("with_array(x)", ["the default of argument 'a' of 'with_array' is a ndarray"]),
        ("clamped(x, 0, 1)", ["'clamped' takes 2 argument(s), found 3"]),
        ("clamped()", ["argument 'v' of 'clamped' is missing"]),
        ("both(x, x)", ["this call gives 2 values", "a, b = f(x)"]),
    ],
)
def test_calls_that_do_not_fit_are_refused_by_name(body, words):
    short = lambda v: v  # noqa: E731

    def with_array(x, a=np.ones(2)):  # noqa: B008
        return x

    @functools.wraps(clamped)
    def wrapped(v):
        return v

    names = {
        "wrapped": wrapped,
        "short": short,
        "with_array": with_array,
        "table_like": functools.partial(clamped, low=1),
    }
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        as_kernel(f"def f(x: Scalar) -> Scalar:\n    return {body}", **names)
    for word in words:
        assert word in str(caught.value)


def test_a_refusal_inside_a_called_function_points_there_and_says_who_called():
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        as_kernel("def f(x: Scalar) -> Scalar:\n    return outer_wrong(x)")
    error = caught.value
    head, line, caret, _ = str(error).split("\n")
    assert error.filename == __file__
    assert (
        f"{__file__}:{error.lineno}:{error.column}: function 'wrong' (called by function 'outer_wrong', line " in head
    )
    assert line.endswith("return y @ y")
    assert caret == "    " + " " * (error.column - 1) + "^"


def test_places_of_operations_lie_in_the_file_of_their_function(tmp_path, monkeypatch):
    (tmp_path / "deep_helpers.py").write_text("def f(x):\n    return x << x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import deep_helpers

    with pytest.raises(
        eagle.KernelSyntaxError, match=r"deep_helpers.py:2:12: function 'f' \(called by kernel 'g', line 2"
    ):
        eagle.kernel(source="def g(x: Scalar) -> Scalar:\n    return h.f(x)", constants={"h": deep_helpers})


def test_calls_that_multiply_without_end_are_refused_and_not_waited_for():
    lines = [f"    def g{k}(v):\n        return g{k - 1}(v) + g{k - 1}(v * 2)" for k in range(1, 40)]
    text = (
        "def f(x: Scalar) -> Scalar:\n    def g0(v):\n        return v + 1\n" + "\n".join(lines) + "\n    return g39(x)"
    )
    with pytest.raises(eagle.KernelSyntaxError, match="more than 16,384 calls"):
        as_kernel(text)


# ---- dispatch


def zero():
    return 0.0


def test_dispatch_takes_lambdas_and_functions_and_clamps_its_selector(session):
    @kernel
    def shape(kind: Index, x: Scalar) -> Scalar:
        def square():
            y = x * x
            return y

        r = eagle.dispatch(kind, [zero, square, lambda: x, lambda: 1])
        return r

    kind = session.asarray([-5, 0, 1, 2, 3, 4, 2**62])
    got = shape(kind, session.full(7, 3.0), session=session)
    assert got.tolist() == [0.0, 0.0, 9.0, 3.0, 1.0, 1.0, 1.0]


def test_dispatch_groups_have_names_and_policies():
    text = (
        "def f(i: Index, x: Scalar) -> Scalar:\n"
        "    a = eagle.dispatch(i, [lambda: x, lambda: 2 * x])\n"
        "    b = eagle.dispatch(i, [lambda: a, lambda: 1], policy='segmented', name='phases')\n"
        "    for k in range(3):\n        b = b + eagle.dispatch(k, [lambda: b, lambda: a], 'switch')\n"
        "    return b"
    )
    ir = eagle.kernel(source=text).ir
    assert "dispatch @dispatch0 auto" in ir
    assert "dispatch @phases segmented" in ir
    assert "dispatch @dispatch2 switch" in ir


def test_branches_see_names_and_may_have_loops_and_tables(session):
    @kernel
    def choose(i: Index, t: Table[Scalar]) -> tuple[Scalar, Index]:
        base = 10.0

        def summed():
            s = 0.0
            for k in range(3):
                s = s + t.at(k)
            return s, 1

        r, n = eagle.dispatch(i, [summed, lambda: (base, i)])
        return r, n

    i, t = session.asarray([0, 1, 0]), session.asarray([1.0, 2.0, 4.0])
    bound = eagle.plan(choose).bind(i=i, t=t).launch()
    assert [a.tolist() for a in bound.returned()] == [[7.0, 10.0, 7.0], [1, 1, 1]]
    assert bound.report.clamped == 0


# ---- pickling


def scaled_by(factor, parts):
    @kernel
    def scaled(x: Scalar, v: Mutable[Vector[2]], n: Param[int], t: Table["a":2, "b":3]) -> dict[str, Scalar]:
        v[0] = v[1] * math.sqrt(factor)
        return {"y": shifted(x) * parts[1] + n + t.at(0, 2), "z": x * math.pi}

    return scaled


@pytest.mark.parametrize(
    "k",
    [
        uses_shifted,
        scaled_by(4.0, (1, 2.5)),
        eagle.kernel(source="def f(i: Index) -> tuple[Index, Index]:\n    return i + 1, i % 3"),
    ],
    ids=lambda k: k.name,
)
def test_kernels_pickle_and_load_in_another_process_with_the_same_hash(k):
    data = pickle.dumps(k)
    loaded = pickle.loads(data)
    assert (loaded.hash, loaded.ir, loaded.source(), repr(loaded)) == (k.hash, k.ir, k.source(), repr(k))
    program = "import pickle, sys; k = pickle.load(sys.stdin.buffer); print(k.hash, k.translation('f32').kernel.hash)"
    # -I: nothing of this test's surroundings can be imported there, so that the pickle has to hold all of it.
    path = "import sys; sys.path[:0] = " + repr(sys.path) + "; sys.modules['test_functions'] = None; "
    ran = subprocess.run([sys.executable, "-c", path + program], input=data, capture_output=True, check=True)
    assert ran.stdout.decode().split() == [k.hash, k.translation("f32").kernel.hash]


def test_a_loaded_kernel_keeps_the_constants_of_its_pickling(monkeypatch, local):
    data = pickle.dumps(uses_shifted)
    monkeypatch.setattr(sys.modules[__name__], "OFFSET", 100.0)
    loaded = pickle.loads(data)
    assert loaded(local.asarray([0.25])).tolist() == [3.5]
    assert pickle.loads(pickle.dumps(loaded)).hash == loaded.hash


def test_a_kernel_with_a_name_that_is_not_defined_is_not_pickled():
    @kernel
    def open_kernel(x: Mutable[Scalar]):
        x = x + not_there_yet

    with pytest.raises(eagle.KernelSyntaxError, match="'not_there_yet' is not defined"):
        pickle.dumps(open_kernel)
