"""Registered kinds of nodes, the spellings of opaque and guards, groups in bodies, GraphPipeline, shared arrays."""

from __future__ import annotations

import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, kernel
from eagle.graph import Node, child, group, opaque, register_node_kind


@kernel
def grow(x: Mutable[Scalar], b: Param):
    x = x + b


def nothing():
    pass


def pairs(payload):
    return [("x", payload["x"], "inout")]


def as_callable(payload):
    return lambda: np.multiply(payload["x"], 2.0, out=payload["x"])


def as_plans(payload):
    return [eagle.plan(grow).bind(x=payload["x"], b=1.0), eagle.plan(grow).bind(x=payload["x"], b=10.0)]


def as_one(payload):
    return eagle.plan(grow).bind(x=payload["x"], b=5.0)


register_node_kind("test_callable", reads=pairs, writes=pairs, lower_cpu=as_callable)
register_node_kind("test_plans", reads=pairs, writes=pairs, lower_cpu=as_plans, lower_gpu=nothing)
register_node_kind("test_one", reads=pairs, writes=pairs, lower_cpu=as_one)


def test_kinds_lower_to_callables_and_to_plans(session):
    x = session.full(4, 1.0)
    g = eagle.Graph(session)
    g.add_node(Node("test_callable", {"x": x}), name="mine").add_node(Node("test_plans", {"x": x}), name="two")
    g.add_node(Node("test_one", {"x": x})).add_node(Node("test_callable", {"x": x}))
    assert g.node_labels() == ["mine", "two[0]", "two[1]", "test_one", "test_callable"]
    assert {(e.src, e.dst, e.kind) for e in g.edges()} >= {(0, 1, "RAW"), (1, 2, "WAW"), (3, 4, "WAR")}
    g.build().launch()
    assert x.tolist() == [(1.0 * 2 + 11 + 5) * 2] * 4


def test_kinds_stand_in_branches_and_bodies(session):
    x, y, flag = session.full(4, 1.0), session.full(4, 1.0), session.asarray([1])
    g = eagle.Graph(session)
    g.add_group([Node("test_plans", {"x": x}), [Node("test_one", {"x": y}), Node("test_callable", {"x": y})]])
    g.add_node(eagle.skippable([Node("test_plans", {"x": x})], eagle.SkipGuard.nonzero(flag)))
    g.build().launch()
    assert (x[0], y[0]) == (23.0, 12.0)


def test_registrations_are_checked():
    register_node_kind("test_callable", reads=pairs, writes=pairs, lower_cpu=as_callable)
    for arguments, error, words in [
        ({"kind": "test_callable", "lower_cpu": as_plans}, ValueError, "registered already"),
        ({"kind": "opaque"}, ValueError, "eagle's own"),
        ({"kind": 3}, TypeError, "kind"),
        ({"kind": ""}, TypeError, "kind"),
        ({"reads": 3}, TypeError, "reads"),
        ({"writes": None}, TypeError, "writes"),
        ({"lower_cpu": "x"}, TypeError, "lower_cpu"),
        ({"lower_gpu": 3}, TypeError, "lower_gpu"),
    ]:
        with pytest.raises(error, match=words) as caught:
            register_node_kind(
                **{"kind": "test_other", "reads": pairs, "writes": pairs, "lower_cpu": as_callable, **arguments}
            )
        assert isinstance(caught.value, eagle.EagleError)
    with pytest.raises(ValueError, match="no kind 'test_other'"):
        Node("test_other", None)


def test_what_a_kind_returns_is_checked():
    bad_rows = lambda payload: [("x", 3, "in")]  # noqa: E731
    for number, (arguments, error, words) in enumerate(
        [
            ({"reads": lambda p: 3}, TypeError, "rows"),
            ({"reads": lambda p: [("x", np.zeros(1))]}, TypeError, "rows"),
            ({"writes": bad_rows}, TypeError, "'x'"),
            ({"lower_cpu": lambda p: 3}, TypeError, "lower_cpu"),
            ({"lower_cpu": lambda p: []}, ValueError, "empty"),
            ({"lower_cpu": lambda p: [nothing]}, TypeError, "list"),
        ]
    ):
        given = {"reads": pairs, "writes": pairs, "lower_cpu": as_callable, **arguments}
        register_node_kind(f"test_bad{number}", **given)
        with pytest.raises(error, match=words) as caught:
            Node(f"test_bad{number}", {"x": np.zeros(1)})
        assert f"test_bad{number}" in str(caught.value)


# ---- opaque, child, guards, groups in bodies


def test_streams_are_handles_or_known_objects(session):
    torch_like = types.SimpleNamespace(cuda_stream=7)
    cupy_like = types.SimpleNamespace(ptr=7)
    g = eagle.Graph(session)
    for stream in (7, torch_like, cupy_like):
        g.add_node(opaque(nothing, stream=stream))
    assert g.node_labels() == ["opaque_stream"] * 3
    g.build().launch()
    assert "[stream: cpu runs eagerly]" in str(g)
    for stream in ("7", object(), True, 1.5):
        with pytest.raises(TypeError, match="stream"):
            opaque(nothing, stream=stream)


