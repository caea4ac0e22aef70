"""Commands: requests to the coordinator, from clients and from the coordinator itself.

A command is frozen data. The front ends have decoded it, checked its size, and authenticated and
authorised its caller; wire sentinels (-1, null, "") have become ``None`` or ``UNCHANGED``. The
runtime supplies time and random ids.
"""

# More than 400 lines: one class per command, and they refer to each other.

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from model.caller import Caller
from model.classic_commands import (
    ClassicHeartbeat,
    ExpireClassicDeadline,
    JoinGroup,
    SyncGroup,
)
from model.client_assignment_commands import InstallAssignment, PrepareAssignment
from model.client_assignors import ClientAssignor
from model.configs.assignor_configs import AssignorConfigs
from model.ids import (
    GroupId,
    InstanceId,
    LogPartition,
    MemberId,
    ProducerId,
    TopicId,
    TopicName,
)
from model.log.commit_records import Column, OffsetColumns
from model.log.records import TopicPartitions
from model.value import value


class Unchanged(Enum):
    """``UNCHANGED``, its one value, means that the field keeps its previous value."""

    UNCHANGED = 0


UNCHANGED: Final = Unchanged.UNCHANGED


class Now(NamedTuple):
    """The time at which a command is handled.

    ``wall_ms`` is for record timestamps and offset expiry, and never goes back. ``monotonic_ms`` is
    the clock of deadlines.
    """

    wall_ms: int
    monotonic_ms: int


# ------------------------------------------------------------------------------ consumer groups


@value
class ConsumerGroupHeartbeat:
    """KIP-848 heartbeat with a member epoch of 0 or more; epoch 0 joins.

    Epochs below 0 are ``ConsumerGroupLeave``. ``rebalance_timeout_ms``, ``subscribed_topic_names``,
    ``rack_id`` and ``server_assignor`` are ``UNCHANGED`` if the client sent null or -1.
    ``client_assignors`` is ``UNCHANGED`` if the request has no field for client-side assignors; a
    member that joins with such a request has none. ``owned`` is ``None`` if the client does not
    report its partitions. ``wants_assignment``: the previous response may not have reached the
    member, so this one is full. ``keeps_assigned``: in addition, the response starts no revocation,
    so that the member first learns what it owns. ``by_server``: the coordinator repeats a heartbeat
    that it holds back; it reports nothing about the member and does not extend its session.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    rebalance_timeout_ms: int | Literal[Unchanged.UNCHANGED] = UNCHANGED
    subscribed_topic_names: tuple[TopicName, ...] | Literal[Unchanged.UNCHANGED] = UNCHANGED
    owned: tuple[TopicPartitions, ...] | None = None
    rack_id: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    server_assignor: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    instance_id: InstanceId | None = None
    subscribed_topic_regex: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    client_assignors: tuple[ClientAssignor, ...] | Literal[Unchanged.UNCHANGED] = UNCHANGED
    wants_assignment: bool = False
    keeps_assigned: bool = False
    by_server: bool = False


@value
class ConsumerGroupLeave:
    """A member leaves: epoch -1, or -2 for a static member that leaves temporarily."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int = -1
    instance_id: InstanceId | None = None


@value
class LeavingMember:
    """A member to remove, by member id or by instance id.

    If both are set, the instance must belong to that member. ``reason`` is the client's (KIP-800).
    """

    member_id: MemberId | None
    instance_id: InstanceId | None = None
    reason: str | None = None


@value
class LeaveGroup:
    """Members leave for good, or an administrator removes them (KIP-345); one result each."""

    caller: Caller
    group_id: GroupId
    members: tuple[LeavingMember, ...]


@value
class ReconcileMember:
    """Move a member as far towards its target as it may go, and answer its heartbeat.

    The continuation of a heartbeat that changed the group. It runs in the same batch, once the
    batch's target assignments are computed. ``before`` is what the member owned when the heartbeat
    arrived, as dense partition numbers of the group; the response carries the assignment if it
    differs from ``before`` or if ``full`` is set. ``epoch_before`` is the epoch that the client
    sent, ``epoch_known`` the member's epoch at that time: if another heartbeat has advanced the
    member since, ``owned`` is outdated and ignored. ``keeps_assigned``: start no revocation.
    ``by_join_group``: the request was a JoinGroup, and gets its response.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    owned: tuple[TopicPartitions, ...] | None
    full: bool
    has_subscription_changed: bool
    before: tuple[int, ...]
    epoch_before: int
    epoch_known: int
    by_join_group: bool = False
    keeps_assigned: bool = False


class Deadline(Enum):
    """The deadlines of a member of a consumer group."""

    SESSION = "session timeout"
    REBALANCE = "rebalance timeout"


@value
class ExpireMember:
    """A deadline fired: the session timeout, or the rebalance timeout of ``member_epoch``.

    The runtime sends it; the core checks that the deadline still applies.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    deadline: Deadline
    member_epoch: int | None = None


