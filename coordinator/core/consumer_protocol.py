"""What members of classic groups of the type ``consumer`` say: topics and partitions, read only.

Facts of Kafka's ``ConsumerProtocol``. Subscription and assignment begin with a version; every
version begins with what version 0 has, and no more is read here.
"""

from __future__ import annotations

import struct

from model.ids import TopicName
from model.value import value

PROTOCOL_TYPE = "consumer"

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


@value
class AssignedPartitions:
    """Partitions of one topic, as the leader of the group gave them."""

    topic: TopicName
    partitions: tuple[int, ...]


class _Reader:
    """Reads on from a position; ``ValueError`` where the bytes do not last."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    def _take(self, size: int) -> bytes:
        taken = self._data[self._pos : self._pos + size]
        if size < 0 or len(taken) < size:
            raise ValueError(f"{size} bytes expected at byte {self._pos}")
        self._pos += size
        return taken

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(4))[0])

    def text(self) -> str:
        return self._take(self.int16()).decode()

    def count(self, item_size: int) -> int:
        """The length of an array whose items have at least so many bytes."""
        count = self.int32()
        if count < 0 or count * item_size > len(self._data) - self._pos:
            raise ValueError(f"an array of {count} items before byte {self._pos}")
        return count

    def partitions(self) -> tuple[int, ...]:
        return tuple(self.int32() for _ in range(self.count(4)))

    def skip_user_data(self) -> None:
        size = self.int32()
        if size != -1:
            self._take(size)


def decode_subscribed_topics(metadata: bytes) -> tuple[TopicName, ...] | None:
    """The topics of a subscription; ``None`` for bytes that are no subscription."""
    reader = _Reader(metadata)
    try:
        if reader.int16() < 0:
            return None
        topics = tuple(TopicName(reader.text()) for _ in range(reader.count(2)))
        reader.skip_user_data()
    except ValueError:
        return None
    return topics


def decode_assigned_partitions(assignment: bytes) -> tuple[AssignedPartitions, ...] | None:
    """The partitions of an assignment; ``None`` for bytes that are no assignment."""
    reader = _Reader(assignment)
    try:
        if reader.int16() < 0:
            return None
        topics = tuple(
            AssignedPartitions(TopicName(reader.text()), reader.partitions())
            for _ in range(reader.count(6))
        )
        reader.skip_user_data()
    except ValueError:
        return None
    return topics
