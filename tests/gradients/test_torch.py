"""`eagle.frameworks.torch`, with torch."""

from __future__ import annotations

import eagle
import numpy as np
import pytest
from eagle import Index, Mutable, Param, Scalar, Terminated, kernel


@kernel
def spring(x: Scalar, k: Param) -> Scalar:
    y = k * x * x
    return y


@kernel
def step(x: Mutable[Scalar], v: Mutable[Scalar], k: Param):
    x, v = x + 0.1 * v, v - 0.1 * k * x


@pytest.fixture
def faces(torch):
    import eagle.frameworks.torch as faces

    return faces


def test_autograd_goes_through_a_kernel(torch, faces):
    f = faces.function(spring)
    x = torch.linspace(0.5, 2.0, 6, dtype=torch.float64, requires_grad=True)
    k = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    y = f(x, k)
    np.testing.assert_allclose(np.from_dlpack(y.detach()), 3.0 * np.linspace(0.5, 2.0, 6) ** 2, rtol=1e-15)
    (y * y).sum().backward()
    values = np.linspace(0.5, 2.0, 6)
    np.testing.assert_allclose(np.from_dlpack(x.grad), 4 * 9.0 * values**3, rtol=1e-13)
    np.testing.assert_allclose(float(k.grad), 2 * 3.0 * np.sum(values**4), rtol=1e-13)


def test_tensors_are_not_copied_on_the_way_in_or_out(torch, faces, monkeypatch):
    from eagle.frameworks import _functions

    seen = {}
    plain = _functions.KernelFunction.forward

    def forward(self, given):
        found = plain(self, given)
        seen["in"], seen["out"] = (a.__array_interface__["data"][0] for a in (given["x"], found["y"]))
        return found

    monkeypatch.setattr(_functions.KernelFunction, "forward", forward)
    x = torch.ones(1 << 12, dtype=torch.float64)
    y = faces.function(spring)(x, 2.0)
    assert (seen["in"], seen["out"]) == (x.data_ptr(), y.data_ptr())


def test_autograd_goes_through_a_graph_also_when_it_ran_again_in_between(torch, faces, session):
    x, v = session.zeros(3), session.zeros(3)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(step).bind(session=session, x=x, v=v, k=2.0), name="one").build()
    f = faces.function(g, inputs=["x", "v", "k"], outputs=["x", "v"])
    a = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    b = torch.zeros(3, dtype=torch.float64)
    first = f(a, b, 2.0)
    f(torch.zeros(3, dtype=torch.float64), b, 7.0)
    (first[0].sum() + first[1].sum()).backward()
    np.testing.assert_allclose(np.from_dlpack(a.grad), 1.0 - 0.1 * 2.0, rtol=1e-14)


@kernel
def parts(x: Scalar) -> tuple[Index, Scalar]:
    whole = int(x)
    square = x * x
    return whole, square


@kernel
def look(x: Scalar, large: Terminated):
    large = x > 2.0


def check_parts(torch, f, rest):
    given = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
    n, y, *others = f(given)
    assert [one.tolist() for one in (n, *others)] == [[1, 2], *rest]
    assert [one.requires_grad for one in (n, y, *others)] == [False, True, *([False] * len(rest))]
    y.sum().backward()
    assert given.grad.tolist() == [3.0, 5.0]


def test_an_output_of_integers_stands_beside_one_with_a_derivative(torch, faces):
    check_parts(torch, faces.function(parts), [])


def test_outputs_of_a_graph_that_are_no_reals_stand_beside_one_with_a_derivative(torch, faces, session):
    x, whole, square = session.zeros(2), session.zeros(2, dtype=np.int64), session.zeros(2)
    large = session.zeros(2, dtype=bool)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(parts).bind(session=session, x=x, whole=whole, square=square), name="parts")
    g.add(eagle.plan(look).bind(session=session, x=x, large=large), name="look").build()
    f = faces.function(g, inputs=["parts.x"], outputs=["whole", "square", "large"])
    check_parts(torch, f, [[False, True]])


def test_a_call_has_its_own_derivative_whoever_ran_the_graph_since(torch, faces, session):
    x, y = session.zeros(2), session.zeros(2)
    g = eagle.Graph(session, record=True).add(eagle.plan(spring).bind(session=session, x=x, k=1.0, y=y)).build()
    f, other = (faces.function(g, inputs=["x"], outputs=["y"]) for _ in range(2))
    three = torch.full((2,), 3.0, dtype=torch.float64, requires_grad=True)

    def by_hand():
        x[...] = 7.0
        g.launch()

    for run in (lambda: other(torch.full((2,), 5.0, dtype=torch.float64)), by_hand):
        three.grad = None
        found = f(three)
        run()
        found.sum().backward()
        assert three.grad.tolist() == [6.0, 6.0]


def test_a_function_of_a_graph_that_has_other_arrays_now_is_refused(torch, faces, session):
    x, y = session.zeros(2), session.zeros(2)
    g = eagle.Graph(session, record=True).add(eagle.plan(spring).bind(session=session, x=x, k=1.0, y=y)).build()
    f = faces.function(g, inputs=["x"], outputs=["y"])
    g.rebind(x=session.full(2, 5.0))
    with pytest.raises(eagle.GraphState, match="bound to other arrays than it was built with"):
        f(torch.ones(2, dtype=torch.float64))
    with pytest.raises(eagle.GraphState, match="bound to other arrays than it was built with"):
        faces.function(g, inputs=["x"], outputs=["y"])


def test_a_graph_that_went_on_from_its_own_state_is_not_run_again(torch, faces, session):
    x, v = session.zeros(2), session.full(2, 1.0)
    g = eagle.Graph(session, record=True)
    g.add(eagle.plan(step).bind(session=session, x=x, v=v, k=2.0), name="one").build()
    f = faces.function(g, inputs=["x"], outputs=["x"])
    given = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    f(given).sum().backward()
    assert given.grad.tolist() == [1.0, 1.0]
    found = f(given)
    f(given)
    with pytest.raises(eagle.GraphState, match=r"the graph has run since this call, and so 'one\.v'.*inputs="):
        found.sum().backward()


def test_tensors_that_do_not_fit_are_refused_by_name(torch, faces):
    f = faces.function(spring)
    with pytest.raises(eagle.CopyBoundPlane, match="input 'x' is not contiguous"):
        f(torch.ones(4, 2, dtype=torch.float64).t()[0], 1.0)
    with pytest.raises(TypeError, match="expected a torch tensor, found list"):
        f([1.0], 1.0)
    x = torch.ones(2, dtype=torch.float64)
    for name in ("bfloat16", "float16", "bool", "complex128", "int64"):
        with pytest.raises(TypeError, match=f"spring: input 'x': expected float64 or float32, found {name}"):
            f(torch.ones(2, dtype=getattr(torch, name)), 1.0)
    with pytest.raises(ValueError, match="input 'x': expected an array of samples, found a single number"):
        f(torch.tensor(1.0, dtype=torch.float64), 1.0)
    with pytest.raises(ValueError, match="input 'k': expected one number, for a Param"):
        f(x, x)
    with pytest.raises(eagle.CopyBoundPlane, match=r"input 'x' is torch.sparse_coo; pass x.to_dense\(\)"):
        f(x.to_sparse(), 1.0)
