"""`eagle.frameworks.jax`, with JAX."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import eagle
import numpy as np
import pytest
from eagle import Index, Mutable, Param, Scalar, Table, kernel


@kernel
def spring(x: Scalar, k: Param, t: Table[Scalar]) -> Scalar:
    y = k * eagle.math.sin(x) * t.at(0) + t.at(1)
    return y


@kernel
def step(x: Mutable[Scalar], v: Mutable[Scalar], k: Param):
    x, v = x + 0.1 * v, v - 0.1 * k * x


@kernel
def less(live: Mutable[Index]):
    live = live - 1


NONZERO = eagle.SkipGuard.nonzero


@kernel
def halves(i: Index) -> Scalar:
    y = 0.5 * i
    return y


@kernel
def plain(x: Scalar) -> Scalar:
    y = 1.0 * x
    return y


@pytest.fixture
def faces(jax):
    import eagle.frameworks.jax as faces

    return faces


def test_a_kernel_is_a_function_with_a_derivative_also_when_compiled(jax, faces):
    f = faces.function(spring)
    jnp = jax.numpy
    x, t = jnp.linspace(0.1, 1.0, 8), jnp.array([2.0, 3.0])
    ours = lambda x, k, t: jnp.sum(f(x, k, t) ** 2)  # noqa: E731
    theirs = lambda x, k, t: jnp.sum((k * jnp.sin(x) * t[0] + t[1]) ** 2)  # noqa: E731
    for wrap in (lambda g: g, jax.jit):
        np.testing.assert_allclose(wrap(ours)(x, 1.5, t), theirs(x, 1.5, t), rtol=1e-13)
        found = wrap(jax.grad(ours, argnums=(0, 1, 2)))(x, 1.5, t)
        for one, other in zip(found, jax.grad(theirs, argnums=(0, 1, 2))(x, 1.5, t), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_state_comes_back_as_an_output_and_what_came_in_stays(jax, faces):
    f = faces.function(step)
    jnp = jax.numpy
    x, v = jnp.array([1.0, 2.0]), jnp.array([0.5, -0.5])
    moved, _ = f(x=x, v=v, k=4.0)
    np.testing.assert_array_equal(x, [1.0, 2.0])
    np.testing.assert_allclose(moved, [1.05, 1.95], rtol=1e-15)
    found = jax.grad(lambda x: jnp.sum(f(x, v, 4.0)[1]))(x)
    np.testing.assert_allclose(found, [-0.4, -0.4], rtol=1e-13)


def test_arrays_of_jax_are_looked_at_without_a_copy(jax, faces):
    x = jax.numpy.linspace(0.1, 1.0, 1 << 16)
    assert faces._numpy(x).__array_interface__["data"][0] == np.from_dlpack(x).__array_interface__["data"][0]


def test_a_graph_is_a_function_with_a_derivative(jax, faces, session):
    x, v, y = session.zeros(4), session.zeros(4), session.zeros(1)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(step).bind(session=session, x=x, v=v, k=2.0), name="one")
    g.add(eagle.plan(step).bind(session=session, x=x, v=v, k=2.0), name="two")
    g.add_node(eagle.reduce(x, y), name="sum").build()
    f = faces.function(g, inputs=["x", "v", "k"], outputs=["sum.out"])
    jnp = jax.numpy

    def theirs(x, v, k):
        for _ in range(2):
            x, v = x + 0.1 * v, v - 0.1 * k * x
        return jnp.sum(x) ** 2

    given = (jnp.arange(4.0), jnp.ones(4), 2.0)
    found = jax.grad(lambda *a: f(*a)[0] ** 2, argnums=(0, 1, 2))(*given)
    for one, other in zip(found, jax.grad(theirs, argnums=(0, 1, 2))(*given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_graph_that_goes_on_from_its_own_state_is_no_function(jax, faces, session):
    x, v, live = session.zeros(2), session.zeros(2), session.full(1, 3, dtype=np.int64)
    moved = eagle.plan(step).bind(session=session, x=x, v=v, k=2.0)
    g = eagle.Graph(session, record=True)
    loop = eagle.repeat_while([moved, eagle.plan(less).bind(session=session, live=live)], NONZERO(live), 8)
    g.add_node(loop, name="loop").build()
    for inputs, missing in ((["x"], r"'(step\.v|loop\.guard)'"), (["x", "v"], r"'(loop\.guard|less\.live)'")):
        with pytest.raises(eagle.EagleError, match=f"begins with what {missing} holds.*name it in inputs="):
            faces.function(g, inputs=inputs, outputs=["x"])
    f = faces.function(g, inputs=["x", "v", "live"], outputs=["x"])
    slope = jax.grad(lambda v: f(jax.numpy.zeros(2), v, jax.numpy.array([1]))[0])(jax.numpy.ones(2))
    np.testing.assert_allclose(slope, [0.1, 0.0], rtol=1e-15)


def test_threads_that_call_one_graph_do_not_meet(jax, faces, session):
    x, y = session.zeros(1000), session.zeros(1000)
    g = eagle.Graph(session, record=True).add(eagle.plan(plain).bind(session=session, x=x, y=y)).build()
    f = faces.function(g, inputs=["x"], outputs=["y"])
    wrong = []

    def call(value):
        for _ in range(20):
            found = np.asarray(f(jax.numpy.full(1000, value)))
            if not np.array_equal(found, np.full(1000, value)):
                wrong.append((value, found))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, [1.0, 2.0, 3.0, 4.0]))
    assert wrong == []


def test_a_jax_function_is_a_node_that_brings_its_derivative(jax, faces, session):
    jnp = jax.numpy
    x, y, z = session.asarray([0.5, 1.0, 1.5]), session.zeros(3), session.zeros(3)
    w = session.full(3, 2.0)
    node = faces.node(lambda x, w: jnp.tanh(x) * w, {"x": x, "w": w}, {"y": y}, name="model")
    g = eagle.Graph(session, record=True).add_node(node)
    g.add(eagle.plan(spring).bind(session=session, x=y, k=1.0, t=session.asarray([1.0, 0.0]), y=z), name="after")
    g.build().launch()
    np.testing.assert_allclose(z, np.sin(np.tanh([0.5, 1.0, 1.5]) * 2.0), rtol=1e-14)
    found = eagle.diff.reverse(g.record, {"after.y": np.ones(3)}, wrt=["model.x", "w"])
    expected = jax.grad(lambda x, w: jnp.sum(jnp.sin(jnp.tanh(x) * w)), argnums=(0, 1))(np.array(x), np.array(w))
    np.testing.assert_allclose(found["model.x"], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found["w"], expected[1], rtol=1e-12)


@kernel
def parts(x: Scalar) -> tuple[Index, Scalar]:
    whole = int(x)
    square = x * x
    return whole, square


def check_parts(jax, f):
    for wrap in (lambda h: h, jax.jit):
        found = wrap(jax.grad(lambda x: jax.numpy.sum(f(x)[1])))(jax.numpy.array([1.5, 2.5]))
        np.testing.assert_array_equal(found, [3.0, 5.0])


def test_an_output_of_integers_stands_beside_one_with_a_derivative(jax, faces):
    check_parts(jax, faces.function(parts))


def test_an_output_of_integers_of_a_graph_stands_beside_one_with_a_derivative(jax, faces, session):
    x, whole, square = session.zeros(2), session.zeros(2, dtype=np.int64), session.zeros(2)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(parts).bind(session=session, x=x, whole=whole, square=square), name="parts").build()
    check_parts(jax, faces.function(g, inputs=["x"], outputs=["whole", "square"]))


def test_nodes_without_names_have_a_derivative_each(jax, faces, session):
    x, y, z, last = session.asarray([1.0, 2.0]), *(session.zeros(2) for _ in range(3))
    g = eagle.Graph(session, record=True)
    g.add_node(faces.node(lambda first: 3.0 * first, {"first": x}, {"y": y}))
    g.add_node(faces.node(lambda x: 5.0 * x, {"x": y}, {"y": z}))
    g.add(eagle.plan(plain).bind(session=session, x=z, y=last), name="last").build().launch()
    found = eagle.diff.reverse(g.record, {"last.y": [1.0, 1.0]}, wrt=["first"])
    np.testing.assert_array_equal(found["first"], [15.0, 15.0])


def test_what_a_function_of_another_width_returns_is_taken_back_in_that_width(jax, faces, session):
    x, y = session.asarray([1.0, 2.0]), session.zeros(2, dtype=np.float32)
    g = eagle.Graph(session, record=True).add_node(faces.node(lambda x: 3.0 * x, {"x": x}, {"y": y})).build().launch()
    np.testing.assert_array_equal(eagle.diff.reverse(g.record, {"y": [1.0, 1.0]})["x"], [3.0, 3.0])


def test_plain_numbers_need_no_float64(jax, faces):
    f = faces.function(spring)
    jax.config.update("jax_enable_x64", False)
    try:
        x, t = jax.numpy.ones(2, "float32"), jax.numpy.ones(2, "float32")
        np.testing.assert_allclose(f(x, 2.0, t), 2.0 * np.sin(1.0) + 1.0, rtol=1e-6)
        with pytest.raises(TypeError, match="input 'x' is float64, which JAX would narrow"):
            f(np.ones(2), 2.0, t)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_what_does_not_fit_is_refused_by_name(jax, faces, session):
    f = faces.function(spring)
    with pytest.raises(eagle.EagleError, match="input 't' is missing"):
        f(jax.numpy.ones(2), 1.0)
    x, t = jax.numpy.ones(2), jax.numpy.ones(2)
    with pytest.raises(TypeError, match="spring: input 'x': expected float64 or float32, found int64"):
        f(jax.numpy.ones(2, int), 1.0, t)
    with pytest.raises(ValueError, match="spring: input 'x': expected an array of samples, found a single number"):
        f(1.0, 1.0, t)
    with pytest.raises(ValueError, match="spring: input 'k': expected one number, for a Param"):
        f(x, x, t)
    at, y = session.zeros(2, dtype=np.int64), session.zeros(2)
    g = eagle.Graph(session, record=True).add(eagle.plan(halves).bind(session=session, i=at, y=y), name="one").build()
    with pytest.raises(TypeError, match="input 'i': expected int64, found float64"):  # and not cut to integers
        faces.function(g, inputs=["i"], outputs=["y"])(x)
    with pytest.raises(ValueError, match=r"input 'i': expected shape \(2,\), found \(3,\)"):
        faces.function(g, inputs=["i"], outputs=["y"])(jax.numpy.ones(3, int))
    with pytest.raises(TypeError, match=r"jax\.node: expected a function"):
        faces.node(3, {"x": y}, {"y": y})
    cut = eagle.Graph(session).add_node(faces.node(lambda x: x + 0.5, {"x": y}, {"i": at}, name="cut")).build()
    with pytest.raises(TypeError, match="plane 'i': expected int64, the function returned float64"):
        cut.launch()
    with pytest.raises(TypeError, match="expected a kernel or a recorded graph"):
        faces.function(3)
    with pytest.raises(eagle.GraphState, match="record=True"):
        faces.function(eagle.Graph(), inputs=["x"], outputs=["y"])
