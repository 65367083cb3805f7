"""Timelines of a graph and of a daemon: whole, in the format that viewers read, and bounded."""

import json
import threading
from pathlib import Path

import eagle
import pytest
from eagle.graph import opaque
from harness import Daemon, wait_until
from operators import TRACE, TRACEPARENT, service_of
from trace_events import check_trace
from work import add, grow

REMEMBERED = 8192  # server/timeline.h


def build(session: eagle.Session, name: str) -> eagle.Graph:
    return eagle.Graph(session, name=name).add(eagle.plan(add).bind(x=session.zeros(8), by=1.0)).build()


def whole(events: list[dict], name: str) -> list[dict]:
    return [event for event in events if event["ph"] == "b" and event["cat"] == "job" and event["name"] == name]


def test_a_graph_tells_of_its_launches(daemon: Daemon, tmp_path: Path) -> None:
    with eagle.connect(daemon.endpoint, traceparent=TRACEPARENT) as session:
        graph, other = build(session, "counted"), build(session, "another")
        for _ in range(3):
            graph.launch()
        other.launch()
        wait_until(lambda: len(whole(graph.timeline()["traceEvents"], "counted")) == 3, "three launches")
        events = check_trace(graph.timeline(tmp_path / "trace.json"))
        assert check_trace(json.loads((tmp_path / "trace.json").read_text())) == events
        assert not [event for event in events if event["name"] == "another"]
        for launch in whole(events, "counted"):
            assert launch["args"]["status"] == "OK"
            assert launch["args"]["trace_id"] == TRACE
            parts = [e["name"] for e in events if e["ph"] == "b" and e["id"] == launch["id"] and e["cat"] == "job"]
            assert parts == ["counted", "queued", "running"]
        assert [event["name"] for event in events if event["cat"] == "build" and event["ph"] == "b"] == [
            "build counted"
        ]
        assert len([event for event in events if event["ph"] == "X" and event["name"] == "counted"]) == 3


def test_the_daemon_tells_of_everybody(daemon: Daemon) -> None:
    with eagle.connect(daemon.endpoint) as session, service_of(daemon) as admin:
        called = threading.Event()
        x = session.zeros(8)
        host = opaque(called.set, reads={"x": x}, writes={"x": x})
        graphs = [eagle.Graph(session, name="calls").add_node(host, name="h").build(), build(session, "plain")]
        for graph in graphs:  # held: one that is released has its number for a name
            graph.launch()
        done = session.zeros(8, dtype=bool)
        eagle.simulate(grow, max_steps=10, x=x, by=1.0, done=done)

        def told() -> list[dict]:
            return check_trace(json.loads(admin.call("Admin.Timeline").trace_json))

        wait_until(lambda: {"calls", "plain", "run"} <= {event["name"] for event in told()}, "all three")
        assert [event["ph"] for event in told() if event["name"] == "host call"] == ["b", "e"]


def test_a_timeline_is_bounded_and_says_what_it_forgot(daemon: Daemon) -> None:
    with eagle.connect(daemon.endpoint) as session, service_of(daemon) as admin:
        graph = build(session, "many")
        for _ in range(REMEMBERED + 100):
            graph.launch()
        wait_until(lambda: admin.call("Admin.Timeline").forgotten >= 101, "some to be forgotten")
        reply = admin.call("Admin.Timeline")
        assert reply.events == REMEMBERED
        check_trace(json.loads(reply.trace_json))


def test_a_session_in_this_process_keeps_none() -> None:
    with eagle.local() as session, pytest.raises(eagle.EagleError, match="in a daemon"):
        build(session, "local").timeline()
