"""The programs of the description of the graph model that concern the CPU: in process with plain numpy, and through the
daemon with nothing changed but ``with eagle.shared_arrays()`` around them."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import eagle
from eagle.graph import Node, opaque, register_node_kind


@pytest.fixture(params=["local", "daemon"])
def anywhere(request):
    """As a script would run: numpy's arrays are plain in process, and shared with the daemon."""
    with contextlib.ExitStack() as around:
        if request.param == "daemon":
            around.enter_context(eagle.connect(request.getfixturevalue("endpoint")))
            around.enter_context(eagle.shared_arrays())
        else:
            around.enter_context(eagle.local())
        yield request.param


def test_your_first_graph(anywhere):
    x, y, z = np.zeros(8), np.zeros(8), np.zeros(8)
    x[:] = 3.0
    g = eagle.Graph()
    g.add_node(opaque(lambda: np.multiply(x, 2.0, out=y), reads={"x": x}, writes={"y": y}), name="double")
    g.add_node(opaque(lambda: np.add(y, 1.0, out=z), reads={"y": y}, writes={"z": z}), name="shift")
    g.build()
    g.launch()
    assert z.tolist() == [7.0] * 8


def test_fork_and_join(anywhere):
    affine = eagle.kernel(source="def affine(x: Scalar, a: Param) -> Scalar:\n    y = a * x\n    return y")
    x, out1, out2 = np.ones(16), np.zeros(16), np.zeros(16)
    left_plan = eagle.plan(affine).bind(x=x, a=2.0, y=out1)
    right_plan = eagle.plan(affine).bind(x=x, a=3.0, y=out2)
    g = eagle.Graph()
    g.add_group([left_plan, right_plan], names=["left", "right"])
    g.build().launch()
    assert (out1[0], out2[0], g.node_labels()) == (2.0, 3.0, ["left", "right"])


def test_conditionals(anywhere):
    x, flag = np.zeros(4), np.zeros(1, dtype=np.int32)

    def refine():
        x[:] += 1.0

    g = eagle.Graph()
    guard = eagle.SkipGuard.nonzero(flag)
    g.add_node(eagle.skippable(opaque(refine, reads={"x": x}, writes={"x": x}), guard), name="refine")
    g.build().launch()
    flag[0] = 1
    g.launch(2)
    assert x.tolist() == [2.0] * 4


def test_the_graph_of_the_pictures(anywhere):
    x, left_out, right_output, total = np.ones(4), np.zeros(4), np.zeros(4), np.zeros(4)
    flag = np.ones(1, dtype=np.int32)
    g = eagle.Graph()
    g.add_node(opaque(lambda: x.fill(2.0), writes={"x": x}), name="seed")
    g.add_group(
        [
            opaque(lambda: np.copyto(left_out, x), reads={"x": x}, writes={"left_out": left_out}),
            opaque(lambda: np.copyto(right_output, x), reads={"x": x}, writes={"right_output": right_output}),
        ],
        names=["left", "right"],
    )
    combine = opaque(
        lambda: np.add(left_out, right_output, out=total),
        reads={"left_out": left_out, "right_output": right_output},
        writes={"total": total},
    )
    g.add_node(eagle.skippable(combine, eagle.SkipGuard.nonzero(flag)), name="combine")
    g.build().launch()
    assert total.tolist() == [4.0] * 4
    assert g.schedule == ("work_share",) * 3
    assert str(g).startswith("eagle.Graph  4 nodes · 1 group · backend: cpu\n")
    assert "right…" in str(g)
    assert "─ skip if guard ─" in str(g)


def payload_planes(payload):
    return [("x", payload, "inout")]


def lower_payload(payload):
    return lambda: payload.fill(9.0)


def test_a_kind_of_node(anywhere):
    x = np.ones(3)
    register_node_kind(
        "my_kind", reads=payload_planes, writes=payload_planes, lower_gpu=lower_payload, lower_cpu=lower_payload
    )
    g = eagle.Graph()
    g.add_node(Node("my_kind", x), name="mine")
    g.build().launch()
    assert (x.tolist(), g.node_labels()) == ([9.0] * 3, ["mine"])


def test_three_tiers_are_plain_calls_on_a_cpu(anywhere):
    order, handle = [], 42
    g = eagle.Graph()
    g.add_node(opaque(lambda: order.append("captured")))
    g.add_node(opaque(lambda: order.append("stream"), stream=handle))
    g.add_node(opaque(lambda: order.append("eager"), eager=True))
    g.build().launch()
    assert order == ["captured", "stream", "eager"]
    assert "[stream]" in str(g)
    assert "[host]" in str(g)
    g.enqueue(2).synchronize()
    assert len(order) == 9
