"""Gradients of graphs against jax.grad of the same maths."""

from __future__ import annotations

import eagle
import numpy as np
import pytest
from eagle import Accum, Index, Mutable, Param, Reduce, Scalar, Table, Terminated, Vector, kernel
from eagle.graph import Node, opaque, register_node_kind

N = 64


@kernel
def wave(x: Scalar, w: Scalar, a: Param) -> Scalar:
    y = a * eagle.math.sin(w * x) + x
    return y


@kernel
def squeeze(s: Mutable[Scalar], x: Scalar, b: Param):
    s = eagle.math.tanh(s * x + b)


@kernel
def mix(p: Scalar, q: Scalar) -> Scalar:
    r = p * q + eagle.math.exp(-p * p)
    return r


@kernel
def count_down(live: Mutable[Index]):
    live = live - 1


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


def test_twelve_nodes_with_fan_out_a_conditional_a_loop_and_reductions_agree_with_jax(session, jax):
    jnp = jax.numpy
    rng = np.random.default_rng(7)
    x, w = session.asarray(rng.uniform(0.2, 1.0, N)), session.asarray(rng.uniform(0.5, 2.0, N))
    s, y, z, r, q = (session.asarray(rng.uniform(0.1, 0.9, N)) for _ in range(5))
    s0 = np.array(s)
    total, top = session.zeros(1), session.zeros(1)
    flag, live = session.full(1, 1, dtype=np.int64), session.full(1, 5, dtype=np.int64)
    plan = lambda k, **given: eagle.plan(k).bind(session=session, **given)  # noqa: E731
    g = eagle.Graph(session, record=True)
    g.add(plan(wave, x=x, w=w, a=1.5, y=y), name="one")
    g.add(plan(wave, x=y, w=w, a=0.5, y=z), name="two")
    g.add_group([plan(mix, p=y, q=z, r=r), plan(squeeze, s=s, x=x, b=0.1)], names=["left", "right"])
    g.add_node(eagle.skippable(plan(squeeze, s=s, x=y, b=0.2), eagle.SkipGuard.nonzero(flag)), name="maybe")
    loop = eagle.repeat_while(
        [plan(squeeze, s=s, x=r, b=0.3), plan(count_down, live=live)], eagle.SkipGuard.nonzero(live), 8
    )
    g.add_node(loop, name="loop")
    g.add(plan(mix, p=s, q=r, r=q), name="join")
    g.add_node(eagle.copy(q, y), name="over")
    g.add(plan(mix, p=y, q=x, r=z), name="again")
    g.add_node(eagle.reduce(z, total), name="total")
    g.add_node(eagle.reduce(q, top, op="max"), name="top")
    g.build()

    def objective(x, w, s, a):
        wv = lambda x, a: a * jnp.sin(w * x) + x  # noqa: E731
        mx = lambda p, q: p * q + jnp.exp(-p * p)  # noqa: E731
        y = wv(x, a)
        z = wv(y, 0.5)
        r = mx(y, z)
        s = jnp.tanh(s * x + 0.1)
        s = jnp.tanh(s * y + 0.2)
        for _ in range(5):
            s = jnp.tanh(s * r + 0.3)
        q = mx(s, r)
        return jnp.sum(mx(q, x)) + 2.0 * q[jnp.argmax(q)]

    for _ in range(2):  # the second time the pass is only replayed
        s[...], live[...] = s0, 5
        g.launch()
        found = eagle.diff.reverse(
            g.record, {"total.out": [1.0], "top.out": [2.0]}, wrt=["one.x", "w", "right.s", "one.a"]
        )
        expected = jax.grad(objective, argnums=(0, 1, 2, 3))(np.array(x), np.array(w), s0, 1.5)
        for name, value in zip(("one.x", "w", "right.s", "one.a"), expected, strict=True):
            close(found[name], value)
    assert found.report.record_nbytes == g.record.nbytes > 0
    assert np.shape(found["one.a"]) == ()


