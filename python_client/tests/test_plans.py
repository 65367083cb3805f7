"""Binding: what fits, what is refused, and that nothing runs before all of it is looked at."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Terminated, Vector, kernel


@kernel
def affine(x: Scalar, a: Param, b: Param) -> Scalar:
    y = a * x + b
    return y


@kernel
def push(p: Mutable[Vector[3]], i: Index, gain: Param, done: Terminated):
    p = p + p
    done = i > 3


@kernel
def shift(x: Scalar, y: Mutable[Scalar]):
    y = x + 1


def good(session):
    return {
        "p": session.zeros((3, 5)),
        "i": session.zeros(5, dtype=np.int64),
        "gain": 1.0,
        "done": session.zeros(5, dtype=bool),
    }


def test_affine_has_the_documented_values(session):
    x = session.asarray(np.arange(8.0))
    assert affine(x, 2.0, 1.0).tolist() == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]


def test_a_bound_plan_knows_its_planes_samples_and_names(session):
    x = session.zeros(8)
    bound = eagle.plan(affine).bind(x=x, a=2.0, b=1.0)
    assert isinstance(bound, eagle.plan.BoundPlan)
    assert (bound.n, bound.names) == (8, ("x", "a", "b", "y"))
    assert bound.planes.keys() == {"x", "y"}
    assert bound.planes["x"] is x
    assert session.owns(bound.planes["y"])


def test_a_bound_plan_can_be_launched_again(session):
    x, y = session.asarray([1.0, 2.0]), session.zeros(2)
    bound = eagle.plan(shift).bind(x=x, y=y)
    assert y.tolist() == [0.0, 0.0]
    assert bound.launch() is bound
    assert y.tolist() == [2.0, 3.0]
    x[:] = 10.0
    bound.launch()
    assert y.tolist() == [11.0, 11.0]


def wrong(name, value, error, reason, *words):
    return pytest.param(name, value, error, reason, words, id=f"{name}-{reason}-{words[0]}")


WRONG = [
    wrong("p", lambda s: s.zeros((3, 5), dtype="int64"), TypeError, "WRONG_DTYPE", "'p'", "float64", "int64"),
    wrong(
        "p",
        lambda s: np.zeros((3, 5), dtype=">f8"),
        TypeError,
        "WRONG_DTYPE",
        "'p'",
        "float64",
        ">f8",
        "session.asarray",
    ),
    wrong("p", lambda s: s.zeros((2, 5)), ValueError, "WRONG_SHAPE", "'p'", "(3, N)", "(2, 5)"),
    wrong("p", lambda s: s.zeros(5), ValueError, "WRONG_SHAPE", "'p'", "(5,)"),
    wrong("p", lambda s: s.zeros((3, 3)), ValueError, "WRONG_SHAPE", "'p'", "ambiguous"),
    wrong("p", lambda s: s.zeros((3, 10))[:, ::2], ValueError, "COPY_BOUND_PLANE", "'p'", "contiguous"),
    wrong("p", lambda s: s.zeros((5, 3)), ValueError, "COPY_BOUND_PLANE", "'p'", "sample-major"),
    wrong(
        "i", lambda s: s.zeros(5, dtype="int32"), TypeError, "WRONG_DTYPE", "'i'", "int64", "int32", "session.asarray"
    ),
    wrong("i", lambda s: s.zeros(6, dtype="int64"), ValueError, "SAMPLE_MISMATCH", "'p'", "'i'", "5", "6"),
    wrong(
        "i", lambda s: np.zeros(5, dtype="uint8"), TypeError, "WRONG_DTYPE", "'i'", "int64", "uint8", "session.asarray"
    ),
    wrong("i", lambda s: np.zeros(5, dtype=object), TypeError, "WRONG_TYPE", "'i'", "objects"),
    wrong("i", lambda s: np.ma.zeros(5, dtype="int64"), TypeError, "WRONG_TYPE", "'i'", "masked", "filled"),
    wrong("i", lambda s: [1, 2, 3, 4, 5], TypeError, "WRONG_TYPE", "'i'", "list", "asarray"),
    wrong("i", lambda s: 3, TypeError, "WRONG_TYPE", "'i'", "only a Param"),
    wrong("i", lambda s: None, TypeError, "WRONG_TYPE", "'i'", "NoneType"),
    wrong("gain", lambda s: s.zeros(5), TypeError, "WRONG_TYPE", "'gain'", "one number"),
    wrong("gain", lambda s: "1.0", TypeError, "WRONG_TYPE", "'gain'", "one number"),
    wrong("gain", lambda s: True, TypeError, "WRONG_TYPE", "'gain'", "bool"),
    wrong("gain", lambda s: 1j, TypeError, "WRONG_TYPE", "'gain'", "complex"),
    wrong("done", lambda s: s.zeros(5, dtype="int64"), TypeError, "WRONG_DTYPE", "'done'", "bool", "int64"),
    wrong("extra", lambda s: s.zeros(5), TypeError, "BAD_BINDING", "'extra'", "'p', 'i', 'gain', 'done'"),
]


@pytest.mark.parametrize(("name", "value", "error", "reason", "words"), WRONG)
def test_what_does_not_fit_is_refused_by_argument_before_anything_runs(session, name, value, error, reason, words):
    arguments = good(session)
    arguments["p"][...] = 1.0
    with pytest.raises(error) as caught:
        eagle.plan(push).bind(session=session, **{**arguments, name: value(session)})
    assert isinstance(caught.value, eagle.EagleError)
    assert caught.value.reason == reason
    for word in ("push", *words):
        assert word in str(caught.value)
    assert (arguments["p"] == 1.0).all()


@pytest.mark.parametrize("name", ["p", "i", "gain", "done"])
def test_a_missing_argument_is_named(session, name):
    arguments = good(session)
    del arguments[name]
    with pytest.raises(TypeError, match=f"'{name}' is missing"):
        eagle.plan(push).bind(session=session, **arguments)


def test_a_read_only_array_is_refused_where_the_kernel_writes(session):
    x, y = session.zeros(4), session.zeros(4)
    x.flags.writeable = False
    eagle.plan(shift).bind(x=x, y=y).launch()
    y.flags.writeable = False
    with pytest.raises(ValueError, match="'y'.*read-only") as caught:
        eagle.plan(shift).bind(x=x, y=y)
    assert caught.value.reason == "READ_ONLY_ARRAY"


def test_partial_overlap_of_input_and_output_is_refused_and_in_place_is_fine(session):
    memory = session.asarray(np.arange(5.0))
    with pytest.raises(ValueError, match="'x'") as caught:
        eagle.plan(shift).bind(x=memory[:4], y=memory[1:])
    assert caught.value.reason == "PLANE_OVERLAP"
    eagle.plan(shift).bind(x=memory, y=memory).launch()
    assert memory.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_params_take_every_kind_of_number(session):
    x = session.asarray([1.0, 2.0])
    for two in (2, 2.0, np.float32(2), np.float64(2), np.int32(2), np.uint8(2)):
        assert affine(x, two, 0).tolist() == [2.0, 4.0]
    assert affine(x, 10**30, 0).tolist() == [1e30, 2e30]
    with pytest.raises(eagle.EagleError, match="'a': expected a number within the range of float64") as refused:
        affine(x, 10**400, 0)
    assert isinstance(refused.value, ValueError)


def test_integer_params_take_integers_only(session):
    k = eagle.kernel(source="def f(i: Index, n: Param[int]) -> Index:\n    return i + n")
    i = session.asarray([1, 2])
    assert k(i, -3).tolist() == [-2, -1]
    with pytest.raises(TypeError, match="'n'"):
        k(i, 2.5)
    with pytest.raises(ValueError, match="'n'.*int64"):
        k(i, 2**63)


def test_zero_samples_are_fine(session):
    assert affine(session.zeros(0), 1.0, 2.0, session=session).shape == (0,)


def test_without_any_array_the_number_of_samples_is_asked_for(session):
    k = eagle.kernel(source="def f(a: Param) -> Scalar:\n    return a * 2")
    with pytest.raises(TypeError, match="how many samples"):
        k(1.0, session=session)
    assert k(1.0, out=session.zeros(3)).tolist() == [2.0, 2.0, 2.0]


def test_plan_takes_kernels_only():
    with pytest.raises(TypeError, match="@eagle.kernel"):
        eagle.plan(lambda x: x)


def test_launches_with_other_threads_at_work_give_the_same_bits():
    x = np.random.default_rng(3).normal(size=10_001)
    results = []
    for threads in (1, 2, 3):
        with eagle.local(threads=threads) as session:
            results.append(affine(session.asarray(x), 1 / 3, 0.1).tobytes())
    assert results == [(x * (1 / 3) + 0.1).tobytes()] * 3
