"""Descriptors: those that clients were given, and those that they send."""

import array
import json
import os
import socket
import threading
from pathlib import Path

import eagle
import pytest
from harness import SideConnection, hello, python_script, side_connection
from models import affine
from watch import held_by, wait_for_descriptors, worker_of

SCRIBBLER = Path(__file__).with_name("scribbler.py")
SCRIBBLING_S = 3


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


@pytest.mark.survives("a client that scribbles on its planes and ring while launches run: its neighbour is unharmed")
def test_memory_that_is_scribbled_on(token_daemon, measured):
    daemon, tokens = token_daemon
    environment = {"EAGLE_ENDPOINT": daemon.endpoint, "TOKEN": tokens["mallory"]}
    with eagle.connect(daemon.endpoint, auth=tokens["alice"]) as neighbour:
        assert neighbour.transport.endswith("ring")
        worker = neighbour.info().host.pid
        a, b = neighbour.full(100_000, 2.0), neighbour.zeros(100_000)
        theirs = eagle.Graph(neighbour).add(eagle.plan(affine).bind(x=a, y=b, a=3.0, b=1.0)).build()
        rounds = 0
        with python_script(SCRIBBLER, str(SCRIBBLING_S), environment=environment) as mallory:
            assert mallory.stdout.readline() == "scribbling\n", mallory.stderr.read()
            told: list[str] = []
            waiting = threading.Thread(target=lambda: told.append(mallory.stdout.readline()))
            waiting.start()
            while waiting.is_alive():
                b[:] = 0.0
                theirs.launch()
                assert (b == 7.0).all(), "the neighbour's numbers"
                rounds += 1
            assert told[0], f"it ended with {mallory.wait()}: {mallory.stderr.read()}"
            scribbled = json.loads(told[0])
        assert scribbled["ring"] > 0
        assert scribbled["planes"] > 0
        assert scribbled["launched"] > 0, "nothing ran while it scribbled: the test would show nothing"
        assert rounds > 10
        with eagle.connect(daemon.endpoint, auth=tokens["mallory"]) as again:  # its own next session is as good as new
            assert affine_of(again) == [7.0] * 10
            assert again.info().host.pid == worker, "the worker died"
    measured(f"{scribbled['ring']} words of the ring and {scribbled['planes']} of planes were written over meanwhile;")
    measured(
        f"{scribbled['launched']} of its launches ended well, {scribbled['failed']} badly; {rounds} of the neighbour's"
    )


def affine_of(session: eagle.Session) -> list[float]:
    x, y = session.full(10, 2.0), session.zeros(10)
    eagle.plan(affine).bind(x=x, y=y, a=3.0, b=1.0).launch()
    return y.tolist()


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
    rounds, launches = 1000, 100
    with eagle.connect(daemon.endpoint) as session:
        count = session.zeros(64)
        graph = eagle.Graph(session)
        graph.add(eagle.plan(affine).bind(x=count, y=count, a=1.0, b=1.0))
        graph.build()
        held = []
        for number in range(rounds):
            held.append(session.full(64, float(number)))
            held.append(held[-1][::2])
            for _ in range(launches):
                graph.launch()
        assert [int(view[0]) for view in held[::2]] == list(range(rounds))
        assert count.tolist() == [rounds * launches] * 64, "each launch adds 1"
