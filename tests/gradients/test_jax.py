"""`eagle.frameworks.jax`, with JAX."""

from __future__ import annotations

import eagle
import numpy as np
import pytest
from eagle import Mutable, Param, Scalar, Table, kernel


@kernel
def spring(x: Scalar, k: Param, t: Table[Scalar]) -> Scalar:
    y = k * eagle.math.sin(x) * t.at(0) + t.at(1)
    return y


@kernel
def step(x: Mutable[Scalar], v: Mutable[Scalar], k: Param):
    x, v = x + 0.1 * v, v - 0.1 * k * x


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


def test_what_does_not_fit_is_refused_by_name(jax, faces):
    f = faces.function(spring)
    with pytest.raises(eagle.EagleError, match="input 't' is missing"):
        f(jax.numpy.ones(2), 1.0)
    with pytest.raises(TypeError, match="expected a kernel or a recorded graph"):
        faces.function(3)
    with pytest.raises(eagle.GraphState, match="record=True"):
        faces.function(eagle.Graph(), inputs=["x"], outputs=["y"])