def test_a_child_graph_needs_a_gpu():
    with pytest.raises(eagle.MixedDevices, match="opaque") as caught:
        child(object(), reads={"x": np.zeros(3)}, writes={}, name="model")
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int32", "int64", "bool"])
def test_guards_look_at_any_integers(session, dtype):
    cells, ran = np.array([0, 1, 1], dtype), []
    if session._core.remote:
        with eagle.shared_arrays(session):
            cells = np.array([0, 1, 1], dtype)
    g = eagle.Graph(session)
    g.add_node(eagle.skippable(lambda: ran.append("first"), eagle.SkipGuard.nonzero(cells)))
    g.add_node(eagle.skippable(lambda: ran.append("second"), eagle.SkipGuard.intent(cells, 1)))
    g.add_node(eagle.skippable(lambda: ran.append("bucket"), eagle.SkipGuard.nonempty_bucket(cells, 0)))
    g.add_node(eagle.skippable(lambda: ran.append("empty"), eagle.SkipGuard.nonempty_bucket(cells, 1)))
    g.add_node(eagle.skippable(lambda: ran.append("negated"), eagle.SkipGuard.nonzero(cells).negated()))
    g.build().launch()
    assert ran == ["second", "bucket", "negated"]


def test_guards_of_two_kinds_of_integers_are_refused_where_they_could_not_be_compared():
    with pytest.raises(TypeError, match="baseline.*uint32.*int64"):
        eagle.SkipGuard(np.zeros(2, "uint32"), 0, np.zeros(2, "int64"), 0)


def test_groups_and_conditionals_nest_in_bodies(session):
    x, y, z = (session.zeros(4) for _ in range(3))
    live = session.asarray([3])
    left = [eagle.plan(grow).bind(x=x, b=1.0), eagle.plan(grow).bind(x=x, b=1.0)]
    inner = eagle.repeat_while(eagle.plan(grow).bind(x=y, b=1.0), eagle.SkipGuard.nonzero(live), 2)
    body = [group([left, inner], names=[None, "inner"]), opaque(lambda: live.__setitem__(0, live[0] - 1), writes=live)]
    loop = eagle.repeat_while(body, eagle.SkipGuard.nonzero(live), 10)
    g = eagle.Graph(session).add_group([loop, eagle.plan(grow).bind(x=z, b=1.0)], names=["loop", None])
    g.build().launch()
    assert (x[0], y[0], z[0], live[0]) == (6.0, 6.0, 1.0, 0)
    assert (loop.iterations(), inner.iterations()) == (3, 2)


def test_a_group_in_a_body_may_not_race(session):
    x, live = session.zeros(4), session.asarray([1])
    race = group([eagle.plan(grow).bind(x=x, b=1.0)] * 2, names=["left", "right"])
    g = eagle.Graph(session).add_node(eagle.skippable(race, eagle.SkipGuard.nonzero(live)))
    with pytest.raises(eagle.RacingSiblings, match="left.*right"):
        g.build()
    with pytest.raises(ValueError, match="at least 2"):
        group([nothing])
    with pytest.raises(TypeError, match="add_node"):
        eagle.Graph(session).add_node(race)


# ---- recording


def test_a_recorded_graph_says_so_and_gives_its_nodes(session):
    x = session.zeros(4)
    bound = eagle.plan(grow).bind(x=x, b=1.0)
    g = eagle.Graph(session, record=True).add(bound, name="one").add(bound, name="two")
    assert g.record is None
    assert "· recorded" in str(g)
    g.build()
    assert g.record.labels == ("one", "two")
    assert g.record.edges == g.edges()
    assert g.record.nodes == (bound, bound)
    plain = eagle.Graph(session).add(bound)
    assert "recorded" not in str(plain)
    assert plain.build(record=True).record is not None
    with pytest.raises(TypeError, match="record"):
        eagle.Graph(session, record=1)


# ---- GraphPipeline


def test_a_pipeline_runs_its_steps_and_switches_them(session):
    x, ran = session.zeros(4), []
    pipe = eagle.GraphPipeline(session)
    assert pipe.add(lambda: ran.append("a"), name="a") is pipe
    pipe.add_concurrent([eagle.plan(grow).bind(x=x, b=1.0), lambda: ran.append("b")], names=["plan", None])
    pipe.add(opaque(lambda: ran.append("c")))
    assert pipe.build() is pipe
    assert pipe.node_labels() == ["a", "plan", "step2", "step3"]
    assert [pipe.member_nodes(m) for m in ("plan", 2)] == [[1], [2]]
    pipe.launch(2)
    assert (ran, x[0]) == (["a", "b", "c"] * 2, 2.0)
    pipe.set_member_enabled("plan", False).set_member_enabled(0, False).enqueue().synchronize()
    assert (ran[6:], x[0]) == (["b", "c"], 2.0)
    pipe.set_member_enabled("plan", True).launch()
    assert x[0] == 3.0
    assert pipe.report.launches == 1


