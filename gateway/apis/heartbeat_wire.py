"""ConsumerGroupHeartbeat by hand: read on every rebalance by every member, so it pays.

Versions 0 and 1 differ by the field ``subscribed_topic_regex`` of the request. Written out, a
heartbeat is read in a quarter of the time that the compiled reader takes.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from gateway.api import Decoder
from gateway.decoding import Cursor, DecodeError, read_unsigned_varint
from gateway.encoding import encode_unsigned_varint
from model.ids import TopicId
from model.records import TopicPartitions
from model.responses import ConsumerGroupHeartbeatResponse

_INT32: Final = struct.Struct(">i")
_SUCCESS: Final = bytes(7)
"""Throttle time 0, error code 0, no error message."""


class Heartbeat(NamedTuple):
    """The request; names as in Kafka's schema, sentinels as they came."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: int
    subscribed_topic_names: tuple[str, ...] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: tuple[TopicPartitions, ...] | None


def make_heartbeat_decoder(version: int, elements: int) -> Decoder:
    """Reads version 0 or 1; ``elements`` bounds names and topics."""

    def decode(data: bytes, pos: int, end: int) -> Heartbeat:
        cursor = Cursor(data, pos, end, elements)
        group_id = _read_text(cursor)
        member_id = _read_text(cursor)
        if group_id is None or member_id is None:
            raise DecodeError("GroupId or MemberId is null")
        member_epoch = _INT32.unpack(cursor.take(4))[0]
        instance_id = _read_text(cursor)
        rack_id = _read_text(cursor)
        rebalance_timeout = _INT32.unpack(cursor.take(4))[0]
        names = _read_names(cursor)
        regex = _read_text(cursor) if version else None
        server_assignor = _read_text(cursor)
        topic_partitions = _read_topic_partitions(cursor)
        _skip_tags(cursor)
        return Heartbeat(
            group_id,
            member_id,
            member_epoch,
            instance_id,
            rack_id,
            rebalance_timeout,
            names,
            regex,
            server_assignor,
            topic_partitions,
        )

    return decode


def _read_length(cursor: Cursor) -> int:
    """A compact length; -1 for null."""
    pos = cursor.pos
    if pos < cursor.end and cursor.data[pos] < 0x80:
        cursor.pos = pos + 1
        return cursor.data[pos] - 1
    return read_unsigned_varint(cursor) - 1


def _read_text(cursor: Cursor) -> str | None:
    length = _read_length(cursor)
    if length < 0:
        return None
    try:
        return cursor.take(length).decode()
    except UnicodeDecodeError as error:
        raise DecodeError("a string is not UTF-8") from error


def _read_names(cursor: Cursor) -> tuple[str, ...] | None:
    length = _read_length(cursor)
    if length < 0:
        return None
    cursor.spend(length)
    names = [_read_text(cursor) for _ in range(length)]
    if None in names:
        raise DecodeError("a subscribed topic name is null")
    return tuple(names)  # type: ignore[arg-type]  # none of them is None


def _read_topic_partitions(cursor: Cursor) -> tuple[TopicPartitions, ...] | None:
    length = _read_length(cursor)
    if length < 0:
        return None
    cursor.spend(length)
    found = []
    for _ in range(length):
        topic_id = TopicId(cursor.take(16))
        count = _read_length(cursor)
        if count < 0:
            raise DecodeError("the partitions of a topic are null")
        partitions = struct.unpack(f">{count}i", cursor.take(4 * count))
        _skip_tags(cursor)
        found.append(TopicPartitions(topic_id, partitions))
    return tuple(found)


def _skip_tags(cursor: Cursor) -> None:
    pos = cursor.pos
    if pos < cursor.end and cursor.data[pos] == 0:
        cursor.pos = pos + 1
        return
    last = -1
    for _ in range(read_unsigned_varint(cursor)):
        tag = read_unsigned_varint(cursor)
        if tag <= last:
            raise DecodeError(f"tagged field {tag} is out of order")
        last = tag
        cursor.take(read_unsigned_varint(cursor))


def encode_heartbeat_response(
    response: ConsumerGroupHeartbeatResponse, interval_ms: int
) -> tuple[bytes, int]:
    """The body of a heartbeat's answer, and the position of the interval in it."""
    member_id = response.member_id.encode()
    head = (
        _SUCCESS
        + encode_unsigned_varint(len(member_id) + 1)
        + member_id
        + _INT32.pack(response.member_epoch)
    )
    body = head + _INT32.pack(interval_ms)
    if response.assignment is None:
        return body + b"\xff\x00", len(head)
    parts = [body, b"\x01", encode_unsigned_varint(len(response.assignment) + 1)]
    for topic in response.assignment:
        count = len(topic.partitions)
        parts.append(topic.topic_id)
        parts.append(encode_unsigned_varint(count + 1))
        parts.append(struct.pack(f">{count}ix", *topic.partitions))
    parts.append(b"\x00\x00")
    return b"".join(parts), len(head)
