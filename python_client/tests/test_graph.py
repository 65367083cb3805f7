"""Graphs from Python, on both hosts."""

from __future__ import annotations

import gc
import threading
import traceback
import weakref

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, kernel
from eagle.graph import Edge, opaque


@kernel
def affine(x: Scalar, y: Mutable[Scalar], a: Param, b: Param):
    y = a * x + b


@kernel
def add_up(x: Scalar, y: Scalar, z: Mutable[Scalar]):
    z = x + y


def nothing():
    pass


def kinds(graph):
    return [(edge.src, edge.dst, edge.kind, edge.plane) for edge in graph.edges()]


def test_the_first_graph(session):
    x, y, z = np.full(8, 3.0), np.zeros(8), np.zeros(8)
    g = eagle.Graph(session, name="first")
    assert g.add_node(opaque(lambda: np.multiply(x, 2.0, out=y), reads={"x": x}, writes={"y": y}), name="double") is g
    assert g.add_node(opaque(lambda: np.add(y, 1.0, out=z), reads={"y": y}, writes={"z": z}), name="shift") is g
    assert (g.schedule, g.backend, g.node_labels()) == ((), None, ["double", "shift"])
    assert str(g).startswith("eagle.Graph  2 nodes")
    assert "(not built)" in str(g)
    assert g.build() is g
    assert g.launch() is g
    assert z.tolist() == [7.0] * 8
    assert (g.schedule, g.backend) == (("work_share", "work_share"), "cpu")
    assert "backend: cpu" in str(g)
    assert g.session is session


def test_edges_are_a_sequence_with_meanings(session):
    x, y = np.zeros(8), np.zeros(8)
    g = eagle.Graph(session)
    g.add_node(opaque(nothing, reads={"x": x}, writes={"y": y}))
    g.add_node(opaque(nothing, reads={"y": y}, writes={"z": y}))
    g.add_node(opaque(nothing, writes={"x": x}))
    edges = g.edges()
    assert len(edges) == 3
    assert edges == (Edge(0, 1, "y", "RAW"), Edge(0, 1, "y", "WAW"), Edge(0, 2, "x", "WAR"))
    assert [edge.meaning for edge in edges] == ["data flows", "same output", "must wait to overwrite"]
    assert edges[0] == (0, 1, "y", "RAW")


def test_edges_see_the_bytes_and_not_the_arrays(session):
    m = np.zeros((6, 4))
    g = eagle.Graph(session)
    g.add_node(opaque(nothing, writes={"first": m[:, 0]}))
    g.add_node(opaque(nothing, reads={"second": m[:, 1]}))
    g.add_node(opaque(nothing, reads={"row": m[2]}))
    assert kinds(g) == [(0, 2, "RAW", "first")]


def test_two_plans_and_a_callable_between_them(session):
    n, seen = 1000, []
    x, y, z = session.asarray(np.arange(float(n))), session.zeros(n), session.zeros(n)
    g = eagle.Graph()
    g.add(eagle.plan(affine).bind(x=x, y=y, a=3.0, b=-1.0), name="affine")
    g.add_node(opaque(lambda: seen.append(y.copy()), reads=y), name="look")
    g.add(eagle.plan(add_up).bind(x=x, y=y, z=z))
    g.build().launch(3)
    assert g.session is session
    expected = 3.0 * np.arange(n) - 1.0
    assert y.tolist() == expected.tolist()
    assert z.tolist() == (np.arange(n) + expected).tolist()
    assert [array.tolist() for array in seen] == [expected.tolist()] * 3
    assert g.node_labels() == ["affine", "look", "add_up"]
    assert kinds(g) == [(0, 1, "RAW", "y"), (0, 2, "RAW", "y")]
    assert (g.report.launches, g.report.host.pid) == (3, session.info().host.pid)


def test_labels_are_the_given_name_else_the_kernels_else_the_kind(session):
    x, flag = session.zeros(4), session.zeros(1, dtype=np.int64)
    guard = eagle.SkipGuard.nonzero(flag)
    bound = eagle.plan(affine).bind(x=x, y=session.zeros(4), a=1.0, b=0.0)
    g = eagle.Graph(session)
    g.add(bound).add(bound, name="again").add_node(opaque(nothing)).add_node(opaque(nothing, name="own"))
    g.add_node(opaque(nothing, name="own"), name="given").add_node(opaque(nothing, eager=True))
    g.add_node(opaque(nothing, stream=7)).add_node(eagle.skippable(bound, guard))
    g.add_node(eagle.repeat_while(bound.launch, guard, 3), name="loop")
    labels = ["affine", "again", "opaque", "own", "given", "opaque_host", "opaque_stream", "skippable", "loop"]
    assert g.node_labels() == labels


