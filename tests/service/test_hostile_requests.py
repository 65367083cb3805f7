"""Requests that are too large, too deep, or named so that they would spoil whatever shows them."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eagle
import grpc
import hand_made
import pytest
from harness import PATIENCE_S, Daemon, eaglectl, nested, number, varint
from models import affine
from stubs import Service, session_at
from watch import check_serves, held_by, wait_for_at_most, worker_of

NODES, DEPTH = 10**6, 10**5
SAMPLES = 512


@contextlib.contextmanager
def neighbour_goes_on(daemon: Daemon) -> Iterator[None]:
    """A neighbour's session computes before and after, by the same worker."""
    with eagle.connect(daemon.endpoint) as session:
        x = session.full(100, 2.0)
        graph = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build().launch()
        worker = worker_of(daemon)
        yield
        graph.launch()
        assert x.tolist() == [4.0] * 100
        assert worker_of(daemon) == worker == session.info().host.pid
    check_serves(daemon.endpoint)


def refused(service: Service, method: str, request: bytes) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as error:
        service.send(method, request)
    return error.value.code().name, error.value.details() or ""


# ---- too large


def many_nodes(shape: str) -> bytes:
    """A BuildRequest of NODES host nodes, each of them as it should be."""
    node = nested(1, nested(3, number(2, 3)))  # the `node` of a stage, the `nodes` of a branch: {host: {tier: EAGER}}
    stages = {
        "one after the other": nested(4, node) * NODES,
        "branches of one group": nested(4, nested(2, nested(1, node) * NODES)),
        "nodes of one branch": nested(4, nested(2, nested(1, node) + nested(1, node * NODES))),
    }
    return nested(1, stages[shape])


@pytest.mark.survives("a graph of 10^6 nodes: refused by the name of the limit")
@pytest.mark.parametrize("shape", ["one after the other", "branches of one group", "nodes of one branch"])
def test_a_graph_of_a_million_nodes(daemon: Daemon, shape: str) -> None:
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        worker, request = worker_of(daemon), many_nodes(shape)
        before = held_by(worker)
        for _ in range(3):
            code, said = refused(service, "Graphs.Build", request)
            assert code == "RESOURCE_EXHAUSTED", said
            assert "(graph_nodes)" in said, said
            assert len(said) < 1000
            assert len(service.call("Graphs.List").graphs) == 0
        # The message alone takes several times as much.
        wait_for_at_most(worker, before.descriptors + 8, before.resident_kib + 128 * 1024)


# ---- too deep


def deep(fields: tuple[int, ...], inner: bytes = b"") -> bytes:
    """DEPTH times these message fields in each other, and `inner` at the bottom; made from the inside out."""
    size, headers = len(inner), [inner]
    for _ in range(DEPTH):
        for field in reversed(fields):
            header = varint(field << 3 | 2) + varint(size)
            headers.append(header)
            size += len(header)
    return b"".join(reversed(headers))


BODY = nested(4, deep((2, 5)))  # Kernel.body: ops with regions with ops ...
LOOPS = nested(1, deep((5, 2, 1)))  # Stage.node: repeat_while with a body of a node ...
SKIPS = nested(1, deep((4, 2, 1)))  # likewise skippable
GROUPS = nested(2, nested(1, deep((1, 8, 1))))  # Stage.group: a branch of a node that is a group ...
NESTED = {
    "a kernel's regions, to be built": ("Graphs.Build", nested(1, nested(2, BODY))),
    "a kernel's regions, to be run": ("Runs.Simulate", nested(1, nested(1, BODY))),
    "a kernel's regions, to be run with calls": ("Runs.SimulateWithCalls", nested(1, nested(1, nested(1, BODY)))),
    "a kernel's regions, to be submitted": ("Runs.Submit", nested(1, nested(1, BODY)) + nested(6, b"1" * 16)),
    "loops": ("Graphs.Build", nested(1, nested(4, LOOPS))),
    "conditionals": ("Graphs.Build", nested(1, nested(4, SKIPS))),
    "groups": ("Graphs.Build", nested(1, nested(4, GROUPS))),
    "loops, to rebind to": ("Graphs.Rebind", number(1, 1) + nested(2, nested(4, LOOPS))),
    "fields that nobody knows": ("Planes.Create", deep((1000,))),
}


@pytest.mark.survives("10^5-deep nesting of kernels, loops, conditionals and groups: refused")
@pytest.mark.parametrize("what", NESTED)
def test_nesting_of_a_hundred_thousand(daemon: Daemon, what: str) -> None:
    method, request = NESTED[what]
    assert len(request) > DEPTH
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        if what == "fields that nobody knows":  # one unknown field, whose content nobody looks at
            service.send(method, request)
        else:
            code, said = refused(service, method, request)
            assert code == "INVALID_ARGUMENT", said
            assert "nested deeper than the 100 messages" in said


