"""``handle``, the entry point of the state machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from coordinator.core.client_assignors.declaration import settle_client_assignor_state
from coordinator.core.groups.group_deletion import check_not_being_deleted
from coordinator.core.offsets.live_reset import settle_reset
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from coordinator.core.subscriptions.regex_resolution import InstallRegexes
from coordinator.core.target.target_assignment import InstallTarget
from coordinator.core.target.target_steps import ContinueMoves
from coordinator.dispatch.command_table import COMMANDS
from model.commands.classic import ClassicHeartbeat, ExpireClassicDeadline, JoinGroup, SyncGroup
from model.commands.client_assignment import InstallAssignment, PrepareAssignment
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ExpireMember,
    LeaveGroup,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
)
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.commands.groups import ConvertToClassicGroup, RemoveMembers
from model.commands.offsets import DeleteTopicOffsets, ExpireOffsets, OffsetCommit
from model.commands.places import (
    AdoptGroup,
    CheckCommit,
    CheckTxnCommit,
    NotePlace,
    ReturnGroup,
)
from model.commands.resets import DescribeReset, FinishReset
from model.ids import GroupId
from model.now import Now

ShardCommand: TypeAlias = (
    ConsumerGroupHeartbeat
    | ConsumerGroupLeave
    | LeaveGroup
    | JoinGroup
    | SyncGroup
    | ClassicHeartbeat
    | ExpireClassicDeadline
    | ExpireMember
    | ConvertToClassicGroup
    | RemoveMembers
    | ReconcileMember
    | PrepareAssignment
    | InstallAssignment
    | InstallTarget
    | InstallRegexes
    | ContinueMoves
    | RefreshTopics
    | RefreshAssignor
    | DeleteTopicOffsets
    | ExpireOffsets
    | OffsetCommit
    | CheckCommit
    | CheckTxnCommit
    | NotePlace
    | AdoptGroup
    | ReturnGroup
    | FinishReset
    | DescribeReset
    | FreezeGroup
    | ResumeGroup
)
"""The commands that ``handle`` takes: those of one group that need only its shard."""


def handle(shard: Shard, command: ShardCommand, now: Now) -> Outcome:
    """Compute the outcome of a command, without changing any state.

    Raises ``GroupError`` if the answer is an error.
    """
    if shard.soft.being_deleted and isinstance(command, ConsumerGroupHeartbeat | JoinGroup):
        check_not_being_deleted(shard, command.group_id)
    handler = COMMANDS[type(command)].handler
    assert handler is not None, f"{command} is answered by its route"
    outcome = handler(shard, command, now)
    if outcome.slices is not None:
        return replace(outcome, slices=_settle(shard, command.group_id, outcome.slices))
    if outcome.records and not isinstance(command, OffsetCommit):
        outcome = settle_client_assignor_state(shard, command.group_id, outcome)
        return settle_reset(shard, command.group_id, outcome) if shard.resets else outcome
    return outcome


def _settle(shard: Shard, group_id: GroupId, slices: Steps[Outcome]) -> Steps[Outcome]:
    outcome = yield from slices
    outcome = settle_client_assignor_state(shard, group_id, outcome)
    return settle_reset(shard, group_id, outcome) if shard.resets else outcome
