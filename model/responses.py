"""Responses of the coordinator. An error response is a raised ``GroupError``."""

from __future__ import annotations

from typing import TypeAlias

from model.client_assignment_commands import ClientAssignment, PrepareAssignmentResponse
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
from model.log.records import TopicPartitions
from model.topics import Topic
from model.value import value


@value
class ConsumerGroupHeartbeatResponse:
    """``assignment`` is ``None`` if it has not changed since the member's last request.

    ``news``: this response has a new epoch or assignment, so a front end sends it at once.
    ``parkable``: the member is STABLE or UNRELEASED_PARTITIONS, so a heartbeat without a change may
    be held back until there is one. ``settled``: the member is STABLE at its target and need not
    return before its interval. ``local`` is set if the member's target comes from its client-side
    assignor.
    """

    member_id: MemberId
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: tuple[TopicPartitions, ...] | None
    news: bool
    parkable: bool
    settled: bool
    client_assignment: ClientAssignment | None = None


@value
class ConsumerGroupLeaveResponse:
    member_id: MemberId
    member_epoch: int


@value
class LeaveGroupResponse:
    """One result per member, in the order of the request."""

    errors: tuple[ErrorCode, ...]


@value
class JoinedMember:
    """A member as sent to the leader, with its metadata for the chosen protocol."""

    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@value
class JoinGroupResponse:
    """The member has joined the generation. ``members`` is empty except for the leader.

    ``leader`` is ``None`` if no member assigns. ``skip_assignment``: the leader gets the members
    but must not compute an assignment (KIP-814).
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

    ``awaits_partitions``: the assignment is empty because others still own its partitions. A front
    end may hold this response back and make the member rejoin once they are released.
    """

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    awaits_partitions: bool = False


@value
class ClassicHeartbeatResponse:
    """The member belongs to its group and has nothing to do.

    A front end may hold this response back for up to ``park_max_ms`` (0: not at all), to report a
    rebalance sooner. ``is_held``: the member's SyncGroup waits for the leader's.
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
    """Results of a commit for one topic; name and id are ``None`` if unknown."""

    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[PartitionResult, ...]


@value
class OffsetCommitResponse:
    topics: tuple[TopicResult, ...]


@value
class FetchedOffset:
    """A committed offset; ``offset`` is -1 if there is none."""

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
    """Partitions of an existing topic, with its name."""

    topic_id: TopicId
    topic_name: TopicName
    partitions: tuple[int, ...]


@value
class DescribedMember:
    """A member as ConsumerGroupDescribe shows it. ``member_type`` 1: the consumer protocol."""

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
    """A consumer group, or the error of describing it."""

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
    """``group_type`` and ``state`` are in Kafka's spelling: ``consumer``, ``Stable``.

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
    """A member of a classic group; ``metadata`` is empty unless the group is Stable."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@value
class DescribedClassicGroup:
    """A classic group, or the error of describing it.

    ``protocol`` is the selected protocol, empty unless the group is Stable. ``generation`` is not
    in Kafka's response.
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
    """A reason that blocks a conversion or needs care; ``kind`` is for programs."""

    kind: str
    detail: str
    is_blocking: bool


@value
class ClientChange:
    """A client config to change; ``value`` is ``None`` if it is to be removed."""

    name: str
    value: str | None
    reason: str


@value
class PlannedMember:
    """A member of a classic group: ``verdict`` is READY, WARN or BLOCKED, for these reasons."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    verdict: str
    reasons: tuple[MigrationReason, ...]
    changes: tuple[ClientChange, ...]


@value
class MigrationPlan:
    """How a group would convert if a first member of the consumer protocol joined it.

    ``group_type`` and ``state`` are in Kafka's spelling. ``reasons`` are those of the group itself.
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
    """The topic after a create or grow, or before a delete."""

    topic: Topic


@value
class ProducerIdResponse:
    producer_id: int


@value
class OffsetDeleteResponse:
    topics: tuple[TopicResult, ...]


@value
class DescribedConfig:
    """A config of a group: the value in force, the group's own, and the server's."""

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
    """A transactional offset that awaits its marker."""

    group_id: GroupId
    topic_name: TopicName
    partition: int
    offset: int


@value
class ListedTransaction:
    """A transaction that is open in one log partition, since ``since_ms`` (wall)."""

    producer_id: ProducerId
    producer_epoch: int
    partition: LogPartition
    since_ms: int
    offsets: tuple[PendingOffset, ...]
    coordinator_epoch: int = 0
    """The highest coordinator epoch of the producer's markers in that partition."""
    times_out_at_ms: int = 0
    """When the transaction times out (wall); the abort may come a little later."""


@value
class ListTransactionsResponse:
    transactions: tuple[ListedTransaction, ...]


@value
class Done:
    """An internal command was carried out, or had nothing to do."""


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