@value
class RefreshTopics:
    """Topics changed: bump the group epoch if the group's metadata hash changed."""

    caller: Caller
    group_id: GroupId


@value
class ConsumerGroupDescribe:
    """Describe consumer groups; results are in the order of ``group_ids``."""

    caller: Caller
    group_ids: tuple[GroupId, ...]


@value
class ListGroups:
    """List groups. An empty filter matches everything; filters ignore case.

    Like Kafka, it trims blanks around a state but not around a type.
    """

    caller: Caller
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@value
class DescribeGroups:
    """Describe classic groups."""

    caller: Caller
    group_ids: tuple[GroupId, ...]


# ------------------------------------------------------------------------------------- offsets


@value
class TopicOffsets:
    """Offsets to commit for one topic.

    Named by ``topic_id`` (wire version 10 and gRPC clients that know ids), by ``name``, or by
    both; the other is filled in from the topics known here.
    """

    name: TopicName | None
    topic_id: TopicId | None
    offsets: OffsetColumns

    @property
    def partitions(self) -> Column:
        """The partitions that are named, as often as they are."""
        return self.offsets.partitions


COMMIT_PARTITIONS_MAX: Final = 10_000
"""Most partitions in one commit, which is never split, so that it fits one loop iteration.

Kafka takes what fits a batch of ``max.message.bytes``, which is about as many.
"""


@value
class OffsetCommit:
    """Commit offsets. ``member_epoch`` is ``None`` for a commit without a group (-1 on the wire).

    ``by_consumer_protocol`` is false for OffsetCommit below version 9, which members of a consumer
    group must not use. ``retention_time_ms`` is ``None`` for the configured retention.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int | None
    topics: tuple[TopicOffsets, ...]
    instance_id: InstanceId | None = None
    retention_time_ms: int | None = None
    by_consumer_protocol: bool = True


@value
class TxnOffsetCommit:
    """Commit offsets in a transaction (KIP-447): they stay pending until it ends.

    ``member_epoch`` is ``None`` and ``member_id`` empty if the producer names no member. The
    response is an ``OffsetCommitResponse``.
    """

    caller: Caller
    group_id: GroupId
    producer_id: ProducerId
    producer_epoch: int
    topics: tuple[TopicOffsets, ...]
    member_id: MemberId = MemberId("")
    member_epoch: int | None = None
    instance_id: InstanceId | None = None


@value
class WriteTxnMarkers:
    """A transaction coordinator ends a producer's transaction in one log partition.

    The transaction may have offsets of many groups. ``coordinator_epoch`` is the transaction
    coordinator's. From ``transaction_version`` 2 (KIP-890) each transaction has its own producer
    epoch.
    """

    caller: Caller
    partition: LogPartition
    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0


@value
class ExpireProducers:
    """Remove the state of producers of one log partition that have been idle for too long."""

    caller: Caller
    partition: LogPartition
    producer_ids: tuple[ProducerId, ...]


@value
class AbortTransaction:
    """Abort a transaction, open since ``since_ms``, that has timed out."""

    caller: Caller
    partition: LogPartition
    producer_id: ProducerId
    since_ms: int


@value
class EndTransaction:
    """An operator ends the producer's transaction in one log partition, which is open there.

    ``producer_epoch`` is the one that the operator saw: of a later one it does not speak.
    """

    caller: Caller
    partition: LogPartition
    producer_id: ProducerId
    producer_epoch: int
    committed: bool


@value
class TopicToFetch:
    """Partitions of one topic, named by id, by name, or by both."""

    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[int, ...]


@value
class OffsetFetch:
    """Fetch the committed offsets of one group; all of them if ``topics`` is ``None``.

    ``member_id`` and ``member_epoch`` are checked if both are present (from version 9).
    """

    caller: Caller
    group_id: GroupId
    topics: tuple[TopicToFetch, ...] | None
    member_id: MemberId | None = None
    member_epoch: int | None = None
    require_stable: bool = False


# -------------------------------------------------------------------------------------- topics


@value
class CreateTopic:
    """Create a topic. The runtime generates ``topic_id``."""

    caller: Caller
    name: TopicName
    topic_id: TopicId
    partitions: int
    validate_only: bool = False


@value
class GrowTopic:
    """Raise the partition count of a topic to ``partitions``."""

    caller: Caller
    name: TopicName
    partitions: int
    validate_only: bool = False


@value
class SetTopicRacks:
    """Set the racks of the replicas of each partition, in partition order.

    The racks of partitions with an empty entry, or missing at the end, are unknown.
    """

    caller: Caller
    name: TopicName
    racks: tuple[tuple[str, ...], ...]
    validate_only: bool = False


@value
class DeleteTopic:
    """Delete a topic, by name or by id, with all offsets committed for it."""

    caller: Caller
    name: TopicName | None
    topic_id: TopicId | None = None


@value
class PlanMigration:
    """Report, member by member, what blocks a group's conversion to the consumer protocol."""

    caller: Caller
    group_id: GroupId


