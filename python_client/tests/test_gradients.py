"""Derivatives of kernels: eagle.diff.vjp, eagle.diff.jvp and eagle.primitive."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import eagle
from eagle import Accum, Index, Mutable, Param, Reduce, Scalar, Table, Terminated, Vector, kernel


@kernel
def contact(x: Mutable[Scalar], v: Mutable[Scalar], k: Param, dt: Param, done: Terminated):
    v = v + dt * (-9.81 - k * x if x < 0 else -9.81)
    done = x < -0.5


@kernel
def energy(v: Vector[3], mass: Param) -> Scalar:
    return 0.5 * mass * eagle.math.dot(v, v)


@kernel
def newton(x: Scalar) -> Scalar:
    y = x
    for _ in range(40):
        better = 0.5 * (y + x / y)
        if abs(better - y) <= 1e-15 * y:
            break
        y = better
    return y


def gradients(derivative, session, **arguments):
    arrays = {name: session.asarray(a) if isinstance(a, list) else a for name, a in arguments.items()}
    return derivative(session=session, **arrays)


def test_the_contact_spring_of_the_acceptance_table(session):
    back = eagle.diff.vjp(contact, wrt=["x", "v", "k"])
    bar_x, bar_v = session.zeros(5), session.full(5, 1.0)
    found = back(
        x=session.asarray([0.3, 0.0, -0.1, -0.2, -0.8]),
        v=session.full(5, -1.0),
        k=1000.0,
        dt=0.01,
        done=session.asarray([False, False, False, False, True]),
        bar_x=bar_x,
        bar_v=bar_v,
    )
    assert bar_x.tolist() == [0.0, 0.0, -10.0, -10.0, 0.0]
    assert bar_v.tolist() == [1.0] * 5
    assert found["bar_k"].tolist() == [0.0, 0.0, 0.001, 0.002, 0.0]


def test_params_are_summed_on_request(session):
    back = eagle.diff.vjp(energy, wrt="mass", params="sum")
    v = session.asarray(np.arange(12.0).reshape(3, 4))
    found = back(v=v, mass=2.0, bar_out=session.full(4, 1.0))
    assert found["bar_mass"].tolist() == [0.5 * float((v**2).sum())]


def test_vectors_have_vectors_of_derivatives(session):
    found = gradients(eagle.diff.vjp(energy), session, v=[[1.0], [2.0], [3.0]], mass=2.0, bar_out=[1.0])
    assert found["bar_v"].tolist() == [[2.0], [4.0], [6.0]]
    assert found["bar_mass"].tolist() == [7.0]


def test_a_loop_that_breaks_has_the_derivative_of_its_trips(session):
    x = [0.25, 2.0, 9.0, 100.0]
    found = gradients(eagle.diff.vjp(newton), session, x=x, bar_y=[1.0] * 4)
    assert np.allclose(found["bar_x"], [0.5 / math.sqrt(v) for v in x], rtol=1e-12)
    ahead = gradients(eagle.diff.jvp(newton), session, x=x, dot_x=[1.0] * 4)
    assert np.allclose(ahead["dot_y"], found["bar_x"], rtol=1e-12)


def test_long_loops_are_gone_through_by_checkpoints(session):
    @kernel
    def oscillator(x: Scalar, v: Scalar, w: Param, n: Index) -> Scalar:
        y, u = x, v
        for _ in eagle.bounded(range(n), 100_000):
            y, u = y + 1e-3 * u, u - 1e-3 * w * w * y
        return y

    n, w, h = 3_000, 2.0, 1e-3
    found = gradients(eagle.diff.vjp(oscillator), session, x=[1.0], v=[0.0], w=w, n=[n], bar_y=[1.0])
    step = np.array([[1, h], [-h * w * w, 1]])
    power = np.linalg.matrix_power(step, n)
    # The steps commute with their derivative's place: d/dw of M^n is the sum of M^(n-1-i) M' M^i.
    by_w = np.zeros((2, 2))
    for i in range(n):
        inner = np.linalg.matrix_power(step, n - 1 - i) @ np.array([[0, 0], [-2 * h * w, 0]])
        by_w += inner @ np.linalg.matrix_power(step, i)
    assert np.allclose(found["bar_x"], power[0, 0], rtol=1e-10)
    assert np.allclose(found["bar_v"], power[0, 1], rtol=1e-10)
    assert np.allclose(found["bar_w"], by_w[0, 0], rtol=1e-9)


def test_tables_and_accumulators_change_places(session):
    @kernel
    def spread(i: Index, x: Scalar, t: Table[Scalar], h: Accum[Scalar]):
        h.add(x * t.at(i), at=i)

    i, x, t = session.asarray([0, 1, 1, 9]), session.asarray([1.0, 2.0, 3.0, 4.0]), session.asarray([10.0, 20.0])
    bar_t = session.zeros(2)
    found = eagle.diff.vjp(spread)(i=i, x=x, t=t, bar_t=bar_t, bar_h=session.asarray([1.0, 100.0]))
    assert found["bar_x"].tolist() == [10.0, 2000.0, 2000.0, 0.0]  # the last one is outside of h
    assert bar_t.tolist() == [1.0, 500.0]


def test_a_sum_over_samples_gives_each_of_them_its_adjoint(session):
    @kernel
    def squares(x: Scalar, total: Reduce("sum")):
        total = x * x

    found = gradients(eagle.diff.vjp(squares), session, x=[1.0, 2.0, 3.0], bar_total=[10.0])
    assert found["bar_x"].tolist() == [20.0, 40.0, 60.0]


def test_a_side_that_is_not_taken_leaves_no_nan(session):
    @kernel
    def roots(x: Scalar) -> Scalar:
        return eagle.select(x > 0, math.sqrt(x) * math.log(x), 0.0)

    found = gradients(eagle.diff.vjp(roots), session, x=[0.0, -1.0, 1.0], bar_out=[1.0] * 3)
    assert found["bar_x"].tolist() == [0.0, 0.0, 1.0]


def test_float32_has_derivatives_in_float32(session):
    with session:
        x = session.asarray(np.array([1.0, 2.0], np.float32))
        found = eagle.diff.vjp(newton)(x=x, bar_y=session.asarray(np.ones(2, np.float32)))
    assert found["bar_x"].dtype == np.float32


def test_second_derivatives(session):
    @kernel
    def well(x: Scalar) -> Scalar:
        y = x**4 - 2.0 * x**2
        return y

    curvature = eagle.diff.jvp(eagle.diff.vjp(well), wrt="x")
    found = gradients(curvature, session, x=[0.0, 1.0, 2.0], bar_y=[1.0] * 3, dot_x=[1.0] * 3)
    assert found["dot_bar_x"].tolist() == [-4.0, 8.0, 44.0]
    assert curvature.name == "well_vjp_jvp"


# ---- kernels like any other


def test_a_derivative_is_printed_and_has_a_hash():
    back = eagle.diff.vjp(energy)
    assert back.ir.startswith("kernel @energy_vjp real=f64 derivative=@energy\n")
    assert repr(back) == ("<eagle.kernel energy_vjp(v: Vector[3], mass: Param, bar_out: Scalar) -> bar_v, bar_mass>")
    assert back.hash != energy.hash and back.hash == eagle.diff.vjp(energy).hash
    assert back.planes["bar_v"] == eagle.diff.PlaneOf("bar", "v", True)
    assert back.arguments == ("v", "mass", "bar_out")


def test_a_derivative_follows_the_constants_of_its_kernel(session):
    scale = 2.0

    @kernel
    def scaled(x: Scalar) -> Scalar:
        return scale * x

    back = eagle.diff.vjp(scaled)
    assert gradients(back, session, x=[1.0], bar_out=[1.0])["bar_x"].tolist() == [2.0]
    scale = 3.0
    assert gradients(back, session, x=[1.0], bar_out=[1.0])["bar_x"].tolist() == [3.0]


def test_a_derivative_pickles(local):
    back = pickle.loads(pickle.dumps(eagle.diff.vjp(energy, wrt="v")))
    assert back.ir == eagle.diff.vjp(energy, wrt="v").ir


def test_a_plan_of_a_derivative_is_bound_once_and_launched_often(session):
    x, bar = session.asarray([1.0, 4.0]), session.full(2, 1.0)
    bound = eagle.plan(eagle.diff.vjp(newton)).bind(x=x, bar_y=bar)
    bound.launch()
    x[...] = [4.0, 9.0]
    assert np.allclose(bound.launch().planes["bar_x"], [0.25, 1 / 6])


def test_a_graph_refuses_a_derivative_by_name(session):
    x = session.asarray([1.0])
    bound = eagle.plan(eagle.diff.vjp(newton)).bind(x=x, bar_y=session.full(1, 1.0))
    with pytest.raises(eagle.DerivativeKernel, match=r"'newton_vjp'.*'newton'.*eagle\.diff"):
        eagle.Graph(session).add(bound)


# ---- refusals


@pytest.mark.parametrize(
    ("arguments", "reason", "said"),
    [
        ({"wrt": "q"}, "UNKNOWN_NAME", "'q'.*'x', 'v', 'k', 'dt'"),
        ({"wrt": ["x", "done"]}, "BAD_VALUE", "'done'"),
        ({"wrt": []}, "BAD_VALUE", "wrt is empty"),
        ({"wrt": [3]}, "WRONG_TYPE", "wrt"),
        ({"wrt": 3}, "WRONG_TYPE", "wrt: expected names of arguments, found int"),
        ({"wrt": b"x"}, "WRONG_TYPE", "wrt: expected names of arguments, found bytes"),
        ({"accumulate": None}, "WRONG_TYPE", "accumulate: expected names of arguments, found NoneType"),
        ({"params": "both"}, "BAD_VALUE", "params"),
        ({"accumulate": "x"}, "BAD_VALUE", "'x'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_by_name(arguments, reason, said):
    with pytest.raises(eagle.EagleError, match=said) as refused:
        eagle.diff.vjp(contact, **arguments)
    assert refused.value.reason == reason


def test_functions_and_kernels_without_reals_are_refused():
    @kernel
    def counted(i: Index) -> Index:
        return i + 1

    with pytest.raises(eagle.EagleError, match="no real number"):
        eagle.diff.vjp(counted)
    with pytest.raises(TypeError, match="decorate the function"):
        eagle.diff.jvp(math.sin)


def test_a_maximum_of_all_samples_is_refused():
    @kernel
    def peak(x: Scalar, most: Reduce("max")):
        most = x

    with pytest.raises(eagle.EagleError, match=r"'most'.*eagle\.reduce"):
        eagle.diff.vjp(peak)


# ---- primitives


def straight_vjp(x, bar):
    return bar


def straight_jvp(x, dot):
    return dot


@eagle.primitive("straight", vjp=straight_vjp, jvp=straight_jvp)
def straight(x):
    return eagle.math.round(x)


def root_vjp(x, bar):
    return bar / (2.0 * root(x))


def root_jvp(x, dot):
    return dot / (2.0 * root(x))


@eagle.primitive(vjp=root_vjp, jvp=root_jvp)
def root(x):
    y = x
    while eagle.bounded(60) and abs(y * y - x) > 1e-13 * x:
        y = 0.5 * (y + x / y)
    return y


@kernel
def steps(x: Scalar, gain: Param) -> Scalar:
    y = gain * straight(x) ** 2
    return y


@kernel
def side(area: Scalar) -> Scalar:
    y = root(area)
    return y


def test_a_primitive_computes_what_its_function_does(session):
    assert gradients(steps, session, x=[0.4, 1.6], gain=10.0).tolist() == [0.0, 40.0]
    assert straight(np.array([1.6])).tolist() == [2.0]
    assert "primitive %0 -> f64" in steps.ir and "vjp (" in steps.ir and "jvp (" in steps.ir


def test_its_rules_are_its_derivative(session):
    found = gradients(eagle.diff.vjp(steps), session, x=[0.4, 1.6], gain=10.0, bar_y=[1.0, 1.0])
    assert found["bar_x"].tolist() == [0.0, 40.0]  # 2 gain round(x), straight through
    ahead = gradients(eagle.diff.jvp(steps, wrt="x"), session, x=[0.4, 1.6], gain=10.0, dot_x=[1.0, 1.0])
    assert ahead["dot_y"].tolist() == [0.0, 40.0]


def test_rules_may_use_the_function_and_be_differentiated_again(session):
    back = eagle.diff.vjp(side)
    assert np.allclose(gradients(back, session, area=[4.0], bar_y=[1.0])["bar_area"], [0.25])
    again = gradients(eagle.diff.jvp(back, wrt="area"), session, area=[4.0], bar_y=[1.0], dot_area=[1.0])
    assert np.allclose(again["dot_bar_area"], [-1 / 32])  # of 1 / (2 sqrt a): -a^(-3/2) / 4


def test_a_kernel_with_a_primitive_pickles(session):
    copy = pickle.loads(pickle.dumps(side))
    assert copy.ir == side.ir
    assert np.allclose(gradients(eagle.diff.vjp(copy), session, area=[9.0], bar_y=[1.0])["bar_area"], [1 / 6])


def test_a_direction_without_a_rule_is_refused():
    @eagle.primitive("one way", vjp=straight_vjp)
    def one_way(x):
        return x

    @kernel
    def uses(x: Scalar) -> Scalar:
        return one_way(x)

    assert eagle.diff.vjp(uses).ir
    with pytest.raises(eagle.EagleError, match=r"no jvp rule \(at .*test_gradients\.py:\d+:\d+\)"):
        eagle.diff.jvp(uses)


def test_rules_of_the_wrong_form_are_refused():
    def of_two(x, y, bar):
        return bar, bar

    def of_none(x, bar):
        return bar, bar

    for rule, said in ((of_two, "takes 3 argument"), (of_none, r"returns 2 value")):

        @eagle.primitive("wrong", vjp=rule)
        def wrong(x):
            return x

        def uses(x: Scalar) -> Scalar:
            return wrong(x)

        with pytest.raises(eagle.KernelSyntaxError, match=said):
            kernel(uses)
    with pytest.raises(ValueError, match="vjp=, jvp="):
        eagle.primitive("none")
    with pytest.raises(TypeError, match="plain function"):
        eagle.primitive("sine", vjp=math.sin)
    with pytest.raises(TypeError, match="vjp: expected a function that is written with `def`, found a lambda"):
        eagle.primitive("short", vjp=lambda x, bar: bar)
    with pytest.raises(TypeError, match="found a lambda"):
        eagle.primitive("short", vjp=straight_vjp)(lambda x: x)
