"""Arrays that a launch left half written: who may read them, and how they are taken back."""

from __future__ import annotations

import pytest

import eagle
from eagle import Mutable, Scalar, kernel
from eagle.graph import opaque


class Trouble(Exception):
    pass


@kernel
def add_one(x: Mutable[Scalar]):
    x = x + 1.0


def fail():
    raise Trouble


def graph(session, x):
    return eagle.Graph(session).add(eagle.plan(add_one).bind(x=x, session=session))


def tear(session, x):
    with pytest.raises(Trouble):
        graph(session, x).add_node(opaque(fail, reads={"x": x})).build().launch()


def test_a_daemon_refuses_what_a_failed_launch_left_until_it_is_accepted(daemon):
    x, other = daemon.zeros(4), daemon.zeros(4)
    tear(daemon, x)
    g = graph(daemon, x).build()
    with pytest.raises(RuntimeError, match="add_one.*'x'.*accept") as refused:
        g.launch()
    assert refused.value.reason == "PLANE_TORN"
    graph(daemon, other).build().launch()  # of the same segment
    daemon.accept(x[::2])
    g.launch()
    assert (x.tolist(), other.tolist()) == ([2.0] * 4, [1.0] * 4)


def test_memory_that_is_used_again_is_whole(daemon):
    def torn():
        x = daemon.zeros(4)
        tear(daemon, x)
        return x.ctypes.data

    places = {torn() for _ in range(3)}
    fresh = [daemon.zeros(4) for _ in range(8)]
    assert places & {x.ctypes.data for x in fresh}, "no memory was used again"
    for x in fresh:
        graph(daemon, x).build().launch()
        assert x.tolist() == [1.0] * 4


def test_in_process_there_is_nothing_to_accept(local):
    x = local.zeros(4)
    tear(local, x)
    local.accept(x)
    graph(local, x).build().launch()
    assert x.tolist() == [2.0] * 4
    with pytest.raises(TypeError):
        local.accept(3)