def test_chains_that_overwrite_their_planes_agree_with_jax(session, jax):
    jnp = jax.numpy
    rng = np.random.default_rng(3)
    s0, x0 = rng.uniform(0.1, 0.9, N), rng.uniform(0.5, 1.5, N)
    s, x = session.asarray(s0), session.asarray(x0)
    g = eagle.Graph(session, record=True)
    for i in range(16):
        g.add(eagle.plan(squeeze).bind(session=session, s=s, x=x, b=0.05 * i), name=f"k{i}")
        if i % 5 == 4:
            g.add(eagle.plan(squeeze).bind(session=session, s=x, x=s, b=0.01), name=f"swap{i}")
    g.build().launch()

    def objective(s, x):
        for i in range(16):
            s = jnp.tanh(s * x + 0.05 * i)
            if i % 5 == 4:
                x = jnp.tanh(x * s + 0.01)
        return jnp.sum(s * s) + jnp.sum(x)

    seeds = {"k15.s": 2 * np.array(s), "swap14.s": np.ones(N)}
    found = eagle.diff.reverse(g.record, seeds, wrt=["k0.s", "k0.x"])
    expected = jax.grad(objective, argnums=(0, 1))(s0, x0)
    close(found["k0.s"], expected[0])
    close(found["k0.x"], expected[1])


@pytest.mark.parametrize("checkpoint", [None, 1, 3, 1000])
def test_loops_in_loops_have_one_gradient_whatever_the_checkpoint(session, checkpoint):
    s, x = session.asarray(np.linspace(0.1, 0.9, N)), session.full(N, 0.7)
    outer, inner = session.full(1, 4, dtype=np.int64), session.zeros(1, dtype=np.int64)

    @kernel
    def three(live: Mutable[Index]):
        live = 3 + 0 * live

    inside = eagle.repeat_while(
        [eagle.plan(squeeze).bind(session=session, s=s, x=x, b=0.1), eagle.plan(count_down).bind(live=inner)],
        eagle.SkipGuard.nonzero(inner),
        5,
    )
    body = [eagle.plan(three).bind(live=inner), inside, eagle.plan(count_down).bind(live=outer)]
    g = eagle.Graph(session, record=True)
    g.add_node(eagle.repeat_while(body, eagle.SkipGuard.nonzero(outer), 100), name="loop").build().launch()
    found = eagle.diff.reverse(g.record, {"s": np.ones(N)}, wrt=["s", "b"], checkpoint=checkpoint)

    # By hand: s -> tanh(s x + b), twelve times.
    value, slope, by_b = np.linspace(0.1, 0.9, N), np.ones(N), np.zeros(N)
    for _ in range(12):
        value = np.tanh(value * 0.7 + 0.1)
        slope, by_b = slope * (1 - value**2) * 0.7, (by_b * 0.7 + 1) * (1 - value**2)
    close(found["s"], slope)
    close(found["b"], by_b.sum())


def test_tables_accumulators_and_vectors(session, jax):
    jnp = jax.numpy

    @kernel
    def look(t: Table[Scalar], i: Index, v: Vector[3], h: Accum[Scalar]) -> Scalar:
        y = t.at(i) * (v[0] * v[1] + v[2])
        h.add(y * y, at=i)
        return y

    rng = np.random.default_rng(5)
    t, v = session.asarray(rng.uniform(0.5, 1.5, 4)), session.asarray(rng.uniform(0.1, 1.0, (3, N)))
    i = session.asarray(rng.integers(0, 4, N))
    h, y = session.zeros(4), session.zeros(N)
    g = eagle.Graph(session, record=True).add(eagle.plan(look).bind(t=t, i=i, v=v, h=h, y=y)).build().launch()
    weights = np.arange(1.0, 5.0)
    found = eagle.diff.reverse(g.record, {"h": weights, "y": np.ones(N)}, wrt=["t", "v"])

    def objective(t, v):
        y = t[np.array(i)] * (v[0] * v[1] + v[2])
        return jnp.sum(jnp.zeros(4).at[np.array(i)].add(y * y) * weights) + jnp.sum(y)

    expected = jax.grad(objective, argnums=(0, 1))(np.array(t), np.array(v))
    close(found["t"], expected[0])
    close(found["v"], expected[1])


