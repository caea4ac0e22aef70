"""Responses: what the coordinator answers. An error answer is a ``GroupError``, raised."""

from __future__ import annotations

from typing import TypeAlias

from model.errors import ErrorCode
from model.ids import (
    GroupId,
    InstanceId,
    LogPartition,
    MemberId,
    ProducerId,
    TopicId,
    TopicName,
)
from model.local_commands import LocalAssignment, PrepareAssignmentResponse
from model.log.records import TopicPartitions
from model.topics import Topic
from model.value import value


@value
class ConsumerGroupHeartbeatResponse:
    """``assignment`` is ``None`` where nothing changed for the member since its last request.

    ``news``: this answer says something that the member may not know, a new epoch or an
    assignment; a door gives it at once. ``parkable``: the member is STABLE or
    UNRELEASED_PARTITIONS, so that a heartbeat without news may wait for some. ``settled``: the
    member is STABLE at the target, and has nothing to come back for before its interval. ``local``
    is there for a member at a target that an assignor of its own has computed.
    """

    member_id: MemberId
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: tuple[TopicPartitions, ...] | None
    news: bool
    parkable: bool
    settled: bool
    local: LocalAssignment | None = None


@value
class ConsumerGroupLeaveResponse:
    member_id: MemberId
    member_epoch: int


@value
class LeaveGroupResponse:
    """The result for each member, in the order asked."""

    errors: tuple[ErrorCode, ...]


@value
class JoinedMember:
    """A member as the leader is told of it: what it said for the protocol that was chosen."""

    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@value
class JoinGroupResponse:
    """The member is in the generation. ``members`` are all, for the leader; else there are none.

    ``leader`` is ``None`` where nobody assigns. ``skip_assignment``: the leader is told of the
    members, and must not assign anything (KIP-814).
    """

    member_id: MemberId
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: MemberId | None
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@value
class SyncGroupResponse:
    """The assignment of the member.

    ``awaits_partitions``: it has nothing, for others still hold what it is to get. A door may hold
    such an answer back, and tell the member to join again when all of that is free.
    """

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    awaits_partitions: bool = False


@value
class ClassicHeartbeatResponse:
    """The member is in its group, and there is nothing that it has to do.

    A door may hold this back for ``park_max_ms``, 0 for not at all, to answer with news instead.
    ``is_held``: its SyncGroup waits for the leader's.
    """

    park_max_ms: int = 0
    is_held: bool = False


@value
class PartitionResult:
    """The result for one partition of a commit."""

    partition: int
    error: ErrorCode


@value
class TopicResult:
    """Results of a commit for one topic; name and id as they are known, ``None`` where not."""

    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[PartitionResult, ...]


@value
class OffsetCommitResponse:
    topics: tuple[TopicResult, ...]


@value
class FetchedOffset:
    """A committed offset; ``offset`` -1 where there is none."""

    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    error: ErrorCode = ErrorCode.NONE


@value
class FetchedTopic:
    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[FetchedOffset, ...]


@value
class OffsetFetchResponse:
    group_id: GroupId
    topics: tuple[FetchedTopic, ...]


@value
class NamedTopicPartitions:
    """Partitions of a topic that exists, with its name."""

    topic_id: TopicId
    topic_name: TopicName
    partitions: tuple[int, ...]


@value
class DescribedMember:
    """A member as ConsumerGroupDescribe shows it. ``member_type`` 1 speaks the new protocol."""

    member_id: MemberId
    instance_id: InstanceId | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]
    subscribed_topic_regex: str | None
    assignment: tuple[NamedTopicPartitions, ...]
    pending_revocation: tuple[NamedTopicPartitions, ...]
    target_assignment: tuple[NamedTopicPartitions, ...]
    state: str
    member_type: int = 1


@value
class DescribedConsumerGroup:
    """A consumer group, or the error that asking for it gave."""

    group_id: GroupId
    error: ErrorCode
    error_message: str | None
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: tuple[DescribedMember, ...]


@value
class ConsumerGroupDescribeResponse:
    groups: tuple[DescribedConsumerGroup, ...]


