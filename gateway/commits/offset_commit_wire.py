"""Hand-written codec of OffsetCommit, the most frequent request that writes.

Versions 8 to 10 (flexible) are decoded into the model and encoded from it directly, at a fifth of
the cost of kio's classes; older versions take the common path.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Decoder, LongDecoder
from gateway.codec.decoding import (
    Cursor,
    DecodeError,
    decode,
    read_compact_length,
    read_compact_text,
    skip_tags,
)
from gateway.codec.decoding_in_slices import LEAST_BYTES, SLICE, decode_in_slices
from gateway.codec.encoding import compact_length, encode_unsigned_varint
from gateway.codec.kio_schema import request_type
from model.commands.offsets import COMMIT_PARTITIONS_MAX, TopicOffsets
from model.ids import ZERO_TOPIC_ID, TopicId, TopicName
from model.log.commit_records import OffsetColumns, OffsetRow, OffsetRows
from model.responses.offsets import TopicResult
from model.topics import NAME_LENGTH_MAX

KEY: Final = 8
FIRST_FLEXIBLE_VERSION: Final = 8
FIRST_TOPIC_ID_VERSION: Final = 10
LONG_BYTES: Final = 192 * 1024
"""Flexible requests up to this size decode in 12 ms: the most partitions a topic may commit."""

_AT_ONCE: Final = 2 * COMMIT_PARTITIONS_MAX
"""Elements of the largest commit accepted: a topic for each partition."""

_INT32: Final = struct.Struct(">i")
_NUMBERS: Final = struct.Struct(">iqi")
_PARTITION: Final = struct.Struct(">iqiBB")
"""With the metadata's length (0 or 1: null or empty) and an empty tag section."""
_RESULT: Final = struct.Struct(">ihx")


