"""Commands: what a door asks of the coordinator, and what the coordinator tells itself.

A command is frozen data. The doors have decoded it, checked its size, authenticated and
authorised it; sentinels of the wire (-1, null, "") have become ``None`` or ``UNCHANGED``. Time and
ids that need randomness are put in by the shell.
"""

# More than 400 lines: one class is one command, and they refer to each other.

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from model.caller import INTERNAL as INTERNAL
from model.caller import Caller as Caller
from model.classic_commands import AssignmentFailure as AssignmentFailure
from model.classic_commands import ClassicDeadline as ClassicDeadline
from model.classic_commands import ClassicHeartbeat as ClassicHeartbeat
from model.classic_commands import ExpireClassicDeadline as ExpireClassicDeadline
from model.classic_commands import JoinGroup as JoinGroup
from model.classic_commands import JoinProtocol as JoinProtocol
from model.classic_commands import MemberAssignment as MemberAssignment
from model.classic_commands import SyncGroup as SyncGroup
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
from model.local_assignors import LocalAssignor
from model.local_commands import InstallAssignment as InstallAssignment
from model.local_commands import PrepareAssignment as PrepareAssignment
from model.log.commit_records import Column, OffsetColumns
from model.log.records import TopicPartitions
from model.value import value


class Unchanged(Enum):
    """The one value of it, ``UNCHANGED``, means: as it was said before."""

    UNCHANGED = 0


UNCHANGED: Final = Unchanged.UNCHANGED


class Now(NamedTuple):
    """The time at which a command is handled.

    ``wall_ms`` goes into records and offset expiry; it never goes back. ``monotonic_ms`` is what
    deadlines are measured with.
    """

    wall_ms: int
    monotonic_ms: int


# ------------------------------------------------------------------------------ consumer groups


@value
class ConsumerGroupHeartbeat:
    """KIP-848 heartbeat with a member epoch of 0 or more; epoch 0 joins.

    ``rebalance_timeout_ms``, ``subscribed_topic_names``, ``rack_id`` and ``server_assignor`` are
    ``UNCHANGED`` where the client sent null or -1. ``local_assignors`` are so where it cannot name
    any; a member that joins so has none. ``owned`` is ``None`` where the client does
    not say what it owns. Epochs below 0 are ``ConsumerGroupLeave``. ``wants_assignment`` where the
    door cannot know whether the last answer has reached the member: this one says all.
    ``keeps_assigned``: and then the member is told what it has before it is to give up any of it.
    ``by_server``: the server asks itself, for a member whose heartbeat it holds back. Such a one
    claims nothing, says nothing of the member, and is no sign that it is alive.
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
    local_assignors: tuple[LocalAssignor, ...] | Literal[Unchanged.UNCHANGED] = UNCHANGED
    wants_assignment: bool = False
    keeps_assigned: bool = False
    by_server: bool = False


@value
class ConsumerGroupLeave:
    """A member leaves: a heartbeat with epoch -1, or -2 for a static member that will return."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int = -1
    instance_id: InstanceId | None = None


@value
class LeavingMember:
    """Who is to leave: a member by its id, or the one that is an instance now.

    With both the member must be that instance. ``reason`` is what the client says (KIP-800).
    """

    member_id: MemberId | None
    instance_id: InstanceId | None = None
    reason: str | None = None


@value
class LeaveGroup:
    """Members leave for good, or an administrator removes them (KIP-345). Each has its result."""

    caller: Caller
    group_id: GroupId
    members: tuple[LeavingMember, ...]


@value
class ReconcileMember:
    """Bring a member as far towards the target as it may go, and answer its heartbeat.

    The second half of a heartbeat that changed the group: it runs once the targets of the flush
    are there, in the same batch. ``before`` is what the member held when the heartbeat came,
    as the numbers of its group's partitions; the answer carries the assignment when it differs
    or when ``full`` is set. ``epoch_before`` is the epoch that the client sent, ``epoch_known``
    the one that the member was at: if another heartbeat has moved it since, ``owned`` is of before
    that, and says nothing. ``keeps_assigned``: no revocation begins with it. ``by_join_group``: it
    was a JoinGroup, and is answered as one.
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
    """Which deadline of a member."""

    SESSION = "session timeout"
    REBALANCE = "rebalance timeout"


@value
class ExpireMember:
    """A deadline passed: the session timeout, or the rebalance timeout of ``member_epoch``.

    The runtime sends it; the core checks that it still holds.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    deadline: Deadline
    member_epoch: int | None = None


@value
class RefreshTopics:
    """Topics changed: see whether the group's metadata hash did."""

    caller: Caller
    group_id: GroupId


@value
class ConsumerGroupDescribe:
    """Describe consumer groups; answers are in the order asked for."""

    caller: Caller
    group_ids: tuple[GroupId, ...]


@value
class ListGroups:
    """List groups. Empty filters pass everything; filters are compared without case.

    Blanks around a state are nothing, as in Kafka; around a type they make it another one.
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
"""So many partitions one commit names: part of it is none, so that it is handled in one turn.