@value
class ListedGroup:
    """``group_type`` and ``state`` in Kafka's spelling: ``consumer``, ``Stable``.

    ``group_epoch`` is the generation of a classic group.
    """

    group_id: GroupId
    protocol_type: str
    state: str
    group_type: str
    members: int
    group_epoch: int


@value
class ListGroupsResponse:
    groups: tuple[ListedGroup, ...]


@value
class DescribedClassicMember:
    """A member of a classic group; ``metadata`` is empty where the group is not Stable."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@value
class DescribedClassicGroup:
    """A classic group, or the error that asking for it gave.

    ``protocol`` is the one that the members agreed on, empty where the group is not Stable.
    ``generation`` is not on Kafka's wire.
    """

    group_id: GroupId
    error: ErrorCode
    error_message: str | None
    state: str
    protocol_type: str
    protocol: str
    generation: int = 0
    members: tuple[DescribedClassicMember, ...] = ()


@value
class DescribeGroupsResponse:
    groups: tuple[DescribedClassicGroup, ...]


@value
class MigrationReason:
    """What stands in the way of a conversion, or needs care; ``kind`` is for programs."""

    kind: str
    detail: str
    is_blocking: bool


@value
class ClientChange:
    """A setting of a client that changes; ``value`` ``None`` where it goes away."""

    name: str
    value: str | None
    reason: str


@value
class PlannedMember:
    """A member of a classic group: ``verdict`` READY, WARN or BLOCKED, and its own reasons."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    verdict: str
    reasons: tuple[MigrationReason, ...]
    changes: tuple[ClientChange, ...]


@value
class MigrationPlan:
    """What becomes of a group when the first member of the consumer protocol joins it.

    ``group_type`` and ``state`` in Kafka's spelling. ``reasons`` are those of the group itself.
    """

    group_id: GroupId
    group_type: str
    state: str
    protocol_type: str
    protocol_name: str
    policy: str
    verdict: str
    reasons: tuple[MigrationReason, ...]
    members: tuple[PlannedMember, ...]


@value
class TopicResponse:
    """The topic as it is after a create or grow, or as it was before a delete."""

    topic: Topic


@value
class ProducerIdResponse:
    producer_id: int


@value
class OffsetDeleteResponse:
    topics: tuple[TopicResult, ...]


@value
class DescribedConfig:
    """A setting of a group: the value in force, the group's own, and the server's."""

    name: str
    value: str
    own: str | None
    server: str


@value
class GroupConfigsResponse:
    group_id: GroupId
    configs: tuple[DescribedConfig, ...]


@value
class ListGroupConfigsResponse:
    group_ids: tuple[GroupId, ...]


@value
class PendingOffset:
    """An offset that waits for a marker."""

    group_id: GroupId
    topic_name: TopicName
    partition: int
    offset: int


@value
class ListedTransaction:
    """A transaction that is open in one partition of the log, since ``since_ms`` (wall)."""

    producer_id: ProducerId
    producer_epoch: int
    partition: LogPartition
    since_ms: int
    offsets: tuple[PendingOffset, ...]
    coordinator_epoch: int = 0
    """The highest of those that have ended transactions of the producer there."""
    times_out_at_ms: int = 0
    """It is aborted then (wall), or somewhat later."""


@value
class ListTransactionsResponse:
    transactions: tuple[ListedTransaction, ...]


@value
class Done:
    """A command of the coordinator's own was carried out, or had nothing left to do."""


Response: TypeAlias = (
    ConsumerGroupHeartbeatResponse
    | ConsumerGroupLeaveResponse
    | LeaveGroupResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | ClassicHeartbeatResponse
    | PrepareAssignmentResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | ConsumerGroupDescribeResponse
    | ListGroupsResponse
    | DescribeGroupsResponse
    | MigrationPlan
    | TopicResponse
    | ProducerIdResponse
    | OffsetDeleteResponse
    | GroupConfigsResponse
    | ListGroupConfigsResponse
    | ListTransactionsResponse
    | Done
)
