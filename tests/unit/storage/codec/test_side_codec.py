"""The codec of side records."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from model.access.acls import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.access.quotas import QuotaEntity
from model.access.scram import ScramCredential, ScramMechanism
from model.client_assignors import (
    ClientAssignor,
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.group_freeze import GroupFreeze
from model.group_resets import GroupReset, ResetTopic
from model.ids import GroupId, LogOffset, LogPartition, MemberId, ProducerId, TopicId, TopicName
from model.log.commit_records import OffsetRow
from model.log.side_records import (
    AclSideKey,
    AclSideValue,
    FakeSaltSecretKey,
    FakeSaltSecretValue,
    GroupConfigsSideKey,
    GroupConfigsSideValue,
    GroupFreezeKey,
    GroupPlaceKey,
    GroupResetKey,
    ImportGraceKey,
    ImportGraceValue,
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerIdBlockKey,
    ProducerIdBlockValue,
    ProducerStateKey,
    ProducerStateValue,
    QuotaSideKey,
    QuotaSideValue,
    ScramCredentialKey,
    ShardSideKey,
    SideKey,
    SideRecord,
    SideValue,
    TokenStartKey,
    TokenStartValue,
    TopicDeletionKey,
    TopicDeletionValue,
    TopicSideKey,
    TopicSideValue,
)
from model.places import GroupPlace, Place
from storage import side_pb2
from storage.codec.errors import CodecError
from storage.log_store import FormatTooNew
from storage.shard_side_codec import SHARD_KINDS
from storage.side_codec import (
    CREDENTIAL_KINDS,
    TOPIC_KIND,
    decode_side,
    encode_side,
    encode_side_key,
    encode_side_value,
)

ID = TopicId(bytes(range(16)))
RECORDS = [
    SideRecord(TopicSideKey(TopicName("t")), TopicSideValue(ID, 7)),
    SideRecord(TopicSideKey(TopicName("\u00fc" * 100)), TopicSideValue(TopicId(bytes(16)), 1)),
    SideRecord(TopicDeletionKey(ID), TopicDeletionValue(TopicName("t"), 1_760_000_000_000)),
    SideRecord(TopicDeletionKey(TopicId(bytes(16))), TopicDeletionValue(TopicName(""), 0)),
    SideRecord(ProducerIdBlockKey(), ProducerIdBlockValue(0)),
    SideRecord(ProducerIdBlockKey(), ProducerIdBlockValue((1 << 63) - 1)),
    SideRecord(ImportGraceKey(), ImportGraceValue(1_760_000_000_000)),
    SideRecord(TokenStartKey(), TokenStartValue(1_760_000_000_001)),
    SideRecord(GroupConfigsSideKey(GroupId("g\u00fc")), GroupConfigsSideValue(())),
    SideRecord(GroupConfigsSideKey(GroupId("g")), GroupConfigsSideValue((("a", "1"), ("b", "")))),
    SideRecord(
        ProducerStateKey(LogPartition(49), ProducerId(2**62)),
        ProducerStateValue(32_767, -1, 1_700_000_000_000),
    ),
    SideRecord(
        ClientAssignorsKey(LogPartition(3), GroupId("g\u00fc"), MemberId("m")),
        ClientAssignorsValue(
            (ClientAssignor("mine", -1, 3, 2, b"\x00\xff", 5), ClientAssignor("other", 0, 0, 0))
        ),
    ),
    SideRecord(
        InstalledMetadataKey(LogPartition(3), GroupId("g"), MemberId("m\u00fc")),
        InstalledMetadataValue(7, "mine", -1, bytes(range(256))),
    ),
    SideRecord(GroupConfigsSideKey(GroupId("g")), GroupConfigsSideValue((("a", "1"),), 45_000)),
    SideRecord(ProducerStateKey(LogPartition(0), ProducerId(1)), ProducerStateValue(0, 0, 0, 0)),
    SideRecord(
        ProducerStateKey(LogPartition(0), ProducerId(0)),
        ProducerStateValue(3, 7, 1_700_000_000_000, 1_700_000_000_001),
    ),
    SideRecord(
        ProducerGroupKey(LogPartition(49), ProducerId(2**62), GroupId("g\u00fc")),
        ProducerGroupValue(0),
    ),
    SideRecord(
        ProducerGroupKey(LogPartition(0), ProducerId(0), GroupId("g")),
        ProducerGroupValue(32_767, 0),
    ),
    SideRecord(
        TopicDeletionKey(ID),
        TopicDeletionValue(TopicName("t"), 1, (LogOffset(0), LogOffset((1 << 63) - 1))),
    ),
    SideRecord(
        AclSideKey(
            Acl(
                ResourcePattern(ResourceType.GROUP, "g\u00fc", PatternType.PREFIXED),
                Rule("User:a", "*", Operation.READ, Permission.DENY),
            )
        ),
        AclSideValue(),
    ),
    SideRecord(
        QuotaSideKey(QuotaEntity("\u00fc", "")),
        QuotaSideValue((("commit_rate", 0.5), ("request_percentage", 50.0))),
    ),
    SideRecord(QuotaSideKey(QuotaEntity(ip="10.0.0.1")), QuotaSideValue(())),
    SideRecord(QuotaSideKey(QuotaEntity("a", "b")), QuotaSideValue((("x", 1.0),))),
    SideRecord(
        ScramCredentialKey("\u00fc", ScramMechanism.SHA_512),
        ScramCredential(b"salt", 8_192, b"stored", b"server"),
    ),
    SideRecord(
        ScramCredentialKey("a", ScramMechanism.SHA_256), ScramCredential(b"", 4_096, b"s", b"t")
    ),
    SideRecord(FakeSaltSecretKey(), FakeSaltSecretValue(bytes(range(32)))),
    SideRecord(
        GroupPlaceKey(LogPartition(49), GroupId("gü")),
        GroupPlace(Place.MUSTER, 1_700_000_000_000, 7),
    ),
    SideRecord(GroupPlaceKey(LogPartition(0), GroupId("g")), GroupPlace(Place.RETURNING, 1)),
    SideRecord(GroupPlaceKey(LogPartition(0), GroupId("g")), GroupPlace(Place.TAKING, 0)),
    SideRecord(
        GroupResetKey(LogPartition(3), GroupId("gü")),
        GroupReset(
            7,
            1_700_000_000_000,
            "User:a",
            (ResetTopic(TopicName("t"), TopicId(bytes(range(16))), ((0, 5, -1, ""),)),),
            9,
        ),
    ),
    SideRecord(
        GroupFreezeKey(LogPartition(3), GroupId("gü")), GroupFreeze(1_700_000_000_000, "User:a")
    ),
]


@pytest.mark.parametrize("record", RECORDS)
def test_records_survive(record: SideRecord) -> None:
    assert decode_side(*encode_side(record)) == record
    tombstone = SideRecord(record.key, None)
    assert decode_side(*encode_side(tombstone)) == tombstone


@pytest.mark.parametrize("row", [(1, 6, 3, ""), (1, 6, -1, "beside it"), (1, 6, 0, "beside it")])
def test_what_a_reset_sets_beside_offsets_survives(row: OffsetRow) -> None:
    topics = (ResetTopic(TopicName("t"), TopicId(bytes(16)), ((0, 5, -1, ""), row)),)
    reset = GroupReset(7, 1, "User:a", topics, undoes=LogOffset(3))
    record = SideRecord(GroupResetKey(LogPartition(3), GroupId("g")), reset)
    assert decode_side(*encode_side(record)) == record


def test_the_racks_of_a_topic_survive() -> None:
    value = TopicSideValue(ID, 3, (("a", "b"), (), ("b",)))
    record = SideRecord(TopicSideKey(TopicName("t")), value)
    assert decode_side(*encode_side(record)) == record


def test_every_kind_of_the_model_has_bytes() -> None:
    assert {type(record.key) for record in RECORDS} == set(get_args(SideKey))
    assert {type(record.value) for record in RECORDS} == set(get_args(SideValue))
    kinds = {type(record.key): encode_side_key(record.key)[:1] for record in RECORDS}
    assert len(set(kinds.values())) == len(kinds)


def test_what_has_a_partition_is_of_that_log_partition() -> None:
    """A start reads the others for the whole server, and skips these."""
    for record in RECORDS:
        is_of_a_shard = isinstance(record.key, get_args(ShardSideKey))
        assert is_of_a_shard == hasattr(record.key, "partition")
        assert encode_side_key(record.key).startswith(SHARD_KINDS) == is_of_a_shard


def test_the_bytes_do_not_change() -> None:
    encoded = [encode_side(record) for record in RECORDS]
    assert [(key.hex(), (value or b"").hex()) for key, value in encoded] == [
        ("0174", "0a10" + ID.hex() + "1007"),
        ("01" + "c3bc" * 100, "0a10000000000000000000000000000000001001"),
        ("03" + ID.hex(), "0a0174108080b3c19c33"),
        ("0300000000000000000000000000000000", ""),
        ("02", ""),
        ("02", "08ffffffffffffffff7f"),
        ("04", "088080b3c19c33"),
        ("15", "088180b3c19c33"),
        ("0567c3bc", ""),
        ("0567", "0a060a01611201310a030a0162"),
        ("06000000314000000000000000", "08ffff0110ffffffffffffffffff011880d095ffbc31"),
        (
            "07000000030000000367c3bc6d",
            "0a1b0a046d696e6510ffffffffffffffffff01180320022a0200ff30050a070a056f74686572",
        ),
        (
            "080000000300000001676dc3bc",
            "080712046d696e6518ffffffffffffffffff01228002" + bytes(range(256)).hex(),
        ),
        ("0567", "0a060a016112013110c8df02"),
        ("06000000000000000000000001", "2000"),
        ("06000000000000000000000000", "080310071880d095ffbc312081d095ffbc31"),
        ("0900000031400000000000000067c3bc", ""),
        ("0900000000000000000000000067", "08ffff011000"),
        ("03" + ID.hex(), "0a017410011a0a00ffffffffffffffff7f"),
        ("0a030403020000000300000006" + "67c3bc" + b"User:a*".hex(), ""),
        (
            "0b0201000000000200000000c3bc",
            "0a160a0b636f6d6d69745f7261746511000000000000e03f"
            "0a1d0a12726571756573745f70657263656e74616765110000000000004940",
        ),
        ("0b0000020000000000000000" + b"10.0.0.1".hex(), ""),
        ("0b02020000000001000000016162", "0a0c0a017811000000000000f03f"),
        (
            "0c02c3bc",
            "0801120473616c7418804022067374" + "6f7265642a06736572766572",
        ),
        ("0c0161", "08011880202201732a0174"),
        ("0d", "08011220" + bytes(range(32)).hex()),
        ("0e0000003167c3bc", "08021080d095ffbc311807"),
        ("0e0000000067", "08031001"),
        ("0e0000000067", "0801"),
        (
            "140000000367c3bc",
            "08071080d095ffbc311a06557365723a61221b0a01741210"
            + bytes(range(16)).hex()
            + "1a01002201052809",
        ),
        ("160000000367c3bc", "0880d095ffbc311206" + b"User:a".hex()),
    ]


def test_topics_are_found_by_their_kind() -> None:
    for record in RECORDS:
        is_topic = isinstance(record.key, TopicSideKey)
        assert encode_side_key(record.key).startswith(TOPIC_KIND) == is_topic


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b""),
        (b"\x63x", b""),
        (b"\x01\xff", b""),
        (b"\x02x", b""),
        (b"\x03short", b""),
        (b"\x0a\x03\x04\x03", b""),
        (b"\x0a\x03\x04\x03\x02\0\0\0\x03\0\0\0\x06gUser:a", b""),
        (b"\x0b\x00\x00\x00" + bytes(8), b""),
        (b"\x0b\x02\x00\x00" + bytes(8), b""),
        (b"\x0b\x01\x00\x00\x00\x00\x00\x01" + bytes(4) + b"u", b""),
        (b"\x0b\x02\x00\x00\x00\x00\x00\x09" + bytes(4) + b"u", b""),
        (b"\x0b\x03\x00\x00\x00\x00\x00\x01" + bytes(4) + b"u", b""),
        (b"\x0b\x02", b""),
        (b"\x0a\x09\x04\x03\x02\0\0\0\x01\0\0\0\x01gu*", b""),
        (b"\x01t", b""),
        (b"\x01t", b"\x0a\x10" + bytes(16)),
        (b"\x01t", b"\xff\xff"),
        (b"\x02", b"\x0a\x10"),
        (b"\x03" + bytes(16), b"\x0a\x01\xff"),
        (b"\x07short", b""),
        (b"\x07" + bytes(4) + b"\x00\x00\x00\x02gm", b""),
        (b"\x08" + bytes(4) + b"\xff\xff\xff\xffgm", b""),
        (b"\x08" + bytes(4) + b"\x00\x00\x00\x01g", b""),
        (b"\x0c\x01", b"\x08\x01"),
        (b"\x0c\x01\xff", b"\x08\x01"),
        (b"\x0c\x01a", b""),
        (b"\x0c\x01a", b"\xff"),
        (b"\x0d", b"\x08\x01\x12\x01x"),
        (b"\x0dx", b"\x08\x01"),
        (b"\x0c", b"\x08\x01"),
    ],
)
def test_what_cannot_be_read(key: bytes, value: bytes) -> None:
    with pytest.raises(CodecError, match="side record"):
        decode_side(key, value)


@pytest.mark.parametrize("value", [TopicSideValue(ID, 1 << 31), ProducerIdBlockValue(1 << 63)])
def test_what_does_not_fit(value: Any) -> None:
    with pytest.raises(CodecError):
        encode_side_value(value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\x0c\x01a", side_pb2.ScramCredential(version=2).SerializeToString()),
        (b"\x0d", side_pb2.FakeSaltSecret(version=2).SerializeToString()),
        (b"\x0c\x03a", b""),
    ],
)
def test_credentials_of_a_newer_version_are_told_from_damage(key: bytes, value: bytes) -> None:
    with pytest.raises(FormatTooNew, match="this version reads up to 1: use a newer version"):
        decode_side(key, value)


def test_no_text_of_a_record_has_a_secret() -> None:
    for record in RECORDS:
        if encode_side_key(record.key).startswith(CREDENTIAL_KINDS):
            shown = f"{record!r} {record}"
            assert not any(secret in shown for secret in ("salt", "stored", "server", "\\x00"))
