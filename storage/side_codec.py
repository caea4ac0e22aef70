"""Codec of side records: a key is a kind byte and a name, a value a ``muster.store.v1`` message."""

from __future__ import annotations

import struct
from typing import assert_never

from google.protobuf.message import DecodeError, Message

from model.client_assignors import (
    ClientAssignor,
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.ids import GroupId, LogOffset, LogPartition, MemberId, ProducerId, TopicId, TopicName
from model.log.side_records import (
    AclSideKey,
    AclSideValue,
    FakeSaltSecretKey,
    FakeSaltSecretValue,
    GroupConfigsSideKey,
    GroupConfigsSideValue,
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
    ShardSideValue,
    SideKey,
    SideRecord,
    SideValue,
    TopicDeletionKey,
    TopicDeletionValue,
    TopicSideKey,
    TopicSideValue,
)
from model.scram import ScramCredential
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

TOPIC_KIND = b"\x01"
PRODUCER_ID_BLOCK_KIND = b"\x02"
TOPIC_DELETION_KIND = b"\x03"
IMPORT_GRACE_KIND = b"\x04"
GROUP_CONFIGS_KIND = b"\x05"
PRODUCER_STATE_KIND = b"\x06"
CLIENT_ASSIGNORS_KIND = b"\x07"
INSTALLED_METADATA_KIND = b"\x08"
PRODUCER_GROUP_KIND = b"\x09"
ACL_KIND = b"\x0a"
QUOTA_KIND = b"\x0b"
SCRAM_CREDENTIAL_KIND = b"\x0c"
FAKE_SALT_SECRET_KIND = b"\x0d"
CREDENTIAL_KINDS = (SCRAM_CREDENTIAL_KIND, FAKE_SALT_SECRET_KIND)
"""Key prefixes of the kinds that leave a store only if that is asked for."""

_TOPIC_ID_SIZE = 16
_PRODUCER = struct.Struct(">iq")
_PARTITION = struct.Struct(">i")
_GROUP_ID_SIZE = struct.Struct(">i")


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


SHARD_KINDS = (
    PRODUCER_STATE_KIND,
    PRODUCER_GROUP_KIND,
    CLIENT_ASSIGNORS_KIND,
    INSTALLED_METADATA_KIND,
)
"""Key prefixes of the kinds whose records belong to one log partition."""


def encode_producer_prefixes(partition: LogPartition) -> tuple[bytes, bytes]:
    """The key prefixes of a log partition's producer states and producer groups."""
    packed = _PARTITION.pack(partition)
    return PRODUCER_STATE_KIND + packed, PRODUCER_GROUP_KIND + packed


def encode_client_assignor_prefixes(partition: LogPartition) -> tuple[bytes, bytes]:
    """The key prefixes of a log partition's client-side assignors and installed metadata."""
    packed = _PARTITION.pack(partition)
    return CLIENT_ASSIGNORS_KIND + packed, INSTALLED_METADATA_KIND + packed


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
            ProducerStateKey() | ProducerGroupKey() | ClientAssignorsKey() | InstalledMetadataKey()
        ):
            return _encode_shard_key(key)
        case _:
            assert_never(key)


def _encode_shard_key(key: ShardSideKey) -> bytes:
    match key:
        case ProducerStateKey():
            return PRODUCER_STATE_KIND + _PRODUCER.pack(key.partition, key.producer_id)
        case ProducerGroupKey():
            producer = _PRODUCER.pack(key.partition, key.producer_id)
            return PRODUCER_GROUP_KIND + producer + key.group_id.encode()
        case ClientAssignorsKey():
            return CLIENT_ASSIGNORS_KIND + _encode_member(key)
        case InstalledMetadataKey():
            return INSTALLED_METADATA_KIND + _encode_member(key)
        case _:
            assert_never(key)


def _encode_member(key: ClientAssignorsKey | InstalledMetadataKey) -> bytes:
    group_id = key.group_id.encode()
    size = _GROUP_ID_SIZE.pack(len(group_id))
    return _PARTITION.pack(key.partition) + size + group_id + key.member_id.encode()


