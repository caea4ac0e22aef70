"""Hand-written codecs of the most frequent record types, equal to their schemas.

Only what measurements asked for: a commit writes offset keys and values, a rebalance a target and a
current assignment per member, or all members of a classic group in one record, and a start reads
targets and assignments back. They return ``None`` for rare forms, which the schema's codec then
handles. Like the primitives they raise ``wire.BAD_INPUT``.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from model.ids import ZERO_TOPIC_ID, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicPartitions,
)
from storage.codec.errors import CodecError
from storage.codec.wire import INT16, INT32, INT64, encode_varint

_OFFSET_HEAD = struct.Struct(">hqi")
_OFFSET_V4 = struct.Struct(">hqibqbbb16s")
_OFFSET_V4_OF_NO_ID = struct.Struct(">hqibqb")
_CURRENT_HEAD = struct.Struct(">hiib")
_GROUP_TIMEOUTS = struct.Struct(">ii")
_TOPIC_ID_TAG = b"\x01\x00\x10"
_COMPACT_EMPTY = 1
_ONE_BYTE = 0x7F
_KEPT_LENGTH_MAX = 512
"""Prefixes longer than this are not cached: a group id may have 32,767 bytes."""
_ONE_BYTE_EPOCHS = 0x7F // 4
_ASSIGNED_FIXED = 21
"""The size of a current assignment's topic without its partitions and their epochs."""


def encode_offset_key_prefix(group: str, topic: str) -> bytes:
    """The common prefix of the keys of a group's offsets in a topic; the partition follows it."""
    if len(group) + len(topic) > _KEPT_LENGTH_MAX:
        return _encode_offset_key_prefix(group, topic)
    return _find_offset_key_prefix(group, topic)


def _encode_offset_key_prefix(group: str, topic: str) -> bytes:
    group_bytes, topic_bytes = group.encode(), topic.encode()
    return b"\x00\x01%b%b%b%b" % (
        INT16.pack(len(group_bytes)),
        group_bytes,
        INT16.pack(len(topic_bytes)),
        topic_bytes,
    )


_find_offset_key_prefix = lru_cache(maxsize=8192)(_encode_offset_key_prefix)


def encode_offset_key(key: OffsetCommitKey) -> bytes:
    """Encode a key of type 1."""
    return encode_offset_key_prefix(key.group, key.topic) + INT32.pack(key.partition)


def decode_member_key(data: bytes) -> tuple[str, str] | None:
    """Group and member of a key of type 5, 7 or 8."""
    group_end = 4 + INT16.unpack_from(data, 2)[0]
    start = group_end + 2
    if group_end < 4 or start + INT16.unpack_from(data, group_end)[0] != len(data):
        return None
    return data[4:group_end].decode(), data[start:].decode()


def encode_offset_value(value: OffsetCommitValue) -> bytes | None:
    """Encode a value of type 1, v4."""
    if value.unknown_tags:
        return None
    topic_id = value.topic_id
    if len(topic_id) != 16:
        raise CodecError(f"a UUID has 16 bytes, not {len(topic_id)}")
    if value.metadata == "" and topic_id == ZERO_TOPIC_ID:
        epoch, timestamp = value.leader_epoch, value.commit_timestamp
        return _OFFSET_V4_OF_NO_ID.pack(4, value.offset, epoch, _COMPACT_EMPTY, timestamp, 0)
    if not value.metadata and topic_id != ZERO_TOPIC_ID:
        return _OFFSET_V4.pack(
            4,
            value.offset,
            value.leader_epoch,
            _COMPACT_EMPTY,
            value.commit_timestamp,
            *_TOPIC_ID_TAG,
            topic_id,
        )
    metadata = value.metadata.encode()
    return b"%b%b%b%b%b" % (
        _OFFSET_HEAD.pack(4, value.offset, value.leader_epoch),
        encode_varint(len(metadata) + 1),
        metadata,
        INT64.pack(value.commit_timestamp),
        b"\x00" if topic_id == ZERO_TOPIC_ID else _TOPIC_ID_TAG + topic_id,
    )


def encode_target_value(value: ConsumerGroupTargetAssignmentMemberValue) -> bytes | None:
    """Encode a value of type 7, v0."""
    if value.unknown_tags:
        return None
    topics = value.topic_partitions
    parts = [b"\x00\x00", encode_varint(len(topics) + 1)]
    for topic in topics:
        if topic.unknown_tags or len(topic.topic_id) != 16:
            return None
        count = len(topic.partitions)
        parts += (
            topic.topic_id,
            encode_varint(count + 1),
            struct.pack(f">{count}i", *topic.partitions),
            b"\x00",
        )
    parts.append(b"\x00")
    return b"".join(parts)


def encode_current_value(value: ConsumerGroupCurrentMemberAssignmentValue) -> bytes | None:
    """Encode a value of type 8, v0."""
    if value.unknown_tags:
        return None
    parts = [
        _CURRENT_HEAD.pack(0, value.member_epoch, value.previous_member_epoch, value.state),
    ]
    for topics in (value.assigned_partitions, value.partitions_pending_revocation):
        parts.append(encode_varint(len(topics) + 1))
        for topic in topics:
            if topic.unknown_tags or not topic.assignment_epochs or len(topic.topic_id) != 16:
                return None
            _append_assigned(parts, topic)
    parts.append(b"\x00")
    return b"".join(parts)


