"""Records of streams groups (KIP-1071), types 17 and 19 to 23, as Kafka 4.3 defines them.

Muster stores, shows and exports them; it does not serve streams groups. See ``model.log.records``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.value import value

_Tags: TypeAlias = tuple[tuple[int, bytes], ...]


class StreamsMemberState(IntEnum):
    """A member's reconciliation state; the numbers differ from those of consumer groups."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


@value
class StreamsGroupMetadataKey:
    """Type 17."""

    group_id: GroupId


@value
class StreamsGroupMemberMetadataKey:
    """Type 19."""

    group_id: GroupId
    member_id: MemberId


@value
class StreamsGroupTargetAssignmentMetadataKey:
    """Type 20."""

    group_id: GroupId


@value
class StreamsGroupTargetAssignmentMemberKey:
    """Type 21."""

    group_id: GroupId
    member_id: MemberId


@value
class StreamsGroupCurrentMemberAssignmentKey:
    """Type 22."""

    group_id: GroupId
    member_id: MemberId


@value
class StreamsGroupTopologyKey:
    """Type 23."""

    group_id: GroupId


StreamsRecordKey: TypeAlias = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)

# -------------------------------------------------------------------------------------- values


@value
class StreamsKeyValue:
    """A client tag or a config."""

    key: str
    value: str
    unknown_tags: _Tags = ()


@value
class StreamsGroupMetadataValue:
    """Type 17: the group epoch. ``validated_topology_epoch`` is tag 0, -1 for none."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[StreamsKeyValue, ...] = ()
    unknown_tags: _Tags = ()


@value
class StreamsEndpoint:
    """The endpoint at which a member answers interactive queries."""

    host: str
    port: int
    unknown_tags: _Tags = ()


@value
class StreamsGroupMemberMetadataValue:
    """Type 19: a member's own metadata."""

    instance_id: InstanceId | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsEndpoint | None
    client_tags: tuple[StreamsKeyValue, ...]
    unknown_tags: _Tags = ()


@value
class StreamsGroupTargetAssignmentMetadataValue:
    """Type 20. ``assignment_timestamp`` is tag 0, wall ms, 0 for none."""

    assignment_epoch: int
    assignment_timestamp: int = 0
    unknown_tags: _Tags = ()


@value
class StreamsTaskIds:
    """Tasks of one subtopology."""

    subtopology_id: str
    partitions: tuple[int, ...]
    unknown_tags: _Tags = ()


@value
class StreamsGroupTargetAssignmentMemberValue:
    """Type 21: the target assignment of one member."""

    active_tasks: tuple[StreamsTaskIds, ...]
    standby_tasks: tuple[StreamsTaskIds, ...]
    warmup_tasks: tuple[StreamsTaskIds, ...]
    unknown_tags: _Tags = ()


@value
class StreamsAssignedTaskIds:
    """Tasks of one subtopology that a member has; ``assignment_epochs`` is tag 0."""

    subtopology_id: str
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = ()
    unknown_tags: _Tags = ()


@value
class StreamsGroupCurrentMemberAssignmentValue:
    """Type 22: a member's current assignment. ``state`` is a ``StreamsMemberState`` as int8."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: tuple[StreamsAssignedTaskIds, ...]
    standby_tasks: tuple[StreamsAssignedTaskIds, ...]
    warmup_tasks: tuple[StreamsAssignedTaskIds, ...]
    active_tasks_pending_revocation: tuple[StreamsAssignedTaskIds, ...]
    standby_tasks_pending_revocation: tuple[StreamsAssignedTaskIds, ...]
    warmup_tasks_pending_revocation: tuple[StreamsAssignedTaskIds, ...]
    unknown_tags: _Tags = ()


@value
class StreamsTopicInfo:
    """An internal topic; ``partitions`` is 0 if the coordinator chooses the number."""

    name: TopicName
    partitions: int
    replication_factor: int
    topic_configs: tuple[StreamsKeyValue, ...]
    unknown_tags: _Tags = ()


@value
class StreamsCopartitionGroup:
    """Indexes of topics within a subtopology that must have the same partition count."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]
    unknown_tags: _Tags = ()


@value
class StreamsSubtopology:
    """One subtopology within ``StreamsGroupTopologyValue``."""

    subtopology_id: str
    source_topics: tuple[TopicName, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopicInfo, ...]
    repartition_sink_topics: tuple[TopicName, ...]
    repartition_source_topics: tuple[StreamsTopicInfo, ...]
    copartition_groups: tuple[StreamsCopartitionGroup, ...]
    unknown_tags: _Tags = ()


@value
class StreamsGroupTopologyValue:
    """Type 23."""

    epoch: int
    subtopologies: tuple[StreamsSubtopology, ...]
    unknown_tags: _Tags = ()


StreamsRecordValue: TypeAlias = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupTopologyValue
)