def test_unnamed_planes_are_numbered():
    x, y = np.zeros(3), np.zeros(3)
    for reads, writes, names in [
        (x, y, {"in0", "out0"}),
        ([x, y], (), {"in0", "in1"}),
        ({}, (x, y), {"out0", "out1"}),
        ({"a": x}, None, {"a"}),
    ]:
        g = eagle.Graph()
        g.add_node(opaque(nothing, reads=reads, writes=writes))
        g.add_node(opaque(nothing, writes={"everything": x, "more": y}))
        assert {edge.plane for edge in g.edges() if edge.src == 0} == names


def test_groups_run_their_branches_and_join(session):
    n = 64
    x, left, right, total = session.asarray(np.arange(float(n))), *(session.zeros(n) for _ in range(3))
    g = eagle.Graph(session)
    g.add_group(
        [
            eagle.plan(affine).bind(x=x, y=left, a=2.0, b=0.0),
            [
                eagle.plan(affine).bind(x=x, y=right, a=3.0, b=0.0),
                eagle.plan(affine).bind(x=right, y=right, a=1.0, b=1.0),
            ],
        ],
        names=["left", None],
    )
    g.add(eagle.plan(add_up).bind(x=left, y=right, z=total))
    g.build().launch()
    assert total.tolist() == (np.arange(n) * 5.0 + 1.0).tolist()
    assert g.node_labels() == ["left", "affine", "affine", "add_up"]


def test_small_groups_of_plans_run_as_tasks_and_large_ones_share(local):
    def schedule(n, threads):
        with eagle.local(threads=threads) as s:
            x = s.zeros(n)
            plans = [eagle.plan(affine).bind(x=x, y=s.zeros(n), a=1.0, b=0.0) for _ in range(2)]
            return eagle.Graph().add_group(plans).build().schedule[0]

    most = eagle._core.BRANCH_TASKS_MAX_SAMPLES
    assert most == 4096
    assert schedule(most, 2) == "branch_tasks"
    assert schedule(most + 1, 2) == "work_share"
    assert schedule(most, 1) == "work_share"


def test_racing_branches_are_refused_at_build_and_can_still_be_looked_at(session):
    x, y = session.zeros(16), session.zeros(16)
    plans = [eagle.plan(affine).bind(x=x, y=y, a=float(k), b=0.0) for k in range(2)]
    g = eagle.Graph(session).add_group(plans, names=["left", "right"])
    with pytest.raises(eagle.RacingSiblings) as caught:
        g.build()
    assert isinstance(caught.value, ValueError)
    assert caught.value.reason == "RACING_SIBLINGS"
    for word in ("left", "right", "'y'"):
        assert word in str(caught.value)
    assert g.edges() == ()
    assert "left" in str(g)


# ---- conditionals


def test_a_skippable_step_runs_when_its_flag_is_set(session):
    flag, x = session.zeros(1, dtype=np.int64), session.zeros(3)
    step = eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)
    g = eagle.Graph().add_node(eagle.skippable(step, eagle.SkipGuard.nonzero(flag))).build()
    counts = []
    for value in (1, 0, 1):
        flag[0] = value
        g.launch()
        counts.append(x[0])
    assert counts == [1.0, 1.0, 2.0]


def test_negated_and_indexed_and_baseline_guards(session):
    cells = session.asarray([0, 5, 5, 7])
    guards = {
        "first": eagle.SkipGuard(cells),
        "first, negated": eagle.SkipGuard(cells).negated(),
        "second": eagle.SkipGuard.intent(cells, 1),
        "differs": eagle.SkipGuard(cells, 3, cells, 2),
        "the same": eagle.SkipGuard(cells, 1, cells, 2),
        "empty bucket": eagle.SkipGuard.nonempty_bucket(cells, 1),
        "bucket": eagle.SkipGuard.nonempty_bucket(cells, 2),
        "twice negated": eagle.SkipGuard(cells, 1).negated().negated(),
    }
    ran = []
    g = eagle.Graph(session)
    for name, guard in guards.items():
        g.add_node(eagle.skippable(lambda name=name: ran.append(name), guard))
    g.build().launch()
    assert ran == ["first, negated", "second", "differs", "bucket", "twice negated"]


def test_a_loop_counts_down_to_zero_or_to_its_cap(session):
    live = session.asarray([5])
    loop = eagle.repeat_while(lambda: np.subtract(live, 1, out=live), eagle.SkipGuard.nonzero(live), 64)
    g = eagle.Graph(session).add_node(loop).build().launch()
    assert (live[0], loop.iterations()) == (0, 5)
    live[0] = 1000
    g.launch(3)
    assert (live[0], loop.iterations()) == (808, 64)