@pytest.mark.survives("bytes that are no message, to every call that there is: refused by name")
def test_garbage_to_every_call(daemon: Daemon) -> None:
    # A field of a length that goes on after the end; what no message of ours can begin with.
    garbage = number(1, 1) + varint(7 << 3 | 2) + varint(1000) + b"cut short"
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        for method in service.methods():
            with pytest.raises(grpc.RpcError) as error:
                service.send(method, garbage)
            said, trailing = error.value.details() or "", dict(error.value.trailing_metadata())
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT, f"{method}: {said}"
            assert trailing.get("eagle-error-reason") == "BAD_MESSAGE", f"{method}: {said}"
            assert "found bytes that are none" in said, f"{method}: {said}"
        with pytest.raises(grpc.RpcError) as error:
            service.channel.unary_unary("/eagle.v1.Graphs/NoSuchCall")(b"", timeout=PATIENCE_S)
        assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


# ---- many times their size


#: How many empty submessages a request has, which its limit in bytes allows, and the field that they are in.
BOMBS = {
    "Planes.Create": (2**22, None),
    "Planes.Release": (2**22, None),
    "Graphs.Build": (2**24, 1),
    "Graphs.Rebind": (2**24, 2),
    "Runs.Simulate": (2**24, 1),
    "Runs.Submit": (2**24, 1),
}


def bomb(method: str) -> bytes:
    """Two bytes a submessage, which take a hundred once they are parsed."""
    count, around = BOMBS[method]
    return nested(1, b"") * count if around is None else nested(around, nested(2, b"") * count)


@pytest.mark.survives("requests of 16 million submessages: refused with the number seen, and never parsed")
@pytest.mark.parametrize("method", BOMBS)
def test_submessages_that_take_a_hundred_times_their_bytes(daemon: Daemon, method: str) -> None:
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        worker = worker_of(daemon)
        before = held_by(worker)
        code, said = refused(service, method, bomb(method))
        assert code == "RESOURCE_EXHAUSTED", said
        assert re.search(r"once it is read \(8 times (list|message)_bytes\)", said), said
        assert re.search(r"found at least \d{6,} submessages", said), said
        wait_for_at_most(worker, before.descriptors + 8, before.resident_kib + 128 * 1024)


@pytest.mark.survives("the same, and garbage, without a secret or with a forged one: UNAUTHENTICATED, to every call")
@pytest.mark.parametrize("secret", ["", "0" * 64, "zz" * 32])
def test_nothing_is_received_from_who_has_no_session(daemon: Daemon, secret: str) -> None:
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        right, service.secret = service.secret, secret
        for method in service.methods():
            # Who says UNAUTHENTICATED of what is no message, or over its limit, has not looked at it.
            assert refused(service, method, b"\x0f")[0] == "UNAUTHENTICATED", method
            if method in BOMBS:
                assert refused(service, method, bomb(method))[0] == "UNAUTHENTICATED", method
        # Nor does anybody wait for a message: the call is over when its headers are there.
        held = threading.Event()
        path = service.method("Graphs.Build")[1]
        with pytest.raises(grpc.RpcError) as error:
            service.channel.stream_unary(path)(
                iter(held.wait, True), metadata=(("eagle-session-secret", secret),), timeout=PATIENCE_S
            )
        held.set()
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
        service.secret = right
        service.call("Admin.Info")


@pytest.mark.survives("requests over the limit of their call: refused by its name")
def test_requests_over_the_limit_of_their_call(daemon: Daemon) -> None:
    limits = {"Graphs.Launch": ("request_bytes", 2**16), "Planes.Release": ("list_bytes", 2**23)}
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        for method, (key, most) in limits.items():
            code, said = refused(service, method, bytes(most + 1))
            assert code == "RESOURCE_EXHAUSTED", said
            assert f"{method}: expected a message of at most {most} bytes ({key}), found {most + 1}" in said


@pytest.mark.survives("compressed requests, which may be a thousand times as large: refused, and not unpacked")
def test_compressed_requests(daemon: Daemon) -> None:
    with neighbour_goes_on(daemon), session_at(daemon.path) as service:
        build = service.channel.unary_unary(service.method("Graphs.Build")[1])
        metadata = (("eagle-session-secret", service.secret),)
        with pytest.raises(grpc.RpcError) as error:
            build(
                nested(1, bytes(256 * 2**20)), metadata=metadata, compression=grpc.Compression.Gzip, timeout=PATIENCE_S
            )
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "compressed" in (error.value.details() or "")


# ---- names