class Commit(NamedTuple):
    """The request in every version; ``retention_ms`` is -1 if the client sends none."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: tuple[TopicOffsets, ...]
    retention_ms: int


def make_commit_decoder(version: int, elements: int) -> Decoder:
    """A decoder for this version; ``elements`` bounds topics and partitions."""
    if version >= FIRST_FLEXIBLE_VERSION:
        return _make_flexible_decoder(version, elements)
    request = request_type(KEY, version)
    return lambda data, pos, end: run_at_once(_convert(decode(request, data, pos, end, elements)))


def make_long_commit_decoder(version: int, elements: int) -> LongDecoder:
    """The same in slices, for commits of so many partitions that decoding takes long."""
    if version >= FIRST_FLEXIBLE_VERSION:
        by_id = version >= FIRST_TOPIC_ID_VERSION
        return LongDecoder(
            LONG_BYTES,
            lambda data, pos, end: _read_long(data, pos, end, by_id, elements),
        )
    request = request_type(KEY, version)
    return LongDecoder(
        LEAST_BYTES,
        lambda data, pos, end: _convert_long(decode_in_slices(request, data, pos, end, elements)),
    )


def _make_flexible_decoder(version: int, elements: int) -> Decoder:
    by_id = version >= FIRST_TOPIC_ID_VERSION

    def read(data: bytes, pos: int, end: int) -> Commit:
        common = _try_common(data, pos, end, by_id, elements)
        return common or run_at_once(_read_in_slices(Cursor(data, pos, end, elements), by_id))

    return read


def _read_long(data: bytes, pos: int, end: int, by_id: bool, elements: int) -> Steps[Commit]:
    common = _try_common(data, pos, end, by_id, min(elements, _AT_ONCE))
    return common or (yield from _read_in_slices(Cursor(data, pos, end, elements), by_id))


def _try_common(data: bytes, pos: int, end: int, by_id: bool, elements: int) -> Commit | None:
    try:
        return _read_common(data, pos, end, by_id, elements)
    except (IndexError, struct.error, UnicodeDecodeError):
        return None


def _read_common(data: bytes, pos: int, end: int, by_id: bool, elements: int) -> Commit | None:
    """Decode a common commit: short strings; no instance id, metadata or tagged fields.

    Returns ``None`` for any other commit, and for a malformed one; ``_read_in_slices`` then decodes
    or refuses it. A read beyond ``end`` is detected at the end, since the position only grows.
    """
    length = data[pos]
    if not 0 < length < 128:
        return None
    stop = pos + length
    group_id = data[pos + 1 : stop].decode()
    epoch = _INT32.unpack_from(data, stop)[0]
    pos = stop + 4
    length = data[pos]
    if not 0 < length < 128:
        return None
    stop = pos + length
    member_id = data[pos + 1 : stop].decode()
    if data[stop]:
        return None
    pos = stop + 1
    count = data[pos]
    if count < 128:
        pos += 1
    else:
        count, pos = _read_length(data, pos)
    left = elements + 1 - count
    topics = []
    # ``Any``: calling ``TopicName`` would double the cost of the line.
    name: Any = None
    topic_id: Any = None
    for _ in range(count - 1):
        if by_id:
            topic_id = data[pos : pos + 16]
            pos += 16
        else:
            length = data[pos]
            if not 0 < length < 128:
                return None
            name = data[pos + 1 : pos + length].decode()
            pos += length
        length = data[pos]
        if length < 128:
            pos += 1
        else:
            length, pos = _read_length(data, pos)
        left += 1 - length
        if left < 0 or not length or pos > end:
            return None
        partitions, pos = _read_partitions(data, pos, end, length - 1)
        if partitions is None or data[pos]:
            return None
        topics.append(TopicOffsets(name, topic_id, partitions))
        pos += 1
    if pos + 1 != end or data[pos] or left < 0 or not count:
        return None
    return Commit(group_id, epoch, member_id, None, tuple(topics), -1)


def _read_length(data: bytes, pos: int) -> tuple[int, int]:
    """A length of two or three bytes, and the position after it."""
    low, middle = data[pos], data[pos + 1]
    if middle < 128:
        return low - 128 + (middle << 7), pos + 2
    high = data[pos + 2]
    if high > 127:
        raise IndexError("a length of more than three bytes")
    return low - 128 + (middle - 128 << 7) + (high << 14), pos + 3


def _read_partitions(
    data: bytes, pos: int, end: int, count: int
) -> tuple[OffsetColumns | None, int]:
    """Partitions without metadata or tagged fields, and the position after them.

    ``None`` if a partition has either.
    """
    stop = pos + count * _PARTITION.size
    if stop > end:
        return None, pos
    if count == 0:
        return OffsetColumns((), (), ()), stop
    partitions, offsets, leader_epochs, metadata, tags = zip(
        *_PARTITION.iter_unpack(data[pos:stop]), strict=True
    )
    if max(metadata) > 1 or any(tags):
        return None, pos
    if min(leader_epochs) < -1:
        leader_epochs = tuple([max(epoch, -1) for epoch in leader_epochs])
    return OffsetColumns(partitions, offsets, leader_epochs), stop


def _read_in_slices(cursor: Cursor, by_id: bool) -> Steps[Commit]:
    """Decode any flexible commit. Raises ``DecodeError``."""
    group_id = read_compact_text(cursor)
    epoch = _INT32.unpack(cursor.take(4))[0]
    member_id = read_compact_text(cursor)
    instance_id = read_compact_text(cursor)
    topics = []
    left = SLICE
    for _ in range(_read_count(cursor)):
        name, topic_id = _read_which(cursor, by_id)
        count = _read_count(cursor)
        rows = OffsetRows()
        while count > left:
            rows.add(_read_some(cursor, left))
            count -= left
            left = SLICE
            yield
        rows.add(_read_some(cursor, count))
        skip_tags(cursor)
        topics.append(TopicOffsets(name, topic_id, rows.columns()))
        left -= count + 1
        if left <= 0:
            left = SLICE
            yield
    skip_tags(cursor)
    if group_id is None or member_id is None:
        raise DecodeError("GroupId or MemberId is null")
    return Commit(group_id, epoch, member_id, instance_id, tuple(topics), -1)


def _read_count(cursor: Cursor) -> int:
    """The length of an array that must not be null."""
    count = read_compact_length(cursor)
    if count < 0 or count > cursor.end - cursor.pos:
        raise DecodeError(f"an array of {count} elements, {cursor.end - cursor.pos} bytes left")
    cursor.spend(count)
    return count


def _read_which(cursor: Cursor, by_id: bool) -> tuple[TopicName | None, TopicId | None]:
    if by_id:
        return None, TopicId(cursor.take(16))
    name = read_compact_text(cursor)
    if name is None:
        raise DecodeError("a topic name is null")
    return TopicName(name), None


def _read_some(cursor: Cursor, count: int) -> Iterable[OffsetRow]:
    start = cursor.pos
    partitions, cursor.pos = _read_partitions(cursor.data, start, cursor.end, count)
    if partitions is not None:
        return partitions.rows()
    cursor.pos = start
    return [_read_partition(cursor) for _ in range(count)]


def _read_partition(cursor: Cursor) -> OffsetRow:
    partition, offset, leader_epoch = _NUMBERS.unpack(cursor.take(_NUMBERS.size))
    metadata = read_compact_text(cursor) or ""
    skip_tags(cursor)
    return partition, offset, max(leader_epoch, -1), metadata


def _convert_long(steps: Steps[Any]) -> Steps[Commit]:
    return (yield from _convert((yield from steps)))


def _convert(request: Any) -> Steps[Commit]:
    """Convert kio's entity of a version before 8."""
    topics = yield from convert_topics(request.topics)
    return Commit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        getattr(request, "group_instance_id", None),
        topics,
        getattr(request, "retention_time", -1),
    )