def test_conditionals_nest_and_take_lists(session):
    outer, inner, ran = session.asarray([2]), session.asarray([0]), []

    def begin():
        outer[0] -= 1
        inner[0] = 3

    def tick():
        inner[0] -= 1
        ran.append(int(outer[0]))

    body = [opaque(begin, name="begin"), eagle.repeat_while(tick, eagle.SkipGuard.nonzero(inner), 2)]
    g = eagle.Graph(session).add_node(eagle.repeat_while(body, eagle.SkipGuard.nonzero(outer), 10))
    g.build().launch()
    assert ran == [1, 1, 0, 0]


def test_a_guards_cell_is_a_read_of_that_cell_only(session):
    cells = session.zeros(3, dtype=np.int64)
    g = eagle.Graph(session)
    g.add_node(opaque(nothing, writes={"c": cells}))
    g.add_node(eagle.skippable(opaque(nothing), eagle.SkipGuard.intent(cells, 1)))
    g.add_node(opaque(nothing, writes={"d": cells[1:2]}))
    g.add_node(opaque(nothing, writes={"e": cells[0:1]}))
    assert [(s, d, k) for s, d, k, _ in kinds(g)] == [
        (0, 1, "RAW"),
        (0, 2, "WAW"),
        (0, 3, "WAW"),
        (1, 2, "WAR"),
    ]


def test_a_conditional_belongs_to_one_graph_and_a_dropped_graph_frees_it(session):
    flag = session.asarray([1])
    node = eagle.skippable(nothing, eagle.SkipGuard.nonzero(flag))
    g = eagle.Graph(session).add_node(node)
    with pytest.raises(eagle.ConditionalInUse):
        eagle.Graph(session).add_node(node)
    del g
    gc.collect()
    eagle.Graph(session).add_node(node).build().launch()


# ---- exceptions, threads, Busy


def test_an_exception_reaches_the_caller_unchanged_with_its_traceback(session):
    x, calls, error = session.zeros(4), [], LookupError("from the node")

    def broken():
        calls.append("broken")
        if error is not None:
            raise error

    g = eagle.Graph(session)
    g.add_node(opaque(lambda: calls.append("first"), writes={"x": x}))
    g.add_node(opaque(broken, reads={"x": x}))
    g.add_node(opaque(lambda: calls.append("last"), reads={"x": x}))
    g.build()
    with pytest.raises(LookupError) as caught:
        g.launch(3)
    assert caught.value is error
    assert "broken" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert calls == ["first", "broken"]
    error = None
    g.launch(2)
    assert calls == ["first", "broken"] + ["first", "broken", "last"] * 2


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, eagle.SessionClosed, StopIteration])
def test_any_exception_passes(session, raised):
    def broken():
        raise raised("mine")

    g = eagle.Graph(session).add_node(opaque(broken)).build()
    with pytest.raises(raised, match="mine"):
        g.launch()


def test_a_second_caller_is_busy_and_looking_is_not(session):
    inside, leave = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert leave.wait(60)

    g = eagle.Graph(session).add_node(opaque(wait), name="wait").build()
    runner = threading.Thread(target=g.launch)
    runner.start()
    assert inside.wait(60)
    try:
        with pytest.raises(eagle.Busy, match=r"launch.*another call is still running") as caught:
            g.launch()
        assert isinstance(caught.value, RuntimeError)
        with pytest.raises(eagle.Busy, match="add"):
            g.add_node(opaque(nothing))
        assert g.node_labels() == ["wait"]
        assert g.edges() == ()
        assert "wait" in str(g)
    finally:
        leave.set()
        runner.join()
    g.launch()


def test_a_launch_from_a_node_of_the_same_graph_is_busy(session):
    caught = []

    def again():
        try:
            g.launch()
        except eagle.Busy as error:
            caught.append(error)

    g = eagle.Graph(session).add_node(opaque(again)).build()
    g.launch()
    assert len(caught) == 1


def test_a_node_may_launch_another_graph(session):
    ran = []
    inner = eagle.Graph(session).add_node(opaque(lambda: ran.append("inner"))).build()
    outer = eagle.Graph(session)
    outer.add_node(opaque(lambda: inner.launch(2))).add_node(opaque(lambda: ran.append("outer")))
    outer.build().launch()
    assert ran == ["inner", "inner", "outer"]


