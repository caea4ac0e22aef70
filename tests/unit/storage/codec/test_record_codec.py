"""The codec of keys and values: every record of a real Kafka's log, and damaged input."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    RecordType,
    TopicPartitions,
    UnknownKey,
    UnknownValue,
)
from storage.codec.errors import CodecError
from storage.codec.foreign_schemas import FOREIGN_SCHEMAS
from storage.codec.record_codec import (
    compute_version,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from storage.codec.record_schemas import RECORD_SCHEMAS
from tests.support.storage.golden import TYPES, filled_records, golden_records, logged_records

SCHEMAS = {**RECORD_SCHEMAS, **FOREIGN_SCHEMAS}

TOPIC_ID = TopicId(bytes(range(16)))


def values() -> list[dict[str, Any]]:
    return [line for line in golden_records() if line["value"]]


def test_golden_data_has_every_type_in_every_version() -> None:
    expected = {(t, v) for t in TYPES for v in range(SCHEMAS[t].max_version + 1)}
    assert len(expected) == 30
    assert {(line["typeId"], line["valueVersion"]) for line in values()} == expected


def test_golden_keys_survive() -> None:
    for line in golden_records():
        key = bytes.fromhex(line["key"])
        decoded = decode_key(key)
        assert not isinstance(decoded, UnknownKey)
        assert encode_key(decoded) == key


def test_golden_values_survive() -> None:
    for line in values():
        value = bytes.fromhex(line["value"])
        version, decoded = decode_value(line["typeId"], value)
        assert version == line["valueVersion"]
        assert not isinstance(decoded, UnknownValue)
        assert encode_value(decoded, version) == value


def test_golden_values_of_the_log_are_in_the_version_that_is_written_by_default() -> None:
    for line in logged_records():
        if line["value"]:
            value = bytes.fromhex(line["value"])
            assert encode_value(decode_value(line["typeId"], value)[1]) == value


def test_a_classic_member_of_version_0_has_no_rebalance_timeout() -> None:
    """Such records come from an old Kafka. The value is -1: Kafka uses the session timeout then."""
    lines = [row for row in filled_records() if (row["typeId"], row["valueVersion"]) == (2, 0)]
    read = [decode_value(2, bytes.fromhex(line["value"]))[1] for line in lines]
    members = [m for value in read if isinstance(value, GroupMetadataValue) for m in value.members]
    assert members
    assert {member.rebalance_timeout for member in members} == {-1}


def test_hand_written_codecs_are_their_schemas() -> None:
    for line in values():
        value = bytes.fromhex(line["value"])
        version, decoded = decode_value(line["typeId"], value)
        schema = SCHEMAS[line["typeId"]].value.compile(version)
        assert schema.read(value, 2) == (decoded, len(value))
        out = bytearray(value[:2])
        schema.write(out, decoded)
        assert out == value


def test_unknown_keys_keep_their_type() -> None:
    assert decode_key(b"\x01\x00\xff") == UnknownKey(256, b"\x01\x00\xff")
    assert encode_key(UnknownKey(256, b"\x01\x00\xff")) == b"\x01\x00\xff"


def test_versions_of_the_future_pass_through() -> None:
    assert decode_value(1, b"\x00\x05xyz") == (5, UnknownValue(b"\x00\x05xyz"))
    assert decode_value(3, b"\x00\x01xyz") == (1, UnknownValue(b"\x00\x01xyz"))
    assert decode_value(99, b"") == (-1, UnknownValue(b""))


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (OffsetCommitValue(1, 2, "m", 3), 4),
        (OffsetCommitValue(1, 2, "m", 3, expire_timestamp=4), 1),
        (GroupMetadataValue("consumer", 1, None, None, 2, ()), 3),
        (LegacyOffsetCommitValue(1, "m", 3), 0),
        (ConsumerGroupMetadataValue(1), 0),
    ],
)
def test_versions_that_are_written(value: Any, version: int) -> None:
    assert compute_version(value) == version
    assert encode_value(value)[:2] == version.to_bytes(2, "big")


def test_an_expiring_offset_loses_what_its_version_has_not() -> None:
    value = OffsetCommitValue(1, 2, "m", 3, expire_timestamp=4, topic_id=TOPIC_ID)
    assert decode_value(1, encode_value(value)) == (1, OffsetCommitValue(1, -1, "m", 3, 4))


def test_a_topic_id_of_zero_is_left_out() -> None:
    assert encode_value(OffsetCommitValue(1, 2, "", 3)).endswith(b"\x00")
    assert len(encode_value(OffsetCommitValue(1, 2, "", 3, topic_id=TOPIC_ID))) == 42


def test_a_member_that_is_not_classic_is_written_as_null_and_not_left_out() -> None:
    member = ConsumerGroupMemberMetadataValue(None, None, "c", "h", (), "", 1, None)
    assert encode_value(member).endswith(bytes.fromhex("01000100"))
    assert decode_value(5, encode_value(member))[1] == member


UNKNOWN = ((1, b""), (7, b"xyz"), (300, bytes(200)))


@pytest.mark.parametrize(
    ("type_id", "value"),
    [
        (1, OffsetCommitValue(1, 2, "m", 3, topic_id=TOPIC_ID, unknown_tags=UNKNOWN)),
        (1, OffsetCommitValue(1, 2, "m", 3, unknown_tags=UNKNOWN)),
        (3, ConsumerGroupMetadataValue(4, 5, UNKNOWN)),
        (
            7,
            ConsumerGroupTargetAssignmentMemberValue(
                (TopicPartitions(TOPIC_ID, (1, 2), UNKNOWN), TopicPartitions(TOPIC_ID, ())), UNKNOWN
            ),
        ),
        (7, ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(TOPIC_ID, (), UNKNOWN),))),
        (
            8,
            ConsumerGroupCurrentMemberAssignmentValue(
                1, 0, 2, (AssignedTopicPartitions(TOPIC_ID, (1,), (2,), UNKNOWN),), (), UNKNOWN
            ),
        ),
        (
            8,
            ConsumerGroupCurrentMemberAssignmentValue(
                1, 0, 2, (), (AssignedTopicPartitions(TOPIC_ID, (1,), (2,), UNKNOWN),)
            ),
        ),
    ],
)
def test_unknown_tags_are_kept_in_order(type_id: int, value: Any) -> None:
    assert decode_value(type_id, encode_value(value))[1] == value


def test_unknown_tags_stand_in_order_with_known_ones() -> None:
    encoded = encode_value(ConsumerGroupMetadataValue(4, 5, ((1, b"x"),)))
    assert encoded.hex() == "0000000000040200080000000000000005010178"


def test_a_version_without_tags_refuses_them() -> None:
    value = OffsetCommitValue(1, 2, "m", 3, unknown_tags=UNKNOWN)
    with pytest.raises(CodecError, match="no tagged fields"):
        encode_value(value, 3)


@pytest.mark.parametrize("epochs", [(), None, (1, 2, 3), tuple(range(40))])
def test_assignment_epochs_in_every_form(epochs: tuple[int, ...] | None) -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        1, 0, 0, (AssignedTopicPartitions(TOPIC_ID, tuple(range(40)), epochs),), ()
    )
    assert decode_value(8, encode_value(value))[1] == value


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 129, 200, 20_000])
def test_lengths_around_the_steps_of_a_varint(count: int) -> None:
    partitions = tuple(range(count))
    topics = tuple(TopicPartitions(TOPIC_ID, ()) for _ in range(min(count, 300)))
    for target in ((TopicPartitions(TOPIC_ID, partitions),), topics):
        value = ConsumerGroupTargetAssignmentMemberValue(target)
        assert decode_value(7, encode_value(value)) == (0, value)
    assigned = (AssignedTopicPartitions(TOPIC_ID, partitions, partitions),)
    for lists in ((assigned, ()), ((), assigned), (assigned * min(count, 300), assigned)):
        current = ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0, *lists)
        assert decode_value(8, encode_value(current)) == (0, current)
    offset = OffsetCommitValue(1, 2, "ü" * count, 3, topic_id=TOPIC_ID)
    assert decode_value(1, encode_value(offset)) == (4, offset)


def test_equal_looking_offset_keys_of_both_types() -> None:
    key = OffsetCommitKey(GroupId("g"), TopicName("t"), 3)
    legacy = LegacyOffsetCommitKey(GroupId("g"), TopicName("t"), 3)
    assert encode_key(key) == b"\x00\x01" + encode_key(legacy)[2:]


def test_a_legacy_offset_is_read_under_the_key_that_it_counts_as() -> None:
    legacy = encode_value(LegacyOffsetCommitValue(1, "m", 3))
    assert decode_value(1, legacy) == (0, OffsetCommitValue(1, -1, "m", 3))


@pytest.mark.parametrize(
    "key",
    [
        OffsetCommitKey(GroupId("g" * 32_768), TopicName("t"), 0),
        OffsetCommitKey(GroupId("g"), TopicName("t"), 1 << 31),
        ConsumerGroupMetadataKey(GroupId("g" * 32_768)),
        ConsumerGroupMetadataKey(GroupId("\ud800")),
        ConsumerGroupMemberMetadataKey(GroupId("g"), None),  # type: ignore[arg-type]
    ],
)
def test_keys_that_do_not_fit(key: Any) -> None:
    with pytest.raises(CodecError):
        encode_key(key)


@pytest.mark.parametrize(
    "value",
    [
        OffsetCommitValue(1 << 63, 0, "", 0),
        OffsetCommitValue(0, 0, "", 0, topic_id=TopicId(b"short")),
        OffsetCommitValue(0, 0, None, 0),  # type: ignore[arg-type]
        ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(TopicId(b"short"), ()),)),
        ConsumerGroupCurrentMemberAssignmentValue(
            1, 0, 128, (AssignedTopicPartitions(TOPIC_ID, (1,), (1,)),), ()
        ),
        ConsumerGroupMetadataValue(0, 0, ((0, b""), (0, b""))),
        GroupMetadataValue("", 0, None, MemberId("m" * 40_000), 0, ()),
    ],
)
def test_values_that_do_not_fit(value: Any) -> None:
    with pytest.raises(CodecError):
        encode_value(value)


@pytest.mark.parametrize(
    ("type_id", "damaged", "why"),
    [
        (3, "0000000000010201000100", "tag 1 follows tag 1"),
        (3, "000000000001010009" + "00" * 9, "bytes too many"),
        (3, "0000000000010000", "1 bytes too many"),
        (7, "0000ffffffff07", "elements expected"),
        (7, "0000ffffffffff01", "longer than 5 bytes|exceeds 32 bits"),
        (7, "000000", "null or negative array"),
        (1, "0003" + "00" * 12 + "7fff", "expected"),
        (1, "0003" + "00" * 12 + "ffff", "negative"),
        (1, "0003" + "00" * 12 + "0001ff" + "00" * 8, "utf-8"),
        (1, "0004" + "00" * 12 + "02ff" + "00" * 8 + "010010" + "01" * 16, "utf-8"),
        (2, "0000" + "0000" + "00" * 4 + "ffff" * 2 + "7fffffff", "elements expected"),
        (5, "0000000001010100000000000001000102", "neither a struct nor null"),
        (1, "8000", "negative version"),
    ],
)
def test_damaged_values(type_id: int, damaged: str, why: str) -> None:
    with pytest.raises(CodecError, match=why):
        decode_value(type_id, bytes.fromhex(damaged))


def test_truncation_at_every_byte() -> None:
    for line in filled_records():
        key, value = bytes.fromhex(line["key"]), bytes.fromhex(line["value"])
        for end in range(len(key)):
            with pytest.raises(CodecError):
                decode_key(key[:end])
        for end in range(len(value)):
            with pytest.raises(CodecError):
                decode_value(line["typeId"], value[:end])


def test_damage_at_every_byte_raises_nothing_else() -> None:
    chance = random.Random(1)
    for line in filled_records():
        value = bytearray.fromhex(line["value"])
        for position in range(min(len(value), 200)):
            kept = value[position]
            value[position] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, kept ^ 1))
            with suppress(CodecError):
                decode_value(line["typeId"], bytes(value))
            value[position] = kept


def test_legacy_offsets_are_offsets_of_version_0() -> None:
    """``latest`` stores a type-0 key as type 1, and the type-1 schema must decode its value."""
    values = [
        bytes.fromhex(record["value"])
        for record in golden_records()
        if record["type"] == "LEGACY_OFFSET_COMMIT"
    ]
    assert len(values) == 5
    for data in values:
        _, legacy = decode_value(RecordType.LEGACY_OFFSET_COMMIT, data)
        version, found = decode_value(RecordType.OFFSET_COMMIT, data)
        assert isinstance(legacy, LegacyOffsetCommitValue)
        offset, metadata, timestamp = legacy.offset, legacy.metadata, legacy.commit_timestamp
        assert (version, found) == (0, OffsetCommitValue(offset, -1, metadata, timestamp))
        assert encode_value(found, 0) == data