def test_extremes_of_kernels_go_back_to_the_first_of_their_samples(session):
    @kernel
    def far(x: Scalar, w: Scalar, k: Param, most: Reduce("max"), least: Reduce("min")) -> Scalar:
        y = eagle.math.exp(-x) * w
        most = k * x * w
        least = x + w
        return y

    x0, w0 = np.array([0.0, 2.0, 2.0, 0.5, 3.0]), np.array([1.0, 1.5, 1.5, 0.25, 0.5])
    x, w, y = session.asarray(x0), session.asarray(w0), session.zeros(5)
    most, least = session.zeros(1), session.zeros(1)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(far).bind(session=session, x=x, w=w, k=2.0, y=y, most=most, least=least), name="far")
    g.add_node(eagle.copy(y, x), name="over")  # the samples are told from what the launch has found
    g.build().launch()
    found = eagle.diff.reverse(g.record, {"most": [1.0], "least": [3.0]}, wrt=["far.x", "w", "k"])
    # 6 is the largest number, of samples 1 and 2, and 0.75 the smallest one, of sample 3.
    close(found["far.x"], [0.0, 3.0, 0.0, 3.0, 0.0])
    close(found["w"], [0.0, 4.0, 0.0, 3.0, 0.0])
    close(found["k"], 3.0)
    close(eagle.diff.reverse(g.record, {"far.y": np.ones(5)}, wrt="w")["w"], np.exp(-x0))


def test_an_infinite_slope_to_what_no_seed_depends_on_makes_no_nan(session):
    @kernel
    def both(x: Scalar, s: Mutable[Scalar]) -> dict[str, Scalar]:
        s = s + eagle.math.sqrt(x)
        return {"y": 3.0 * x, "z": eagle.math.sqrt(x)}

    x, s, y, z = session.zeros(2), session.full(2, 1.0), session.zeros(2), session.zeros(2)
    g = eagle.Graph(session, record=True).add(eagle.plan(both).bind(session=session, x=x, s=s, y=y, z=z)).build()
    g.launch()
    found = eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, wrt=["x", "s"])
    close(found["x"], [3.0, 3.0])
    close(found["s"], [0.0, 0.0])


def test_an_extreme_of_running_samples_alone_knows_no_stopped_one(session):
    @kernel
    def fastest(v: Mutable[Scalar], most: Reduce("max"), done: Terminated):
        v = 0.5 * v
        most = v * v
        done = v < 0.1

    v, done = session.asarray([9.0, 4.0, 0.1]), session.asarray([True, False, False])
    most = session.zeros(1)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(fastest).bind(session=session, v=v, most=most, done=done), name="one").build().launch()
    close(most, [4.0])
    close(eagle.diff.reverse(g.record, {"most": [1.0]}, wrt="v")["v"], [0.0, 2.0, 0.0])


def test_a_callable_in_place_within_a_loop_is_recorded_and_called_back(session):
    x, live = session.asarray([0.5, 0.25]), session.full(1, 3, dtype=np.int64)
    calls = []

    def model(x=x):  # given by name where it is on another machine
        calls.append(np.array(x))
        x[...] = x * x + 0.1

    node = opaque(model, reads={"x": x}, writes={"x": x}, name="model")
    body = [node, eagle.plan(count_down).bind(session=session, live=live)]
    g = eagle.Graph(session, record=True)
    g.add_node(eagle.repeat_while(body, eagle.SkipGuard.nonzero(live), 8), name="loop").build().launch()
    seen = []

    def vjp(primals, cotangents):
        seen.append(np.array(primals["x"]))
        return {"x": 2 * primals["x"] * cotangents["x"]}

    found = eagle.diff.reverse(g.record, {"x": [1.0, 1.0]}, wrt=["x"], vjps={"model": vjp})
    value, slope = np.array([0.5, 0.25]), np.ones(2)
    for _ in range(3):
        value, slope = value**2 + 0.1, slope * 2 * value
    close(found["x"], slope)
    assert len(calls) == 3, "it is not called again"
    np.testing.assert_array_equal(seen, calls[::-1])