EVIL = {
    "a line break": "\n2026-01-01T00:00:00.000 error session=1 made up\n",
    "a return": "\r\n\rmade up",
    "quotes": "\"'`\\\"\\'",
    "a terminal's orders": "\x1b[2J\x1b]0;made up\x07\x9b1m",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "a zero byte": "\0",
    "right-to-left marks": "\u202e\u2066\u200f\u061c",
    "separators of lines": "\u2028\u2029\x85\x0b\x0c",
    "markup": "</text><script>x</script>&amp;<!--]]>",
    "marks of Graphviz and Mermaid": '"]; x [label="a\\l|{}%%{init}%% end ; -->',
    "64 KiB": "x" * 65536,
    "64 KiB of line breaks": "\n" * 65536,
}
# Whatever could move a cursor, break a line or turn the direction of a text.
SPOILS = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def named(number_: int) -> str:
    """Each with something around it by which it is found again."""
    return f"tag{number_}_{list(EVIL.values())[number_]}_end"


def check_shown(text: str, where: str) -> None:
    """Lines are the shower's own, and nothing in them spoils a terminal or a log."""
    found = SPOILS.search(text)
    assert found is None, (
        f"{where} shows {found[0]!r} as it is: {text[max(0, found.start() - 80) : found.end() + 20]!r}"
    )
    made_up = [line for line in text.splitlines() if line.strip().startswith(("made up", "2026-01-01"))]
    assert not made_up, f"{where} has a line of somebody else's: {made_up}"


def check_one_line_each(text: str, where: str, kinds: list[int]) -> None:
    for kind in kinds:
        lines = [line for line in text.splitlines() if re.search(rf"tag{kind}_", line)]
        assert len(lines) == 1, f"{where}: {list(EVIL)[kind]} is in {len(lines)} lines"


class Named:
    """Sessions, planes, graphs and what else has a name, with all of the names; which of them were refused."""

    def __init__(self, daemon: Daemon, stack: contextlib.ExitStack) -> None:
        self.daemon, self.refused, self.clients, self.labels, self.graphs = daemon, [], [], [], []
        protocol = nested(1, number(1, 1) + number(2, 1))
        for kind in range(len(EVIL)):
            name = named(kind).encode()
            if len(name) > 65000:  # more than a message of the side connection may have
                with pytest.raises((EOFError, KeyError)):  # hung up on, or told so
                    stack.enter_context(session_at(daemon.path, protocol, nested(3, name)))
                continue
            stack.enter_context(session_at(daemon.path, protocol, nested(3, name), nested(9, name[:4000])))
            self.clients.append(kind)
        self.service = stack.enter_context(session_at(daemon.path))
        for kind in range(len(EVIL)):
            self._use(kind)
        self.whole = self._whole()

    def _try(self, what: str, kind: int, method: str, **fields: Any) -> Any:
        try:
            return self.service.call(method, **fields)
        except grpc.RpcError as error:
            self.refused.append((what, kind, error.code().name, error.details()))
        return None

    def _use(self, kind: int) -> None:
        service, name = self.service, named(kind)
        if self._try("plane", kind, "Planes.Create", planes=[{"bytes": 4096, "label": name}]) is not None:
            self.labels.append(kind)
        made = service.call("Planes.Create", planes=[{"bytes": 8 * SAMPLES}] * 2).planes
        x, mask = made[0].ref, made[1].ref
        graph = hand_made.adding_graph(service, x, SAMPLES, name=name)
        built = self._try("graph", kind, "Graphs.Build", graph=graph)
        if built is not None:
            self.graphs.append(kind)
            self._try("graph", kind, "Graphs.Launch", graph=built.graph, count=1)
        slice_ = {"plane": x, "view": hand_made.view(service, 0, SAMPLES)}
        self._try("array", kind, "Planes.Publish", slice=slice_, name=name, attempt=b"%16d" % kind)
        self._try("array", kind, "Planes.Open", name=name, owner=name)
        run = hand_made.counting_run(service, x, mask, SAMPLES, 3)
        self._try("run", kind, "Runs.Submit", run=run, name=name, lease_s=600.0, attempt=b"%16d" % kind)
        calling = hand_made.adding_graph(service, x, SAMPLES, host_call=True)
        launch = service.message("LaunchClientMessage")(
            launch={"graph": service.call("Graphs.Build", graph=calling).graph, "count": 1}
        )
        failed = service.message("LaunchClientMessage")(reply={"sequence": 1, "ok": False, "error": name})
        with pytest.raises(grpc.RpcError) as error:
            list(service.converse("Graphs.LaunchWithCalls", [launch, failed]))
        assert error.value.details()  # the client's own words come back to it

    def _whole(self) -> tuple[int, list[int]]:
        """A graph in which all names that may be are in every place; and which those are."""
        service = self.service
        ref = service.call("Planes.Create", planes=[{"bytes": 8 * SAMPLES}]).planes[0].ref
        graph = service.message("GraphDescription")(name="whole", source_files=[named(kind) for kind in self.graphs])
        graph.planes.append(hand_made.declared(service, ref, 8 * SAMPLES, "x"))
        for index, kind in enumerate(self.graphs):
            kernel = hand_made.add_kernel(service, named(kind))
            kernel.arguments[0].name = named(kind)
            graph.kernels.append(kernel)
            launch = hand_made.add_launch(service, SAMPLES, 1.0)
            launch.kernel, launch.bindings[0].argument = index, named(kind)
            node = graph.stages.add().node
            node.kernel.CopyFrom(launch)
            node.name = named(kind)
            node.location.file, node.location.line = index, 7
        return service.call("Graphs.Build", graph=graph).graph, self.graphs


