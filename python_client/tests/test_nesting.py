"""Counters of loops, groups in branches, and whose name a refusal bears."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Table, kernel
from eagle.graph import Edge, group, opaque


@kernel
def look_up(total: Mutable[Scalar], weights: Table[Scalar], index: Table[Index]):
    total = total + weights.at(index.at(0))


@kernel
def move(x: Scalar, b: Param) -> Scalar:
    y = x + b
    return y


def plan(x, y, b=1.0):
    return eagle.plan(move).bind(x=x, y=y, b=b)


# ---- counters of loops


def test_a_body_knows_its_number_and_later_nodes_how_many_there_were(session):
    live, index, seen = session.asarray([4]), session.zeros(1, np.int64), []
    total, weights = session.zeros(3), session.asarray(np.array([1.0, 10.0, 100.0, 1000.0, 1e6]))

    def note():
        seen.append(int(index[0]))
        live[0] -= 1

    body = [
        opaque(note, reads={"i": index, "live": live}, writes={"live": live}),
        eagle.plan(look_up).bind(total=total, weights=weights, index=index),
    ]
    loop = eagle.repeat_while(body, eagle.SkipGuard.nonzero(live), 64, iteration_index=index)
    last = session.zeros(1, np.int32)
    g = eagle.Graph(session).add_node(loop, name="loop").add_node(eagle.copy(loop.iteration_index, last), name="last")
    g.build().launch()
    assert loop.iteration_index is index
    assert (seen, total.tolist()) == ([0, 1, 2, 3], [1111.0] * 3)
    assert (loop.iterations(), index[0], last[0]) == (4, 4, 4)
    assert list(g.edges()) == [Edge(0, 1, "iterations", "RAW")]


def test_a_loop_makes_its_counter_beside_its_guard(session):
    live = session.asarray([2])
    body = opaque(lambda: live.__setitem__(0, live[0] - 1), writes=live)
    loop = eagle.repeat_while(body, eagle.SkipGuard.nonzero(live), 5)
    assert session.owns(loop.iteration_index)
    assert (loop.iteration_index.shape, loop.iteration_index.dtype) == ((1,), np.int64)
    eagle.Graph(session).add_node(loop).build().launch()
    assert loop.iteration_index[0] == 2


def test_a_counter_of_private_memory_is_refused_by_a_daemon(daemon):
    live, index = daemon.asarray([1]), np.zeros(1, np.int64)
    loop = eagle.repeat_while(opaque(lambda: None), eagle.SkipGuard.nonzero(live), 5, iteration_index=index)
    with pytest.raises(eagle.PrivateArray, match=r"counter 'iterations'.*session\.zeros.*share.*shared_arrays"):
        eagle.Graph(daemon).add_node(loop)


def test_counters_are_refused_by_what_is_wrong(session):
    live, index = session.asarray([1]), session.zeros(1, np.int64)
    guard = eagle.SkipGuard.nonzero(live)

    def loop(cell, step=None):
        return eagle.repeat_while(step or opaque(lambda: None), guard, 5, iteration_index=cell)

    for cell, error, words in [
        (3, TypeError, "iteration_index: expected a numpy array, found int"),
        (session.zeros(1), TypeError, "int64 or int32, found float64"),
        (session.zeros(2, np.int64), ValueError, r"one element, found shape \(2,\)"),
    ]:
        with pytest.raises(error, match=f"^repeat_while: .*{words}"):
            loop(cell)
    with pytest.raises(ValueError, match="'iterations'.*'mine'"):
        eagle.Graph(session).add_node(loop(index, opaque(lambda: None, writes={"mine": index})))
    with pytest.raises(TypeError, match="does not count"):
        _ = eagle.skippable(lambda: None, guard).iteration_index
    with pytest.raises(TypeError, match="guard"):
        eagle.repeat_while(lambda: None, live, 5)
    scratch = eagle.Graph(session).scratch(1, np.int64)
    with pytest.raises(ValueError, match="scratch plane"):
        _ = eagle.repeat_while(lambda: None, eagle.SkipGuard.nonzero(scratch), 5).iteration_index


def test_siblings_may_not_look_at_a_counter(session):
    loop = eagle.repeat_while(opaque(lambda: None), eagle.SkipGuard.nonzero(session.asarray([1])), 5)
    look = opaque(lambda: None, reads={"n": loop.iteration_index}, name="look")
    g = eagle.Graph(session).add_group([loop, look], names=["loop", None])
    with pytest.raises(eagle.RacingSiblings, match=r"'loop'.*'look'.*'iterations'.*'n'"):
        g.build()


# ---- groups in branches


def test_a_group_is_an_item_of_a_branch(session):
    x = session.full(4, 1.0)
    a, b, c, d, e = (session.zeros(4) for _ in range(5))
    inner = group([plan(a, b), plan(a, c, 5.0)], names=["b", "c"])
    g = eagle.Graph(session).add_group([[plan(x, a), inner, plan(b, d)], plan(x, e)], names=[None, "e"])
    g.build().launch()
    assert g.node_labels() == ["move", "b", "c", "move", "e"]
    assert list(g.edges()) == [Edge(0, 1, "y", "RAW"), Edge(0, 2, "y", "RAW"), Edge(1, 3, "y", "RAW")]
    assert [array[0] for array in (a, b, c, d, e)] == [2.0, 3.0, 7.0, 4.0, 2.0]
    assert "5 nodes · 2 groups" in str(g)


def test_groups_in_groups_race_across_all_of_them(session):
    x, y, z = (session.zeros(4) for _ in range(3))
    inner = group([plan(x, y), [plan(x, session.zeros(4)), group([plan(x, z), plan(x, session.zeros(4))])]])
    g = eagle.Graph(session).add_group([[inner], opaque(lambda: None, reads={"z": z}, name="look")])
    with pytest.raises(eagle.RacingSiblings, match=r"node 2 'move' and node 4 'look'.*'y'.*'z'"):
        g.build()
    assert g.explain(2, 4).relation == "racing"


def test_groups_in_branches_are_refused_by_what_is_wrong(session):
    one = group([plan(session.zeros(4), session.zeros(4)) for _ in range(2)])
    with pytest.raises(ValueError, match="branch 0 is a group, which has no name"):
        eagle.Graph(session).add_group([one, opaque(lambda: None)], names=["inner", None])
    with pytest.raises(TypeError, match=r"add_node: .*add_group"):
        eagle.Graph(session).add_node(one)
    with pytest.raises(TypeError, match="branch 1: .*eagle.graph.group.*found int"):
        eagle.Graph(session).add_group([one, 3])


# ---- whose name


def test_a_kernel_called_like_a_method_keeps_its_name_in_refusals(session):
    for name in ("bind", "simulate"):
        source = f"def {name}(x: Mutable[Scalar], done: Terminated):\n    x = x + 1.0\n    done = x > 3.0\n"
        named = eagle.kernel(source=source)
        done = session.zeros(2, bool)
        done.flags.writeable = False
        with pytest.raises(ValueError, match=f"^simulate: kernel '{name}': argument 'done' is a read-only"):
            eagle.simulate(named, max_steps=3, x=session.zeros(2), done=done)


def test_a_rebind_of_what_a_callable_holds_names_the_node(session):
    x, y = session.zeros(4), session.zeros(4)
    g = eagle.Graph(session).add(plan(x, y), name="plan")
    g.add_node(opaque(lambda: None, reads={"seen": y}), name="look").build()
    for planes in ({"look.seen": x}, {("look", "seen"): x}, {(1, "seen"): x}, {"seen": x}):
        with pytest.raises(ValueError, match=r"^rebind: .*seen'.* node 1 'look', a callable"):
            g.rebind(planes)
