"""A client of eagled that is nothing but what grpcio makes of proto/: no package `eagle`, no shared memory.

    python stock_client.py STUBS HOST:PORT CA TOKEN

STUBS is the folder that `python -m grpc_tools.protoc` wrote, CA the file of whom the daemon's certificate is from.
Runs the oscillator of the README (launched, submitted, shown, drawn) and checks its bits against the same arithmetic in
Python, which rounds each operation as the daemon promises to.
"""

import os
import queue
import struct
import sys
from collections.abc import Iterator
from typing import Any

import grpc

sys.path.insert(0, sys.argv[1])
from eagle.v1 import graph_pb2, kernel_pb2, picture_pb2, plane_pb2, run_pb2, service_pb2, service_pb2_grpc

N = 1000
DT, T_END = 1e-2, 1.0
OMEGA = [1 + 2 * i / (N - 1) for i in range(N)]
TIMEOUT_S = 60.0


def kernel() -> Any:
    """x, v = x + dt v, v - dt omega omega x; t = t + dt; done where t >= t_end."""
    real, boolean = kernel_pb2.Type(scalar=kernel_pb2.F64), kernel_pb2.Type(scalar=kernel_pb2.BOOL)
    made = kernel_pb2.Kernel(name="oscillator", real=kernel_pb2.F64)
    for name, role in (
        ("x", "MUTABLE"),
        ("v", "MUTABLE"),
        ("t", "MUTABLE"),
        ("omega", "READ"),
        ("dt", "PARAM"),
        ("t_end", "PARAM"),
    ):
        made.arguments.add(name=name, role=f"ROLE_{role}", type=real)
    made.arguments.add(name="done", role="ROLE_TERMINATED", type=boolean)
    x, v, t, omega, dt, t_end = range(6)  # values are numbered: the arguments, then each operation's result
    steps = [
        ("MUL", dt, v),  # 7
        ("ADD", x, 7),  # 8: x
        ("MUL", dt, omega),
        ("MUL", 9, omega),
        ("MUL", 10, x),
        ("SUB", v, 11),  # 12: v
        ("ADD", t, dt),  # 13: t
        ("GE", 13, t_end),  # 14: done
    ]
    for code, *operands in steps:
        made.body.ops.add(code=code, operands=operands)
    made.body.yields.extend([8, 12, 13, 14])
    return made


def expected() -> tuple[list[float], int]:
    """x at the end, and the steps that it takes."""
    steps, t = 0, 0.0
    while t < T_END:
        t, steps = t + DT, steps + 1
    xs = []
    for omega in OMEGA:
        x, v = 1.0, 0.0
        for _ in range(steps):
            x, v = x + DT * v, v - DT * omega * omega * x
        xs.append(x)
    return xs, steps