Kafka takes what fits into a batch of ``max.message.bytes``, which is about as many.
"""


@value
class OffsetCommit:
    """Commit offsets. ``member_epoch`` is ``None`` for a commit without a group (-1 on the wire).

    ``by_consumer_protocol`` is false for OffsetCommit below version 9, which a member of a
    consumer group must not use. ``retention_time_ms`` is ``None`` for the coordinator's rule.
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
    """Commit offsets within a transaction (KIP-447): they wait for the transaction's end.

    ``member_epoch`` is ``None`` and ``member_id`` empty where the producer does not say for which
    member it commits. Answered with ``OffsetCommitResponse``.
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
    """A transaction coordinator says how a producer's transaction ended, to one log partition.

    It may concern many groups. ``coordinator_epoch`` is the transaction coordinator's. From
    ``transaction_version`` 2 on (KIP-890) each transaction has a producer epoch of its own.
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
    """Forget producers of one log partition that have been silent for long."""

    caller: Caller
    partition: LogPartition
    producer_ids: tuple[ProducerId, ...]


@value
class AbortTransaction:
    """Nobody has ended the producer's transaction in time, which is open since ``since_ms``."""

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
    """Fetch committed offsets of one group; ``topics`` ``None`` fetches all of them.

    ``member_id`` and ``member_epoch`` are checked where both are given (from version 9).
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
    """Create a topic. ``topic_id`` is fresh, made by the shell."""

    caller: Caller
    name: TopicName
    topic_id: TopicId
    partitions: int
    validate_only: bool = False


@value
class GrowTopic:
    """Raise the number of partitions to ``partitions``."""

    caller: Caller
    name: TopicName
    partitions: int
    validate_only: bool = False


@value
class SetTopicRacks:
    """Say in which racks the replicas of each partition are, in the order of the partitions.

    Of those at the end that are left out, and of empty ones, nothing is known.
    """

    caller: Caller
    name: TopicName
    racks: tuple[tuple[str, ...], ...]
    validate_only: bool = False


@value
class DeleteTopic:
    """Delete a topic, by name or by id, and with it the offsets committed for it."""

    caller: Caller
    name: TopicName | None
    topic_id: TopicId | None = None


@value
class PlanMigration:
    """What is in the way of a group's conversion to the consumer protocol, member by member."""

    caller: Caller
    group_id: GroupId


@value
class ConvertToClassicGroup:
    """Make a consumer group without members of the consumer protocol a classic group."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False


@value
class DeleteGroup:
    """Delete an empty group with all its offsets, those that wait for a marker too."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False


@value
class DeleteOffsets:
    """Delete offsets of a group, of topics by their names, that no member subscribes to."""

    caller: Caller
    group_id: GroupId
    topics: tuple[tuple[TopicName, tuple[int, ...]], ...]
    validate_only: bool = False


@value
class RefreshAssignor:
    """The assignors of a group are not those of before: see whether its target comes of another."""

    caller: Caller
    group_id: GroupId
    assignors_before: tuple[str, ...]
    assignor_configs_before: AssignorConfigs


@value
class ListTransactions:
    """The open transactions, with the offsets that wait in them."""

    caller: Caller


@value
class DeleteTopicOffsets:
    """Tombstone these offsets, committed for a topic that is deleted."""

    caller: Caller
    group_id: GroupId
    topic: TopicName
    partitions: tuple[int, ...]


@value
class ExpireOffsets:
    """Tombstone these offsets, by topic and partition: they are past their retention.

    ``removes_group`` where the group has no others; it goes with them if it is empty.
    """

    caller: Caller
    group_id: GroupId
    offsets: tuple[tuple[TopicName, int], ...]
    removes_group: bool = False


@value
class ForgetDeletedTopic:
    """All offsets of a deleted topic are gone."""

    caller: Caller
    topic_id: TopicId


class ConfigOperation(Enum):
    """What is to be done with a setting; the numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@value
class ConfigChange:
    """A change of one setting. ``value`` says nothing where the setting is deleted."""

    name: str
    operation: ConfigOperation
    value: str | None = None


@value
class AlterGroupConfigs:
    """Change settings that a group has of its own, all or none."""

    caller: Caller
    group_id: GroupId
    changes: tuple[ConfigChange, ...]
    validate_only: bool = False


@value
class DescribeGroupConfigs:
    """The settings of a group, its own and those that are in force for all."""

    caller: Caller
    group_id: GroupId


@value
class ListGroupConfigs:
    """The groups that have settings of their own."""

    caller: Caller


@value
class AllocateProducerId:
    """Hand out one producer id, never handed out before."""

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
"""Commands of the topic catalogue that is kept here."""

ConfigCommand: TypeAlias = AlterGroupConfigs | DescribeGroupConfigs | ListGroupConfigs
"""Commands of the settings of groups, which are kept beside the topics."""

DeletionCommand: TypeAlias = DeleteGroup | DeleteOffsets
"""Commands of one group that have to look into its offsets."""

TransactionCommand: TypeAlias = (
    TxnOffsetCommit | WriteTxnMarkers | ExpireProducers | AbortTransaction | EndTransaction
)
"""Commands of transactions: of one group, and of one partition of the log."""

ReadCommand: TypeAlias = ConsumerGroupDescribe | ListGroups | DescribeGroups | PlanMigration
"""Commands that read groups of several shards and change nothing."""

Command: TypeAlias = (
    GroupCommand
    | DeletionCommand
    | TransactionCommand
    | ListTransactions
    | TopicCommand
    | ConfigCommand
    | ReadCommand
)
"""What a door may submit."""
