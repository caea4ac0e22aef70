"""A well-behaved client of the Kafka wire: a request, its answer, the next one, without a loop."""

from __future__ import annotations

import socket
import struct
from typing import Any

from gateway.codec.decoding import decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_type, response_type

COMMIT, FETCH_OFFSETS, HEARTBEAT = 8, 9, 68
TIMEOUT_S = 60.0
_CLIENT_ID = b"plain"


class Client:
    """A well-behaved client: a request, its answer, the next one."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, TIMEOUT_S)
        self._stream = self._socket.makefile("rb")
        self._correlation = 0

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, key: int, version: int, **fields: Any) -> Any:
        """Fields that are not given have their defaults."""
        self._correlation += 1
        self._socket.sendall(make_frame(key, version, correlation=self._correlation, **fields))
        (size,) = struct.unpack(">i", self._stream.read(4))
        data = self._stream.read(size)
        target = response_type(key, version)
        flexible = target.__header_schema__.__flexible__
        return decode(target, data, 5 if flexible else 4, len(data), 10_000_000)

    def commit(
        self, group_id: str, topic: str, partition: int, offset: int, metadata: str = ""
    ) -> int:
        """Without a member; the error code."""
        partition_row: dict[str, Any] = {"partition_index": partition, "committed_offset": offset}
        if metadata:
            partition_row["committed_metadata"] = metadata
        answer = self.ask(
            COMMIT,
            9,
            group_id=group_id,
            generation_id_or_member_epoch=-1,
            topics=[{"name": topic, "partitions": [partition_row]}],
        )
        return int(answer.topics[0].partitions[0].error_code)

    def offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """All committed offsets of a group."""
        wanted = {"group_id": group_id, "topics": None, "member_epoch": -1}
        answer = self.ask(FETCH_OFFSETS, 9, groups=[wanted])
        return {
            (topic.name, row.partition_index): row.committed_offset
            for topic in answer.groups[0].topics
            for row in topic.partitions
        }


def make_frame(key: int, version: int, /, *, correlation: int = 1, **fields: Any) -> bytes:
    """A whole request from plain values: entities are dicts, what is not given has its default."""
    kind = request_type(key, version)
    return frame(key, version, correlation, encode(kind, _fill(kind, fields)))


def frame(key: int, version: int, correlation: int, body: bytes) -> bytes:
    """A whole request around an encoded body."""
    head = struct.pack(">hhih", key, version, correlation, len(_CLIENT_ID)) + _CLIENT_ID
    if request_type(key, version).__header_schema__.__flexible__:
        head += b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


def _fill(kind: Any, values: Any) -> Any:
    """An entity from plain dicts; what they lack has its default."""
    found = {}
    for row in compute_fields(kind):
        value = values.get(row.name, row.default)
        if row.entity is not None and row.is_array and value is not None:
            items = (_fill(row.entity, item) if type(item) is dict else item for item in value)
            value = tuple(items)
        found[row.name] = value
    return kind(**found)
