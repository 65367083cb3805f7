"""The messages of the protocol, as a daemon's reflection has described them. No gRPC here."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "eagle.v1"


class Messages:
    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool

    @classmethod
    def of(cls, files: bytes) -> Messages:
        """From a FileDescriptorSet, each file after those that it imports."""
        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(files).file:
            pool.Add(file)
        return cls(pool)

    def message(self, name: str) -> Any:
        """The class of a message of the package."""
        return GetMessageClass(self._pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