def _append_assigned(parts: list[bytes], topic: AssignedTopicPartitions) -> None:
    epochs = topic.assignment_epochs or ()
    count, epoch_count = len(topic.partitions), len(epochs)
    length = encode_varint(epoch_count + 1)
    parts += (
        topic.topic_id,
        encode_varint(count + 1),
        struct.pack(f">{count}i", *topic.partitions),
        b"\x01\x00",
        encode_varint(len(length) + 4 * epoch_count),
        length,
        struct.pack(f">{epoch_count}i", *epochs),
    )


def encode_group_value(value: GroupMetadataValue) -> bytes:
    """Encode a value of type 2, v3, which has no tags; a large group has very many members."""
    parts = [
        b"\x00\x03",
        _encode_text(value.protocol_type),
        INT32.pack(value.generation),
        _encode_nullable_text(value.protocol),
        _encode_nullable_text(value.leader),
        INT64.pack(value.current_state_timestamp),
        INT32.pack(len(value.members)),
    ]
    pack_length, pack_size, pack_timeouts = INT16.pack, INT32.pack, _GROUP_TIMEOUTS.pack
    for member in value.members:
        member_id, client_id = member.member_id.encode(), member.client_id.encode()
        client_host = member.client_host.encode()
        parts += (
            pack_length(len(member_id)),
            member_id,
            _encode_nullable_text(member.group_instance_id),
            pack_length(len(client_id)),
            client_id,
            pack_length(len(client_host)),
            client_host,
            pack_timeouts(member.rebalance_timeout, member.session_timeout),
            pack_size(len(member.subscription)),
            member.subscription,
            pack_size(len(member.assignment)),
            member.assignment,
        )
    return b"".join(parts)


def _encode_text(text: str) -> bytes:
    encoded = text.encode()
    return INT16.pack(len(encoded)) + encoded


def _encode_nullable_text(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else _encode_text(text)


def decode_offset_value(data: bytes) -> OffsetCommitValue | None:
    """Decode a value of type 1, v4, with short metadata and no tag but the topic id."""
    _, offset, leader_epoch = _OFFSET_HEAD.unpack_from(data)
    start = _OFFSET_HEAD.size + 1
    end = start + data[start - 1] - 1
    tags = data[end + 8 :]
    if not start <= end < start + _ONE_BYTE or (len(tags), tags[:3]) != (19, _TOPIC_ID_TAG):
        return None
    (timestamp,) = INT64.unpack_from(data, end)
    return OffsetCommitValue(
        offset, leader_epoch, data[start:end].decode(), timestamp, -1, TopicId(tags[3:])
    )


def decode_target_value(data: bytes) -> ConsumerGroupTargetAssignmentMemberValue | None:
    """Decode a value of type 7, v0, with one-byte lengths and no tags."""
    topics = []
    pos = 3
    if not 0 < data[2] <= _ONE_BYTE:
        return None
    for _ in range(data[2] - 1):
        count = data[pos + 16] - 1
        if not 0 <= count < _ONE_BYTE:
            return None
        end = pos + 17 + 4 * count
        if data[end]:
            return None
        partitions = struct.unpack_from(f">{count}i", data, pos + 17)
        topics.append(TopicPartitions(TopicId(data[pos : pos + 16]), partitions))
        pos = end + 1
    if data[pos] or pos + 1 != len(data):
        return None
    return ConsumerGroupTargetAssignmentMemberValue(tuple(topics))


def decode_current_value(data: bytes) -> ConsumerGroupCurrentMemberAssignmentValue | None:
    """Decode a value of type 8, v0, with one-byte lengths and no tag but the partitions' epochs."""
    _, member_epoch, previous_member_epoch, state = _CURRENT_HEAD.unpack_from(data)
    lists = []
    pos = _CURRENT_HEAD.size
    for _ in range(2):
        topics = []
        count = data[pos] - 1
        if not 0 <= count < _ONE_BYTE:
            return None
        pos += 1
        for _ in range(count):
            topic = _read_assigned(data, pos)
            if topic is None:
                return None
            topics.append(topic)
            pos += _ASSIGNED_FIXED + 8 * len(topic.partitions)
        lists.append(tuple(topics))
    if data[pos] or pos + 1 != len(data):
        return None
    assigned, pending = lists
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch, previous_member_epoch, state, assigned, pending
    )


def _read_assigned(data: bytes, pos: int) -> AssignedTopicPartitions | None:
    count = data[pos + 16] - 1
    tags = pos + 17 + 4 * count
    if not 0 < count < _ONE_BYTE_EPOCHS or data[tags : tags + 4] != bytes(
        (1, 0, 4 * count + 1, count + 1)
    ):
        return None
    return AssignedTopicPartitions(
        TopicId(data[pos : pos + 16]),
        struct.unpack_from(f">{count}i", data, pos + 17),
        struct.unpack_from(f">{count}i", data, tags + 4),
    )
