"""Builds that take long, and whose client goes: what was theirs is free for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import hand_made
import pytest
from harness import PATIENCE_S, Daemon, python_script, wait_until
from stubs import Service, session_at
from watch import check_serves, worker_of

KERNELS = 3000  # of one graph; their compilation is far from its end when the first few are there
BUILD_THREADS = 2  # of one tenant
BUILDER = Path(__file__).with_name("builder.py")


def many_kernels(service: Service, first: int) -> Any:
    """A graph of KERNELS kernels, none like another of any graph; its samples are as many as their number."""
    ref = service.call("Planes.Create", planes=[{"bytes": 8 * KERNELS}]).planes[0].ref
    graph = service.message("GraphDescription")(name=f"many from {first}")
    graph.planes.append(hand_made.declared(service, ref, 8 * KERNELS, "x"))
    for number in range(KERNELS):
        kernel = hand_made.add_kernel(service, f"k{first + number}")
        # So many additions as its number says in binary: x += by or by + by, one after the other.
        del kernel.body.ops[:], kernel.body.yields[:]
        values = [0, 1]
        for bit in f"{first + number:b}":
            kernel.body.ops.add(
                code=hand_made.ADD, operands=[values[-1] if len(values) > 2 else 0, 1 if bit == "1" else 0]
            )
            values.append(len(values))
        kernel.body.yields.append(values[-1])
        graph.kernels.append(kernel)
        launch = hand_made.add_launch(service, number + 1, 1.0)
        launch.kernel = number
        graph.stages.add(node={"kernel": launch})
    return graph


def begin_builds(service: Service, graphs: list[Any]) -> list[Any]:
    """All of them at once; the futures of their calls."""
    _, path = service.method("Graphs.Build")
    call = service.channel.unary_unary(path, lambda message: message.SerializeToString(), None)
    request = service.message("BuildRequest")
    return [
        call.future(request(graph=graph), metadata=(("eagle-session-secret", service.secret),), timeout=PATIENCE_S)
        for graph in graphs
    ]


def compiled(daemon: Daemon) -> int:
    return int(daemon.info()["kernels_cached"])


@pytest.mark.survives("a client that cancels builds of thousands of kernels: their threads are free for its next one")
def test_builds_that_are_cancelled(daemon: Daemon) -> None:
    with session_at(daemon.path) as service:
        before = compiled(daemon)
        graphs = [many_kernels(service, KERNELS * (turn + 1)) for turn in range(BUILD_THREADS)]
        calls = begin_builds(service, graphs)
        wait_until(lambda: compiled(daemon) >= before + 4, "some of the kernels to be compiled")
        for call in calls:
            call.cancel()
        check_serves(daemon.endpoint)  # of the same tenant: it waits for one of these threads
        assert compiled(daemon) < before + KERNELS, "it waited until a build was done"
        assert len(service.call("Graphs.List").graphs) == 0
        with pytest.raises(grpc.FutureCancelledError):
            calls[0].result()


@pytest.mark.survives("kill -9 of a client within builds of thousands of kernels: their threads are free for others")
def test_builds_of_a_client_that_is_killed(daemon: Daemon) -> None:
    before, worker = compiled(daemon), worker_of(daemon)
    with python_script(BUILDER, str(daemon.path), environment={}) as client:
        assert client.stdout.readline() == "building\n", client.stderr.read()
        wait_until(lambda: compiled(daemon) >= before + 4, "some of the kernels to be compiled")
        client.kill()
    check_serves(daemon.endpoint)
    assert compiled(daemon) < before + KERNELS, "it waited until a build was done"
    assert worker_of(daemon) == worker
