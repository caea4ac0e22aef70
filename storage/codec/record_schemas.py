"""Schemas of the record types that the coordinator reads and writes: 0 to 8 and 16.

From the group-coordinator messages of Kafka 4.3.0. The version of a key is its record type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model.ids import ZERO_TOPIC_ID
from model.log import records as model
from model.log.records import RecordType
from storage.codec.kinds import (
    BYTES,
    INT8_KIND,
    INT32_KIND,
    INT64_KIND,
    STRING,
    UUID,
    Array,
)
from storage.codec.record_fields import Field, Struct

NEVER_FLEXIBLE = 0x8000
"""Above every version, so the struct never has tagged fields."""


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """A record type: its key, its value, and the highest known version of the value."""

    key: Struct
    value: Struct
    max_version: int = 0


def _key(cls: Any, *fields: Field) -> Struct:
    return Struct(cls, fields, flexible_since=NEVER_FLEXIBLE)


_GROUP = Field("group", STRING)
_GROUP_ID = Field("group_id", STRING)
_MEMBER_ID = Field("member_id", STRING)
_OFFSET_KEY = (_GROUP, Field("topic", STRING), Field("partition", INT32_KIND))

_LEGACY_OFFSET_COMMIT = Struct(
    model.LegacyOffsetCommitValue,
    (
        Field("offset", INT64_KIND),
        Field("metadata", STRING),
        Field("commit_timestamp", INT64_KIND),
    ),
    flexible_since=NEVER_FLEXIBLE,
)

_OFFSET_COMMIT = Struct(
    model.OffsetCommitValue,
    (
        Field("offset", INT64_KIND),
        Field("leader_epoch", INT32_KIND, since=3, default=-1),
        Field("metadata", STRING),
        Field("commit_timestamp", INT64_KIND),
        Field("expire_timestamp", INT64_KIND, since=1, until=1, default=-1),
        Field("topic_id", UUID, since=4, tag=0, default=ZERO_TOPIC_ID),
    ),
    flexible_since=4,
)

_CLASSIC_GROUP_MEMBER = Struct(
    model.ClassicGroupMember,
    (
        _MEMBER_ID,
        Field("group_instance_id", STRING, since=3, nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("rebalance_timeout", INT32_KIND, since=1, default=-1),
        Field("session_timeout", INT32_KIND),
        Field("subscription", BYTES),
        Field("assignment", BYTES),
    ),
)

_GROUP_METADATA = Struct(
    model.GroupMetadataValue,
    (
        Field("protocol_type", STRING),
        Field("generation", INT32_KIND),
        Field("protocol", STRING, nullable=True),
        Field("leader", STRING, nullable=True),
        Field("current_state_timestamp", INT64_KIND, since=2, default=-1),
        Field("members", Array(_CLASSIC_GROUP_MEMBER)),
    ),
    flexible_since=4,
)

_CONSUMER_GROUP_METADATA = Struct(
    model.ConsumerGroupMetadataValue,
    (Field("epoch", INT32_KIND), Field("metadata_hash", INT64_KIND, tag=0, default=0)),
)

_PARTITION_RACKS = Struct(
    model.PartitionRacks, (Field("partition", INT32_KIND), Field("racks", Array(STRING)))
)

_SUBSCRIBED_TOPIC_METADATA = Struct(
    model.SubscribedTopicMetadata,
    (
        Field("topic_id", UUID),
        Field("topic_name", STRING),
        Field("num_partitions", INT32_KIND),
        Field("partition_metadata", Array(_PARTITION_RACKS)),
    ),
)

_CONSUMER_GROUP_PARTITION_METADATA = Struct(
    model.ConsumerGroupPartitionMetadataValue,
    (Field("topics", Array(_SUBSCRIBED_TOPIC_METADATA)),),
)

_CLASSIC_PROTOCOL = Struct(model.ClassicProtocol, (Field("name", STRING), Field("metadata", BYTES)))

_CLASSIC_MEMBER_METADATA = Struct(
    model.ClassicMemberMetadata,
    (
        Field("session_timeout_ms", INT32_KIND),
        Field("supported_protocols", Array(_CLASSIC_PROTOCOL)),
    ),
)

_CONSUMER_GROUP_MEMBER_METADATA = Struct(
    model.ConsumerGroupMemberMetadataValue,
    (
        Field("instance_id", STRING, nullable=True),
        Field("rack_id", STRING, nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("subscribed_topic_names", Array(STRING)),
        Field("subscribed_topic_regex", STRING, nullable=True),
        Field("rebalance_timeout_ms", INT32_KIND),
        Field("server_assignor", STRING, nullable=True),
        Field(
            "classic_member_metadata",
            _CLASSIC_MEMBER_METADATA,
            tag=0,
            # Kafka's default is an empty struct, so an explicit null must be written.
            default=model.ClassicMemberMetadata(0, ()),
            nullable=True,
        ),
    ),
)

_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = Struct(
    model.ConsumerGroupTargetAssignmentMetadataValue,
    (
        Field("assignment_epoch", INT32_KIND),
        Field("assignment_timestamp", INT64_KIND, tag=0, default=0),
    ),
)

_TOPIC_PARTITIONS = Struct(
    model.TopicPartitions, (Field("topic_id", UUID), Field("partitions", Array(INT32_KIND)))
)

_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = Struct(
    model.ConsumerGroupTargetAssignmentMemberValue,
    (Field("topic_partitions", Array(_TOPIC_PARTITIONS)),),
)

_ASSIGNED_TOPIC_PARTITIONS = Struct(
    model.AssignedTopicPartitions,
    (
        Field("topic_id", UUID),
        Field("partitions", Array(INT32_KIND)),
        # Omitted if empty. Null is not the default, so an explicit null must be written.
        Field("assignment_epochs", Array(INT32_KIND), tag=0, default=(), nullable=True),
    ),
)

_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = Struct(
    model.ConsumerGroupCurrentMemberAssignmentValue,
    (
        Field("member_epoch", INT32_KIND),
        Field("previous_member_epoch", INT32_KIND),
        Field("state", INT8_KIND),
        Field("assigned_partitions", Array(_ASSIGNED_TOPIC_PARTITIONS)),
        Field("partitions_pending_revocation", Array(_ASSIGNED_TOPIC_PARTITIONS)),
    ),
)

_CONSUMER_GROUP_REGULAR_EXPRESSION = Struct(
    model.ConsumerGroupRegularExpressionValue,
    (
        Field("topics", Array(STRING)),
        Field("version", INT64_KIND),
        Field("timestamp", INT64_KIND),
    ),
)

RECORD_SCHEMAS: dict[int, RecordSchema] = {
    RecordType.LEGACY_OFFSET_COMMIT: RecordSchema(
        _key(model.LegacyOffsetCommitKey, *_OFFSET_KEY), _LEGACY_OFFSET_COMMIT
    ),
    RecordType.OFFSET_COMMIT: RecordSchema(
        _key(model.OffsetCommitKey, *_OFFSET_KEY), _OFFSET_COMMIT, max_version=4
    ),
    RecordType.GROUP_METADATA: RecordSchema(
        _key(model.GroupMetadataKey, _GROUP), _GROUP_METADATA, max_version=4
    ),
    RecordType.CONSUMER_GROUP_METADATA: RecordSchema(
        _key(model.ConsumerGroupMetadataKey, _GROUP_ID), _CONSUMER_GROUP_METADATA
    ),
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: RecordSchema(
        _key(model.ConsumerGroupPartitionMetadataKey, _GROUP_ID),
        _CONSUMER_GROUP_PARTITION_METADATA,
    ),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: RecordSchema(
        _key(model.ConsumerGroupMemberMetadataKey, _GROUP_ID, _MEMBER_ID),
        _CONSUMER_GROUP_MEMBER_METADATA,
    ),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: RecordSchema(
        _key(model.ConsumerGroupTargetAssignmentMetadataKey, _GROUP_ID),
        _CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    ),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: RecordSchema(
        _key(model.ConsumerGroupTargetAssignmentMemberKey, _GROUP_ID, _MEMBER_ID),
        _CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: RecordSchema(
        _key(model.ConsumerGroupCurrentMemberAssignmentKey, _GROUP_ID, _MEMBER_ID),
        _CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RecordSchema(
        _key(
            model.ConsumerGroupRegularExpressionKey,
            _GROUP_ID,
            Field("regular_expression", STRING),
        ),
        _CONSUMER_GROUP_REGULAR_EXPRESSION,
    ),
}