@pytest.fixture
def names(short_path: Path, request: pytest.FixtureRequest) -> Iterator[Named]:
    daemon = Daemon(short_path, "--log-level", "debug", "--log-format", getattr(request, "param", "text"))
    try:
        with contextlib.ExitStack() as stack:
            yield Named(daemon, stack)
        check_serves(daemon.endpoint)
    finally:
        assert daemon.stop() == 0, daemon.log()


@pytest.mark.survives("names with line breaks, quotes, control characters, right-to-left marks, 64 KiB: shown escaped")
def test_lists_and_pictures_of_bad_names(names: Named, tmp_path: Path) -> None:
    assert names.graphs, "all were refused: nothing was shown"
    for what, kind, code, said in names.refused:
        assert code in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "NOT_FOUND"), said
        check_shown(said, f"a refusal ({what})")
        assert "\n" not in said, f"a refusal ({what}, {list(EVIL)[kind]}) has several lines: {said!r}"
        assert len(said) < 4096, f"a refusal ({what}, {list(EVIL)[kind]}) has {len(said)} bytes"

    graph = next(each for each in names.service.call("Graphs.List").graphs if each.name == "whole")
    shown = {"sessions": names.clients, "planes": names.labels, "graphs": names.graphs, "graph whole": names.whole[1]}
    for command, kinds in shown.items():
        told = eaglectl("--endpoint", names.daemon.endpoint, *command.split()).stdout
        check_shown(told, f"eaglectl {command}")
        if command != "graph whole":  # a node, its kernel and its edges have the same name there
            check_one_line_each(told, f"eaglectl {command}", kinds)
    commands = ["top --once", "explain whole", "explain whole 0", "kernel whole 0", "show whole", "info"]
    for command in [*shown, *commands]:
        told = eaglectl("--endpoint", names.daemon.endpoint, "--json", *command.split()).stdout
        assert told.count("\n") == 1, f"eaglectl --json {command}"
        check_shown(told, f"eaglectl --json {command}")
        json.loads(told)
    for command in commands:
        check_shown(eaglectl("--endpoint", names.daemon.endpoint, *command.split()).stdout, f"eaglectl {command}")

    pictures = {
        format_: names.service.call("Graphs.Picture", graph=graph.graph, format=format_).picture.content
        for format_ in range(1, 6)
    }
    for format_ in (1, 2, 3, 4):
        check_shown(pictures[format_].decode(), f"picture {format_}")
    root = ElementTree.fromstring(pictures[4].decode())
    assert not [element for element in root.iter() if element.tag.rpartition("}")[2] == "script"]
    dot = subprocess.run(["dot", "-Tplain"], input=pictures[3], capture_output=True, check=False)
    assert dot.returncode == 0, dot.stderr
    assert len([line for line in dot.stdout.splitlines() if line.startswith(b"node ")]) >= len(names.whole[1])
    figure = names.service.message("Figure").FromString(pictures[5])
    for text in (figure.title, *(shape.text for shape in figure.shapes), *(shape.title for shape in figure.shapes)):
        check_shown(text, "the figure")

    metrics = names.service.call("Admin.Metrics").text
    check_shown(metrics, "metrics")
    assert "tag" not in re.sub(r"(?m)^#.*", "", metrics), "a client's name is a label of a metric"


@pytest.mark.survives("bad names in the log: one line each, escaped")
@pytest.mark.parametrize("names", ["text", "json"], indirect=True)
def test_the_log_of_bad_names(names: Named, request: pytest.FixtureRequest) -> None:
    log = names.daemon.log()
    check_shown(log, "the log")
    lines = log.splitlines()
    assert len([line for line in lines if "tag0_" in line]) > 0, "no name was logged: nothing was shown"
    for line in lines:
        assert len(line) < 16384, f"a line of {len(line)} bytes: {line[:200]}"
        if "json" in request.node.name:
            json.loads(line)
        else:
            assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+ \w+ ", line), line
    recent = names.service.call("Admin.RecentLog").lines
    for line in recent:
        assert "\n" not in line
        check_shown(line, "the recent log")
