"""A client whose every message is a step, and which kills itself (SIGKILL) at a step that it is told.

stepper.py SOCKET FILE      FILE: a FileDescriptorSet of the protocol

For each number that comes as a line, a fresh process does everything that a client does, up to the step of that number.
Answers "killed STEP", or "ended STEPS" where there are not so many, or "failed WHY".

Spoken by hand, because a step is what went over a socket or into the ring: HTTP/2 by `h2`, which makes bytes and
knows no sockets; half a message is a step too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import hand_made
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from harness import PATIENCE_S
from messages import PACKAGE, Messages

SAMPLES = 512
KEPT_S = 0.05  # how long a submitted run is kept: it outlives its client, and nothing else does
Step = Callable[[str], None]


class Side:
    """The side connection: a session, descriptors, the ring."""

    MAGIC = b"EAGLESC1"

    def __init__(self, step: Step, messages: Messages, path: str) -> None:
        self._step, self._messages = step, messages
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        step("a socket")
        self._socket.connect(path)
        step("connected")
        self._socket.sendall(self.MAGIC)
        step("magic sent")

    def ask(self, **kind: Any) -> tuple[Any, list[int]]:
        """The reply, and descriptors that came with it."""
        (name,) = kind
        message = self._messages.message("SideRequest")(**kind).SerializeToString()
        frame = struct.pack("<I", len(message)) + message
        for part, said in ((frame[:6], "half sent"), (frame[6:], "sent")):
            self._socket.sendall(part)
            self._step(f"{name} {said}")
        data, descriptors = b"", []
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
            more, came, _, _ = socket.recv_fds(self._socket, 65536, 253)
            assert more, f"the daemon hung up on {name}"
            data, descriptors = data + more, descriptors + came
        self._step(f"{name} answered")
        reply = self._messages.message("SideReply").FromString(data[4:])
        assert reply.WhichOneof("kind") == name, reply
        return getattr(reply, name), descriptors

    def close(self) -> None:
        self._socket.close()


class Http2:
    """gRPC calls over a connection of its own."""

    def __init__(self, step: Step, messages: Messages, path: str, secret: bytes) -> None:
        self._step, self._messages, self._secret = step, messages, secret.hex()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(path)
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._h2.initiate_connection()
        self._flush()
        step("HTTP/2 begun")
        self._received: dict[int, bytearray] = {}
        self._ended: set[int] = set()

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())

    def begin(self, method: str) -> int:
        """A call whose messages are to come."""
        stream = self._h2.get_next_available_stream_id()
        service, _, name = method.partition(".")
        headers = {":method": "POST", ":scheme": "http", ":path": f"/{PACKAGE}.{service}/{name}", ":authority": "test"}
        headers |= {"content-type": "application/grpc", "te": "trailers", "eagle-session-secret": self._secret}
        self._received[stream] = bytearray()
        self._h2.send_headers(stream, list(headers.items()))
        self._flush()
        self._step(f"{method} headers sent")
        return stream

    def send(self, stream: int, what: str, message: Any, last: bool) -> None:
        body = message.SerializeToString()
        data = struct.pack(">BI", 0, len(body)) + body
        half = len(data) // 2
        for part, ends, said in ((data[:half], False, "half sent"), (data[half:], last, "sent")):
            self._h2.send_data(stream, part, end_stream=ends)
            self._flush()
            self._step(f"{what} {said}")

    def receive(self, stream: int, what: str, reply: str) -> Any:
        data = self._received[stream]
        while len(data) < 5 or len(data) < 5 + int.from_bytes(data[1:5], "big"):
            assert stream not in self._ended, f"{what}: ended without a reply"
            came = self._socket.recv(65536)
            assert came, f"{what}: the daemon hung up"
            for event in self._h2.receive_data(came):
                self._take(event, what)
            self._flush()
        size = 5 + int.from_bytes(data[1:5], "big")
        message = self._messages.message(reply).FromString(bytes(data[5:size]))
        del data[:size]
        self._step(f"{what} answered")
        return message

    def _take(self, event: Any, what: str) -> None:
        if isinstance(event, DataReceived):
            self._received[event.stream_id] += event.data
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, (ResponseReceived, TrailersReceived)):
            told = dict(event.headers)
            assert told.get("grpc-status", "0") == "0", f"{what}: {told}"
        elif isinstance(event, (StreamEnded, StreamReset)):
            self._ended.add(event.stream_id)

    def call(self, method: str, request: str, reply: str, **fields: Any) -> Any:
        stream = self.begin(method)
        self.send(stream, method, self._messages.message(request)(**fields), last=True)
        return self.receive(stream, method, reply)


class Ring:
    """proto/ring/layout.h: the first of its slots."""

    FREE, POSTED, HOST_CALL, REPLIED, DONE = 0, 1, 2, 3, 4
    ASLEEP, SLOT = 64, 128  # bytes
    WORD, GRAPH, COUNT, LAUNCH_ID, TIMEOUT, KIND = 0, 8, 16, 24, 32, 40
    SEQUENCE, REPLIED_TO, CALL_FAILED, FAILED = 64, 80, 88, 128

    def __init__(self, step: Step, memory: int, doorbell: int) -> None:
        self._step, self._doorbell = step, doorbell
        self._map = mmap.mmap(memory, 0)
        step("ring mapped")

    def _cell(self, offset: int, kind: Any = ctypes.c_uint64) -> Any:
        return kind.from_buffer(self._map, offset)

    def _turn(self, state: int, what: str) -> None:
        self._cell(self.SLOT + self.WORD, ctypes.c_uint32).value = state
        self._step(f"{what}, nobody woken")
        os.write(self._doorbell, struct.pack("=Q", 1))
        self._step(f"{what}, worker woken")

    def _wait(self, state: int, what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while self._cell(self.SLOT + self.WORD, ctypes.c_uint32).value != state:
            assert time.monotonic() < end, f"{what} in vain"
            time.sleep(0.0005)
        self._step(what)

    def launch(self, graph: int, launch: int, calls: bool) -> None:
        for offset, value in ((self.GRAPH, graph), (self.COUNT, 1), (self.LAUNCH_ID, launch), (self.KIND, 0)):
            self._cell(self.SLOT + offset).value = value
        self._step("slot filled")
        self._turn(self.POSTED, "slot posted")
        if calls:
            self._wait(self.HOST_CALL, "called through the ring")
            self._cell(self.SLOT + self.CALL_FAILED).value = 0
            self._cell(self.SLOT + self.REPLIED_TO).value = self._cell(self.SLOT + self.SEQUENCE).value
            self._turn(self.REPLIED, "replied through the ring")
        self._wait(self.DONE, "done through the ring")
        assert self._cell(self.SLOT + self.FAILED).value == 0
        self._cell(self.SLOT + self.WORD, ctypes.c_uint32).value = self.FREE
        self._step("slot free")


class Client:
    """A session, with both of its connections."""

    def __init__(self, step: Step, messages: Messages, path: str, name: str) -> None:
        self._step, self.messages = step, messages
        self.side = Side(step, messages, path)
        opened, _ = self.side.ask(hello={"protocol": {"min": 1, "max": 1}, "client_name": name})
        self.calls = Http2(step, messages, path, opened.secret)

    def mapped(self, token: bytes) -> mmap.mmap:
        _, (descriptor,) = self.side.ask(fetch={"tokens": [token]})
        memory = mmap.mmap(descriptor, 0)
        os.close(descriptor)
        self._step("plane mapped")
        return memory

    def planes(self, count: int) -> list[Any]:
        spec = [{"bytes": 8 * SAMPLES}] * count
        return list(self.calls.call("Planes.Create", "CreatePlanesRequest", "CreatePlanesReply", planes=spec).planes)

    def build(self, ref: Any, host_call: bool) -> int:
        graph = hand_made.adding_graph(self.messages, ref, SAMPLES, host_call=host_call)
        return self.calls.call("Graphs.Build", "BuildRequest", "BuildReply", graph=graph).graph


def everything(step: Step, messages: Messages, path: str) -> None:
    """All that clients do, once."""
    client = Client(step, messages, path, "owner")
    calls, message = client.calls, messages.message

    x, mask, kept_x, kept_mask = client.planes(4)
    values = client.mapped(x.token)
    values[:8] = struct.pack("<d", 1.0)
    step("plane written")

    plain, calling = client.build(x.ref, False), client.build(x.ref, True)
    calls.call("Graphs.Launch", "LaunchRequest", "LaunchReport", graph=plain, count=2, launch_id=1)
    calls.call("Graphs.Enqueue", "LaunchRequest", "EnqueueReply", graph=plain, count=1, launch_id=2, enqueued=True)
    calls.call("Graphs.Launch", "LaunchRequest", "LaunchReport", graph=plain, count=1, launch_id=2)  # its outcome
    stream = calls.begin("Graphs.LaunchWithCalls")
    launching = message("LaunchClientMessage")(launch={"graph": calling, "count": 1, "launch_id": 3})
    calls.send(stream, "launch with calls", launching, last=False)
    asked = calls.receive(stream, "host call", "LaunchServerMessage").call
    reply = message("LaunchClientMessage")(reply={"sequence": asked.sequence, "ok": True})
    calls.send(stream, "host call's reply", reply, last=False)
    assert calls.receive(stream, "launch with calls", "LaunchServerMessage").report.launches == 1

    _, (memory, doorbell) = client.side.ask(ring={})
    ring = Ring(step, memory, doorbell)
    ring.launch(plain, 4, calls=False)
    ring.launch(calling, 5, calls=True)
    assert struct.unpack("<d", values[:8]) == (7.0,), "1 was there, six launches added 1 each"

    view = hand_made.view(messages, 0, SAMPLES)
    slice_ = {"plane": x.ref, "view": view}
    calls.call("Planes.Publish", "PublishRequest", "OpenedPlane", slice=slice_, name="x", attempt=os.urandom(16))
    other = Client(step, messages, path, "other")
    opened = other.calls.call("Planes.Open", "OpenRequest", "OpenedPlane", name="x")
    assert struct.unpack("<d", other.mapped(opened.plane.token)[:8]) == (7.0,)
    fill = {"plane": opened.plane.ref, "view": opened.view}
    other.calls.call("Planes.Fill", "FillRequest", "FillReply", slice=fill, element=struct.pack("<d", 2.0))
    calls.call("Planes.Withdraw", "WithdrawRequest", "WithdrawReply", name="x", seal_off=True)

    run = calls.call(
        "Runs.Submit",
        "SubmitRequest",
        "SubmitReply",
        run=hand_made.counting_run(messages, kept_x.ref, kept_mask.ref, SAMPLES, 1000),
        planes=hand_made.kept_planes(messages, SAMPLES),
        mask="done",
        lease_s=KEPT_S,
        attempt=os.urandom(16),
    ).run
    assert run
    stream = calls.begin("Runs.Simulate")
    simulated = hand_made.counting_run(messages, x.ref, mask.ref, SAMPLES, 1000)
    calls.send(stream, "simulate", message("SimulateRequest")(run=simulated, launch_id=6), last=True)
    assert calls.receive(stream, "simulate", "SimulateEvent").result.report.steps == 1000

    calls.call("Graphs.Release", "ReleaseGraphRequest", "ReleaseGraphReply", graph=plain)
    calls.call("Planes.Release", "ReleasePlanesRequest", "ReleasePlanesReply", planes=[mask.ref])
    client.side.ask(leave={})
    client.side.close()
    step("closed")


def killed_at(fatal: int, messages: Messages, path: str) -> Iterator[str]:
    """What a process of its own, which ends at that step, tells."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        taken = 0

        def step(name: str) -> None:
            nonlocal taken
            if taken == fatal:
                os.write(tell, f"killed {name}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            taken += 1

        try:
            everything(step, messages, path)
            os.write(tell, f"ended {taken}\n".encode())
        except BaseException:
            os.write(tell, f"failed {traceback.format_exc()!r}\n".encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as lines:
        yield from lines
    os.waitpid(child, 0)


def main() -> None:
    path, files = sys.argv[1:]
    messages = Messages.of(Path(files).read_bytes())
    print("ready", flush=True)
    for line in sys.stdin:
        for said in killed_at(int(line), messages, path):
            print(said, end="", flush=True)


if __name__ == "__main__":
    main()
