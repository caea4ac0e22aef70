"""Reader and writer for the fields of the embedded messages.

Big endian, as in Kafka's non-flexible messages: the length of a string is an int16, that of bytes
and arrays an int32, and a length of -1 means null.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

INT32_SIZE = 4
NULL = -1

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_LONGEST_STRING = (1 << 15) - 1
_SMALLEST_STRING = 2
_SMALLEST_TOPIC_PARTITIONS = _SMALLEST_STRING + INT32_SIZE


class MalformedProtocolError(ValueError):
    """Malformed bytes of a message, or values that a message cannot hold."""


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


def group_partitions(partitions: Iterable[tuple[str, int]]) -> tuple[TopicPartitions, ...]:
    """Group by topic: topics in the order of first appearance, partitions in the given order."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in by_topic.items())


class Reader:
    """Reads fields in order; raises MalformedProtocolError if the bytes end too soon."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    def _take(self, size: int) -> bytes:
        taken = self._data[self._pos : self._pos + size]
        if size < 0 or len(taken) < size:
            raise MalformedProtocolError(f"{size} bytes expected at byte {self._pos}")
        self._pos += size
        return taken

    @property
    def is_at_end(self) -> bool:
        """Whether all bytes have been read."""
        return self._pos == len(self._data)

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def _number(self, form: struct.Struct) -> int:
        start = self._pos
        try:
            number: int = form.unpack_from(self._data, start)[0]
        except struct.error:
            raise MalformedProtocolError(f"{form.size} bytes expected at byte {start}") from None
        self._pos = start + form.size
        return number

    def string(self) -> str:
        return self._decode(self.int16())

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size == NULL else self._decode(size)

    def _decode(self, size: int) -> str:
        start = self._pos
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            raise MalformedProtocolError(f"the string at byte {start} is not UTF-8") from None

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size == NULL else self._take(size)

    def strings(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self._count(_SMALLEST_STRING)))

    def skip_strings(self, enough: int) -> int:
        """The size of an array of strings; skips the array unless it has more than ``enough``."""
        count = self._count(_SMALLEST_STRING)
        if count <= enough:
            for _ in range(count):
                self._take(self.int16())
        return count

    def peek_count(self) -> int:
        """The number of topics in the array of topic partitions that follows."""
        return self._count(_SMALLEST_TOPIC_PARTITIONS)

    def topics_partitions(self) -> tuple[TopicPartitions, ...]:
        count = self._count(_SMALLEST_TOPIC_PARTITIONS)
        return tuple(TopicPartitions(self.string(), self._partitions()) for _ in range(count))

    def _partitions(self) -> tuple[int, ...]:
        count = self._count(INT32_SIZE)
        return struct.unpack(f">{count}i", self._take(count * INT32_SIZE))

    def _count(self, smallest_item: int) -> int:
        """The length of an array, checked against the remaining bytes."""
        start = self._pos
        count = self.int32()
        if count < 0 or count * smallest_item > len(self._data) - self._pos:
            raise MalformedProtocolError(f"invalid array length {count} at byte {start}")
        return count


class Writer:
    """Appends fields; raises MalformedProtocolError for values out of range."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def finish(self) -> bytes:
        return b"".join(self._parts)

    def int16(self, number: int) -> None:
        self._parts.append(_pack(_INT16, number))

    def int32(self, number: int) -> None:
        self._parts.append(_pack(_INT32, number))

    def string(self, text: str) -> None:
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            raise MalformedProtocolError(f"{text!r} cannot be written as UTF-8") from None
        if len(encoded) > _LONGEST_STRING:
            raise MalformedProtocolError(
                f"a string has {len(encoded)} bytes, above {_LONGEST_STRING}"
            )
        self.int16(len(encoded))
        self._parts.append(encoded)

    def nullable_string(self, text: str | None) -> None:
        if text is None:
            self.int16(NULL)
        else:
            self.string(text)

    def nullable_bytes(self, data: bytes | None) -> None:
        if data is None:
            self.int32(NULL)
        else:
            self.int32(len(data))
            self._parts.append(data)

    def strings(self, texts: tuple[str, ...]) -> None:
        self.int32(len(texts))
        for text in texts:
            self.string(text)

    def topics_partitions(self, topics: tuple[TopicPartitions, ...]) -> None:
        self.int32(len(topics))
        for each in topics:
            self.string(each.topic)
            self.int32(len(each.partitions))
            try:
                self._parts.append(struct.pack(f">{len(each.partitions)}i", *each.partitions))
            except struct.error:
                raise MalformedProtocolError(
                    f"a partition of {each.topic!r} is not a 32-bit integer"
                ) from None


def _pack(form: struct.Struct, number: int) -> bytes:
    try:
        return form.pack(number)
    except struct.error:
        raise MalformedProtocolError(f"{number!r} is not a {form.size * 8}-bit integer") from None
