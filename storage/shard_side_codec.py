"""Side records of one log partition: producers, client-side assignors, places of groups."""

from __future__ import annotations

import struct
from typing import Final, TypeVar, assert_never

from google.protobuf.message import Message

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
from model.log.side_records import (
    GroupFreezeKey,
    GroupPlaceKey,
    GroupResetKey,
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerStateKey,
    ProducerStateValue,
    ShardSideKey,
    ShardSideValue,
)
from model.places import GroupPlace, Place
from storage import side_pb2
from storage.codec.errors import CodecError

PRODUCER_STATE_KIND = b"\x06"
CLIENT_ASSIGNORS_KIND = b"\x07"
INSTALLED_METADATA_KIND = b"\x08"
PRODUCER_GROUP_KIND = b"\x09"
GROUP_PLACE_KIND = b"\x0e"
GROUP_RESET_KIND = b"\x14"
GROUP_FREEZE_KIND = b"\x16"

_PRODUCER = struct.Struct(">iq")
_PARTITION = struct.Struct(">i")
_GROUP_ID_SIZE = struct.Struct(">i")
NO_LEADER_EPOCH: Final = -1
_Cell = TypeVar("_Cell", int, str)
_PLACE_CODES: Final = {Place.TAKING: 1, Place.MUSTER: 2, Place.RETURNING: 3}
_PLACES: Final = {code: place for place, code in _PLACE_CODES.items()}

SHARD_KINDS = (
    PRODUCER_STATE_KIND,
    PRODUCER_GROUP_KIND,
    CLIENT_ASSIGNORS_KIND,
    INSTALLED_METADATA_KIND,
    GROUP_PLACE_KIND,
    GROUP_RESET_KIND,
    GROUP_FREEZE_KIND,
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


def encode_group_prefixes(partition: LogPartition) -> tuple[bytes, ...]:
    """The key prefixes of the places, resets and freezes of a log partition's groups."""
    packed = _PARTITION.pack(partition)
    return GROUP_PLACE_KIND + packed, GROUP_RESET_KIND + packed, GROUP_FREEZE_KIND + packed


def encode_shard_key(key: ShardSideKey) -> bytes:
    """Encode a key: the kind byte, then the name."""
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
        case GroupPlaceKey():
            return GROUP_PLACE_KIND + _PARTITION.pack(key.partition) + key.group_id.encode()
        case GroupResetKey():
            return GROUP_RESET_KIND + _PARTITION.pack(key.partition) + key.group_id.encode()
        case GroupFreezeKey():
            return GROUP_FREEZE_KIND + _PARTITION.pack(key.partition) + key.group_id.encode()
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


def compute_shard_message(value: ShardSideValue) -> Message:
    """The message of a value."""
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
        case GroupPlace():
            return side_pb2.GroupPlace(
                place=_PLACE_CODES[value.place],
                since_ms=value.since_ms,
                generation=value.generation,
            )
        case GroupReset():
            return _compute_reset(value)
        case GroupFreeze():
            return side_pb2.GroupFreeze(since_ms=value.since_ms, principal=value.principal)
        case _:
            assert_never(value)


def _compute_reset(reset: GroupReset) -> side_pb2.GroupReset:
    return side_pb2.GroupReset(
        group_epoch=reset.group_epoch,
        began_ms=reset.began_ms,
        principal=reset.principal,
        topics=[
            side_pb2.ResetTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[row[0] for row in topic.rows],
                offsets=[row[1] for row in topic.rows],
                leader_epochs=_unless_all([row[2] for row in topic.rows], NO_LEADER_EPOCH),
                metadata=_unless_all([row[3] for row in topic.rows], ""),
            )
            for topic in reset.topics
        ],
        set_at_ms=reset.set_at_ms,
        undoes=reset.undoes,
    )


def _unless_all(values: list[_Cell], usual: _Cell) -> list[_Cell]:
    """The values; none if all are what most resets have."""
    return values if any(value != usual for value in values) else []


def _compute_assignor(assignor: ClientAssignor) -> side_pb2.ClientAssignor:
    return side_pb2.ClientAssignor(
        name=assignor.name,
        minimum_version=assignor.minimum_version,
        maximum_version=assignor.maximum_version,
        version=assignor.version,
        metadata=assignor.metadata,
        reason=assignor.reason,
    )


def decode_shard_key(kind: bytes, name: bytes) -> ShardSideKey:
    """Decode a key; raises ``CodecError`` for other kinds."""
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
    if kind == GROUP_PLACE_KIND and len(name) > _PARTITION.size:
        (partition,) = _PARTITION.unpack_from(name)
        return GroupPlaceKey(LogPartition(partition), GroupId(name[_PARTITION.size :].decode()))
    if kind == GROUP_RESET_KIND and len(name) > _PARTITION.size:
        (partition,) = _PARTITION.unpack_from(name)
        return GroupResetKey(LogPartition(partition), GroupId(name[_PARTITION.size :].decode()))
    if kind == GROUP_FREEZE_KIND and len(name) > _PARTITION.size:
        (partition,) = _PARTITION.unpack_from(name)
        return GroupFreezeKey(LogPartition(partition), GroupId(name[_PARTITION.size :].decode()))
    raise CodecError("unknown kind, or a name that is invalid for its kind")


def decode_shard_value(key: ShardSideKey, data: bytes) -> ShardSideValue:
    """Decode the value of a key."""
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
        case GroupPlaceKey():
            found = side_pb2.GroupPlace.FromString(data)
            if found.place not in _PLACES:
                raise CodecError(f"unknown place {found.place}")
            return GroupPlace(_PLACES[found.place], found.since_ms, found.generation)
        case GroupResetKey():
            return _decode_reset(side_pb2.GroupReset.FromString(data))
        case GroupFreezeKey():
            freeze = side_pb2.GroupFreeze.FromString(data)
            return GroupFreeze(freeze.since_ms, freeze.principal)
        case _:
            assert_never(key)


def _decode_reset(message: side_pb2.GroupReset) -> GroupReset:
    topics = []
    for topic in message.topics:
        count = len(topic.partitions)
        epochs = topic.leader_epochs or [NO_LEADER_EPOCH] * count
        metadata = topic.metadata or [""] * count
        if not len(topic.offsets) == len(epochs) == len(metadata) == count:
            raise CodecError("a reset has not as many offsets as partitions")
        rows = tuple(zip(topic.partitions, topic.offsets, epochs, metadata, strict=True))
        topics.append(ResetTopic(TopicName(topic.name), TopicId(topic.topic_id), rows))
    return GroupReset(
        message.group_epoch,
        message.began_ms,
        message.principal,
        tuple(topics),
        message.set_at_ms,
        LogOffset(message.undoes) if message.HasField("undoes") else None,
    )


def _decode_assignor(message: side_pb2.ClientAssignor) -> ClientAssignor:
    return ClientAssignor(
        message.name,
        message.minimum_version,
        message.maximum_version,
        message.version,
        message.metadata,
        message.reason,
    )
