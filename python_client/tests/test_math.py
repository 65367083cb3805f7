"""eagle.math called from Python: what it takes, what it refuses, and the types it computes in."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import eagle
from eagle import Scalar, kernel

NO_NUMBERS = {
    "complex": (np.array([1j]), "complex128"),
    "a complex number": (1j, "complex"),
    "None": (None, "NoneType"),
    "text": ("2.5", "str"),
    "texts": (["2.5"], "<U3"),
    "dates": (np.array(["2020-01-01"], "datetime64[D]"), "datetime64"),
    "a masked array": (np.ma.masked_array([1.0, 2.0], [False, True]), "masked"),
    "longdouble": (np.ones(2, np.longdouble), "float128"),
    "objects": (np.array([1.0], object), "object"),
    "ragged rows": ([[1.0], [1.0, 2.0]], "list"),
}


@pytest.mark.parametrize("case", NO_NUMBERS)
@pytest.mark.parametrize("name", eagle.math.__all__)
def test_what_is_no_real_number_is_refused_by_name(name, case):
    function = getattr(eagle.math, name)
    value, found = NO_NUMBERS[case]
    if case == "longdouble" and np.dtype(np.longdouble).itemsize <= 8:
        pytest.skip("long double is float64 here")
    operands = [value, *[1.0] * (len(inspect.signature(function).parameters) - 1)]
    with pytest.raises(TypeError) as refused:
        function(*operands)
    assert isinstance(refused.value, eagle.EagleError)
    message = str(refused.value)
    assert "eagle.math." in message and "expected real numbers" in message and found in message and ";" in message


def test_shapes_that_do_not_broadcast_are_refused_with_both():
    with pytest.raises(eagle.EagleError, match=r"eagle.math.pow: .*\(2,\), \(3,\)"):
        eagle.math.pow(np.ones(2), np.ones(3))


def test_integers_of_any_size_that_a_float_holds():
    assert eagle.math.sqrt(2**70) == 2.0**35
    with pytest.raises(ValueError, match=r"eagle.math.sqrt: .*10001 bits"):
        eagle.math.sqrt(2**10000)


def test_pythons_numbers_take_the_type_of_the_arrays_beside_them():
    x = np.array([1.5, 2.5], np.float32)
    for number in (0.1, 3, True):
        found = eagle.math.pow(x, number)
        assert found.dtype == np.float32
        assert found.tobytes() == eagle.math.pow(x, np.float32(number)).tobytes()
    assert eagle.math.pow(x, np.float64(0.1)).dtype == np.float64
    assert eagle.math.pow(x, np.array(2)).dtype == np.float64
    assert eagle.math.pow(x, [0.1, 0.1]).dtype == np.float64
    assert eagle.math.pow(2, 0.5).dtype == np.float64
    assert eagle.math.maximum(x, 1e300).tolist() == [np.inf, np.inf]


def test_a_float32_array_beside_a_number_gives_the_bits_of_the_kernel(session):
    @kernel
    def powers(x: Scalar) -> Scalar:
        return eagle.math.pow(x, 0.1)

    x = np.random.default_rng(3).uniform(0.1, 10, 1000).astype(np.float32)
    assert powers(session.asarray(x), session=session).tobytes() == eagle.math.pow(x, 0.1).tobytes()


def test_roots_and_extremes_are_those_of_kernels_and_warn_of_nothing(session):
    @kernel
    def of(x: Scalar, y: Scalar) -> {"s": Scalar, "a": Scalar, "lo": Scalar, "hi": Scalar}:
        return {
            "s": eagle.math.sqrt(x),
            "a": eagle.math.absolute(x),
            "lo": eagle.math.minimum(x, y),
            "hi": eagle.math.maximum(x, y),
        }

    numbers = [0.0, -0.0, -1.0, 2.0, 5e-324, 1e-310, np.inf, -np.inf, np.nan]
    x, y = (grid.reshape(-1).copy() for grid in np.meshgrid(numbers, numbers))
    inside = of(session.asarray(x), session.asarray(y), session=session)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outside = {
            "s": eagle.math.sqrt(x),
            "a": eagle.math.absolute(x),
            "lo": eagle.math.minimum(x, y),
            "hi": eagle.math.maximum(x, y),
        }
        assert np.isnan(eagle.math.sqrt(-1.0)) and eagle.math.norm([3.0, 4.0]) == 5.0
    for name, found in outside.items():
        same = (found == inside[name]) & (np.signbit(found) == np.signbit(inside[name]))
        assert np.all(same | (np.isnan(found) & np.isnan(inside[name]))), name


def test_extremes_and_sizes_of_integers_are_exact_integers():
    big = 2**53 + 1
    assert eagle.math.maximum(np.array([big]), big - 1).tolist() == [big]
    assert eagle.math.minimum(big, big + 1) == big
    assert eagle.math.absolute(np.array([-big])).tolist() == [big]


def test_importing_all_names_leaves_pythons_math_and_random():
    names: dict[str, object] = {}
    exec("import math, random\nfrom eagle import *", names)
    assert names["math"].__name__ == "math" and names["random"].__name__ == "random"
    assert eagle.math.sqrt(4.0) == 2.0 and eagle.random.normal
