"""Calls of a daemon's services with the messages that its own reflection describes; nothing of eagle's client.

What is sent here is what the test says, byte for byte: another client, a hostile one, or one that an operator wrote.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from harness import PATIENCE_S, decode, hello, nested, side_connection
from messages import PACKAGE, Messages


class Service(Messages):
    """The services of a daemon as seen from one session."""

    def __init__(self, channel: grpc.Channel, secret: str) -> None:
        self.channel = channel
        self.secret = secret
        self.database = ProtoReflectionDescriptorDatabase(channel)
        super().__init__(DescriptorPool(self.database))

    def files(self) -> bytes:
        """All that reflection describes, as a FileDescriptorSet."""
        found: dict[str, bytes] = {}

        def add(file: Any) -> None:
            if file.name not in found:
                for needed in file.dependencies:
                    add(needed)
                found[file.name] = file.serialized_pb

        add(self._pool.FindServiceByName(f"{PACKAGE}.Planes").file)
        return b"".join(nested(1, file) for file in found.values())

    def methods(self) -> list[str]:
        """Every call that there is: "Admin.Info", ..."""
        found = []
        for service in self.database.get_services():
            if service.startswith(f"{PACKAGE}."):
                methods = self._pool.FindServiceByName(service).methods
                found += [f"{service.rpartition('.')[2]}.{method.name}" for method in methods]
        return found

    def call(self, method: str, *metadata: tuple[str, str], **fields: Any) -> Any:
        """``call("Admin.Info")``; for one that streams, the list of its messages."""
        streams, reply = self._begin(method, metadata, fields)
        return list(reply) if streams else reply

    def begin(self, method: str, **fields: Any) -> Iterator[Any]:
        """The messages of a call that streams, as they come."""
        streams, reply = self._begin(method, (), fields)
        assert streams
        return iter(reply)

    def converse(self, method: str, requests: Iterable[Any]) -> Any:
        """A call whose client may send several messages: its reply, or an iterator over its replies."""
        found, path = self.method(method)
        assert found.client_streaming
        kind = self.channel.stream_stream if found.server_streaming else self.channel.stream_unary
        made = kind(path, _serialized, GetMessageClass(found.output_type).FromString)
        return made(iter(requests), metadata=self._metadata(), timeout=PATIENCE_S)

    def send(self, method: str, request: Any) -> list[Any]:
        """Whatever kind of call it is, with this one message, of its type or as bytes: all its replies."""
        found, _ = self.method(method)
        if found.client_streaming:
            reply = self.converse(method, [request])
        else:
            reply = self._made(method)(request, metadata=self._metadata(), timeout=PATIENCE_S)
        return list(reply) if found.server_streaming else [reply]

    def method(self, method: str) -> tuple[Any, str]:
        """Of "Planes.Create": its description, and the path that it is called by."""
        service, _, name = method.partition(".")
        found = self._pool.FindServiceByName(f"{PACKAGE}.{service}").FindMethodByName(name)
        return found, f"/{PACKAGE}.{service}/{name}"

    def _made(self, method: str) -> Any:
        found, path = self.method(method)
        kind = self.channel.unary_stream if found.server_streaming else self.channel.unary_unary
        return kind(path, _serialized, GetMessageClass(found.output_type).FromString)

    def _metadata(self, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        return (("eagle-session-secret", self.secret), *more)

    def _begin(self, method: str, metadata: tuple[tuple[str, str], ...], fields: dict[str, Any]) -> tuple[bool, Any]:
        found, _ = self.method(method)
        request = GetMessageClass(found.input_type)(**fields)
        return found.server_streaming, self._made(method)(
            request, metadata=self._metadata(*metadata), timeout=PATIENCE_S
        )


def _serialized(message: Any) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


@contextlib.contextmanager
def session_at(path: Path, *hello_fields: bytes) -> Iterator[Service]:
    """A session of this process at the unix socket `path`; `hello_fields` are added to its Hello."""
    unbounded = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with side_connection(path) as side, grpc.insecure_channel(f"unix:{path}", unbounded) as channel:
        side.send(hello(1, 1) if not hello_fields else nested(1, b"".join(hello_fields)))
        opened = decode(decode(side.receive())[2][0])
        yield Service(channel, opened[4][0].hex())
