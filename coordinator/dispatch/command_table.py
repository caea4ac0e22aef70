"""The table of commands: who takes each, what it waits for at a start, and which handler has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeAlias, TypeVar

from coordinator.core.client_assignors.computed_assignment import (
    handle_install_assignment,
    handle_prepare_assignment,
)
from coordinator.core.consumer.refresh import handle_refresh_assignor, handle_refresh_topics
from coordinator.core.offsets.offset_commit import handle_delete_topic_offsets
from coordinator.core.offsets.offset_expiry import handle_expire_offsets
from coordinator.core.offsets.producers import handle_expire_producers
from coordinator.core.offsets.transaction_end import handle_end_transaction
from coordinator.core.offsets.transactions import (
    handle_abort_transaction,
    handle_write_txn_markers,
)
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.subscriptions.regex_resolution import InstallRegexes, handle_install_regexes
from coordinator.core.target.target_assignment import InstallTarget
from coordinator.core.target.target_install import handle_install_target
from coordinator.core.target.target_steps import ContinueMoves, handle_continue_moves
from coordinator.dispatch.shard_handlers import (
    handle_classic_deadline,
    handle_commit,
    handle_consumer_heartbeat,
    handle_consumer_leave,
    handle_heartbeat_of_classic_protocol,
    handle_join,
    handle_second_half,
    handle_sync,
    handle_transactional_commit,
)
from model.commands import (
    AbortTransaction,
    AllocateProducerId,
    AlterGroupConfigs,
    ClassicHeartbeat,
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ConvertToClassicGroup,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopic,
    DeleteTopicOffsets,
    DescribeGroupConfigs,
    DescribeGroups,
    EndTransaction,
    ExpireClassicDeadline,
    ExpireMember,
    ExpireOffsets,
    ExpireProducers,
    ForgetDeletedTopic,
    GrowTopic,
    InstallAssignment,
    JoinGroup,
    LeaveGroup,
    ListGroupConfigs,
    ListGroups,
    ListTransactions,
    Now,
    OffsetCommit,
    OffsetFetch,
    PlanMigration,
    PrepareAssignment,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
    SetTopicRacks,
    SyncGroup,
    TxnOffsetCommit,
    WriteTxnMarkers,
)
from translator.departure import handle_expire_member, handle_leave_group
from translator.plan import handle_convert_to_classic


class Route(Enum):
    """Who takes a command."""

    MEMBER = auto()
    """The shard of the group, in the order in which members spoke, so many in a turn."""
    SHARD = auto()
    """The shard of the group, at once: it is not held up by what members say."""
    COMMIT = auto()
    """The shard of the group, on the short way."""
    FETCH = auto()
    """The store of offsets."""
    TRANSACTION = auto()
    """The shard of the group, or of the log partition, with its open transactions."""
    LIST_TRANSACTIONS = auto()
    DELETION = auto()
    """The shard of the group, and the store of offsets."""
    READ = auto()
    """The groups in memory, of several shards."""
    TOPICS = auto()
    """The topics and the configs of groups."""


class Loading(Enum):
    """What has to be loaded before a command is handled."""

    GROUP = auto()
    """The shard of its group."""
    EACH_GROUP = auto()
    """Of each group its shard: those that are loaded are answered."""
    LOG_PARTITION = auto()
    """The shard of its log partition."""
    ALL = auto()
    """All shards."""
    NOTHING = auto()


Handler: TypeAlias = Callable[[Shard, Any, Now], Outcome]


@dataclass(frozen=True, slots=True)
class Row:
    """Of one type of command. ``handler`` is ``None`` where its route computes the answer: reads,
    topics, and what is found in the store of offsets."""

    route: Route
    loading: Loading
    handler: Handler | None = None


C = TypeVar("C")


def _row(
    command: type[C],
    route: Route,
    loading: Loading,
    handler: Callable[[Shard, C, Now], Outcome] | None = None,
) -> tuple[type[Any], Row]:
    return command, Row(route, loading, handler)


def _at_any_time(handle: Callable[[Shard, C], Outcome]) -> Callable[[Shard, C, Now], Outcome]:
    """The handler of what does not depend on the time."""

    def handler(shard: Shard, command: C, now: Now) -> Outcome:
        return handle(shard, command)

    return handler


_ROWS: Final = (
    _row(ConsumerGroupHeartbeat, Route.MEMBER, Loading.GROUP, handle_consumer_heartbeat),
    _row(ConsumerGroupLeave, Route.MEMBER, Loading.GROUP, handle_consumer_leave),
    _row(JoinGroup, Route.MEMBER, Loading.GROUP, handle_join),
    _row(SyncGroup, Route.MEMBER, Loading.GROUP, handle_sync),
    _row(ClassicHeartbeat, Route.MEMBER, Loading.GROUP, handle_heartbeat_of_classic_protocol),
    _row(LeaveGroup, Route.MEMBER, Loading.GROUP, handle_leave_group),
    _row(ExpireMember, Route.MEMBER, Loading.GROUP, handle_expire_member),
    _row(ExpireClassicDeadline, Route.MEMBER, Loading.GROUP, handle_classic_deadline),
    #
    _row(ConvertToClassicGroup, Route.SHARD, Loading.GROUP, handle_convert_to_classic),
    _row(ReconcileMember, Route.SHARD, Loading.GROUP, handle_second_half),
    _row(PrepareAssignment, Route.SHARD, Loading.GROUP, _at_any_time(handle_prepare_assignment)),
    _row(InstallAssignment, Route.SHARD, Loading.GROUP, handle_install_assignment),
    _row(InstallTarget, Route.SHARD, Loading.GROUP, handle_install_target),
    _row(InstallRegexes, Route.SHARD, Loading.GROUP, _at_any_time(handle_install_regexes)),
    _row(ContinueMoves, Route.SHARD, Loading.GROUP, _at_any_time(handle_continue_moves)),
    _row(RefreshTopics, Route.SHARD, Loading.GROUP, _at_any_time(handle_refresh_topics)),
    _row(RefreshAssignor, Route.SHARD, Loading.GROUP, _at_any_time(handle_refresh_assignor)),
    _row(DeleteTopicOffsets, Route.SHARD, Loading.GROUP, _at_any_time(handle_delete_topic_offsets)),
    _row(ExpireOffsets, Route.SHARD, Loading.GROUP, _at_any_time(handle_expire_offsets)),
    #
    _row(OffsetCommit, Route.COMMIT, Loading.GROUP, handle_commit),
    _row(OffsetFetch, Route.FETCH, Loading.GROUP),
    _row(TxnOffsetCommit, Route.TRANSACTION, Loading.GROUP, handle_transactional_commit),
    _row(WriteTxnMarkers, Route.TRANSACTION, Loading.LOG_PARTITION, handle_write_txn_markers),
    _row(AbortTransaction, Route.TRANSACTION, Loading.LOG_PARTITION, handle_abort_transaction),
    _row(EndTransaction, Route.TRANSACTION, Loading.LOG_PARTITION, handle_end_transaction),
    _row(
        ExpireProducers,
        Route.TRANSACTION,
        Loading.LOG_PARTITION,
        _at_any_time(handle_expire_producers),
    ),
    _row(ListTransactions, Route.LIST_TRANSACTIONS, Loading.ALL),
    _row(DeleteGroup, Route.DELETION, Loading.GROUP),
    _row(DeleteOffsets, Route.DELETION, Loading.GROUP),
    #
    _row(ConsumerGroupDescribe, Route.READ, Loading.EACH_GROUP),
    _row(DescribeGroups, Route.READ, Loading.EACH_GROUP),
    _row(ListGroups, Route.READ, Loading.ALL),
    _row(PlanMigration, Route.READ, Loading.GROUP),
    #
    _row(CreateTopic, Route.TOPICS, Loading.NOTHING),
    _row(GrowTopic, Route.TOPICS, Loading.NOTHING),
    _row(SetTopicRacks, Route.TOPICS, Loading.NOTHING),
    _row(DeleteTopic, Route.TOPICS, Loading.NOTHING),
    _row(ForgetDeletedTopic, Route.TOPICS, Loading.NOTHING),
    _row(AllocateProducerId, Route.TOPICS, Loading.NOTHING),
    _row(DescribeGroupConfigs, Route.TOPICS, Loading.NOTHING),
    _row(ListGroupConfigs, Route.TOPICS, Loading.NOTHING),
    _row(AlterGroupConfigs, Route.TOPICS, Loading.GROUP),
)

COMMANDS: Final[Mapping[type[Any], Row]] = dict(_ROWS)
"""Each type of command that there is: those of ``model.commands.Command``, and those that the
runtime gives its own shards."""
