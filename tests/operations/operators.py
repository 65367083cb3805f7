"""A daemon's Admin, its metrics and its log, as an operator sees them; nothing of eagle's own client."""

import contextlib
import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from harness import EAGLED, PATIENCE_S, Daemon, decode, hello, side_connection, wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def lacks(why: str) -> NoReturn:
    """Skips the test for want of a tool, unless whoever runs the suite has just installed all of them."""
    if os.environ.get("EAGLE_TOOLS_INSTALLED") and "root" not in why:
        pytest.fail(why)
    pytest.skip(why)


def run_eagled(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EAGLED, *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


class Service:
    """Calls of a daemon's services, with the messages that its reflection describes."""

    def __init__(self, channel: grpc.Channel, secret: str) -> None:
        self._channel = channel
        self.secret = secret
        self.database = ProtoReflectionDescriptorDatabase(channel)
        self._pool = DescriptorPool(self.database)

    def call(self, method: str, *metadata: tuple[str, str], **fields: Any) -> Any:
        """``call("Admin.Info")``; for one that streams, the list of its messages."""
        streams, reply = self._begin(method, metadata, fields)
        return list(reply) if streams else reply

    def begin(self, method: str, **fields: Any) -> Iterator[Any]:
        """The messages of a call that streams, as they come."""
        streams, reply = self._begin(method, (), fields)
        assert streams
        return iter(reply)

    def _begin(self, method: str, metadata: tuple[tuple[str, str], ...], fields: dict[str, Any]) -> tuple[bool, Any]:
        service, _, name = method.partition(".")
        found = self._pool.FindServiceByName(f"eagle.v1.{service}").FindMethodByName(name)
        request = GetMessageClass(found.input_type)(**fields)
        serialize, read = (
            GetMessageClass(found.input_type).SerializeToString,
            GetMessageClass(found.output_type).FromString,
        )
        kind = self._channel.unary_stream if found.server_streaming else self._channel.unary_unary
        made = kind(f"/eagle.v1.{service}/{name}", serialize, read)
        secret = ("eagle-session-secret", self.secret)
        return found.server_streaming, made(request, metadata=(secret, *metadata), timeout=PATIENCE_S)


@contextlib.contextmanager
def service_of(daemon: Daemon) -> Iterator[Service]:
    unbounded = [("grpc.max_receive_message_length", -1)]  # a timeline is larger than what gRPC takes by itself
    with side_connection(daemon.path) as side, grpc.insecure_channel(daemon.endpoint, unbounded) as channel:
        side.send(hello(1, 1))
        opened = decode(decode(side.receive())[2][0])
        yield Service(channel, opened[4][0].hex())


def metrics_url(daemon: Daemon) -> str:
    found = re.search(r"metrics at (http://\S+)", daemon.log())
    assert found, daemon.log()
    return found.group(1)


def read_metrics(url: str) -> dict[str, float]:
    """Samples by name and labels, as in the text."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
        lines = response.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def json_log(daemon: Daemon) -> list[dict[str, Any]]:
    """Every line is an object."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def wait_for_log(daemon: Daemon, text: str, times: int = 1) -> None:
    wait_until(lambda: daemon.log().count(text) >= times, f"'{text}' in the log:\n{daemon.log()}")


def write_config(path: Path, *lines: str) -> None:
    """Whole or not at all: a daemon may read it at any time."""
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join(lines) + "\n")
    fresh.replace(path)