def test_distinct_graphs_run_in_their_own_threads(session):
    n, results = 5000, {}

    def work(number):
        x, y = session.full(n, float(number)), session.zeros(n)
        eagle.Graph().add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0)).build().launch(20)
        results[number] = set(y.tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: {2.0 * k + 1.0} for k in range(6)}


def test_a_launch_lets_other_threads_of_python_run(session):
    live, x = session.asarray([1]), session.zeros(4)

    def stop():
        while not x[0]:  # the launch has begun when its plane moves
            pass
        live[0] = 0

    step = eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)
    loop = eagle.repeat_while(step, eagle.SkipGuard.nonzero(live), 2**62)
    g = eagle.Graph().add_node(loop).build()
    stopper = threading.Thread(target=stop)
    stopper.start()
    g.launch()
    stopper.join()
    assert loop.iterations() == x[0]


def test_a_graph_whose_callable_refers_to_it_can_be_collected(session):
    def make():
        g = eagle.Graph(session)
        g.add_node(opaque(lambda: g.node_labels()))
        g.build().launch()
        return weakref.ref(g)

    dead = make()
    gc.collect()
    assert dead() is None


def test_a_graph_keeps_its_arrays(session):
    out = session.zeros(100)
    g = eagle.Graph().add(eagle.plan(affine).bind(x=session.full(100, 3.0), y=out, a=2.0, b=0.0)).build()
    gc.collect()
    [session.zeros(100) for _ in range(20)]
    g.launch()
    assert set(out.tolist()) == {6.0}


# ---- where a graph runs


def test_the_planes_decide_even_when_they_come_last(daemon):
    x, calls = daemon.zeros(4), []
    g = eagle.Graph()
    g.add_node(opaque(lambda: calls.append(1), reads=np.zeros(3)))
    g.add_node(eagle.skippable(lambda: calls.append(2), eagle.SkipGuard.nonzero(daemon.asarray([1]))))
    g.add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0))
    g.build().launch()
    assert g.session is daemon
    assert calls == [1, 2]
    assert x.tolist() == [1.0] * 4


def test_private_arrays_alone_run_in_the_current_session(daemon):
    ran = []
    with daemon:
        g = eagle.Graph().add_node(opaque(lambda: ran.append(1), reads=np.zeros(3))).build().launch()
        assert g.report.host.pid == daemon.info().host.pid
    assert ran == [1]


def test_private_arrays_of_a_plan_are_refused_in_a_daemons_graph(local, daemon):
    bound = eagle.plan(affine).bind(x=np.zeros(3), y=np.zeros(3), a=1.0, b=1.0, session=local)
    with pytest.raises(eagle.PrivateArray, match="'x'"):
        eagle.Graph(daemon).add(bound)


def test_arrays_of_two_sessions_do_not_meet_in_a_graph(local, daemon):
    g = eagle.Graph().add_node(opaque(nothing, reads={"x": local.zeros(3)}))
    with pytest.raises(eagle.EagleError, match="'y'") as caught:
        g.add_node(opaque(nothing, reads={"y": daemon.zeros(3)}))
    assert caught.value.reason == "MIXED_SESSIONS"
    assert len(g.node_labels()) == 1


# ---- refusals


def test_each_door_names_the_right_one(session):
    bound = eagle.plan(affine).bind(x=session.zeros(3), y=session.zeros(3), a=1.0, b=0.0)
    g = eagle.Graph(session)
    with pytest.raises(TypeError, match="add_node"):
        g.add(opaque(nothing))
    with pytest.raises(TypeError, match=r"use add for a BoundPlan"):
        g.add_node(bound)
    for wrong in (nothing, 3, None, "node"):
        with pytest.raises(TypeError, match="add_node: expected"):
            g.add_node(wrong)
        with pytest.raises(TypeError, match="add: expected a BoundPlan"):
            g.add(wrong)


def test_states_are_refused_by_method(session):
    g = eagle.Graph(session)
    with pytest.raises(eagle.GraphState, match="build"):
        g.build()
    with pytest.raises(RuntimeError, match="launch"):
        g.launch()
    g.add_node(opaque(nothing))
    with pytest.raises(eagle.GraphState, match="launch"):
        g.launch()
    g.build()
    with pytest.raises(eagle.GraphState, match="build"):
        g.build()
    with pytest.raises(eagle.GraphState, match="add"):
        g.add_node(opaque(nothing))
    for n, error in ((-1, ValueError), (1.5, TypeError), (True, TypeError), ("1", TypeError), (2**63, ValueError)):
        with pytest.raises(error, match="launch"):
            g.launch(n)
    g.launch(0)