def convert_topics(wanted: Sequence[Any]) -> Steps[tuple[TopicOffsets, ...]]:
    """Convert the topics of kio's entity: of OffsetCommit by name, or of TxnOffsetCommit."""
    topics = []
    left = SLICE
    for topic in wanted:
        rows = OffsetRows()
        for begin in range(0, len(topic.partitions), SLICE):
            part = topic.partitions[begin : begin + SLICE]
            rows.add(map(_convert_partition, part))
            left -= len(part)
            if left <= 0:
                left = SLICE
                yield
        topics.append(TopicOffsets(TopicName(topic.name), None, rows.columns()))
        left -= 1
        if left <= 0:
            left = SLICE
            yield
    return tuple(topics)


def _convert_partition(row: Any) -> OffsetRow:
    leader_epoch = getattr(row, "committed_leader_epoch", -1)
    metadata = row.committed_metadata or ""
    return row.partition_index, row.committed_offset, max(leader_epoch, -1), metadata


def _encode_name(name: str) -> bytes:
    """Encode a topic name; cached if its length is valid: clients can invent any number."""
    return _encode_short_name(name) if len(name) <= NAME_LENGTH_MAX else _encode_any_name(name)


def _encode_any_name(name: str) -> bytes:
    encoded = name.encode()
    return encode_unsigned_varint(len(encoded) + 1) + encoded


_encode_short_name = lru_cache(maxsize=4_096)(_encode_any_name)


def encode_commit_response(topics: Sequence[TopicResult], version: int) -> bytes:
    """The body of a response in version 8, 9 or 10."""
    parts = [b"\x00\x00\x00\x00", compact_length(len(topics))]
    pack = _RESULT.pack
    by_id = version >= FIRST_TOPIC_ID_VERSION
    for topic in topics:
        parts.append(topic.topic_id or ZERO_TOPIC_ID if by_id else _encode_name(topic.name or ""))
        parts.append(compact_length(len(topic.partitions)))
        parts += [pack(result.partition, result.error) for result in topic.partitions]
        parts.append(b"\x00")
    parts.append(b"\x00")
    return b"".join(parts)