def test_pipelines_are_refused_by_what_is_wrong(session):
    pipe = eagle.GraphPipeline(session)
    for call, error, words in [
        (pipe.build, eagle.GraphState, "empty"),
        (pipe.launch, eagle.GraphState, "build"),
        (lambda: pipe.add(3), TypeError, "callable"),
        (lambda: pipe.add_concurrent([nothing]), ValueError, "at least 2"),
        (lambda: pipe.add_concurrent(3), TypeError, "members"),
        (lambda: pipe.add_concurrent([nothing, nothing], names=["a"]), ValueError, "names"),
        (lambda: pipe.set_member_enabled(0, True), eagle.GraphState, "build"),
    ]:
        with pytest.raises(error, match=words):
            call()
    pipe.add(nothing, name="one")
    with pytest.raises(ValueError, match="'one' already"):
        pipe.add(nothing, name="one")
    pipe.build()
    with pytest.raises(eagle.GraphState, match="add"):
        pipe.add(nothing)
    for member in ("two", 1, -1, True, None):
        with pytest.raises(ValueError, match="member"):
            pipe.set_member_enabled(member, True)
    with pytest.raises(TypeError, match="enabled"):
        pipe.set_member_enabled("one", 1)


# ---- shared arrays


def test_numpys_own_arrays_lie_in_the_session(session):
    with eagle.shared_arrays(session) as home:
        assert home is session
        made = [np.zeros(3), np.ones((2, 2)), np.empty(5), np.full(3, 2.0), np.arange(9), np.linspace(0, 1, 4)]
        made += [np.asarray([1.0, 2.0]), np.array([1, 2]), made[1] + 1.0, np.zeros(100_000), made[0].copy()]
    assert all(session.owns(array) for array in made)
    assert not session.owns(np.zeros(3))
    assert made[9].sum() == 0.0
    assert made[8].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_an_unchanged_script_runs_in_the_daemon(daemon):
    with daemon, eagle.shared_arrays():
        x, y = np.linspace(0.0, 1.0, 1000), np.zeros(1000)
        g = eagle.Graph().add(eagle.plan(grow).bind(x=x, b=1.0)).add_node(eagle.copy(x, y)).build().launch()
        assert g.report.host.pid == daemon.info().host.pid
    assert y.tolist() == (np.linspace(0.0, 1.0, 1000) + 1.0).tolist()


def test_shared_arrays_nest_grow_and_outlive_their_session(session):
    other = eagle.local()
    with eagle.shared_arrays(session):
        with eagle.shared_arrays(other):
            inner = np.zeros(3)
        outer = np.zeros(3)
        grown = np.arange(3.0)
        grown.resize(5000, refcheck=False)
    assert (session.owns(outer), other.owns(outer), other.owns(inner)) == (True, False, True)
    assert (grown[:4].tolist(), session.owns(grown)) == ([0.0, 1.0, 2.0, 0.0], True)
    other.close()
    inner += 1.0
    assert inner.tolist() == [1.0] * 3


def test_shared_arrays_hold_in_their_own_thread_only(session):
    seen = []
    with eagle.shared_arrays(session):
        thread = threading.Thread(target=lambda: seen.append(session.owns(np.zeros(3))))
        thread.start()
        thread.join()
    assert seen == [False]
    with pytest.raises(TypeError, match="Session"), eagle.shared_arrays(3):
        pass


def test_a_whole_program_shares_its_arrays(endpoint):
    program = """
import numpy as np
import eagle
x = np.ones(4)
from eagle import Mutable, Scalar
k = eagle.kernel(source="def f(x: Mutable[Scalar]):\\n    x = x + 1.0")
g = eagle.Graph().add(eagle.plan(k).bind(x=x)).build().launch()
print(x.tolist(), g.session._core.remote)
"""
    import os

    environment = {**os.environ, "EAGLE_SHARED_ARRAYS": "1", "EAGLE_ENDPOINT": endpoint}
    source = program.replace("import numpy as np\nimport eagle", "import eagle\nimport numpy as np")
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "[2.0, 2.0, 2.0, 2.0] True\n"


def test_private_arrays_are_refused_by_a_daemon_with_the_ways_out(daemon):
    with pytest.raises(eagle.PrivateArray) as caught:
        eagle.plan(grow).bind(x=np.zeros(3), b=1.0, session=daemon)
    for word in ("'x'", "zeros", "asarray", "share", "shared_arrays"):
        assert word in str(caught.value)
