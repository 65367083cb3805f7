"""A plane of more than 4 GiB over TCP: transfers across and above byte 2^32, whole, in part and gone on with.

Its bytes are reserved when it is made, so the machine must have them: skipped, with the reason, where it has not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eagle
import grpc
import numpy as np
import pytest
from eagle import Param, Scalar
from harness import PATIENCE_S, Daemon, tcp_endpoint, wait_until
from line import Line
from stubs import Service, session_at

EDGE = 2**32
BYTES = EDGE + (16 << 20)
CHUNK = 1 << 20
ROOM = 3 << 30  # that everything else keeps

# Reserving and clearing 4 GiB takes long where many share the machine.
pytestmark = pytest.mark.timeout(900)


@eagle.kernel
def affine(x: Scalar, a: Param, b: Param) -> Scalar:
    y = a * x + b
    return y  # noqa: RET504 (it names the plane)


def available_bytes() -> int:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Line, eagle.Session, Any]]:
    """A daemon, a line to it, a session over that line, and its plane of float64."""
    if available_bytes() < BYTES + ROOM:
        pytest.skip(
            f"{available_bytes() >> 20} MiB are available; {(BYTES + ROOM) >> 20} are needed for 4 GiB and room"
        )
    daemon = Daemon(tmp_path_factory.mktemp("large"), "--listen", "dns:127.0.0.1:0", "--plane-budget", str(2 * BYTES))
    line = Line(tcp_endpoint(daemon))
    try:
        with eagle.connect(line.endpoint, lease=PATIENCE_S, timeout=600.0) as session:
            yield daemon, line, session, session.zeros(BYTES // 8)
    finally:
        line.close()
        assert daemon.stop() == 0, daemon.log()


def part(first_byte: int, bytes_: int) -> slice:
    return slice(first_byte // 8, (first_byte + bytes_) // 8)


def test_parts_across_and_above_the_edge(large: Any) -> None:
    _, _, session, x = large
    for first_byte in (EDGE - 2 * CHUNK, EDGE, BYTES - 4 * CHUNK):
        values = np.random.default_rng(first_byte).random(4 * CHUNK // 8)
        x[part(first_byte, 4 * CHUNK)] = values
        np.testing.assert_array_equal(np.asarray(x[part(first_byte, 4 * CHUNK)]), values)
    values[:] = np.asarray(x[part(EDGE - 2 * CHUNK, 4 * CHUNK)])
    assert (values != 0.0).all()
    # What is 2^32 bytes below is not what was written.
    assert float(abs(np.asarray(x[:CHUNK])).max()) == 0.0
    y = session.zeros(4 * CHUNK // 8)
    eagle.plan(affine).bind(x=x[part(EDGE - 2 * CHUNK, 4 * CHUNK)], a=2.0, b=1.0, y=y).launch()
    np.testing.assert_array_equal(np.asarray(y), 2.0 * values + 1.0)
    x[part(EDGE - 2 * CHUNK, 4 * CHUNK)] = 0.0
    assert float(x[-1]) != 0.0


def test_a_part_above_the_edge_is_sent_over_a_line_that_breaks(large: Any) -> None:
    _, line, _, x = large
    values = np.random.default_rng(3).random(8 * CHUNK // 8)
    cuts = [0.7, 0.3]

    def cut(done: int, all_bytes: int) -> None:
        if cuts and done >= cuts[-1] * all_bytes:
            cuts.pop()
            line.cut()

    there = x[part(EDGE + CHUNK, 8 * CHUNK)]
    there.send(values, progress=cut)
    assert not cuts
    cuts += [0.7, 0.3]
    np.testing.assert_array_equal(there.numpy(progress=cut), values)
    assert not cuts


def test_transfers_of_the_whole_go_on_above_the_edge(large: Any) -> None:
    """The plane's packed bytes are numbered up to above 2^32: a transfer that broke there goes on there."""
    daemon, _, session, x = large
    session.publish(x, "large", mode="rw", to=["*"])
    with session_at(daemon.path) as service:
        opened = service.call("Planes.Open", name="large")
        assert BYTES <= opened.plane.bytes <= BYTES + 4096  # in a page of which it begins
        slice_ = service.message("PlaneSlice")(plane=opened.plane.ref, view=opened.view)
        first, values = EDGE - 2 * CHUNK - 3, os.urandom(5 * CHUNK)
        break_off(service, slice_, first, values)
        # Nobody has counted what was stored: the client goes on from where it knows, here from above the edge.
        at = EDGE + CHUNK // 2
        wait_until(
            lambda: read(service, slice_, at - 100, 100) == values[at - 100 - first : at - first], "what was sent"
        )
        chunks = [values[begin : begin + CHUNK] for begin in range(at - first, len(values), CHUNK)]
        write = service.message("WriteRequest")
        requests = [write(slice=slice_, first_byte=at, data=chunks[0]), *(write(data=chunk) for chunk in chunks[1:])]
        assert service.converse("Planes.Write", requests).bytes == len(values) - (at - first)
        assert read(service, slice_, first, len(values)) == values
        assert read(service, slice_, at, len(values) - (at - first)) == values[at - first :]
        assert len(read(service, slice_, BYTES - 5, 100)) == 5, "the end"
        for beyond in (BYTES + 1, 2**63, 2**64 - 1):
            with pytest.raises(grpc.RpcError) as refused:
                read(service, slice_, beyond, 1)
            assert refused.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE)
            assert str(beyond) in refused.value.details()


def break_off(service: Service, slice_: Any, first: int, values: bytes) -> None:
    """Sends the values and then, instead of ending, gives up."""

    def requests() -> Iterator[Any]:
        write = service.message("WriteRequest")
        yield write(slice=slice_, first_byte=first, data=values[:CHUNK])
        for begin in range(CHUNK, len(values), CHUNK):
            yield write(data=values[begin : begin + CHUNK])
        seen = first + len(values) - 100
        wait_until(lambda: read(service, slice_, seen, 100) == values[-100:], "what was sent to be stored")
        raise ConnectionError("the line broke")

    with pytest.raises(grpc.RpcError):
        service.converse("Planes.Write", requests())


def read(service: Service, slice_: Any, first: int, most: int) -> bytes:
    """Up to so many of the packed bytes from `first` on."""
    data = b""
    stream = service.begin("Planes.Read", slice=slice_, first_byte=first)
    for chunk in stream:
        data += chunk.data
        if len(data) >= most:
            stream.cancel()
            break
    return data[:most]


@pytest.mark.skipif(not os.environ.get("EAGLE_LONG"), reason="sends 4 GiB: --long")
def test_a_whole_plane_is_sent_over_a_line_that_breaks_above_the_edge(large: Any) -> None:
    _, line, _, x = large
    values = np.zeros(BYTES // 8)  # pages that nobody touches take no memory
    values[part(EDGE, 4 * CHUNK)] = np.random.default_rng(5).random(4 * CHUNK // 8)
    cuts = [EDGE + 2 * CHUNK]

    def cut(done: int, _: int) -> None:
        if cuts and done >= cuts[-1]:
            cuts.pop()
            line.cut()

    x.send(values, progress=cut)
    assert not cuts
    at = part(EDGE - CHUNK, 6 * CHUNK)
    np.testing.assert_array_equal(np.asarray(x[at]), values[at])
