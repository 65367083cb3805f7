"""Kernel objects: where their text comes from, their constants, their types and names."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import eagle
import eagle as other_name
from eagle import Mutable, Param, Scalar, Vector, kernel

RATE = 2.0


@kernel
def grown(x: Mutable[Scalar]):
    # Reads a constant of its module.
    x = x * RATE


@kernel
def uses_later(x: Mutable[Scalar]):
    x = x + LATER


LATER = 7


def scaled_by(factor):
    @kernel
    def scaled(x: Scalar) -> Scalar:
        return x * factor

    return scaled


def test_source_is_the_text_of_the_function():
    assert (
        grown.source()
        == "@kernel\ndef grown(x: Mutable[Scalar]):\n    # Reads a constant of its module.\n    x = x * RATE\n"
    )


def test_ir_is_readable_and_names_the_arguments():
    assert grown.ir.splitlines()[:2] == ["kernel @grown real=f64", "  mutable %0 x: f64"]


def test_hash_tells_programs_apart_and_not_names_or_comments():
    def hash_of(text: str) -> str:
        return eagle.kernel(source=text).hash

    one = hash_of("def f(x: Mutable[Scalar]):\n    x = x + 1")
    assert len(one) == 64
    assert one == hash_of("def g(y: Mutable[Scalar]):\n    # the same\n    y += 1.0")
    assert one != hash_of("def f(x: Mutable[Scalar]):\n    x = x + 2")
    assert one != hash_of("def f(x: Mutable[Scalar]):\n    x = 1 + x")


def test_a_constant_of_the_module_is_read_again_at_each_bind(monkeypatch, local):
    x, before = local.asarray([1.0]), grown.hash
    grown(x, session=local)
    assert x[0] == 2.0
    monkeypatch.setattr(sys.modules[__name__], "RATE", 5.0)
    grown(x, session=local)
    assert x[0] == 10.0
    assert grown.hash != before


def test_a_bound_plan_keeps_the_constants_of_its_bind(monkeypatch, local):
    x = local.asarray([1.0])
    bound = eagle.plan(grown).bind(x=x)
    monkeypatch.setattr(sys.modules[__name__], "RATE", 100.0)
    bound.launch()
    assert x[0] == 2.0


def test_constants_come_from_closures_too(local):
    x = local.asarray([1.0, 2.0])
    double, half = scaled_by(2), scaled_by(np.float32(0.5))
    assert double(x).tolist() == [2.0, 4.0]
    assert half(x).tolist() == [0.5, 1.0]
    assert double.hash != half.hash


def test_constants_that_differ_in_type_or_sign_of_zero_are_other_kernels(monkeypatch):
    hashes = set()
    for value in (0.0, -0.0, math.nan, 1, True):
        monkeypatch.setattr(sys.modules[__name__], "RATE", value)
        if value is True:
            with pytest.raises(eagle.KernelSyntaxError, match="booleans are not numbers"):
                grown.hash  # noqa: B018
        else:
            hashes.add(grown.hash)
    assert len(hashes) == 4


def test_a_constant_may_be_defined_after_the_kernel(local):
    assert uses_later(local.asarray([1.0])) is None
    x = local.asarray([1.0])
    uses_later(x)
    assert x[0] == 8.0


def test_a_captured_value_that_is_no_number_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "RATE", np.ones(3))
    with pytest.raises(eagle.KernelSyntaxError, match="'RATE' is a ndarray.*\n.*\n.*\n.*pass arrays as arguments"):
        grown.hash  # noqa: B018


def test_functions_are_known_by_what_they_are_and_not_by_their_names(local):
    from math import sqrt as root

    @kernel
    def both(x: other_name.Scalar) -> other_name.Scalar:
        return other_name.select(x > 1, root(x), np.sqrt(x))

    assert both(local.asarray([4.0, 0.25])).tolist() == [2.0, 0.5]


def test_annotations_may_be_texts(local):
    @kernel
    def energy(v: "Vector[2]", m: "eagle.Param") -> "Vector[2]":
        return v * v

    v = local.asarray([[1.0], [3.0]])
    assert energy(v, 1.0).tolist() == [[1.0], [9.0]]


def test_without_source_the_cure_is_named_and_works(local):
    text = "def made(x: Scalar) -> Scalar:\n    return x + 1\n"
    names = {"Scalar": Scalar}
    exec(text, names)
    with pytest.raises(eagle.KernelSyntaxError, match=r"no source to read[\s\S]*eagle\.kernel\(source="):
        kernel(names["made"])
    assert eagle.kernel(source=text)(local.asarray([1.0])).tolist() == [2.0]


def test_source_may_be_indented_and_start_with_empty_lines():
    k = eagle.kernel(
        source="""

        def f(x: Mutable[Scalar]):
            x = x + 1
        """
    )
    assert k.name == "f"


@pytest.mark.parametrize("thing", [lambda x: x, len, 3, "def f(): pass", type("C", (), {})])
def test_only_plain_functions_are_decorated(thing):
    with pytest.raises(eagle.KernelSyntaxError, match="def"):
        kernel(thing)


def test_the_planes_decide_the_type_of_the_reals(session):
    k = eagle.kernel(source="def f(x: Scalar, a: Param) -> Scalar:\n    return x * a + 0.1")
    for dtype in (np.float32, np.float64):
        got = k(session.asarray([1.0, 3.0], dtype=dtype), 0.7, session=session)
        assert got.dtype == dtype
        assert got.tolist() == (np.array([1, 3], dtype) * dtype(0.7) + dtype(0.1)).tolist()


def test_planes_of_both_float_types_are_refused_both_named(session):
    k = eagle.kernel(source="def f(x: Scalar, y: Scalar) -> Scalar:\n    return x * y")
    x, y = session.zeros(3), session.zeros(3, dtype="float32")
    with pytest.raises(TypeError, match="'x' is float64 and 'y' is float32") as caught:
        k(x, y, session=session)
    assert caught.value.reason == "WRONG_DTYPE"


@pytest.mark.parametrize("spelling", ["float32", "f32", np.float32, "f4"])
def test_scalar_type_says_it_where_no_plane_does(session, spelling):
    k = eagle.kernel(source="def f(i: Index) -> Scalar:\n    return i / 3")
    i = session.asarray([1, 2])
    assert k(i, session=session).dtype == np.float64
    assert k(i, session=session, scalar_type=spelling).tolist() == [float(np.float32(1 / 3)), float(np.float32(2 / 3))]


def test_scalar_type_of_another_kind_is_refused():
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return x + 1")
    for wrong in ("float16", "real", 3, int):
        with pytest.raises(eagle.EagleError, match="scalar_type"):
            eagle.plan(k, scalar_type=wrong)


def test_calls_check_their_arguments_by_name(local):
    k = eagle.kernel(source="def f(x: Scalar, a: Param) -> Scalar:\n    return x * a")
    x = local.zeros(3)
    for call, words in [
        (lambda: k(x), "'a' is missing"),
        (lambda: k(x, 1.0, 2.0), "takes 2 arguments"),
        (lambda: k(x, 1.0, a=2.0), "'a' is given twice"),
        (lambda: k(x, 1.0, b=2.0), "'b'"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()


def test_a_kernel_from_python_dash_c_is_refused_with_the_cure():
    if sys.version_info >= (3, 13):
        pytest.skip("this Python keeps the source of -c")
    program = textwrap.dedent(
        """
        from eagle import *
        @kernel
        def f(x: Mutable[Scalar]):
            x = x + 1
        """
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "eagle.kernel(source=" in ran.stderr


def test_roles_say_what_they_are():
    assert [repr(role) for role in (Scalar, Vector[3], eagle.Matrix[2, 3], Mutable[eagle.Index], Param[int])] == [
        "Scalar",
        "Vector[3]",
        "Matrix[2, 3]",
        "Mutable[Index]",
        "Param[int]",
    ]
    assert repr(grown) == "<eagle.kernel grown(x: Mutable[Scalar])>"


# ---- for GPUs


def test_a_kernel_has_its_code_for_gpus():
    @eagle.kernel
    def affine(x: eagle.Scalar, a: eagle.Param, b: eagle.Param) -> eagle.Scalar:
        return a * x + b

    assert ".target sm_75" in affine.ptx()
    text = affine.ptx("sm_90")
    assert ".target sm_90" in text
    assert "mul.rn.f64" in text and "add.rn.f64" in text  # not contracted, by anybody
    assert "mul.rn.f32" in affine.ptx("sm_80", scalar_type=np.float32)


def test_an_architecture_that_is_not_known_is_refused_with_those_that_are():
    @eagle.kernel
    def twice(x: eagle.Scalar) -> eagle.Scalar:
        return 2 * x

    with pytest.raises(ValueError, match="'sm_35'; expected one of sm_75, sm_80"):
        twice.ptx("sm_35")
    with pytest.raises(eagle.EagleError):
        twice.ptx("sm_80", scalar_type=np.int32)
