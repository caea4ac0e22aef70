"""The command table: the route, the loading rule and the handler of each command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeAlias, TypeVar

from coordinator.core.classic.classic_moves import handle_adopt_group, handle_return_group
from coordinator.core.client_assignors.computed_assignment import (
    handle_install_assignment,
    handle_prepare_assignment,
)
from coordinator.core.consumer.refresh import handle_refresh_assignor, handle_refresh_topics
from coordinator.core.groups.group_freeze import handle_freeze_group, handle_resume_group
from coordinator.core.groups.group_places import handle_note_place
from coordinator.core.offsets.live_reset import handle_finish_reset
from coordinator.core.offsets.offset_commit import handle_delete_topic_offsets
from coordinator.core.offsets.offset_expiry import handle_expire_offsets
from coordinator.core.offsets.offset_reset import handle_describe_reset
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
    handle_commit_check,
    handle_consumer_heartbeat,
    handle_consumer_leave,
    handle_continuation,
    handle_heartbeat_of_classic_protocol,
    handle_join,
    handle_sync,
    handle_transactional_commit,
    handle_transactional_commit_check,
)
from model.commands.access import CreateAcls, DeleteAcls, DescribeAcls
from model.commands.classic import ClassicHeartbeat, ExpireClassicDeadline, JoinGroup, SyncGroup
from model.commands.client_assignment import InstallAssignment, PrepareAssignment
from model.commands.configs import AlterGroupConfigs, DescribeGroupConfigs, ListGroupConfigs
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ExpireMember,
    LeaveGroup,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
)
from model.commands.explain import ExplainRebalances
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.commands.groups import (
    ConsumerGroupDescribe,
    ConvertToClassicGroup,
    DeleteGroup,
    DescribeGroups,
    ListGroups,
    PlanMigration,
    RemoveMembers,
)
from model.commands.offset_changes import ListOffsetChanges
from model.commands.offsets import (
    DeleteOffsets,
    DeleteTopicOffsets,
    ExpireOffsets,
    OffsetCommit,
    OffsetFetch,
)
from model.commands.ownership import CheckToken
from model.commands.places import (
    AdoptGroup,
    CheckCommit,
    CheckTxnCommit,
    GiveGroupUp,
    ListPlaces,
    NotePlace,
    ReturnGroup,
)
from model.commands.quotas import AlterQuotas, DescribeQuotas
from model.commands.resets import DescribeReset, FinishReset, ResetOffsets
from model.commands.topics import (
    CreateTopic,
    DeleteTopic,
    ForgetDeletedTopic,
    GrowTopic,
    ReplaceTopics,
    SetTopicRacks,
)
from model.commands.transactions import (
    AbortTransaction,
    AllocateProducerId,
    EndTransaction,
    ExpireProducers,
    ListTransactions,
    TxnOffsetCommit,
    WriteTxnMarkers,
)
from model.commands.users import AlterUserScramCredentials, DescribeUserScramCredentials, SetUser
from model.commands.what_if import ComputeWhatIf
from model.now import Now
from translator.departure import handle_expire_member, handle_leave_group
from translator.plan import handle_convert_to_classic
from translator.removal import handle_remove_members


class Route(Enum):
    """The part of the runtime that takes a command."""

    MEMBER = auto()
    """The shard of the group, in request order, a bounded number per event-loop iteration."""
    SHARD = auto()
    """The shard of the group, at once, ahead of queued requests of members."""
    COMMIT = auto()
    """The shard of the group, on the fast path for offset commits."""
    FETCH = auto()
    """The committed offsets in the store."""
    TRANSACTION = auto()
    """The shard of the group or of the log partition, and its open transactions."""
    LIST_TRANSACTIONS = auto()
    DELETION = auto()
    """The shard of the group, and the committed offsets in the store."""
    RESET = auto()
    """The shard of the group, and the committed offsets in the store, in one look."""
    READ = auto()
    """The groups in memory, across shards."""
    WHAT_IF = auto()
    """A copy of the group, on a thread."""
    EXPLAIN = auto()
    """The ledger of rebalances and of changes of offsets, in memory and in the store."""
    TOPICS = auto()
    """The topic catalogue, producer ids, group configs, ACLs, quotas and users."""


class Loading(Enum):
    """What must be loaded before a command can be handled."""

    GROUP = auto()
    """The shard of the command's group."""
    EACH_GROUP = auto()
    """The shard of each group; only groups whose shard is not loaded are refused."""
    LOG_PARTITION = auto()
    """The shard of the command's log partition."""
    ALL = auto()
    """All shards."""
    NOTHING = auto()


Handler: TypeAlias = Callable[[Shard, Any, Now], Outcome]


