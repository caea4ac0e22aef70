"""The schemas of share and streams groups' records: read for the tools, never interpreted here.

Facts of Kafka 4.3.0's group-coordinator messages. Their classes exist only to be shown as JSON.
"""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any

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
from storage.codec.record_schemas import NEVER_FLEXIBLE, RecordSchema
from storage.codec.schema import Field, Struct


def _key(*fields: Field) -> Struct:
    cls = make_dataclass("ForeignKey", [f.attr for f in fields], frozen=True, slots=True)
    return Struct(cls, fields, flexible_since=NEVER_FLEXIBLE)


def _value(*fields: Field) -> Struct:
    tags = ("unknown_tags", tuple, field(default=()))
    attributes: list[Any] = [*(f.attr for f in fields), tags]
    return Struct(make_dataclass("ForeignValue", attributes, frozen=True, slots=True), fields)


_GROUP_KEY = _key(Field("group_id", STRING))
_MEMBER_KEY = _key(Field("group_id", STRING), Field("member_id", STRING))

_TOPIC_PARTITIONS = _value(Field("topic_id", UUID), Field("partitions", Array(INT32_KIND)))
_TOPIC = _value(Field("topic_id", UUID), Field("topic_name", STRING))
_NAMED_TOPIC_PARTITIONS = _value(
    Field("topic_id", UUID), Field("topic_name", STRING), Field("partitions", Array(INT32_KIND))
)
_KEY_VALUE = _value(Field("key", STRING), Field("value", STRING))
_TARGET_METADATA = _value(
    Field("assignment_epoch", INT32_KIND),
    Field("assignment_timestamp", INT64_KIND, tag=0, default=0),
)

_SHARE_MEMBER = _value(
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("subscribed_topic_names", Array(STRING)),
)
_SHARE_GROUP = _value(Field("epoch", INT32_KIND), Field("metadata_hash", INT64_KIND))
_SHARE_TARGET = _value(Field("topic_partitions", Array(_TOPIC_PARTITIONS)))
_SHARE_CURRENT = _value(
    Field("member_epoch", INT32_KIND),
    Field("previous_member_epoch", INT32_KIND),
    Field("state", INT8_KIND),
    Field("assigned_partitions", Array(_TOPIC_PARTITIONS)),
)
_SHARE_STATE = _value(
    Field("initializing_topics", Array(_NAMED_TOPIC_PARTITIONS)),
    Field("initialized_topics", Array(_NAMED_TOPIC_PARTITIONS)),
    Field("deleting_topics", Array(_TOPIC)),
)

_STREAMS_GROUP = _value(
    Field("epoch", INT32_KIND),
    Field("metadata_hash", INT64_KIND),
    Field("validated_topology_epoch", INT32_KIND, tag=0, default=-1),
    Field("last_assignment_configs", Array(_KEY_VALUE), tag=1, default=()),
)
_ENDPOINT = _value(Field("host", STRING), Field("port", UINT16_KIND))
_STREAMS_MEMBER = _value(
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
_TASKS = Array(_value(Field("subtopology_id", STRING), Field("partitions", Array(INT32_KIND))))
_STREAMS_TARGET = _value(
    Field("active_tasks", _TASKS), Field("standby_tasks", _TASKS), Field("warmup_tasks", _TASKS)
)
_ASSIGNED_TASKS = Array(
    _value(
        Field("subtopology_id", STRING),
        Field("partitions", Array(INT32_KIND)),
        Field("assignment_epochs", Array(INT32_KIND), tag=0, default=(), nullable=True),
    )
)
_STREAMS_CURRENT = _value(
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
    Field("name", STRING),
    Field("partitions", INT32_KIND),
    Field("replication_factor", INT16_KIND),
    Field("topic_configs", Array(_KEY_VALUE)),
)
_COPARTITION_GROUP = _value(
    Field("source_topics", Array(INT16_KIND)),
    Field("source_topic_regex", Array(INT16_KIND)),
    Field("repartition_source_topics", Array(INT16_KIND)),
)
_SUBTOPOLOGY = _value(
    Field("subtopology_id", STRING),
    Field("source_topics", Array(STRING)),
    Field("source_topic_regex", Array(STRING)),
    Field("state_changelog_topics", Array(_TOPIC_INFO)),
    Field("repartition_sink_topics", Array(STRING)),
    Field("repartition_source_topics", Array(_TOPIC_INFO)),
    Field("copartition_groups", Array(_COPARTITION_GROUP)),
)
_STREAMS_TOPOLOGY = _value(Field("epoch", INT32_KIND), Field("subtopologies", Array(_SUBTOPOLOGY)))

FOREIGN_SCHEMAS: dict[int, tuple[str, RecordSchema]] = {
    10: ("SHARE_GROUP_MEMBER_METADATA", RecordSchema(_MEMBER_KEY, _SHARE_MEMBER)),
    11: ("SHARE_GROUP_METADATA", RecordSchema(_GROUP_KEY, _SHARE_GROUP)),
    12: ("SHARE_GROUP_TARGET_ASSIGNMENT_METADATA", RecordSchema(_GROUP_KEY, _TARGET_METADATA)),
    13: ("SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER", RecordSchema(_MEMBER_KEY, _SHARE_TARGET)),
    14: ("SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", RecordSchema(_MEMBER_KEY, _SHARE_CURRENT)),
    15: ("SHARE_GROUP_STATE_PARTITION_METADATA", RecordSchema(_GROUP_KEY, _SHARE_STATE)),
    17: ("STREAMS_GROUP_METADATA", RecordSchema(_GROUP_KEY, _STREAMS_GROUP)),
    19: ("STREAMS_GROUP_MEMBER_METADATA", RecordSchema(_MEMBER_KEY, _STREAMS_MEMBER)),
    20: ("STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA", RecordSchema(_GROUP_KEY, _TARGET_METADATA)),
    21: ("STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER", RecordSchema(_MEMBER_KEY, _STREAMS_TARGET)),
    22: ("STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT", RecordSchema(_MEMBER_KEY, _STREAMS_CURRENT)),
    23: ("STREAMS_GROUP_TOPOLOGY", RecordSchema(_GROUP_KEY, _STREAMS_TOPOLOGY)),
}
"""Kafka's name of each type, and its schema."""