def test_groups_are_refused_by_what_is_wrong(session):
    node, other = opaque(nothing), opaque(nothing)
    g = eagle.Graph(session)
    for branches, names, error, words in [
        ([], None, ValueError, "at least 2"),
        ([node], None, ValueError, "at least 2"),
        ([node, []], None, ValueError, "branch 1 is empty"),
        ([node, other], ["one"], ValueError, "1 names for 2"),
        ([node, other], ["one", 2], TypeError, "name"),
        ([node, nothing], None, TypeError, "branch 1"),
        (3, None, TypeError, "list of branches"),
    ]:
        with pytest.raises(error, match=words):
            g.add_group(branches, names=names)
    assert g.node_labels() == []


def test_nodes_are_refused_by_what_is_wrong():
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    for make, error, words in [
        (lambda: opaque(3), TypeError, "callable"),
        (lambda: opaque(nothing, reads={"x": [1, 2]}), TypeError, "'x'"),
        (lambda: opaque(nothing, reads=3), TypeError, "reads"),
        (lambda: opaque(nothing, reads={1: np.zeros(3)}), TypeError, "names"),
        (lambda: opaque(nothing, writes={"y": np.zeros(3, dtype=object)}), TypeError, "'y'"),
        (lambda: opaque(nothing, reads={"m": np.ma.zeros(3)}), TypeError, "'m'"),
        (lambda: opaque(nothing, name=3), TypeError, "name"),
        (lambda: opaque(nothing, stream=1, eager=True), ValueError, "stream"),
        (lambda: eagle.Graph().add_node(opaque(nothing, writes={"y": read_only})), ValueError, "'y'"),
        (lambda: eagle.Graph().add_node(opaque(nothing), name=3), TypeError, "name"),
        (lambda: eagle.Graph(name=3), TypeError, "name"),
        (lambda: eagle.Graph("unix:x"), TypeError, "session"),
    ]:
        with pytest.raises(error, match=words) as caught:
            make()
        assert isinstance(caught.value, eagle.EagleError)


def test_guards_and_conditionals_are_refused_by_what_is_wrong():
    cells = np.zeros(3, dtype=np.int64)
    guard = eagle.SkipGuard(cells)
    for make, error, words in [
        (lambda: eagle.SkipGuard(cells, 3), ValueError, "idx = 3"),
        (lambda: eagle.SkipGuard(cells, -1), ValueError, "idx = -1"),
        (lambda: eagle.SkipGuard(cells, 0, cells, 9), ValueError, "bidx = 9"),
        (lambda: eagle.SkipGuard(cells, 1.0), TypeError, "idx"),
        (lambda: eagle.SkipGuard(np.zeros(3)), TypeError, "float64"),
        (lambda: eagle.SkipGuard([1]), TypeError, "list"),
        (lambda: eagle.SkipGuard(np.zeros((2, 2), dtype=int)), ValueError, "1-D"),
        (lambda: eagle.skippable(nothing, cells), TypeError, "SkipGuard"),
        (lambda: eagle.skippable(3, guard), TypeError, "step"),
        (lambda: eagle.skippable([], guard), ValueError, "empty"),
        (lambda: eagle.repeat_while(nothing, guard, 0), ValueError, "max_iters"),
        (lambda: eagle.repeat_while(nothing, guard, 2.0), TypeError, "max_iters"),
    ]:
        with pytest.raises(error, match=words) as caught:
            make()
        assert isinstance(caught.value, eagle.EagleError)


def test_only_the_cpu_backend_is_here(session):
    g = eagle.Graph(session).add_node(opaque(nothing))
    with pytest.raises(eagle.MixedDevices, match="'gpu'"):
        g.build("gpu")
    with pytest.raises(ValueError, match="'tpu'"):
        g.build(backend="tpu")
    g.build(backend="cpu").launch()


def test_copy_bound_planes_are_refused_at_bind_and_any_array_is_fine_in_opaque_nodes(session):
    m = session.zeros((4, 6))
    with pytest.raises(eagle.CopyBoundPlane, match="'x'"):
        eagle.plan(affine).bind(x=m[:, 1], y=session.zeros(4), a=1.0, b=0.0)
    record = np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
    node = opaque(nothing, reads={"x": m[:, 1], "c": np.zeros(2, complex), "r": record["b"], "d": np.float16([1])})
    eagle.Graph(session).add_node(node).build().launch()


def test_show_prints_the_picture(session, capsys):
    g = eagle.Graph(session).add_node(opaque(nothing), name="only")
    assert g.show() is None
    assert capsys.readouterr().out == str(g) + "\n"
    assert repr(g) == "<eagle.Graph 1 node, not built>"