def test_new_numbers_of_params_reach_the_reverse_pass(session):
    x, y = session.asarray([1.0, 2.0]), session.zeros(2)

    @kernel
    def scale(x: Scalar, a: Param) -> Scalar:
        y = a * x * x
        return y

    g = eagle.Graph(session, record=True).add(eagle.plan(scale).bind(x=x, a=1.0, y=y)).build()
    for a in (1.0, 3.0, -2.0):
        g.update({"a": a}).launch()
        found = eagle.diff.reverse(g.record, {"y": [1.0, 1.0]})
        close(found["x"], 2 * a * np.array([1.0, 2.0]))
        close(found["a"], 5.0)


def test_the_numbers_of_the_last_launch_are_what_the_record_is_of(session):
    x, y = session.asarray([1.0, 2.0]), session.zeros(2)
    g = eagle.Graph(session, record=True).add(eagle.plan(twice_or_so).bind(x=x, a=2.0, y=y)).build()
    for a, later in ((2.0, 5.0), (5.0, -1.0)):
        g.launch().update({"a": later})  # of which the next launch will hear
        close(eagle.diff.reverse(g.record, {"y": [1.0, 1.0]})["x"], [a, a])


def test_other_arrays_are_what_the_record_is_of(session):
    s, x, other = session.asarray([0.5]), session.asarray([2.0]), session.asarray([0.25])
    bound = eagle.plan(squeeze).bind(session=session, s=s, x=x, b=0.0)
    g = eagle.Graph(session, record=True).add(bound).build().launch()
    back = eagle.diff.Reverse(g.record, ["s"])
    eagle.diff.reverse(g.record, {"s": [1.0]})
    g.rebind(s=other).launch()
    with pytest.raises(eagle.GraphState, match="bound to other arrays since this pass was made; make another one"):
        back({"s": [1.0]})
    found = eagle.diff.reverse(g.record, {"s": [1.0]}, wrt="s")
    close(found["s"], 2.0 * (1 - np.tanh(0.5) ** 2))


# ---- what is refused


def recorded(session):
    x, y = session.asarray([1.0, 2.0]), session.zeros(2)
    g = eagle.Graph(session, record=True)
    g.add_node(opaque(lambda x=x, y=y: np.multiply(x, 2.0, out=y), reads={"x": x}, writes={"y": y}), name="model")
    return g


def test_a_graph_that_is_not_built_or_not_recorded_or_not_launched_has_no_record(session):
    g = recorded(session)
    assert g.record is None
    with pytest.raises(eagle.GraphState, match="record=True"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]})
    g.build()
    with pytest.raises(eagle.GraphState, match="launch"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps={"model": lambda p, c: {"x": 2 * c["y"]}})
    g.launch(2)
    with pytest.raises(eagle.GraphState, match="2 times"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps={"model": lambda p, c: {"x": 2 * c["y"]}})


def test_a_callable_on_the_way_needs_a_vjp(session):
    g = recorded(session).build().launch()
    with pytest.raises(eagle.EagleError, match=r"'model' is a callable.*vjps=\{'model': vjp\}"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]})
    with pytest.raises(eagle.EagleError, match="'mdoel' is no callable of this graph; there are 'model'"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps={"mdoel": lambda p, c: {}})
    with pytest.raises(eagle.EagleError, match="gradient of 'x' is missing"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps={"model": lambda p, c: {}})
    with pytest.raises(eagle.EagleError, match=r"gradient of 'x': expected shape \(2,\)"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps={"model": lambda p, c: {"x": np.ones(3)}})
    for wrong in ([1j, 1j], ["1", "2"]):
        with pytest.raises(TypeError, match="vjp of 'model': the gradient of 'x': expected real numbers"):
            eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps={"model": lambda p, c, w=wrong: {"x": w}})
    for wrong in (3, [("model", None)]):
        with pytest.raises(TypeError, match="vjps: expected a dict"):
            eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, vjps=wrong)
    found = eagle.diff.reverse(g.record, {"y": [1.0, 3.0]}, vjps={"model": lambda p, c: {"x": 2 * c["y"]}})
    close(found["x"], [2.0, 6.0])


