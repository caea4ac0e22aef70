"""Schemas of the records of share and streams groups: types 10 to 15, 17 and 19 to 23.

From the group-coordinator messages of Kafka 4.3.0. The version of a key is its record type.
"""

from __future__ import annotations

from typing import Any

from model.log import share_records as share
from model.log import streams_records as streams
from model.log.records import RecordType
from storage.codec.kinds import (
    INT8_KIND,
    INT16_KIND,
    INT32_KIND,
    INT64_KIND,
    STRING,
    UINT16_KIND,
    UUID,
    Array,
)
from storage.codec.record_fields import Field, Struct
from storage.codec.record_schemas import NEVER_FLEXIBLE, RecordSchema

_GROUP_ID = Field("group_id", STRING)
_MEMBER_ID = Field("member_id", STRING)


def _of_group(cls: Any) -> Struct:
    return Struct(cls, (_GROUP_ID,), flexible_since=NEVER_FLEXIBLE)


def _of_member(cls: Any) -> Struct:
    return Struct(cls, (_GROUP_ID, _MEMBER_ID), flexible_since=NEVER_FLEXIBLE)


def _value(cls: Any, *fields: Field) -> Struct:
    return Struct(cls, fields)


_TARGET_METADATA = (
    Field("assignment_epoch", INT32_KIND),
    Field("assignment_timestamp", INT64_KIND, tag=0, default=0),
)

# --------------------------------------------------------------------------------- share groups

_TOPIC_PARTITIONS = _value(
    share.ShareTopicPartitions, Field("topic_id", UUID), Field("partitions", Array(INT32_KIND))
)
_TOPIC = _value(share.ShareTopicInfo, Field("topic_id", UUID), Field("topic_name", STRING))
_NAMED_TOPIC_PARTITIONS = _value(
    share.SharePartitionsInfo,
    Field("topic_id", UUID),
    Field("topic_name", STRING),
    Field("partitions", Array(INT32_KIND)),
)

_SHARE_MEMBER = _value(
    share.ShareGroupMemberMetadataValue,
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("subscribed_topic_names", Array(STRING)),
)
_SHARE_GROUP = _value(
    share.ShareGroupMetadataValue,
    Field("epoch", INT32_KIND),
    Field("metadata_hash", INT64_KIND),
)
_SHARE_TARGET_METADATA = _value(share.ShareGroupTargetAssignmentMetadataValue, *_TARGET_METADATA)
_SHARE_TARGET = _value(
    share.ShareGroupTargetAssignmentMemberValue,
    Field("topic_partitions", Array(_TOPIC_PARTITIONS)),
)
_SHARE_CURRENT = _value(
    share.ShareGroupCurrentMemberAssignmentValue,
    Field("member_epoch", INT32_KIND),
    Field("previous_member_epoch", INT32_KIND),
    Field("state", INT8_KIND),
    Field("assigned_partitions", Array(_TOPIC_PARTITIONS)),
)
_SHARE_STATE = _value(
    share.ShareGroupStatePartitionMetadataValue,
    Field("initializing_topics", Array(_NAMED_TOPIC_PARTITIONS)),
    Field("initialized_topics", Array(_NAMED_TOPIC_PARTITIONS)),
    Field("deleting_topics", Array(_TOPIC)),
)

# ------------------------------------------------------------------------------- streams groups