@value
class ConvertToClassicGroup:
    """Convert a consumer group without members of the consumer protocol to a classic group."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False


@value
class DeleteGroup:
    """Delete an empty group with all its offsets, including pending transactional ones."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False


@value
class DeleteOffsets:
    """Delete a group's offsets for topics, by name, that no member subscribes to."""

    caller: Caller
    group_id: GroupId
    topics: tuple[tuple[TopicName, tuple[int, ...]], ...]
    validate_only: bool = False


@value
class RefreshAssignor:
    """The assignor configs of a group changed: see whether it needs a new target assignment."""

    caller: Caller
    group_id: GroupId
    assignors_before: tuple[str, ...]
    assignor_configs_before: AssignorConfigs


@value
class ListTransactions:
    """List the open transactions, with their pending offsets."""

    caller: Caller


@value
class DeleteTopicOffsets:
    """Write tombstones for these offsets, committed for a deleted topic."""

    caller: Caller
    group_id: GroupId
    topic: TopicName
    partitions: tuple[int, ...]


@value
class ExpireOffsets:
    """Write tombstones for these offsets, which are past their retention.

    ``removes_group``: the group has no other offsets, and is removed too if it is empty.
    """

    caller: Caller
    group_id: GroupId
    offsets: tuple[tuple[TopicName, int], ...]
    removes_group: bool = False


@value
class ForgetDeletedTopic:
    """Every offset of a deleted topic has been deleted."""

    caller: Caller
    topic_id: TopicId


class ConfigOperation(Enum):
    """How to change a config; the numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@value
class ConfigChange:
    """A change of one config. ``value`` is ignored for DELETE."""

    name: str
    operation: ConfigOperation
    value: str | None = None


@value
class AlterGroupConfigs:
    """Change configs of a group, all or none."""

    caller: Caller
    group_id: GroupId
    changes: tuple[ConfigChange, ...]
    validate_only: bool = False


@value
class DescribeGroupConfigs:
    """Describe the configs of a group: its own, and the values in force."""

    caller: Caller
    group_id: GroupId


@value
class ListGroupConfigs:
    """List the groups that have configs of their own."""

    caller: Caller


@value
class AllocateProducerId:
    """Allocate a producer id that was never allocated before."""

    caller: Caller


GroupCommand: TypeAlias = (
    ConsumerGroupHeartbeat
    | ConsumerGroupLeave
    | LeaveGroup
    | JoinGroup
    | SyncGroup
    | ClassicHeartbeat
    | ExpireClassicDeadline
    | ConvertToClassicGroup
    | ReconcileMember
    | PrepareAssignment
    | InstallAssignment
    | ExpireMember
    | RefreshTopics
    | RefreshAssignor
    | OffsetCommit
    | OffsetFetch
    | DeleteTopicOffsets
    | ExpireOffsets
)
"""Commands of one group, handled by the shard of its log partition."""

TopicCommand: TypeAlias = (
    CreateTopic | GrowTopic | SetTopicRacks | DeleteTopic | ForgetDeletedTopic | AllocateProducerId
)
"""Commands of Muster's own topic catalogue."""

ConfigCommand: TypeAlias = AlterGroupConfigs | DescribeGroupConfigs | ListGroupConfigs
"""Commands of group configs, which are stored beside the topics."""

DeletionCommand: TypeAlias = DeleteGroup | DeleteOffsets
"""Commands of one group that scan its offsets."""

TransactionCommand: TypeAlias = (
    TxnOffsetCommit | WriteTxnMarkers | ExpireProducers | AbortTransaction | EndTransaction
)
"""Commands of transactions: of one group, or of one log partition."""

ReadCommand: TypeAlias = ConsumerGroupDescribe | ListGroups | DescribeGroups | PlanMigration
"""Read-only commands over groups of several shards."""

Command: TypeAlias = (
    GroupCommand
    | DeletionCommand
    | TransactionCommand
    | ListTransactions
    | TopicCommand
    | ConfigCommand
    | ReadCommand
)
"""A command that a front end may submit."""
