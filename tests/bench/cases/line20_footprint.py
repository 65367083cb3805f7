"""Bytes that travel for a launch, and memory that a built node costs the daemon: anonymous memory of its worker before
and after a graph was built and launched. Arrays are views of one plane, because planes are not nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import eagle
from cases.line05_build import add_one
from frame import DAEMON, OURS, Bench, Bound, Form, Row, WrongAnswer
from programs import program_rows

LINE = 20
TITLE = "bytes of a launch message; memory of a built node"


def anonymous_bytes(pid: int) -> int:
    for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if row.startswith("Anonymous:"):
            return 1024 * int(row.split()[1])
    raise WrongAnswer(f"process {pid} does not say how much memory it has")


def bytes_a_node(bench: Bench, nodes: int) -> float:
    with contextlib.ExitStack() as stack:
        daemon = bench.new_daemon(stack)
        session = stack.enter_context(eagle.connect(daemon.endpoint))
        x = session.zeros((2, nodes, 8))

        def built(count: int) -> eagle.Graph:
            g = eagle.Graph(session)
            plan = eagle.plan(add_one)
            for i in range(count):
                g.add(plan.bind(x=x[0, i], y=x[1, i]))
            return g.build().launch()

        few = built(10)  # what the first graph alone costs
        before = anonymous_bytes(daemon.pid)
        many = built(nodes)
        after = anonymous_bytes(daemon.pid)
        if not (x[1] == 1.0).all() or not few or not many:
            raise WrongAnswer("the nodes did not add one")
        return (after - before) / nodes


def rows(bench: Bench) -> Iterator[Row]:
    title = "bytes of a launch message"
    options = ("--daemon", bench.daemon.endpoint, "--seconds", "0.01" if bench.smoke else "0.2")
    names = ("request in the ring", "answer in the ring", "request over gRPC", "answer over gRPC")
    bounds = {title: [Bound(name, 128) for name in names]}
    yield from program_rows(bench, "bench_launches", *options, only=[title], bounds=bounds)
    nodes = bench.size(20_000, 200)
    form = Form(DAEMON, lambda: bytes_a_node(bench, nodes), OURS)
    yield Row(f"bytes a node, {nodes:,} nodes", [form], [Bound(DAEMON, 1024)], unit="bytes", repeats=3)