def test_callables_of_one_label_are_not_taken_back_by_one_vjp(session):
    x, y, z = session.asarray([1.0, 2.0]), session.zeros(2), session.zeros(2)
    threefold = opaque(lambda x=x, y=y: np.multiply(x, 3.0, out=y), reads={"x": x}, writes={"y": y})
    fivefold = opaque(lambda y=y, z=z: np.multiply(y, 5.0, out=z), reads={"y": y}, writes={"z": z})
    vjps = {"opaque": lambda p, c: dict.fromkeys(p, 3.0 * next(iter(c.values())))}
    g = eagle.Graph(session, record=True).add_node(threefold).add_node(fivefold).build().launch()
    with pytest.raises(eagle.EagleError, match=r"2 callables are called 'opaque', and 1 .* names of their own"):
        eagle.diff.reverse(g.record, {"z": [1.0, 1.0]}, vjps=vjps)


def test_arrays_of_nodes_that_share_their_label_are_counted(session):
    a, b, c = (session.asarray([float(i), 0.0]) for i in (1, 2, 3))
    into = [session.zeros(2) for _ in range(3)]
    g = eagle.Graph(session, record=True)
    for source, destination in zip((a, b, c, a), (*into, into[0]), strict=True):
        g.add_node(eagle.copy(source, destination))
    g.add(eagle.plan(mix).bind(session=session, p=into[0], q=into[1], r=into[2]), name="end")
    found = eagle.diff.reverse(g.build().launch().record, {"end.r": [1.0, 1.0]})
    assert list(found) == ["copy.src", "copy.src#2", "copy.src#3"]
    close(found["copy.src"], [2.0 - 2.0 * np.exp(-1.0), 0.0])  # by p: q - 2 p exp(-p p)
    close(found["copy.src#2"], [1.0, 0.0])  # by q: p
    close(found["copy.src#3"], [0.0, 0.0])  # its copy is overwritten


def test_a_plane_that_is_only_written_is_nothing_to_ask_for(session):
    x, y = session.asarray([1.0, 2.0]), session.zeros(2)
    g = eagle.Graph(session, record=True).add(eagle.plan(twice_or_so).bind(x=x, a=2.0, y=y), name="one").build()
    with pytest.raises(ValueError, match=r"wrt 'y': node 'one' writes it, and no node reads .* which is 'a', 'x'"):
        eagle.diff.reverse(g.launch().record, {"y": [1.0, 1.0]}, wrt="y")


def test_seeds_have_the_shape_and_the_names_of_planes(session):
    g = recorded(session).build().launch()
    vjps = {"model": lambda p, c: {"x": 2 * c["y"]}}
    with pytest.raises(ValueError, match=r"seed 'y': expected the shape of its plane, \(2,\), found \(3,\)"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0, 1.0]}, vjps=vjps)
    with pytest.raises(TypeError, match="seed 'y': expected real numbers"):
        eagle.diff.reverse(g.record, {"y": [1j, 1j]}, vjps=vjps)
    with pytest.raises(ValueError, match=r"seed 'z'.*'y'"):
        eagle.diff.reverse(g.record, {"z": [1.0, 1.0]}, vjps=vjps)
    for wrong in ([1.0, 1.0], None):
        with pytest.raises(TypeError, match="seeds: expected a dict of derivatives by name"):
            eagle.diff.Reverse(g.record, ["y"], vjps=vjps)(wrong)
    with pytest.raises(ValueError, match="there is none"):
        eagle.diff.reverse(g.record, {}, vjps=vjps)
    with pytest.raises(ValueError, match="wrt 'q'"):
        eagle.diff.reverse(g.record, {"y": [1.0, 1.0]}, wrt="q", vjps=vjps)


def test_a_derivative_enters_a_graph_through_eagle_diff_alone(session):
    back = eagle.diff.vjp(wave, wrt="x")
    x = session.zeros(2)
    bound = eagle.plan(back).bind(session=session, x=x, w=x, a=1.0, bar_y=session.zeros(2))
    with pytest.raises(eagle.DerivativeKernel, match="'wave_vjp' is a derivative of 'wave'"):
        eagle.Graph(session).add(bound)


