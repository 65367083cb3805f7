"""Descriptors: those that clients were given, and those that they send."""

import array
import os
import socket
from pathlib import Path

import eagle
import pytest
from harness import SideConnection, hello, side_connection
from models import affine
from watch import held_by, wait_for_descriptors, worker_of


def planes_here() -> list[int]:
    """Descriptors of this process that are planes of a daemon."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if "memfd:eagle" in os.readlink(entry):
                found.append(int(entry.name))
        except FileNotFoundError:
            pass
    return found


def mapped_planes() -> list[str]:
    """Paths by which this process can open the planes that it has mapped."""
    return [
        f"/proc/self/map_files/{line.split()[0]}"
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "memfd:eagle" in line
    ]


@pytest.mark.survives("a client that shrinks, grows or punches the memory it was given")
def test_a_plane_keeps_its_size(daemon):
    with eagle.connect(daemon.endpoint) as session:
        x, y = session.full(1_000_000, 2.0), session.zeros(1_000_000)
        bound = eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0)
        bound.launch()
        opened = [os.open(path, os.O_RDWR) for path in mapped_planes()]
        assert opened, "nothing is mapped: the test would show nothing"
        try:
            for descriptor in opened:
                size = os.fstat(descriptor).st_size
                for other in (0, size - 4096, size + 4096):
                    with pytest.raises(OSError, match="not permitted"):
                        os.ftruncate(descriptor, other)
                assert os.fstat(descriptor).st_size == size
        finally:
            for descriptor in opened:
                os.close(descriptor)
        bound.launch()
        assert y[0] == 7.0


@pytest.mark.survives("a client that writes wild values into its planes and ring while they are used")
def test_memory_that_is_scribbled_on(daemon):
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as neighbour:
        x, y = session.full(1000, 2.0), session.zeros(1000)
        graph = eagle.Graph(session)
        graph.add(eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0))
        graph.build().launch()
        a, b = neighbour.full(1000, 2.0), neighbour.zeros(1000)
        theirs = eagle.Graph(neighbour)
        theirs.add(eagle.plan(affine).bind(x=a, y=b, a=3.0, b=1.0))
        theirs.build()
        x[:] = float("nan")
        for _ in range(100):
            b[:] = 0.0
            theirs.launch()
            assert b.tolist() == [7.0] * 1000


@pytest.mark.survives("descriptors that a client sends: none is kept")
@pytest.mark.parametrize("when", ["before the magic", "with hello", "after hello"])
def test_descriptors_from_a_client(daemon, when):
    worker = worker_of(daemon)
    before = held_by(worker)
    with open("/dev/null", "rb") as null:
        sent = array.array("i", [null.fileno()] * 200)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)]
        for _ in range(5):
            if when == "before the magic":
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(daemon.path))
                    connection.sendmsg([SideConnection.MAGIC], ancillary)
                continue
            with side_connection(daemon.path) as side:
                if when == "after hello":
                    side.send(hello(1, 1))
                    side.receive()
                frame = hello(1, 1)
                side.socket.sendmsg([len(frame).to_bytes(4, "little") + frame], ancillary)
                side.receive()
                assert held_by(worker).descriptors <= before.descriptors + 40, "it took what it was sent"
    wait_for_descriptors(worker, before.descriptors + 4)


@pytest.mark.survives("a client that holds every view it was ever given: 10^5 launches go on")
def test_views_that_are_held_for_ever(daemon):
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(64)
        graph = eagle.Graph(session)
        graph.add(eagle.plan(affine).bind(x=x, y=session.zeros(64), a=3.0, b=1.0))
        graph.build()
        held = []
        for number in range(1000):
            held.append(session.full(64, float(number)))
            held.append(held[-1][::2])
            graph.launch(100)
        assert [int(view[0]) for view in held[::2]] == list(range(1000))
