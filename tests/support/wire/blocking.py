"""A well-behaved client of the Kafka wire: a request, its answer, the next one, without a loop."""

from __future__ import annotations

import socket
import struct
from typing import Any

from tests.support.wire.frames import make_frame, parse

COMMIT, FETCH_OFFSETS, HEARTBEAT = 8, 9, 68
TIMEOUT_S = 60.0


class Client:
    """A well-behaved client: a request, its answer, the next one."""

    def __init__(self, address: tuple[str, int], timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._stream = self._socket.makefile("rb")
        self._correlation = 0

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, key: int, version: int, **fields: Any) -> Any:
        """Fields that are not given have their defaults. Raises ``OSError``."""
        self._correlation += 1
        self._socket.sendall(make_frame(key, version, correlation_id=self._correlation, **fields))
        (size,) = struct.unpack(">i", self._read_exactly(4))
        found, answer = parse(key, version, self._read_exactly(size))
        assert found == self._correlation
        return answer

    def _read_exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionError("the server closed the connection within an answer")
        return data

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
