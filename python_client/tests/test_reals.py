"""Functions of reals: the same bits in kernels and on arrays, and every name of `math` and numpy accepted or refused."""

from __future__ import annotations

import builtins
import inspect
import math
import random

import numpy as np
import pytest

import eagle
from eagle import _core, _functions
from eagle.frontend import reals
from eagle.frontend.names import CALLS

OPERANDS = {name: count for name, count, _ in _core.math_functions()}
OWN = {code: name for name, code in {"floor_divide": "floor_quotient"}.items()}
REALS = sorted(OWN.get(name, name) for name in OPERANDS)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-300, -1e-310, 1e300, math.inf, -math.inf, math.nan]


def bits(array):
    """Bits with every NaN alike."""
    array = np.asarray(array)
    if array.dtype == bool:
        return array
    return np.where(np.isnan(array), 0, array.view(np.int64 if array.dtype == np.float64 else np.int32))


def operands(count, dtype):
    """All combinations of special numbers, and some plain ones."""
    generator = np.random.default_rng(20261129)
    grids = np.meshgrid(*[SPECIAL] * count)
    with np.errstate(over="ignore"):
        return [np.concatenate([grid.reshape(-1), generator.uniform(-4, 4, 300)]).astype(dtype) for grid in grids]


def made(expression, arguments="x y z"):
    arguments = ", ".join(f"{name}: Scalar" for name in arguments.split())
    return eagle.kernel(
        source=f"def f({arguments}) -> Scalar:\n    out = {expression}\n    return out\n",
        constants={"eagle": eagle, "math": math, "np": np},
    )


def function_kernel(name, count, asks):
    letters = ["x", "y", "z"][:count]
    call = f"eagle.math.{name}({', '.join(letters)})"
    if asks:
        call = f"1.0 if {call} else 0.0"
    return made(call, " ".join(letters))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REALS)
def test_a_function_gives_the_same_bits_in_a_kernel_and_on_arrays(session, name, dtype):
    function = getattr(eagle.math, name)
    count = len(inspect.signature(function).parameters)
    code = reals.CALLS[function]
    arrays = operands(count, dtype)
    kernel = function_kernel(name, count, reals.FUNCTIONS[code][1])
    inside = kernel(*(session.asarray(array) for array in arrays))
    outside = function(*arrays)
    assert inside.dtype == dtype
    assert np.array_equal(bits(inside), bits(np.asarray(outside).astype(dtype)))


@pytest.mark.parametrize("name", REALS)
def test_every_function_is_one_operation(name):
    function = getattr(eagle.math, name)
    code = reals.CALLS[function]
    kernel = function_kernel(name, OPERANDS[code], reals.FUNCTIONS[code][1])
    assert f" {code} " in kernel.ir


def test_functions_are_those_of_the_module():
    public = [
        name for name, thing in vars(_functions).items() if inspect.isfunction(thing) and not name.startswith("_")
    ]
    assert sorted(public) == REALS
    assert set(public) <= set(eagle.math.__all__)


def test_functions_broadcast_and_keep_float32():
    assert eagle.math.pow([[1.0, 2.0], [3.0, 4.0]], 2.0).tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert eagle.math.exp(np.float32(0)).dtype == np.float32
    assert eagle.math.exp(0).dtype == np.float64
    assert eagle.math.hypot(np.ones(3, np.float32), np.ones(3)).dtype == np.float64
    assert eagle.math.isnan([math.nan, 1.0]).tolist() == [True, False]
    assert eagle.math.sin(np.zeros((2, 3, 4))[:, ::2]).shape == (2, 2, 4)


# ---- the operators, against Python itself


def awkward(generator):
    kind = generator.randrange(5)
    if kind == 0:
        return generator.choice([x for x in SPECIAL if x == x])
    if kind == 1:
        return generator.randrange(-20, 21) / 4
    if kind == 2:
        return math.ldexp(generator.uniform(-1, 1), generator.randrange(-1070, 1020))
    return generator.uniform(-100, 100)


