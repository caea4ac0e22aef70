"""A blocking Kafka client: a request, its response, the next request."""

from __future__ import annotations

import dataclasses
import socket
import struct
from functools import cache
from typing import Any, Self

from kio.schema.index import api_key_map

from tests.support.wire.frames import make_frame, parse

COMMIT, FETCH_OFFSETS, HEARTBEAT = 8, 9, 68
TIMEOUT_S = 60.0


class ConnectionClosed(ConnectionError):
    """The server closed the connection instead of answering."""


class Client:
    """A well-behaved client: a request, its response, the next request."""

    def __init__(self, address: tuple[str, int], timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._stream = self._socket.makefile("rb")
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """Send a request and return the response. Raises ``ConnectionClosed``."""
        self.send(key, version, **fields)
        correlation_id, answer = self.receive(key, version)
        assert correlation_id == self._correlation_id
        return answer

    def send(self, key: int, version: int, /, **fields: Any) -> None:
        """Send a request without waiting for the response."""
        self._correlation_id += 1
        frame = make_frame(key, version, correlation_id=self._correlation_id, **fields)
        self._socket.sendall(frame)

    def receive(self, key: int, version: int) -> tuple[int, Any]:
        """The next response on the connection."""
        (size,) = struct.unpack(">i", self._read_exactly(4))
        return parse(key, version, self._read_exactly(size))

    def _read_exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionClosed("the server closed the connection within an answer")
        return data

    def commit(
        self, group_id: str, topic: str, partition: int, offset: int, metadata: str = ""
    ) -> int:
        """Commit as a non-member; returns the error code."""
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


class NamedClient:
    """A ``Client`` that names APIs instead of numbering them, and returns dicts."""

    def __init__(self, address: tuple[str, int], timeout_s: float = TIMEOUT_S) -> None:
        self._client = Client(address, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def ask(self, api: str, version: int, /, **fields: Any) -> dict[str, Any]:
        """Fields left out have their defaults. Raises ``OSError``."""
        self.send(api, version, **fields)
        return self.receive(api, version)

    def send(self, api: str, version: int, /, **fields: Any) -> None:
        """Send a request without waiting for the response."""
        self._client.send(_key_of(api), version, **fields)

    def receive(self, api: str, version: int) -> dict[str, Any]:
        """The next response on the connection: (correlation id, entity)."""
        _, answer = self._client.receive(_key_of(api), version)
        plain: dict[str, Any] = _to_plain(answer)
        return plain


@cache
def _key_of(api: str) -> int:
    (key,) = (key for key, name in api_key_map.items() if name == api)
    return key


def _to_plain(value: Any) -> Any:
    """Entities as dicts, and tuples as lists."""
    if dataclasses.is_dataclass(value):
        return {row.name: _to_plain(getattr(value, row.name)) for row in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return value