def test_a_masked_kernel_keeps_the_derivative_of_stopped_samples(session):
    @kernel
    def grow(x: Mutable[Scalar], done: Terminated):
        x = 3.0 * x
        done = x > 10.0

    x, done = session.asarray([1.0, 5.0]), session.asarray([False, True])
    g = eagle.Graph(session, record=True).add(eagle.plan(grow).bind(x=x, done=done)).build().launch()
    close(eagle.diff.reverse(g.record, {"x": [1.0, 1.0]})["x"], [3.0, 1.0])


def test_integers_masks_and_random_numbers_on_the_way_carry_no_derivative_and_are_none_to_ask_for(session):
    @kernel
    def cut(x: Scalar) -> Index:
        i = int(4.0 * x)
        return i

    @kernel
    def join(i: Index, x: Scalar) -> Scalar:
        y = 0.25 * i + 2.0 * x + eagle.random.uniform(7, 0)
        return y

    @kernel
    def stop(y: Mutable[Scalar], done: Terminated):
        y = 3.0 * y
        done = y > 2.0

    x, i, y = session.asarray([0.3, 0.9]), session.zeros(2, dtype=np.int64), session.zeros(2)
    done = session.zeros(2, dtype=bool)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(cut).bind(session=session, x=x, i=i), name="cut")
    g.add(eagle.plan(join).bind(session=session, i=i, x=x, y=y), name="join")
    g.add(eagle.plan(stop).bind(session=session, y=y, done=done), name="stop")
    g.build().launch()
    found = eagle.diff.reverse(g.record, {"stop.y": [1.0, 1.0]}, wrt=["x"])
    close(found["x"], [6.0, 6.0])  # through join alone
    for name, said in (("i", "int64"), ("join.i", "int64"), ("done", "bool")):
        with pytest.raises(eagle.EagleError, match=f"wrt '{name}' is {said}.*float64 and float32"):
            eagle.diff.reverse(g.record, {"stop.y": [1.0, 1.0]}, wrt=name)
    for seed, said in (("i", "int64"), ("done", "bool")):
        with pytest.raises(eagle.EagleError, match=f"seed '{seed}' is {said}.*float64 and float32"):
            eagle.diff.reverse(g.record, {seed: [1, 1]})


@kernel
def twice_or_so(x: Scalar, a: Param) -> Scalar:
    y = a * x
    return y


def one_in_one_out(lower):
    rows = {"reads": lambda planes: [("x", planes["x"], "in")], "writes": lambda planes: [("y", planes["y"], "out")]}
    return {**rows, "lower_cpu": lower}


@kernel
def twice(x: Scalar) -> Scalar:
    y = 2.0 * x
    return y


def square(planes):
    return lambda x=planes["x"], y=planes["y"]: np.multiply(x, x, out=y)


register_node_kind("gradients_square", **one_in_one_out(square))
register_node_kind("gradients_twice", **one_in_one_out(lambda planes: eagle.plan(twice).bind(**planes)))


def of_kind(kind, session):
    planes = {"x": session.asarray([0.5, 3.0]), "y": session.zeros(2)}
    return eagle.Graph(session, record=True).add_node(Node(kind, planes), name="mine").build().launch()


def test_a_registered_kind_that_calls_needs_a_vjp(session):
    g = of_kind("gradients_square", session)
    with pytest.raises(eagle.EagleError, match=r"'mine' is a callable.*vjps=\{'mine': vjp\}"):
        eagle.diff.reverse(g.record, {"y": [1.0, 2.0]})
    vjps = {"mine": lambda primals, cotangents: {"x": 2 * primals["x"] * cotangents["y"]}}
    close(eagle.diff.reverse(g.record, {"y": [1.0, 2.0]}, vjps=vjps)["x"], [1.0, 12.0])


def test_a_registered_kind_of_kernels_needs_none(session):
    g = of_kind("gradients_twice", session)
    close(eagle.diff.reverse(g.record, {"y": [1.0, 2.0]})["x"], [2.0, 4.0])
