"""Update, rebind, enqueue, cancel and counters, on both hosts."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, kernel
from eagle.graph import opaque

BASE = 3.0


@kernel
def affine(x: Scalar, y: Mutable[Scalar], a: Param, b: Param):
    y = a * x + b


@kernel
def grow(x: Mutable[Scalar], b: Param):
    x = x + b


@kernel
def captured(x: Scalar) -> Scalar:
    y = x + BASE
    return y


def nothing():
    pass


def bind(session, x, y, a=1.0, b=0.0):
    return eagle.plan(affine).bind(x=x, y=y, a=a, b=b, session=session)


# ---- update


def test_an_update_changes_numbers_without_a_build(session):
    x, y = session.full(1000, 2.0), session.zeros(1000)
    g = eagle.Graph(session).add(bind(session, x, y, a=1.0, b=0.5)).build().launch()
    assert set(y.tolist()) == {2.5}
    before = eagle.counters()
    assert g.update({"a": 10.0}) is g
    g.launch()
    assert set(y.tolist()) == {20.5}
    after = eagle.counters()
    assert after["graph_builds"] == before["graph_builds"]
    assert after["updates"] == before["updates"] + 1


def test_a_name_is_that_of_one_node_or_of_all(session):
    x = session.full(4, 1.0)
    ys = [session.zeros(4) for _ in range(3)]
    g = eagle.Graph(session)
    for number, y in enumerate(ys):
        g.add(bind(session, x, y), name=f"n{number}")
    g.build()
    for params, expected in [
        ({"a": 2.0}, [2.0, 2.0, 2.0]),
        ({"n1.a": 3.0}, [2.0, 3.0, 2.0]),
        ({("n2", "a"): 4, "b": 1}, [3.0, 4.0, 5.0]),
        ({(0, "a"): np.float32(0.5)}, [1.5, 4.0, 5.0]),
    ]:
        g.update(params).launch()
        assert [y[0] for y in ys] == expected


def test_an_ambiguous_or_unknown_name_is_refused_with_the_candidates_and_changes_nothing(session):
    x, y, z = session.full(4, 1.0), session.zeros(4), session.zeros(4)
    g = eagle.Graph(session).add(bind(session, x, y), name="first").add(bind(session, x, z), name="second")
    g.add(eagle.plan(grow).bind(x=z, b=1.0), name="third").build()
    for params, words in [
        ({"a": 2.0}, ["'a'", "'first.a'", "'second.a'"]),
        ({"q": 2.0}, ["'q'", "'first.a'", "'third.b'"]),
        ({"b": 5.0, "third.a": 2.0}, ["'third.a'"]),
        ({("first", "x"): 2.0}, ["'x'"]),
        ({(7, "a"): 2.0}, ["(7, 'a')"]),
    ]:
        with pytest.raises(ValueError) as caught:
            g.update(params)
        assert isinstance(caught.value, eagle.EagleError)
        assert caught.value.reason == "UNKNOWN_NAME"
        assert str(caught.value).startswith("update: ")
        for word in words:
            assert word in str(caught.value)
    g.launch()
    assert (y[0], z[0]) == (1.0, 2.0)


def test_equal_labels_are_told_apart_by_the_index(session):
    x, y, z = session.full(4, 1.0), session.zeros(4), session.zeros(4)
    g = eagle.Graph(session).add(bind(session, x, y), name="same").add(bind(session, x, z), name="same").build()
    with pytest.raises(ValueError, match="could be that of 2 nodes") as caught:
        g.update({"same.a": 2.0})
    assert "(index, name)" in str(caught.value)
    g.update({(1, "a"): 7.0}).launch()
    assert (y[0], z[0]) == (1.0, 7.0)


def test_nodes_in_conditionals_and_groups_are_reached(session):
    x, y, z = session.full(4, 1.0), session.zeros(4), session.zeros(4)
    guard = eagle.SkipGuard.nonzero(session.asarray([1]))
    inner = eagle.graph.group([bind(session, x, y), eagle.plan(grow).bind(x=z, b=1.0)], names=["deep", "grown"])
    g = eagle.Graph(session).add_node(eagle.skippable([eagle.repeat_while(opaque(nothing), guard, 1), inner], guard))
    g.build().update({"deep.a": 5.0, ("grown", "b"): 2.0}).launch()
    assert (y[0], z[0]) == (5.0, 2.0)


def test_values_are_judged_as_bind_judges_them(session):
    x, y = session.zeros(4), session.zeros(4)
    g = eagle.Graph(session).add(bind(session, x, y)).build()
    for params, error, words in [
        ({"a": "1"}, TypeError, "number"),
        ({"a": True}, TypeError, "number"),
        ({"a": np.zeros(1)}, TypeError, "number"),
        ({"a": 10**400}, ValueError, "float64"),
        ({3: 1.0}, TypeError, "key"),
        ([("a", 1.0)], TypeError, "dict"),
    ]:
        with pytest.raises(error, match=words):
            g.update(params)


def test_update_and_rebind_need_a_built_graph(session):
    g = eagle.Graph(session)
    with pytest.raises(eagle.GraphState, match="update"):
        g.update({"a": 1.0})
    g.add(bind(session, session.zeros(3), session.zeros(3)))
    with pytest.raises(eagle.GraphState, match="update.*build"):
        g.update({"a": 1.0})
    with pytest.raises(eagle.GraphState, match="rebind.*build"):
        g.rebind(x=session.zeros(3))


# ---- rebind


def test_a_graph_is_bound_to_other_arrays_and_keeps_its_numbers(session):
    x, y = session.full(100, 1.0), session.zeros(100)
    g = eagle.Graph(session).add(bind(session, x, y), name="one").build().update({"a": 4.0}).launch()
    x2, y2 = session.full(100, 10.0), session.zeros(100)
    before = eagle.counters()
    assert g.rebind({"one.y": y2}, x=x2) is g
    g.launch()
    assert (y[0], y2[0]) == (4.0, 40.0)
    after = eagle.counters()
    assert (after["rebinds"], after["graph_builds"]) == (before["rebinds"] + 1, before["graph_builds"])
    assert g.edges() == ()


def test_a_rebind_is_refused_whole(session):
    x, y, z = session.full(8, 1.0), session.zeros(8), session.zeros(8)
    g = eagle.Graph(session).add_group([bind(session, x, y), bind(session, x, z)], names=["left", "right"]).build()
    for planes, error, words in [
        ({"left.y": z}, eagle.RacingSiblings, ["left", "right", "'y'"]),
        ({"left.x": session.full(9, 1.0)}, ValueError, ["left", "'x'"]),
        ({"left.x": session.full(8, 1.0, dtype="float32")}, TypeError, ["'x'", "float64", "float32"]),
        ({"left.x": y[::-1]}, ValueError, ["'x'"]),
        ({"y": session.zeros(8), "left.q": y}, ValueError, ["'left.q'"]),
        ({"left.x": 3.0}, TypeError, ["array"]),
    ]:
        with pytest.raises(error) as caught:
            g.rebind(planes)
        assert str(caught.value).startswith("rebind: ")
        for word in words:
            assert word in str(caught.value)
    g.launch()
    assert (y[0], z[0]) == (1.0, 1.0)


def test_a_rebind_looks_at_partial_overlaps_again(session):
    whole, y = session.full(12, 1.0), session.zeros(8)
    g = eagle.Graph(session).add(bind(session, whole[:8], y)).build()
    with pytest.raises(ValueError, match="share some"):
        g.rebind(x=whole[:8], y=whole[4:])
    g.launch()
    assert y[0] == 1.0


def test_copies_are_bound_again_too_and_callables_are_not(session):
    x, y = session.asarray(np.arange(4.0)), session.zeros(4)
    g = eagle.Graph(session).add_node(eagle.copy(x, y), name="c")
    g.add_node(opaque(nothing, reads={"q": y}), name="look").build()
    other = session.zeros(4)
    g.rebind({"c.dst": other}).launch()
    assert (y.tolist(), other.tolist()) == ([0.0] * 4, [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="'q'"):
        g.rebind(q=other)


def test_old_arrays_are_let_go_and_new_ones_held(session):
    out = session.zeros(4)
    g = eagle.Graph(session).add(bind(session, session.full(4, 1.0), out)).build()
    for value in range(5):
        g.rebind(x=session.full(4, float(value)))
        [session.zeros(4) for _ in range(5)]
    g.launch()
    assert out.tolist() == [4.0] * 4


def test_a_bound_plan_is_bound_again(session):
    x, y = session.full(5, 1.0), session.zeros(5)
    bound = bind(session, x, y, a=2.0)
    other = session.full(5, 7.0)
    assert bound.rebind(x=other) is bound
    bound.launch()
    assert y.tolist() == [14.0] * 5
    assert bound.planes["x"] is other
    bound.rebind(a=3).launch()
    assert y.tolist() == [21.0] * 5
    for arguments, error, words in [
        ({"x": session.zeros(6)}, ValueError, r"rebind.*'x'.*\(5,\).*\(6,\)"),
        ({"x": session.zeros(5, dtype="float32")}, TypeError, "rebind.*'x'.*float64.*float32"),
        ({"q": x}, TypeError, "'q'"),
        ({"a": "1"}, TypeError, "'a'"),
    ]:
        with pytest.raises(error, match=words):
            bound.rebind(**arguments)
    bound.launch()
    assert y.tolist() == [21.0] * 5


def test_a_graph_takes_the_plan_as_it_is_at_the_build(session):
    x, y = session.full(3, 1.0), session.zeros(3)
    bound = bind(session, x, y)
    g = eagle.Graph(session).add(bound)
    bound.rebind(x=session.full(3, 5.0))
    g.build().launch()
    assert y.tolist() == [5.0] * 3
    bound.rebind(x=session.full(3, 9.0))
    g.launch()
    assert y.tolist() == [5.0] * 3


def test_captured_constants_are_read_again_at_each_bind(session):
    x = session.zeros(3)
    global BASE
    BASE = 3.0
    bound = eagle.plan(captured).bind(x=x)
    assert bound.launch().planes["y"].tolist() == [3.0] * 3
    BASE = 4.0
    assert bound.launch().planes["y"].tolist() == [3.0] * 3
    assert bound.rebind(x=x).launch().planes["y"].tolist() == [4.0] * 3
    BASE = 3.0


# ---- enqueue, synchronize, cancel, await


def test_enqueue_and_synchronize_are_a_launch(session):
    x = session.zeros(4)
    g = eagle.Graph(session).add(eagle.plan(grow).bind(x=x, b=1.0)).build()
    g.synchronize()
    assert g.enqueue(3) is g
    assert g.synchronize() is g
    assert (x[0], g.report.launches) == (3.0, 3)
    g.synchronize().launch()
    assert x[0] == 4.0
    with pytest.raises(ValueError, match="enqueue"):
        g.enqueue(-1)
    with pytest.raises(TypeError, match="enqueue"):
        g.enqueue(1.5)
    with pytest.raises(eagle.GraphState, match="enqueue"):
        eagle.Graph(session).add_node(opaque(nothing)).enqueue()


def test_through_a_daemon_a_graph_is_busy_until_it_is_synchronized(daemon):
    live, x = daemon.asarray([1]), daemon.zeros(4)
    loop = eagle.repeat_while(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(live), 2**62)
    g = eagle.Graph().add_node(loop).build()
    g.enqueue()
    for method in (g.launch, g.enqueue, lambda: g.update({"b": 2.0}), lambda: g.rebind(x=x)):
        with pytest.raises(eagle.Busy):
            method()
    assert g.node_labels() == ["repeat_while"]
    while not x[0]:
        pass
    live[0] = 0
    g.synchronize()
    assert loop.iterations() == x[0] > 0
    g.launch()


def test_host_nodes_of_an_enqueued_launch_run_in_synchronize_and_raise_there(session):
    threads, error = [], LookupError("mine")

    def note():
        threads.append(threading.current_thread())
        if len(threads) == 2:
            raise error

    g = eagle.Graph(session).add_node(opaque(note)).build()
    g.enqueue().synchronize()
    assert threads == [threading.current_thread()]
    with pytest.raises(LookupError) as caught:
        g.enqueue(2).synchronize()
    assert caught.value is error
    g.launch()


def test_a_launch_is_cancelled_from_another_thread(session):
    live, x = session.asarray([1]), session.zeros(4)
    loop = eagle.repeat_while(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(live), 2**62)
    g = eagle.Graph(session).add_node(loop).build().cancel()

    def stop():
        while not x[0]:
            pass
        g.cancel()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(eagle.EagleError, match="cancelled") as caught:
        g.launch()
    stopper.join()
    assert caught.value.reason == "CANCELLED"
    session.accept(x)
    live[0] = 0
    g.launch()


def test_an_enqueued_launch_is_cancelled(daemon):
    live, x = daemon.asarray([1]), daemon.zeros(4)
    loop = eagle.repeat_while(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(live), 2**62)
    g = eagle.Graph().add_node(loop).build().enqueue()
    g.cancel()
    with pytest.raises(eagle.EagleError) as caught:
        g.synchronize()
    assert caught.value.reason == "CANCELLED"
    daemon.accept(x)
    live[0] = 0
    g.launch()


def test_a_graph_with_a_launch_in_flight_may_go(daemon):
    live, x = daemon.asarray([1]), daemon.zeros(4)
    loop = eagle.repeat_while(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(live), 2**62)
    g = eagle.Graph().add_node(loop).build().enqueue()
    del g
    eagle.Graph(daemon).add_node(opaque(nothing)).build().launch()


def test_launches_are_awaited_side_by_side(session):
    xs, threads = [session.zeros(4) for _ in range(3)], set()
    graphs = []
    for x in xs:
        g = eagle.Graph(session).add(eagle.plan(grow).bind(x=x, b=1.0))
        graphs.append(g.add_node(opaque(lambda: threads.add(threading.current_thread()))).build())

    async def run():
        return await asyncio.gather(*(g.launch_async(5) for g in graphs))

    assert asyncio.run(run()) == graphs
    assert [x[0] for x in xs] == [5.0] * 3
    assert len(threads) == 1
    assert threading.main_thread() not in threads
    assert [g.report.launches for g in graphs] == [5, 5, 5]


def test_an_awaited_launch_raises_what_its_callable_raised(session):
    error = LookupError("mine")

    def broken():
        raise error

    g = eagle.Graph(session).add_node(opaque(broken)).build()
    with pytest.raises(LookupError) as caught:
        asyncio.run(g.launch_async())
    assert caught.value is error


def test_a_cancelled_task_cancels_its_launch(session):
    live, x = session.asarray([1]), session.zeros(4)
    loop = eagle.repeat_while(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(live), 2**62)
    g = eagle.Graph(session).add_node(loop).build()

    async def run():
        task = asyncio.create_task(g.launch_async())
        while not x[0]:
            await asyncio.sleep(0.001)
        with pytest.raises(eagle.Busy):
            g.launch()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    session.accept(x)
    live[0] = 0
    g.launch()


def endless(session):
    """A graph that runs until ``live`` is 0, which it shares."""
    live, x = session.asarray([1]), session.zeros(4)
    loop = eagle.repeat_while(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(live), 2**62)
    return eagle.Graph(session).add_node(loop).build(), live, x


def ends_at_once(session, g, live, x):
    """Nothing of it runs any more."""
    session.accept(x)
    live[0] = 0
    g.launch()


@pytest.mark.parametrize("how", ["task", "graph"])
def test_a_launch_that_has_yet_to_begin_is_cancelled_too(session, how):
    g, live, x = endless(session)

    async def run():
        task = asyncio.create_task(g.launch_async())
        await asyncio.sleep(0)
        task.cancel() if how == "task" else g.cancel()
        with pytest.raises(asyncio.CancelledError if how == "task" else eagle.EagleError) as ended:
            await task
        assert how == "task" or ended.value.reason == "CANCELLED"

    asyncio.run(run())
    ends_at_once(session, g, live, x)


def test_a_task_that_is_cancelled_again_still_waits_for_its_launch(session):
    g, live, x = endless(session)

    async def run():
        task = asyncio.create_task(g.launch_async())
        for _ in range(5):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    ends_at_once(session, g, live, x)


def test_a_callable_may_await_a_launch_of_its_own(session):
    called = []
    inmost = eagle.Graph(session).add_node(opaque(lambda: called.append("inmost"))).build()

    def awaits(name, g):
        called.append(name)
        asyncio.run(g.launch_async(2))

    inner = eagle.Graph(session).add_node(opaque(lambda: awaits("inner", inmost))).build()
    outer = eagle.Graph(session).add_node(opaque(lambda: awaits("outer", inner))).build()
    asyncio.run(outer.launch_async())
    assert called == ["outer", *["inner", "inmost", "inmost"] * 2]


@pytest.mark.parametrize("how", ["launch", "launch_async"])
def test_a_launch_ends_at_its_timeout(session, how):
    g, live, x = endless(session)
    with pytest.raises(eagle.DeadlineExceeded, match=f"^{how}|launch: "):
        g.launch(timeout=0.03) if how == "launch" else asyncio.run(g.launch_async(timeout=0.03))
    ends_at_once(session, g, live, x)
    with pytest.raises(ValueError, match=f"{how}: timeout: expected seconds above 0, found 0"):
        g.launch(timeout=0) if how == "launch" else asyncio.run(g.launch_async(timeout=0))


def test_an_enqueued_launch_ends_at_the_timeout_of_who_waits(daemon):
    g, live, x = endless(daemon)
    g.enqueue()
    with pytest.raises(eagle.DeadlineExceeded):
        g.synchronize(timeout=0.03)
    ends_at_once(daemon, g, live, x)


def test_a_param_is_one_number_however_it_is_given(session):
    x, y = session.full(2, 1.0), session.zeros(2)
    g = eagle.Graph(session).add(bind(session, x, y, a=np.array(2.0))).build().launch()
    assert y.tolist() == [2.0, 2.0]
    g.update({"a": np.array(3)}).launch()
    assert y.tolist() == [3.0, 3.0]
    g.update({"a": 2**70}).launch()
    assert y.tolist() == [2.0**70] * 2
    with pytest.raises(ValueError, match="integer of 5001 bits"):
        g.update({"a": 2**5000})


def test_two_arguments_that_are_written_are_two_arrays(session):
    two = kernel(source="def two(x: Mutable[Scalar], v: Mutable[Scalar]):\n    x = x + 1\n    v = v + 10")
    a = session.zeros(3)
    with pytest.raises(ValueError, match="'v' and 'x' are one array") as refused:
        two(a, a, session=session)
    assert refused.value.reason == "PLANE_OVERLAP"
    assert a.tolist() == [0.0] * 3


def test_counters_move_on_success_only(session):
    x, y = session.zeros(8), session.zeros(8)
    racing = eagle.Graph(session).add_group([bind(session, x, y), bind(session, x, y)])
    bad = eagle.Graph(session).add_node(opaque(lambda: 1 / 0)).build()
    before = eagle.counters()
    with pytest.raises(eagle.RacingSiblings):
        racing.build()
    with pytest.raises(ZeroDivisionError):
        bad.launch()
    with pytest.raises(ValueError):
        bad.update({"a": 1.0})
    with pytest.raises(ValueError):
        bind(session, x, session.zeros(9))
    assert eagle.counters() == before
    bind(session, x, y)
    eagle.Graph(session).add_node(opaque(nothing)).build().launch(4)
    after = eagle.counters()
    moved = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert moved == {"binds": 1, "graph_builds": 1, "launches": 4}
