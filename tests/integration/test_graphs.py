"""The seed's first graph, and a graph of two plan nodes and an opaque node, on both hosts."""

import eagle
import numpy as np
import pytest
from eagle.graph import opaque
from models import add_into, affine


@pytest.fixture(params=["daemon", "local"])
def session(request):
    """Each test runs on both hosts."""
    if request.param == "daemon":
        opened = eagle.connect(request.getfixturevalue("daemon").endpoint)
    else:
        opened = eagle.local()
    with opened:
        yield opened


def test_first_graph(session):
    x, y, z = np.full(8, 3.0), np.zeros(8), np.zeros(8)
    g = eagle.Graph(session)
    g.add_node(opaque(lambda: np.multiply(x, 2.0, out=y), reads={"x": x}, writes={"y": y}), name="double")
    g.add_node(opaque(lambda: np.add(y, 1.0, out=z), reads={"y": y}, writes={"z": z}), name="shift")
    g.build()
    g.launch()
    assert z.tolist() == [7.0] * 8
    assert g.node_labels() == ["double", "shift"]
    assert [(edge.src, edge.dst, edge.plane, str(edge.kind)) for edge in g.edges()] == [(0, 1, "y", "RAW")]
    picture = str(g)
    assert picture.startswith("eagle.Graph  2 nodes")
    assert picture.index("double") < picture.index("shift")
    assert list(g.schedule) == ["work_share", "work_share"]


def test_two_plans_and_an_opaque_node(session):
    n = 1000
    x, y, z, seen = session.asarray(np.arange(float(n))), session.zeros(n), session.zeros(n), []
    g = eagle.Graph(session)
    g.add(eagle.plan(affine).bind(x=x, y=y, a=3.0, b=-1.0), name="affine")
    g.add_node(opaque(lambda: seen.append(y.copy()), reads={"y": y}), name="look")
    g.add(eagle.plan(add_into).bind(x=x, y=y, z=z), name="add")
    g.build().launch(3)
    expected = 3.0 * np.arange(n) - 1.0
    assert y.tolist() == expected.tolist()
    assert z.tolist() == (np.arange(n) + expected).tolist()
    assert len(seen) == 3
    assert all(array.tolist() == expected.tolist() for array in seen)


def test_exception_of_an_opaque_node_reaches_the_caller(session):
    x, calls = session.zeros(4), []

    def broken():
        calls.append("broken")
        raise LookupError("from the node")

    g = eagle.Graph(session)
    g.add_node(opaque(lambda: calls.append("first"), writes={"x": x}), name="first")
    g.add_node(opaque(broken, reads={"x": x}), name="broken")
    g.add_node(opaque(lambda: calls.append("last"), reads={"x": x}), name="last")
    g.build()
    with pytest.raises(LookupError, match="from the node"):
        g.launch(3)
    assert calls == ["first", "broken"]


def test_racing_branches_are_refused_by_name(session):
    x, y = session.zeros(16), session.zeros(16)
    left = eagle.plan(affine).bind(x=x, y=y, a=1.0, b=0.0)
    right = eagle.plan(affine).bind(x=x, y=y, a=2.0, b=0.0)
    g = eagle.Graph(session)
    g.add_group([left, right], names=["left", "right"])
    with pytest.raises(eagle.RacingSiblings) as caught:
        g.build()
    assert isinstance(caught.value, ValueError)
    for name in ("left", "right", "y"):
        assert name in str(caught.value)