def test_division_and_modulo_of_reals_floor_as_pythons(session):
    generator = random.Random(20261129)
    pairs = [(awkward(generator), awkward(generator)) for _ in range(20_000)]
    pairs = [(x, y) for x, y in pairs if y != 0]
    x, y = (session.asarray(column) for column in zip(*pairs))
    assert np.array_equal(bits(made("x // y")(x, y, y)), bits(np.array([a // b for a, b in pairs])))
    assert np.array_equal(bits(made("x % y")(x, y, y)), bits(np.array([a % b for a, b in pairs])))


def test_division_and_modulo_by_zero_are_numpys(session):
    x, zero = session.asarray([1.0, -1.0, 0.0, math.nan]), session.asarray([0.0, 0.0, 0.0, 0.0])
    with np.errstate(all="ignore"):
        assert np.array_equal(bits(made("x // y")(x, zero, zero)), bits(np.floor_divide(x, zero)))
        assert np.array_equal(bits(made("x % y")(x, zero, zero)), bits(np.mod(x, zero)))


def test_powers_of_reals_are_pow_and_small_whole_ones_products(session):
    x, y = session.asarray([0.5, 2.0, 9.0, 1.7]), session.asarray([2.0, -0.5, 0.5, 3.3])
    assert np.array_equal(made("x ** y")(x, y, y), eagle.math.pow(x, y))
    assert np.array_equal(made("x ** 0.5")(x, y, y), eagle.math.pow(x, 0.5))
    assert np.array_equal(made("x ** -2")(x, y, y), eagle.math.pow(x, -2.0))
    assert np.array_equal(made("2.0 ** x")(x, y, y), eagle.math.pow(2.0, x))
    assert np.array_equal(made("x ** 5")(x, y, y), (x * x) * (x * x) * x)


def test_functions_work_on_vectors_component_by_component(session):
    k = eagle.kernel(
        source="def f(v: Vector[3], w: Vector[3]) -> Vector[3]:\n"
        "    return eagle.math.fma(eagle.math.exp(v), w, eagle.math.atan2(v, w))\n"
    )
    v, w = (session.asarray(np.random.default_rng(k).uniform(-2, 2, (3, 50))) for k in (1, 2))
    expected = eagle.math.fma(eagle.math.exp(v), w, eagle.math.atan2(v, w))
    assert np.array_equal(bits(k(v, w)), bits(expected))


def test_constants_are_folded_by_the_same_functions(session):
    kernel = made("x * eagle.math.sin(0.7) + math.log(3) + eagle.math.round(2.5) + round(2.5) + math.floor(-1.5)")
    assert "sin" not in kernel.ir
    x = session.asarray([2.0])
    assert kernel(x, x, x)[0] == 2.0 * eagle.math.sin(0.7) + eagle.math.log(3.0) + 3.0 + 2 + -2


# ---- names of other libraries

LIBRARIES = {"math": math, "np": np, "builtins": builtins}
NOT_FUNCTIONS = ("e", "pi", "tau", "inf", "nan")
PLAIN = np.concatenate([np.random.default_rng(7).uniform(-3, 3, 200), np.arange(-4, 4.25, 0.25)])


def names_of(module):
    """The functions of `math`, and numpy's of whole arrays."""
    if module is math:
        return [name for name in dir(math) if not name.startswith("_") and name not in NOT_FUNCTIONS]
    also = ["where", "dot", "cross", "outer", "clip", "round", "around", "sum", "prod", "mean", "std", "sinc", "fix"]
    ufuncs = [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]
    return sorted({*ufuncs, *also})


NAMES = [("math", name) for name in names_of(math)] + [("np", name) for name in names_of(np)]
NAMES += [("builtins", name) for name in ("abs", "min", "max", "round", "pow", "divmod", "sum")]
ARITY = {
    **dict.fromkeys(
        ("atan2", "arctan2", "hypot", "fmod", "pow", "power", "float_power", "copysign", "mod", "remainder"), 2
    ),
    **dict.fromkeys(("floor_divide", "min", "max"), 2),
    **dict.fromkeys(("clip", "fma"), 3),
}


def is_accepted(module, name):
    return getattr(LIBRARIES[module], name) in CALLS


def spelled(module, name):
    return name if module == "builtins" else f"{module}.{name}"


@pytest.mark.parametrize(("module", "name"), [pair for pair in NAMES if is_accepted(*pair)], ids=".".join)
def test_an_accepted_name_keeps_its_librarys_meaning(local, module, name):
    function, count = getattr(LIBRARIES[module], name), ARITY.get(name, 1)
    letters = ["x", "y", "z"][:count]
    call = f"{spelled(module, name)}({', '.join(letters)})"
    asks = name in ("isnan", "isinf", "isfinite")
    kernel = made(f"1.0 if {call} else 0.0" if asks else f"0.0 + {call}", " ".join(letters))
    arrays = [np.roll(PLAIN, 11 * k) + 0.0 for k in range(count)]
    if name in ("pow", "power", "float_power"):
        arrays[0] = np.abs(arrays[0])
    if name in ("mod", "remainder", "floor_divide", "fmod", "pow"):
        arrays[1] = np.where(arrays[1] == 0, 1.0, arrays[1])
    found = kernel(*(local.asarray(array) for array in arrays))
    with np.errstate(all="ignore"):
        for i, numbers in enumerate(zip(*(array.tolist() for array in arrays))):
            try:
                expected = float(function(*numbers))
            except (ValueError, OverflowError, ZeroDivisionError):  # C gives NaN or an infinity
                assert not math.isfinite(found[i])
                continue
            assert found[i] == pytest.approx(expected, rel=1e-14, abs=0, nan_ok=True), (numbers, expected)


@pytest.mark.parametrize(("module", "name"), [pair for pair in NAMES if not is_accepted(*pair)], ids=".".join)
def test_any_other_name_is_refused_with_what_to_write_instead(module, name):
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        str(made(f"0.0 + {spelled(module, name)}(x, y)").ir)
    message = str(caught.value)
    assert f"'{spelled(module, name)}'" in message
    assert reals.CURES[name] in message


def test_what_meanings_differ_in(session):
    """Ties, NaNs and signs where names that look alike part."""
    x = session.asarray([0.5, 1.5, 2.5, -0.5, -2.5])
    assert made("round(x)")(x, x, x).tolist() == [round(v) for v in x.tolist()]
    assert made("np.round(x)")(x, x, x).tolist() == np.round(x).tolist()
    assert made("eagle.math.rint(x)")(x, x, x).tolist() == np.rint(x).tolist()
    assert made("eagle.math.round(x)")(x, x, x).tolist() == [1.0, 2.0, 3.0, -1.0, -3.0]
    nan, one = session.asarray([math.nan, 1.0]), session.asarray([1.0, math.nan])
    assert made("eagle.math.min(x, y)")(nan, one, one).tolist() == [1.0, 1.0]
    assert bits(made("min(x, y)")(nan, one, one)).tolist() == bits([math.nan, 1.0]).tolist()
    assert eagle.math.min(math.nan, 1.0) == 1.0 and eagle.math.max(1.0, math.nan) == 1.0
    five = session.asarray([5.0, -5.0])
    assert made("eagle.math.fmod(x, 3.0)")(five, five, five).tolist() == [2.0, -2.0]
    assert made("eagle.math.remainder(x, 3.0)")(five, five, five).tolist() == [2.0, 1.0]
    assert bits(eagle.math.copysign([1.0, -2.0], [math.nan, -math.nan])).tolist() == bits([1.0, 2.0]).tolist()
    assert bits(eagle.math.sign([-0.0, 0.0, math.nan, -3.0])).tolist() == bits([0.0, 0.0, math.nan, -1.0]).tolist()
    assert (
        bits(eagle.math.clip([1.0, math.nan, 1.0], [3.0, 0.0, math.nan], 2.0)).tolist()
        == bits([2.0, math.nan, math.nan]).tolist()
    )