class Session:
    """What a session over TCP is: one long stream, and its secret with every other call."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._outbox: queue.Queue[Any] = queue.Queue()
        hello = service_pb2.HelloRequest(
            protocol=service_pb2.ProtocolRange(min=1, max=1),
            client_version="0",
            client_name="stock grpcio",
            attempt=os.urandom(16),
        )
        self._outbox.put(service_pb2.AttachClientMessage(open=service_pb2.OpenSession(hello=hello)))
        self._stream = service_pb2_grpc.SessionsStub(channel).Attach(
            iter(self._outbox.get, None), metadata=(("authorization", f"Bearer {token}"),)
        )
        opened = next(self._stream)
        self._metadata = (("eagle-session-secret", opened.hello.secret.hex()),)
        self.planes = service_pb2_grpc.PlanesStub(channel)
        self.graphs = service_pb2_grpc.GraphsStub(channel)
        self.runs = service_pb2_grpc.RunsStub(channel)

    def call(self, method: Any, request: Any) -> Any:
        return method(request, metadata=self._metadata, timeout=TIMEOUT_S)

    def close(self) -> None:
        self._outbox.put(service_pb2.AttachClientMessage(close=service_pb2.CloseSession()))
        self._outbox.put(None)
        for _ in self._stream:  # ends when the daemon has let go of the session
            pass


def view(index: int, boolean: bool = False) -> Any:
    size = 1 if boolean else 8
    dtype = plane_pb2.DTYPE_BOOL if boolean else plane_pb2.DTYPE_F64
    return plane_pb2.View(plane=index, dtype=dtype, item_bytes=size, shape=[N], strides=[size])


class Arrays:
    """x, v, t, omega and done, in the daemon."""

    NAMES = ("x", "v", "t", "omega", "done")

    def __init__(self, session: Session) -> None:
        self.session = session
        request = service_pb2.CreatePlanesRequest()
        for name in self.NAMES:
            request.planes.add(bytes=N if name == "done" else 8 * N, label=name)
        self.made = session.call(session.planes.Create, request).planes
        self.write("x", [1.0] * N)
        self.write("omega", OMEGA)

    def _slice(self, name: str) -> Any:
        index = self.NAMES.index(name)
        return service_pb2.PlaneSlice(plane=self.made[index].ref, view=view(0, name == "done"))

    def write(self, name: str, values: list[float]) -> None:
        def messages() -> Iterator[Any]:
            yield service_pb2.WriteRequest(slice=self._slice(name), data=struct.pack(f"<{N}d", *values))

        reply = self.session.call(self.session.planes.Write, messages())
        assert reply.bytes == 8 * N, reply

    def read(self, name: str) -> list[float]:
        chunks = self.session.call(self.session.planes.Read, service_pb2.ReadRequest(slice=self._slice(name)))
        data = b"".join(chunk.data for chunk in chunks)
        return list(struct.unpack(f"<{N}{'?' if name == 'done' else 'd'}", data))

    def declarations(self) -> list[Any]:
        return [plane_pb2.PlaneDeclaration(plane=one.ref, bytes=one.bytes, label=one.label) for one in self.made]

    def launch(self) -> Any:
        bound = graph_pb2.KernelLaunch(kernel=0)
        for index, name in enumerate(self.NAMES):
            bound.bindings.add(argument=name, view=view(index, name == "done"))
        bound.bindings.add(argument="dt", param=graph_pb2.ParamValue(real=DT))
        bound.bindings.add(argument="t_end", param=graph_pb2.ParamValue(real=T_END))
        return bound


def launched(session: Session, want: tuple[list[float], int]) -> None:
    arrays = Arrays(session)
    graph = graph_pb2.GraphDescription(name="by hand", kernels=[kernel()], planes=arrays.declarations())
    graph.stages.add(node=graph_pb2.Node(name="step", kernel=arrays.launch()))
    built = session.call(session.graphs.Build, service_pb2.BuildRequest(graph=graph))
    assert list(built.node_labels) == ["step"], built
    assert len(built.schedule) == 1, built
    report = session.call(
        session.graphs.Launch, service_pb2.LaunchRequest(graph=built.graph, count=want[1], launch_id=1)
    )
    assert report.launches == want[1], report
    assert arrays.read("x") == want[0]
    assert all(arrays.read("done"))
    print("launch:", report.launches, "replays; schedule:", *built.schedule)
    for picture_format, begins in ((picture_pb2.PICTURE_TEXT, b"eagle.Graph"), (picture_pb2.PICTURE_SVG, b"<svg")):
        request = service_pb2.PictureRequest(graph=built.graph, format=picture_format)
        drawn = session.call(session.graphs.Picture, request).picture.content
        assert begins in drawn, drawn[:200]
        assert b"step" in drawn, drawn[:200]
    print("picture:", len(drawn), "bytes of SVG")


def submitted(session: Session, want: tuple[list[float], int]) -> None:
    arrays = Arrays(session)
    run = run_pb2.RunDescription(
        kernels=[kernel()], planes=arrays.declarations(), model=[arrays.launch()], max_steps=10 * want[1]
    )
    request = run_pb2.SubmitRequest(run=run, name="by hand", lease_s=60, attempt=os.urandom(16), mask="done")
    for index, name in enumerate(arrays.NAMES):
        request.planes.add(name=name, view=view(index, name == "done"))
    number = session.call(session.runs.Submit, request).run
    kept = session.call(session.runs.Get, run_pb2.RunRef(run=number))
    while not kept.ended:  # each call has a deadline, and the run a bound
        kept = session.call(session.runs.Get, run_pb2.RunRef(run=number))
    assert not kept.error, kept
    assert kept.result.status == run_pb2.FINISHED, kept
    assert kept.result.report.steps == want[1], kept
    fetched = Arrays(session)
    fetch = run_pb2.FetchRunRequest(run=number, planes=fetched.declarations())
    for index, name in enumerate(arrays.NAMES):
        fetch.into.add(name=name, view=view(index, name == "done"))
    session.call(session.runs.Fetch, fetch)
    assert fetched.read("x") == want[0]
    print("submit:", kept.result.report.steps, "steps of", kept.result.report.finished, "samples")


def main() -> None:
    assert "eagle.session" not in sys.modules
    want = expected()
    with open(sys.argv[3], "rb") as ca:
        credentials = grpc.ssl_channel_credentials(ca.read())
    with grpc.secure_channel(sys.argv[2], credentials) as channel:
        session = Session(channel, sys.argv[4])
        launched(session, want)
        submitted(session, want)
        session.close()


main()
