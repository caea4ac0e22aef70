"""Records of the ``__consumer_offsets`` log: keys and values as Kafka 4.3 defines them.

A record is a key and a value; a value of ``None`` is a tombstone. Fields are Kafka's, in schema
order and with Kafka's sentinels (-1 for no leader epoch or no expiry, 16 zero bytes for no topic
id), because the bytes may come from Kafka. ``storage.codec`` converts records to bytes and JSON
and back.

``unknown_tags`` keeps tagged fields of a newer Kafka: (tag, bytes) in ascending order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from model.ids import (
    ZERO_TOPIC_ID,
    GroupId,
    InstanceId,
    MemberId,
    TopicId,
    TopicName,
)
from model.log.share_records import ShareRecordKey, ShareRecordValue
from model.log.streams_records import StreamsRecordKey, StreamsRecordValue
from model.value import value

UnknownTags: TypeAlias = tuple[tuple[int, bytes], ...]


class RecordType(IntEnum):
    """The int16 at the start of a record's key."""

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


class MemberState(IntEnum):
    """A member's reconciliation state (Kafka's ``MemberState``)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


# ---------------------------------------------------------------------------------------- keys


@value
class LegacyOffsetCommitKey:
    """Type 0: written by Kafka before 0.9 and still readable."""

    group: GroupId
    topic: TopicName
    partition: int


@value
class OffsetCommitKey:
    """Type 1."""

    group: GroupId
    topic: TopicName
    partition: int


@value
class GroupMetadataKey:
    """Type 2: a classic group."""

    group: GroupId


@value
class ConsumerGroupMetadataKey:
    """Type 3."""

    group_id: GroupId


@value
class ConsumerGroupPartitionMetadataKey:
    """Type 4: retired by the metadata hash (KIP-1101); a tombstone is still written."""

    group_id: GroupId


@value
class ConsumerGroupMemberMetadataKey:
    """Type 5."""

    group_id: GroupId
    member_id: MemberId


@value
class ConsumerGroupTargetAssignmentMetadataKey:
    """Type 6."""

    group_id: GroupId


@value
class ConsumerGroupTargetAssignmentMemberKey:
    """Type 7."""

    group_id: GroupId
    member_id: MemberId


@value
class ConsumerGroupCurrentMemberAssignmentKey:
    """Type 8."""

    group_id: GroupId
    member_id: MemberId


@value
class ConsumerGroupRegularExpressionKey:
    """Type 16."""

    group_id: GroupId
    regular_expression: str


@value
class UnknownKey:
    """A key of a type that Kafka 4.3 does not have: all its bytes, type included."""

    type_id: int
    data: bytes


RecordKey: TypeAlias = (
    LegacyOffsetCommitKey
    | OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
    | ShareRecordKey
    | StreamsRecordKey
    | UnknownKey
)

# -------------------------------------------------------------------------------------- values


@value
class LegacyOffsetCommitValue:
    """Type 0, v0 only."""

    offset: int
    metadata: str
    commit_timestamp: int


@value
class OffsetCommitValue:
    """Type 1, v0 to v4.

    ``leader_epoch`` is there from v3, ``expire_timestamp`` in v1 only (v0 has neither),
    ``topic_id`` is tag 0 of v4. ``expire_timestamp`` -1 means that the retention of the
    coordinator applies.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: TopicId = ZERO_TOPIC_ID
    unknown_tags: UnknownTags = ()


@value
class ClassicGroupMember:
    """A member within a ``GroupMetadataValue``; group instance id from v3."""

    member_id: MemberId
    group_instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes
    unknown_tags: UnknownTags = ()


@value
class GroupMetadataValue:
    """Type 2, v0 to v4: rebalance timeout from v1, ``current_state_timestamp`` from v2."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: MemberId | None
    current_state_timestamp: int
    members: tuple[ClassicGroupMember, ...]
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupMetadataValue:
    """Type 3. ``metadata_hash`` is tag 0 (KIP-1101), signed 64 bits, 0 for no topics."""

    epoch: int
    metadata_hash: int = 0
    unknown_tags: UnknownTags = ()


@value
class PartitionRacks:
    """Racks of one partition within ``SubscribedTopicMetadata``."""

    partition: int
    racks: tuple[str, ...]
    unknown_tags: UnknownTags = ()


@value
class SubscribedTopicMetadata:
    """One topic within ``ConsumerGroupPartitionMetadataValue``."""

    topic_id: TopicId
    topic_name: TopicName
    num_partitions: int
    partition_metadata: tuple[PartitionRacks, ...]
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupPartitionMetadataValue:
    """Type 4, as Kafka 4.0 wrote it."""

    topics: tuple[SubscribedTopicMetadata, ...]
    unknown_tags: UnknownTags = ()


@value
class ClassicProtocol:
    """A protocol that a classic member of a consumer group supports."""

    name: str
    metadata: bytes
    unknown_tags: UnknownTags = ()


@value
class ClassicMemberMetadata:
    """Marks a member of a consumer group that uses the classic protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupMemberMetadataValue:
    """Type 5: a member's own metadata. Kafka sorts ``subscribed_topic_names``."""

    instance_id: InstanceId | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupTargetAssignmentMetadataValue:
    """Type 6. ``assignment_timestamp`` is tag 0 (KIP-1263), wall ms, 0 for none."""

    assignment_epoch: int
    assignment_timestamp: int = 0
    unknown_tags: UnknownTags = ()


@value
class TopicPartitions:
    """Partitions of one topic, ascending."""

    topic_id: TopicId
    partitions: tuple[int, ...]
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupTargetAssignmentMemberValue:
    """Type 7: the target assignment of one member."""

    topic_partitions: tuple[TopicPartitions, ...]
    unknown_tags: UnknownTags = ()


@value
class AssignedTopicPartitions:
    """Partitions of one topic that a member owns.

    ``assignment_epochs`` (tag 0, KIP-1251) has one epoch per partition, in their order. It is empty
    in records written before Kafka 4.3, and ``None`` for an explicit null.
    """

    topic_id: TopicId
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = ()
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupCurrentMemberAssignmentValue:
    """Type 8: a member's current assignment. ``state`` is a ``MemberState`` as int8."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[AssignedTopicPartitions, ...]
    partitions_pending_revocation: tuple[AssignedTopicPartitions, ...]
    unknown_tags: UnknownTags = ()


@value
class ConsumerGroupRegularExpressionValue:
    """Type 16: the topics that a regular expression matched at a metadata version."""

    topics: tuple[TopicName, ...]
    version: int
    timestamp: int
    unknown_tags: UnknownTags = ()


@value
class UnknownValue:
    """A value that this version cannot read, of a known or an unknown type: kept as bytes."""

    data: bytes


RecordValue: TypeAlias = (
    LegacyOffsetCommitValue
    | OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
    | ShareRecordValue
    | StreamsRecordValue
    | UnknownValue
)


class Record(NamedTuple):
    """A key and its value; ``None`` is a tombstone."""

    key: RecordKey
    value: RecordValue | None
