"""Records of share groups (KIP-932), types 10 to 15, as Kafka 4.3 defines them.

Muster stores, shows and exports them; it does not serve share groups. See ``model.log.records``.
"""

from __future__ import annotations

from typing import TypeAlias

from model.ids import GroupId, MemberId, TopicId, TopicName
from model.value import value

_Tags: TypeAlias = tuple[tuple[int, bytes], ...]


@value
class ShareGroupMemberMetadataKey:
    """Type 10."""

    group_id: GroupId
    member_id: MemberId


@value
class ShareGroupMetadataKey:
    """Type 11."""

    group_id: GroupId


@value
class ShareGroupTargetAssignmentMetadataKey:
    """Type 12."""

    group_id: GroupId


@value
class ShareGroupTargetAssignmentMemberKey:
    """Type 13."""

    group_id: GroupId
    member_id: MemberId


@value
class ShareGroupCurrentMemberAssignmentKey:
    """Type 14."""

    group_id: GroupId
    member_id: MemberId


@value
class ShareGroupStatePartitionMetadataKey:
    """Type 15."""

    group_id: GroupId


ShareRecordKey: TypeAlias = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)

# -------------------------------------------------------------------------------------- values


@value
class ShareGroupMemberMetadataValue:
    """Type 10: a member's own metadata."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]
    unknown_tags: _Tags = ()


@value
class ShareGroupMetadataValue:
    """Type 11: the group epoch."""

    epoch: int
    metadata_hash: int
    unknown_tags: _Tags = ()


@value
class ShareGroupTargetAssignmentMetadataValue:
    """Type 12. ``assignment_timestamp`` is tag 0, wall ms, 0 for none."""

    assignment_epoch: int
    assignment_timestamp: int = 0
    unknown_tags: _Tags = ()


@value
class ShareTopicPartitions:
    """Partitions of one topic, which several members may have."""

    topic_id: TopicId
    partitions: tuple[int, ...]
    unknown_tags: _Tags = ()


@value
class ShareGroupTargetAssignmentMemberValue:
    """Type 13: the target assignment of one member."""

    topic_partitions: tuple[ShareTopicPartitions, ...]
    unknown_tags: _Tags = ()


@value
class ShareGroupCurrentMemberAssignmentValue:
    """Type 14: a member's current assignment."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[ShareTopicPartitions, ...]
    unknown_tags: _Tags = ()


@value
class SharePartitionsInfo:
    """Partitions of one topic, with its name."""

    topic_id: TopicId
    topic_name: TopicName
    partitions: tuple[int, ...]
    unknown_tags: _Tags = ()


@value
class ShareTopicInfo:
    """A topic as a whole."""

    topic_id: TopicId
    topic_name: TopicName
    unknown_tags: _Tags = ()


@value
class ShareGroupStatePartitionMetadataValue:
    """Type 15: the partitions that have share state."""

    initializing_topics: tuple[SharePartitionsInfo, ...]
    initialized_topics: tuple[SharePartitionsInfo, ...]
    deleting_topics: tuple[ShareTopicInfo, ...]
    unknown_tags: _Tags = ()


ShareRecordValue: TypeAlias = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