def _decode_member(name: bytes) -> tuple[LogPartition, GroupId, MemberId]:
    try:
        (partition,) = _PARTITION.unpack_from(name)
        (size,) = _GROUP_ID_SIZE.unpack_from(name, _PARTITION.size)
    except struct.error as error:
        raise CodecError(str(error)) from None
    rest = name[_PARTITION.size + _GROUP_ID_SIZE.size :]
    if not 0 < size < len(rest):
        raise CodecError(f"group id of {size} bytes does not fit into {len(rest)} bytes of ids")
    group_id, member_id = rest[:size].decode(), rest[size:].decode()
    return LogPartition(partition), GroupId(group_id), MemberId(member_id)


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
        ):
            return _compute_shard_message(value)
        case _:
            assert_never(value)


def _compute_shard_message(value: ShardSideValue) -> Message:
    match value:
        case ProducerStateValue():
            return side_pb2.ProducerState(
                producer_epoch=value.producer_epoch,
                coordinator_epoch=value.coordinator_epoch,
                last_timestamp=value.last_timestamp,
                transaction_since_ms=None
                if value.transaction_since_ms < 0
                else value.transaction_since_ms,
            )
        case ProducerGroupValue():
            return side_pb2.ProducerGroup(
                producer_epoch=value.producer_epoch,
                timed_out_epoch=None if value.timed_out_epoch < 0 else value.timed_out_epoch,
            )
        case ClientAssignorsValue():
            return side_pb2.ClientAssignors(
                assignors=[_compute_assignor(assignor) for assignor in value.assignors]
            )
        case InstalledMetadataValue():
            return side_pb2.InstalledMetadata(
                assignment_epoch=value.assignment_epoch,
                assignor=value.assignor,
                version=value.version,
                metadata=value.metadata,
            )
        case _:
            assert_never(value)


def _compute_assignor(assignor: ClientAssignor) -> side_pb2.ClientAssignor:
    return side_pb2.ClientAssignor(
        name=assignor.name,
        minimum_version=assignor.minimum_version,
        maximum_version=assignor.maximum_version,
        version=assignor.version,
        metadata=assignor.metadata,
        reason=assignor.reason,
    )


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
    return _decode_shard_key(kind, name)


def _decode_shard_key(kind: bytes, name: bytes) -> ShardSideKey:
    if kind == PRODUCER_STATE_KIND and len(name) == _PRODUCER.size:
        partition, producer_id = _PRODUCER.unpack(name)
        return ProducerStateKey(LogPartition(partition), ProducerId(producer_id))
    if kind == PRODUCER_GROUP_KIND and len(name) > _PRODUCER.size:
        partition, producer_id = _PRODUCER.unpack_from(name)
        group_id = GroupId(name[_PRODUCER.size :].decode())
        return ProducerGroupKey(LogPartition(partition), ProducerId(producer_id), group_id)
    if kind == CLIENT_ASSIGNORS_KIND:
        return ClientAssignorsKey(*_decode_member(name))
    if kind == INSTALLED_METADATA_KIND:
        return InstalledMetadataKey(*_decode_member(name))
    raise CodecError("unknown kind, or a name that is invalid for its kind")


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
            ProducerStateKey() | ProducerGroupKey() | ClientAssignorsKey() | InstalledMetadataKey()
        ):
            return _decode_shard_value(key, data)
        case _:
            assert_never(key)


def _decode_shard_value(key: ShardSideKey, data: bytes) -> ShardSideValue:
    match key:
        case ProducerStateKey():
            state = side_pb2.ProducerState.FromString(data)
            return ProducerStateValue(
                state.producer_epoch,
                state.coordinator_epoch,
                state.last_timestamp,
                state.transaction_since_ms if state.HasField("transaction_since_ms") else -1,
            )
        case ProducerGroupKey():
            group = side_pb2.ProducerGroup.FromString(data)
            timed_out_epoch = group.timed_out_epoch if group.HasField("timed_out_epoch") else -1
            return ProducerGroupValue(group.producer_epoch, timed_out_epoch)
        case ClientAssignorsKey():
            named = side_pb2.ClientAssignors.FromString(data).assignors
            return ClientAssignorsValue(tuple(map(_decode_assignor, named)))
        case InstalledMetadataKey():
            installed = side_pb2.InstalledMetadata.FromString(data)
            return InstalledMetadataValue(
                installed.assignment_epoch,
                installed.assignor,
                installed.version,
                installed.metadata,
            )
        case _:
            assert_never(key)


def _decode_assignor(message: side_pb2.ClientAssignor) -> ClientAssignor:
    return ClientAssignor(
        message.name,
        message.minimum_version,
        message.maximum_version,
        message.version,
        message.metadata,
        message.reason,
    )