_KEY_VALUE = _value(streams.StreamsKeyValue, Field("key", STRING), Field("value", STRING))
_STREAMS_GROUP = _value(
    streams.StreamsGroupMetadataValue,
    Field("epoch", INT32_KIND),
    Field("metadata_hash", INT64_KIND),
    Field("validated_topology_epoch", INT32_KIND, tag=0, default=-1),
    Field("last_assignment_configs", Array(_KEY_VALUE), tag=1, default=()),
)
_ENDPOINT = _value(streams.StreamsEndpoint, Field("host", STRING), Field("port", UINT16_KIND))
_STREAMS_MEMBER = _value(
    streams.StreamsGroupMemberMetadataValue,
    Field("instance_id", STRING, nullable=True),
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("rebalance_timeout_ms", INT32_KIND),
    Field("topology_epoch", INT32_KIND),
    Field("process_id", STRING),
    Field("user_endpoint", _ENDPOINT, nullable=True),
    Field("client_tags", Array(_KEY_VALUE)),
)
_TASKS = Array(
    _value(
        streams.StreamsTaskIds,
        Field("subtopology_id", STRING),
        Field("partitions", Array(INT32_KIND)),
    )
)
_STREAMS_TARGET_METADATA = _value(
    streams.StreamsGroupTargetAssignmentMetadataValue, *_TARGET_METADATA
)
_STREAMS_TARGET = _value(
    streams.StreamsGroupTargetAssignmentMemberValue,
    Field("active_tasks", _TASKS),
    Field("standby_tasks", _TASKS),
    Field("warmup_tasks", _TASKS),
)
_ASSIGNED_TASKS = Array(
    _value(
        streams.StreamsAssignedTaskIds,
        Field("subtopology_id", STRING),
        Field("partitions", Array(INT32_KIND)),
        Field("assignment_epochs", Array(INT32_KIND), tag=0, default=(), nullable=True),
    )
)
_STREAMS_CURRENT = _value(
    streams.StreamsGroupCurrentMemberAssignmentValue,
    Field("member_epoch", INT32_KIND),
    Field("previous_member_epoch", INT32_KIND),
    Field("state", INT8_KIND),
    Field("active_tasks", _ASSIGNED_TASKS),
    Field("standby_tasks", _ASSIGNED_TASKS),
    Field("warmup_tasks", _ASSIGNED_TASKS),
    Field("active_tasks_pending_revocation", _ASSIGNED_TASKS),
    Field("standby_tasks_pending_revocation", _ASSIGNED_TASKS),
    Field("warmup_tasks_pending_revocation", _ASSIGNED_TASKS),
)
_TOPIC_INFO = _value(
    streams.StreamsTopicInfo,
    Field("name", STRING),
    Field("partitions", INT32_KIND),
    Field("replication_factor", INT16_KIND),
    Field("topic_configs", Array(_KEY_VALUE)),
)
_COPARTITION_GROUP = _value(
    streams.StreamsCopartitionGroup,
    Field("source_topics", Array(INT16_KIND)),
    Field("source_topic_regex", Array(INT16_KIND)),
    Field("repartition_source_topics", Array(INT16_KIND)),
)
_SUBTOPOLOGY = _value(
    streams.StreamsSubtopology,
    Field("subtopology_id", STRING),
    Field("source_topics", Array(STRING)),
    Field("source_topic_regex", Array(STRING)),
    Field("state_changelog_topics", Array(_TOPIC_INFO)),
    Field("repartition_sink_topics", Array(STRING)),
    Field("repartition_source_topics", Array(_TOPIC_INFO)),
    Field("copartition_groups", Array(_COPARTITION_GROUP)),
)
_STREAMS_TOPOLOGY = _value(
    streams.StreamsGroupTopologyValue,
    Field("epoch", INT32_KIND),
    Field("subtopologies", Array(_SUBTOPOLOGY)),
)

FOREIGN_SCHEMAS: dict[int, RecordSchema] = {
    RecordType.SHARE_GROUP_MEMBER_METADATA: RecordSchema(
        _of_member(share.ShareGroupMemberMetadataKey), _SHARE_MEMBER
    ),
    RecordType.SHARE_GROUP_METADATA: RecordSchema(
        _of_group(share.ShareGroupMetadataKey), _SHARE_GROUP
    ),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: RecordSchema(
        _of_group(share.ShareGroupTargetAssignmentMetadataKey), _SHARE_TARGET_METADATA
    ),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: RecordSchema(
        _of_member(share.ShareGroupTargetAssignmentMemberKey), _SHARE_TARGET
    ),
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: RecordSchema(
        _of_member(share.ShareGroupCurrentMemberAssignmentKey), _SHARE_CURRENT
    ),
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: RecordSchema(
        _of_group(share.ShareGroupStatePartitionMetadataKey), _SHARE_STATE
    ),
    RecordType.STREAMS_GROUP_METADATA: RecordSchema(
        _of_group(streams.StreamsGroupMetadataKey), _STREAMS_GROUP
    ),
    RecordType.STREAMS_GROUP_MEMBER_METADATA: RecordSchema(
        _of_member(streams.StreamsGroupMemberMetadataKey), _STREAMS_MEMBER
    ),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: RecordSchema(
        _of_group(streams.StreamsGroupTargetAssignmentMetadataKey), _STREAMS_TARGET_METADATA
    ),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: RecordSchema(
        _of_member(streams.StreamsGroupTargetAssignmentMemberKey), _STREAMS_TARGET
    ),
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: RecordSchema(
        _of_member(streams.StreamsGroupCurrentMemberAssignmentKey), _STREAMS_CURRENT
    ),
    RecordType.STREAMS_GROUP_TOPOLOGY: RecordSchema(
        _of_group(streams.StreamsGroupTopologyKey), _STREAMS_TOPOLOGY
    ),
}
"""Schemas by record type."""
