"""Every line of the refusals of the graph model, by class and by what it names, on both hosts."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle.graph import opaque


@kernel
def affine(x: Scalar, y: Mutable[Scalar], a: Param, b: Param):
    y = a * x + b


@kernel
def twice(x: Scalar) -> Scalar:
    y = 2.0 * x
    return y


@kernel
def finishing(t: Mutable[Scalar], done: Terminated):
    t = t + 1.0
    done = t >= 3.0


def nothing():
    pass


def refused(call, kind, *words, reason=None):
    """The call raises this class, which is an EagleError, and its text has all these words."""
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, eagle.EagleError)
    for word in words:
        assert word in str(caught.value), f"{word!r} not in: {caught.value}"
    if reason is not None:
        assert caught.value.reason == reason
    return caught.value


def test_racing_siblings_are_the_first_pair_in_node_order(session):
    x, y, z = session.zeros(8), session.zeros(8), session.zeros(8)
    bind = eagle.plan(affine).bind
    left = [bind(x=x, y=z, a=1.0, b=0.0), bind(x=x, y=y, a=1.0, b=0.0)]
    right = [bind(x=x, y=y, a=1.0, b=0.0), bind(x=y, y=z, a=1.0, b=0.0)]
    g = eagle.Graph(session).add_group([left, right])
    error = refused(g.build, eagle.RacingSiblings, "build", "node 0", "node 3", "'y'", "WAW", reason="RACING_SIBLINGS")
    assert isinstance(error, ValueError)
    assert "affine" in str(g)
    assert len(g.edges()) == 1


def test_two_finishing_plans_that_share_a_mask_race(session):
    done = session.zeros(8, dtype=bool)
    plans = [eagle.plan(finishing).bind(t=session.zeros(8), done=done) for _ in range(2)]
    g = eagle.Graph(session).add_group(plans, names=["left", "right"])
    refused(g.build, eagle.RacingSiblings, "left", "right", "'done'")


def test_copy_bound_planes_say_why_and_name_the_cure(session):
    m = session.zeros((6, 4))
    wide = session.zeros((8, 2, 3))
    for array in (m[:, 0], m[::2, 0], m[0, ::2], m[0, ::-1]):
        refused(
            lambda array=array: eagle.plan(twice).bind(x=array),
            eagle.CopyBoundPlane,
            "'x'",
            "eagle.copy",
            "contiguous",
            reason="COPY_BOUND_PLANE",
        )
    refused(lambda: eagle.plan(twice).bind(x=wide), ValueError, "'x'")


def test_a_backend_that_disagrees(session):
    g = eagle.Graph(session).add_node(opaque(nothing))
    refused(lambda: g.build(backend="gpu"), eagle.MixedDevices, "build", "'gpu'", "host memory")
    refused(lambda: eagle.graph.child(object(), reads={}, writes={}), eagle.MixedDevices, "child", "opaque")
    g.build().launch()


def test_states(session):
    g = eagle.Graph(session)
    assert isinstance(refused(g.build, eagle.GraphState, "build", "empty"), RuntimeError)
    for call in (g.launch, g.enqueue, g.synchronize):
        if call != g.synchronize:
            refused(call, eagle.GraphState, "build()")
    g.add_node(opaque(nothing))
    refused(g.launch, eagle.GraphState, "launch", "build()")
    g.build()
    refused(g.build, eagle.GraphState, "build", "already")
    refused(lambda: g.add_node(opaque(nothing)), eagle.GraphState, "add_node", "built")
    refused(lambda: g.add_group([opaque(nothing), opaque(nothing)]), eagle.GraphState, "add_group")


def test_a_failed_build_leaves_the_graph_open_and_counts_nothing(session):
    x, y = session.zeros(8), session.zeros(8)
    g = eagle.Graph(session).add_group([opaque(nothing, writes={"x": x}), opaque(nothing, writes={"x": x})])
    before = eagle.counters()
    refused(g.build, eagle.RacingSiblings)
    refused(g.build, eagle.RacingSiblings)
    assert eagle.counters() == before
    g.add_node(opaque(nothing, writes={"y": y}))
    assert (g.backend, g.schedule, len(g.node_labels())) == (None, (), 3)


def test_a_conditional_is_one_graphs_and_freed_by_a_failed_add_and_a_dropped_graph(session):
    flag, read_only = session.asarray([1]), session.zeros(3)
    read_only.flags.writeable = False
    node = eagle.skippable(opaque(nothing), eagle.SkipGuard.nonzero(flag))
    broken = eagle.Graph(session)
    refused(lambda: broken.add_group([node, opaque(nothing, writes={"r": read_only})]), ValueError, "'r'", "read-only")
    first = eagle.Graph(session).add_node(node)
    error = refused(lambda: eagle.Graph(session).add_node(node), eagle.ConditionalInUse, "another graph")
    assert isinstance(error, ValueError)
    outer = eagle.skippable([node], eagle.SkipGuard.nonzero(flag))
    refused(lambda: eagle.Graph(session).add_node(outer), eagle.ConditionalInUse)
    del first, error
    gc.collect()
    eagle.Graph(session).add_node(node).build().launch()


def test_groups(session):
    g, node = eagle.Graph(session), opaque(nothing)
    refused(lambda: g.add_group([]), ValueError, "at least 2", "0")
    refused(lambda: g.add_group([node]), ValueError, "at least 2", "1")
    refused(lambda: g.add_group([node, []]), ValueError, "branch 1", "empty")
    refused(lambda: g.add_group([node, node], names=["a", "b", "c"]), ValueError, "3 names", "2 branches")
    assert g.node_labels() == []


def test_what_is_no_callable_no_array_or_no_plan(session):
    g, x = eagle.Graph(session), session.zeros(3)
    bound = eagle.plan(twice).bind(x=x)
    refused(lambda: opaque(x), TypeError, "opaque", "callable")
    refused(lambda: opaque(nothing, reads={"q": "text"}), TypeError, "'q'", "str")
    refused(lambda: opaque(nothing, writes=[x, 3]), TypeError, "'out1'", "int")
    refused(lambda: g.add(opaque(nothing)), TypeError, "add", "add_node")
    refused(lambda: g.add_node(bound), TypeError, "add_node", "use add")
    refused(lambda: g.add_node(nothing), TypeError, "add_node")
    refused(lambda: eagle.skippable(3, eagle.SkipGuard.nonzero(session.asarray([1]))), TypeError, "step")


def test_a_read_only_array_as_a_write_through_every_door(session):
    x, y = session.zeros(4), session.zeros(4)
    y.flags.writeable = False
    refused(lambda: eagle.plan(affine).bind(x=x, y=y, a=1.0, b=0.0), ValueError, "'y'", "read-only")
    refused(lambda: eagle.Graph(session).add_node(opaque(nothing, writes={"y": y})), ValueError, "'y'", "read-only")
    refused(lambda: eagle.Graph(session).add_node(eagle.copy(x, y)), ValueError, "'dst'", "read-only")
    eagle.plan(affine).bind(x=y, y=x, a=1.0, b=0.0)


def test_object_and_masked_arrays(session):
    for bad, word in ((np.zeros(3, object), "objects"), (np.ma.zeros(3), "masked")):
        refused(lambda bad=bad: eagle.plan(twice).bind(x=bad), TypeError, "'x'", word)
        refused(lambda bad=bad: opaque(nothing, reads={"x": bad}), TypeError, "'x'", word)
        refused(lambda bad=bad: eagle.copy(bad, session.zeros(3)), TypeError, "src", word)


def test_an_array_cannot_be_resized_or_freed_under_a_graph(session):
    x, out = np.ones(4), session.zeros(4)
    seen = []
    g = eagle.Graph(session).add_node(opaque(lambda: seen.append(1), reads={"x": x})).build()
    with pytest.raises(ValueError):
        x.resize(8)
    held = session.full(4, 3.0)
    kept = eagle.Graph(session).add_node(eagle.copy(held, out)).build()
    del held
    gc.collect()
    [session.full(4, -1.0) for _ in range(10)]
    kept.launch()
    g.launch()
    assert out.tolist() == [3.0] * 4


def test_an_array_that_becomes_read_only_is_the_graphs_as_it_was_and_nobody_elses(session):
    x, y = session.full(4, 1.0), session.zeros(4)
    g = eagle.Graph(session).add(eagle.plan(twice).bind(x=x, y=y), name="twice").build()
    y.flags.writeable = False  # as of numpy's own views: one that was made before stays writable
    g.launch()
    assert y[0] == 2.0
    with pytest.raises(ValueError, match="^add_node: .*'y'.*read-only"):
        eagle.Graph(session).add_node(opaque(lambda: None, writes={"y": y}))
    other = session.zeros(4)
    other.flags.writeable = False
    with pytest.raises(ValueError, match=r"^rebind: .*'y'.*read-only"):
        g.rebind({"twice.y": other})
    g.launch()


def test_partial_overlap_of_an_input_and_an_output_of_one_plan(session):
    whole = session.zeros(12)
    error = refused(
        lambda: eagle.plan(affine).bind(x=whole[:8], y=whole[4:], a=1.0, b=0.0), ValueError, "'x'", "'y'", "share some"
    )
    assert error.reason == "PLANE_OVERLAP"
    eagle.plan(affine).bind(x=whole[:8], y=whole[:8], a=1.0, b=0.0).launch()


def test_a_rebind_that_would_race(session):
    x, y, z = session.zeros(8), session.zeros(8), session.zeros(8)
    plans = [eagle.plan(affine).bind(x=x, y=out, a=1.0, b=0.0) for out in (y, z)]
    g = eagle.Graph(session).add_group(plans, names=["left", "right"]).build()
    refused(lambda: g.rebind({"right.y": y}), eagle.RacingSiblings, "rebind", "left", "right")
    g.launch()


def test_numbers_that_cannot_be(session):
    cells, g = session.asarray([1, 2]), eagle.Graph(session).add_node(opaque(nothing)).build()
    refused(lambda: g.launch(-1), ValueError, "launch", "-1")
    guard = eagle.SkipGuard.nonzero(cells)
    refused(lambda: eagle.repeat_while(nothing, guard, 0), ValueError, "max_iters", "0")
    refused(lambda: eagle.repeat_while(nothing, guard, 2.0), TypeError, "max_iters", "float")
    refused(lambda: eagle.SkipGuard(cells, 2), ValueError, "idx = 2", "2 cells")
    refused(lambda: eagle.SkipGuard(cells, 0, cells, -1), ValueError, "bidx = -1")
    refused(lambda: eagle.SkipGuard(session.zeros(2)), TypeError, "float64")


def test_unknown_streams(session):
    refused(lambda: opaque(nothing, stream="fast"), TypeError, "stream", "str")
    refused(lambda: opaque(nothing, stream=1, eager=True), ValueError, "stream", "eager")


def test_arrays_of_two_sessions(local, daemon):
    g = eagle.Graph().add_node(eagle.copy(local.zeros(3), local.zeros(3)))
    error = refused(lambda: g.add_node(eagle.copy(daemon.zeros(3), daemon.zeros(3))), ValueError, "'src'", "session")
    assert error.reason == "MIXED_SESSIONS"


def test_private_arrays_where_the_daemon_computes(daemon):
    x = np.zeros(4)
    for make in (
        lambda: eagle.plan(twice).bind(x=x, session=daemon),
        lambda: eagle.Graph(daemon).add_node(eagle.copy(daemon.zeros(4), x)),
        lambda: eagle.Graph(daemon).add_node(eagle.skippable(nothing, eagle.SkipGuard.nonzero(np.array([1])))),
    ):
        refused(make, eagle.PrivateArray, "zeros", "asarray", "share", "shared_arrays")


def test_names_that_are_no_text(session):
    g = eagle.Graph(session)
    refused(lambda: g.add_node(opaque(nothing), name=3), TypeError, "name")
    refused(lambda: g.add(eagle.plan(twice).bind(x=session.zeros(3)), name=b"x"), TypeError, "name")
    refused(lambda: g.add_group([opaque(nothing)] * 2, names=["a", 2]), TypeError, "name")
    refused(lambda: opaque(nothing, reads={3: session.zeros(3)}), TypeError, "names")