@dataclass(frozen=True, slots=True)
class Row:
    """The row of one command type.

    ``handler`` is ``None`` if the route itself computes the answer: reads, topics, and commands
    that need the committed offsets in the store.
    """

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
    """Adapt a handler that does not depend on the time."""

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
    _row(RemoveMembers, Route.MEMBER, Loading.GROUP, handle_remove_members),
    _row(ExpireMember, Route.MEMBER, Loading.GROUP, handle_expire_member),
    _row(ExpireClassicDeadline, Route.MEMBER, Loading.GROUP, handle_classic_deadline),
    #
    _row(ConvertToClassicGroup, Route.SHARD, Loading.GROUP, handle_convert_to_classic),
    _row(ReconcileMember, Route.SHARD, Loading.GROUP, handle_continuation),
    _row(PrepareAssignment, Route.SHARD, Loading.GROUP, _at_any_time(handle_prepare_assignment)),
    _row(InstallAssignment, Route.SHARD, Loading.GROUP, handle_install_assignment),
    _row(InstallTarget, Route.SHARD, Loading.GROUP, handle_install_target),
    _row(InstallRegexes, Route.SHARD, Loading.GROUP, _at_any_time(handle_install_regexes)),
    _row(ContinueMoves, Route.SHARD, Loading.GROUP, _at_any_time(handle_continue_moves)),
    _row(RefreshTopics, Route.SHARD, Loading.GROUP, _at_any_time(handle_refresh_topics)),
    _row(RefreshAssignor, Route.SHARD, Loading.GROUP, _at_any_time(handle_refresh_assignor)),
    _row(DeleteTopicOffsets, Route.SHARD, Loading.GROUP, _at_any_time(handle_delete_topic_offsets)),
    _row(ExpireOffsets, Route.SHARD, Loading.GROUP, _at_any_time(handle_expire_offsets)),
    _row(FinishReset, Route.SHARD, Loading.GROUP, handle_finish_reset),
    _row(DescribeReset, Route.SHARD, Loading.GROUP, _at_any_time(handle_describe_reset)),
    _row(FreezeGroup, Route.SHARD, Loading.GROUP, handle_freeze_group),
    _row(ResumeGroup, Route.SHARD, Loading.GROUP, _at_any_time(handle_resume_group)),
    _row(NotePlace, Route.SHARD, Loading.GROUP, handle_note_place),
    _row(AdoptGroup, Route.SHARD, Loading.GROUP, handle_adopt_group),
    _row(ReturnGroup, Route.SHARD, Loading.GROUP, handle_return_group),
    #
    _row(CheckCommit, Route.COMMIT, Loading.GROUP, handle_commit_check),
    _row(CheckTxnCommit, Route.COMMIT, Loading.GROUP, handle_transactional_commit_check),
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
    _row(GiveGroupUp, Route.DELETION, Loading.GROUP),
    _row(ResetOffsets, Route.RESET, Loading.GROUP),
    #
    _row(ConsumerGroupDescribe, Route.READ, Loading.EACH_GROUP),
    _row(DescribeGroups, Route.READ, Loading.EACH_GROUP),
    _row(ListGroups, Route.READ, Loading.ALL),
    _row(PlanMigration, Route.READ, Loading.GROUP),
    _row(ListPlaces, Route.READ, Loading.ALL),
    _row(CheckToken, Route.READ, Loading.GROUP),
    _row(ComputeWhatIf, Route.WHAT_IF, Loading.GROUP),
    _row(ExplainRebalances, Route.EXPLAIN, Loading.GROUP),
    _row(ListOffsetChanges, Route.EXPLAIN, Loading.GROUP),
    #
    _row(CreateTopic, Route.TOPICS, Loading.NOTHING),
    _row(GrowTopic, Route.TOPICS, Loading.NOTHING),
    _row(SetTopicRacks, Route.TOPICS, Loading.NOTHING),
    _row(DeleteTopic, Route.TOPICS, Loading.NOTHING),
    _row(ReplaceTopics, Route.TOPICS, Loading.NOTHING),
    _row(ForgetDeletedTopic, Route.TOPICS, Loading.NOTHING),
    _row(AllocateProducerId, Route.TOPICS, Loading.NOTHING),
    _row(DescribeGroupConfigs, Route.TOPICS, Loading.NOTHING),
    _row(ListGroupConfigs, Route.TOPICS, Loading.NOTHING),
    _row(AlterGroupConfigs, Route.TOPICS, Loading.GROUP),
    _row(CreateAcls, Route.TOPICS, Loading.NOTHING),
    _row(DeleteAcls, Route.TOPICS, Loading.NOTHING),
    _row(DescribeAcls, Route.TOPICS, Loading.NOTHING),
    _row(AlterQuotas, Route.TOPICS, Loading.NOTHING),
    _row(DescribeQuotas, Route.TOPICS, Loading.NOTHING),
    _row(AlterUserScramCredentials, Route.TOPICS, Loading.NOTHING),
    _row(SetUser, Route.TOPICS, Loading.NOTHING),
    _row(DescribeUserScramCredentials, Route.TOPICS, Loading.NOTHING),
)

COMMANDS: Final[Mapping[type[Any], Row]] = dict(_ROWS)
"""All command types: those of ``Command``, and the runtime's own commands."""
