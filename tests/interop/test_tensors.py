"""torch: tensors whose memory is a plane, and weights that an optimizer refreshes."""

from __future__ import annotations

import eagle
import numpy as np
import pytest
from conftest import address
from eagle import Scalar, Table, kernel

# Debian's torch is older than numpy 2, and needs nothing of it here.
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")


@kernel
def weighted(x: Scalar, w: Table[Scalar]) -> Scalar:
    y = w.at(0) * x + w.at(1)
    return y


def test_a_tensor_is_a_plane(session, torch):
    x = session.tensor(4, dtype=torch.float64)
    assert isinstance(x, torch.Tensor)
    assert session.owns(eagle.interop.import_buffer(x))
    x += torch.arange(4, dtype=torch.float64)
    w = session.tensor(torch.tensor([2.0, 1.0], dtype=torch.float64))
    bound = eagle.plan(weighted).bind(x=eagle.interop.import_buffer(x), w=eagle.interop.import_buffer(w)).launch()
    assert bound.planes["y"].tolist() == [1.0, 3.0, 5.0, 7.0]
    assert bound.session is session


def test_tensors_of_the_session_stay_where_they_are(session, torch):
    array = session.zeros((2, 3))
    tensor = session.tensor(array)
    assert tensor.data_ptr() == address(array) == session.tensor(tensor).data_ptr()
    other = torch.ones(3)
    moved = session.tensor(other)
    assert moved.data_ptr() != other.data_ptr()
    assert moved.tolist() == [1.0, 1.0, 1.0]
    assert session.tensor(3).dtype == torch.float32
    assert eagle.interop.as_tensor(array).data_ptr() == address(array)


def test_the_optimizers_step_is_the_refresh(session, torch):
    layer = torch.nn.Linear(1, 1, dtype=torch.float64)
    eagle.interop.share_parameters(layer, session)
    with torch.no_grad():
        layer.weight.fill_(3.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    w = eagle.interop.import_buffer(layer.weight).reshape(-1)
    table = session.zeros(2)
    x, y = session.full(3, 2.0), session.zeros(3)

    @kernel
    def scaled(x: Scalar, w: Table[Scalar]) -> Scalar:
        y = w.at(0) * x
        return y

    g = eagle.Graph(session).add(eagle.plan(scaled).bind(x=x, w=w, y=y), name="model").build().launch()
    assert y.tolist() == [6.0] * 3
    assert table is not None
    layer(torch.ones(1, 1, dtype=torch.float64)).sum().backward()
    optimizer.step()
    g.launch()
    assert y.tolist() == [5.0] * 3
    assert w[0] == 2.5


def test_a_launch_after_the_parameter_moved_is_refused_by_name(session, torch):
    parameter = torch.nn.Parameter(session.tensor(2, dtype=torch.float64))
    x = session.full(3, 2.0)
    bound = eagle.plan(weighted).bind(x=x, w=eagle.interop.import_buffer(parameter))
    g = eagle.Graph(session).add(bound, name="model").build().launch()
    parameter.data = torch.ones(2, dtype=torch.float64)
    with pytest.raises(
        eagle.GraphState, match=r"node 'model': plane 'w' is bound to memory that a torch\.Parameter had"
    ):
        g.launch()
    parameter.data = session.tensor(parameter.data)
    g.rebind(w=eagle.interop.import_buffer(parameter)).launch()
    assert bound.planes["y"].tolist() == [3.0] * 3


def test_a_tensor_that_wants_a_gradient_is_imported_by_its_data(torch):
    parameter = torch.nn.Parameter(torch.zeros(3))
    found = eagle.interop.import_buffer(parameter)
    assert address(found) == parameter.data_ptr()
    assert found.flags.writeable


@pytest.mark.parametrize("name", ["float64", "float32", "int64", "int32", "bool", "uint8", "complex64"])
def test_every_dtype_that_numpy_has(torch, name):
    tensor = torch.ones(2, 3, dtype=getattr(torch, name)).t()
    found = eagle.interop.import_buffer(tensor)
    assert address(found) == tensor.data_ptr()
    assert found.dtype == np.dtype(name)
    assert found.shape == (3, 2)


def test_bfloat16_is_refused_by_name(torch):
    with pytest.raises(TypeError, match=r"__dlpack__: .*(code 4, 16 bits|bfloat16|BFloat16)"):
        eagle.interop.import_buffer(torch.ones(2, dtype=torch.bfloat16))
