"""Codec of side records: a key is a kind byte and a name, a value a ``muster.store.v1`` message."""

from __future__ import annotations

from typing import assert_never

from google.protobuf.message import DecodeError, Message

from model.access.scram import ScramCredential
from model.client_assignors import (
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.group_freeze import GroupFreeze
from model.group_resets import GroupReset
from model.ids import GroupId, LogOffset, TopicId, TopicName
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
from model.places import GroupPlace
from storage import side_pb2
from storage.access_side_codec import (
    compute_access_message,
    decode_access_value,
    decode_acl,
    decode_entity,
    encode_acl,
    encode_entity,
)
from storage.codec.errors import CodecError
from storage.scram_side_codec import (
    compute_scram_message,
    compute_secret_message,
    decode_scram_credential,
    decode_scram_key,
    decode_secret,
    encode_scram_name,
)
from storage.shard_side_codec import (
    compute_shard_message,
    decode_shard_key,
    decode_shard_value,
    encode_shard_key,
)

TOPIC_KIND = b"\x01"
PRODUCER_ID_BLOCK_KIND = b"\x02"
TOPIC_DELETION_KIND = b"\x03"
IMPORT_GRACE_KIND = b"\x04"
GROUP_CONFIGS_KIND = b"\x05"
ACL_KIND = b"\x0a"
QUOTA_KIND = b"\x0b"
SCRAM_CREDENTIAL_KIND = b"\x0c"
FAKE_SALT_SECRET_KIND = b"\x0d"
TOKEN_START_KIND = b"\x15"
CREDENTIAL_KINDS = (SCRAM_CREDENTIAL_KIND, FAKE_SALT_SECRET_KIND)
"""Key prefixes of the kinds that leave a store only if that is asked for."""

_TOPIC_ID_SIZE = 16


def encode_side(record: SideRecord) -> tuple[bytes, bytes | None]:
    """Encode a record as the key and value that ``LogStore.write`` takes."""
    value = None if record.value is None else encode_side_value(record.value)
    return encode_side_key(record.key), value


def decode_side(key: bytes, value: bytes | None) -> SideRecord:
    """Decode a record; raises ``CodecError`` for an unknown kind or an invalid value.

    Raises ``FormatTooNew`` for credentials that only a newer version can read.
    """
    try:
        side_key = _decode_key(key)
        return SideRecord(side_key, None if value is None else _decode_value(side_key, value))
    except (UnicodeDecodeError, DecodeError, CodecError) as error:
        raise CodecError(f"side record {key.hex()}: {error}") from None


def encode_side_key(key: SideKey) -> bytes:
    """Encode a key: the kind byte, then the name."""
    match key:
        case TopicSideKey():
            return TOPIC_KIND + key.topic.encode()
        case TopicDeletionKey():
            return TOPIC_DELETION_KIND + key.topic_id
        case ProducerIdBlockKey():
            return PRODUCER_ID_BLOCK_KIND
        case ImportGraceKey():
            return IMPORT_GRACE_KIND
        case TokenStartKey():
            return TOKEN_START_KIND
        case GroupConfigsSideKey():
            return GROUP_CONFIGS_KIND + key.group_id.encode()
        case AclSideKey():
            return ACL_KIND + encode_acl(key.acl)
        case QuotaSideKey():
            return QUOTA_KIND + encode_entity(key.entity)
        case ScramCredentialKey():
            return SCRAM_CREDENTIAL_KIND + encode_scram_name(key)
        case FakeSaltSecretKey():
            return FAKE_SALT_SECRET_KIND
        case (
            ProducerStateKey()
            | ProducerGroupKey()
            | ClientAssignorsKey()
            | InstalledMetadataKey()
            | GroupPlaceKey()
            | GroupResetKey()
            | GroupFreezeKey()
        ):
            return encode_shard_key(key)
        case _:
            assert_never(key)


def encode_side_value(value: SideValue) -> bytes:
    """Encode a value as a message; raises ``CodecError`` if a field is out of range."""
    try:
        return _compute_message(value).SerializeToString(deterministic=True)
    except (ValueError, TypeError) as error:
        raise CodecError(f"{type(value).__name__}: {error}") from None


def _compute_message(value: SideValue) -> Message:
    match value:
        case TopicSideValue():
            racks = [side_pb2.Racks(names=names) for names in value.racks]
            return side_pb2.Topic(topic_id=value.topic_id, partitions=value.partitions, racks=racks)
        case TopicDeletionValue():
            return side_pb2.TopicDeletion(
                topic=value.topic, deleted_at_ms=value.deleted_at_ms, log_ends=value.log_ends
            )
        case ProducerIdBlockValue():
            return side_pb2.ProducerIdBlock(next_producer_id=value.next_producer_id)
        case ImportGraceValue():
            return side_pb2.ImportGrace(imported_at_ms=value.imported_at_ms)
        case TokenStartValue():
            return side_pb2.TokenStart(wall_ms=value.wall_ms)
        case GroupConfigsSideValue():
            return side_pb2.GroupConfigs(
                configs=[side_pb2.Config(name=name, value=text) for name, text in value.configs],
                longest_session_timeout_ms=value.longest_session_timeout_ms,
            )
        case AclSideValue() | QuotaSideValue():
            return compute_access_message(value)
        case ScramCredential():
            return compute_scram_message(value)
        case FakeSaltSecretValue():
            return compute_secret_message(value)
        case (
            ProducerStateValue()
            | ProducerGroupValue()
            | ClientAssignorsValue()
            | InstalledMetadataValue()
            | GroupPlace()
            | GroupReset()
            | GroupFreeze()
        ):
            return compute_shard_message(value)
        case _:
            assert_never(value)


def _decode_key(key: bytes) -> SideKey:
    kind, name = key[:1], key[1:]
    if kind == TOPIC_KIND:
        return TopicSideKey(TopicName(name.decode()))
    if kind == TOPIC_DELETION_KIND and len(name) == _TOPIC_ID_SIZE:
        return TopicDeletionKey(TopicId(name))
    if kind == PRODUCER_ID_BLOCK_KIND and not name:
        return ProducerIdBlockKey()
    if kind == IMPORT_GRACE_KIND and not name:
        return ImportGraceKey()
    if kind == TOKEN_START_KIND and not name:
        return TokenStartKey()
    if kind == GROUP_CONFIGS_KIND and name:
        return GroupConfigsSideKey(GroupId(name.decode()))
    if kind == ACL_KIND:
        return AclSideKey(decode_acl(name))
    if kind == QUOTA_KIND:
        return QuotaSideKey(decode_entity(name))
    if kind == SCRAM_CREDENTIAL_KIND and name:
        return decode_scram_key(name)
    if kind == FAKE_SALT_SECRET_KIND and not name:
        return FakeSaltSecretKey()
    return decode_shard_key(kind, name)


def _decode_value(key: SideKey, data: bytes) -> SideValue:
    match key:
        case TopicSideKey():
            topic = side_pb2.Topic.FromString(data)
            if len(topic.topic_id) != _TOPIC_ID_SIZE or topic.partitions < 1:
                raise CodecError(
                    f"invalid topic: topic id of {len(topic.topic_id)} bytes, "
                    f"{topic.partitions} partitions"
                )
            racks = tuple(tuple(each.names) for each in topic.racks)
            return TopicSideValue(TopicId(topic.topic_id), topic.partitions, racks)
        case TopicDeletionKey():
            deletion = side_pb2.TopicDeletion.FromString(data)
            log_ends = tuple(map(LogOffset, deletion.log_ends))
            return TopicDeletionValue(TopicName(deletion.topic), deletion.deleted_at_ms, log_ends)
        case ProducerIdBlockKey():
            block = side_pb2.ProducerIdBlock.FromString(data)
            return ProducerIdBlockValue(block.next_producer_id)
        case ImportGraceKey():
            return ImportGraceValue(side_pb2.ImportGrace.FromString(data).imported_at_ms)
        case TokenStartKey():
            return TokenStartValue(side_pb2.TokenStart.FromString(data).wall_ms)
        case GroupConfigsSideKey():
            message = side_pb2.GroupConfigs.FromString(data)
            own = tuple((config.name, config.value) for config in message.configs)
            return GroupConfigsSideValue(own, message.longest_session_timeout_ms)
        case AclSideKey() | QuotaSideKey():
            return decode_access_value(key, data)
        case ScramCredentialKey():
            return decode_scram_credential(data)
        case FakeSaltSecretKey():
            return decode_secret(data)
        case (
            ProducerStateKey()
            | ProducerGroupKey()
            | ClientAssignorsKey()
            | InstalledMetadataKey()
            | GroupPlaceKey()
            | GroupResetKey()
            | GroupFreezeKey()
        ):
            return decode_shard_value(key, data)
        case _:
            assert_never(key)
