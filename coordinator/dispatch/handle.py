"""One entrance to the state machine: which handler takes which command."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never

from coordinator.core.classic.classic_join import (
    check_member_metadata,
    check_session_timeout,
    handle_join_group,
)
from coordinator.core.classic.classic_leave import handle_expire_classic_deadline
from coordinator.core.classic.classic_sync import handle_classic_heartbeat, handle_sync_group
from coordinator.core.client_assignors.computed_assignment import handle_local_assignment
from coordinator.core.client_assignors.declaration import settle_local_state
from coordinator.core.consumer.heartbeat import handle_heartbeat, handle_reconcile_member
from coordinator.core.consumer.refresh import handle_refresh
from coordinator.core.groups.group_deletion import check_not_being_deleted
from coordinator.core.offsets.offset_commit import handle_delete_topic_offsets, handle_offset_commit
from coordinator.core.offsets.offset_expiry import handle_expire_offsets
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.embedded_protocol import check_subscriptions
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from coordinator.core.subscriptions.regex_resolution import InstallRegexes, handle_install_regexes
from coordinator.core.target.target_assignment import InstallTarget
from coordinator.core.target.target_install import handle_install_target
from coordinator.core.target.target_steps import ContinueMoves
from coordinator.dispatch.checks import (
    check_consumer_protocol,
    check_group_id,
    check_group_id_size,
    check_member_id_size,
    check_member_request,
)
from model.commands import (
    ClassicHeartbeat,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ConvertToClassicGroup,
    DeleteTopicOffsets,
    ExpireClassicDeadline,
    ExpireMember,
    ExpireOffsets,
    InstallAssignment,
    JoinGroup,
    LeaveGroup,
    Now,
    OffsetCommit,
    PrepareAssignment,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
    SyncGroup,
)
from model.errors import InvalidGroupId
from model.ids import GroupId
from translator.departure import handle_expire_member, handle_leave, handle_leave_group
from translator.plan import handle_convert_to_classic
from translator.translated_join import handle_join_of_classic_member, handle_reconcile_by_join_group
from translator.translated_sync import (
    handle_expire_classic_member,
    handle_heartbeat_of_classic_member,
    handle_sync_of_classic_member,
)
from translator.upgrade import find_group_to_upgrade, handle_upgrade

ClassicCommand: TypeAlias = JoinGroup | SyncGroup | ClassicHeartbeat | ExpireClassicDeadline

MemberCommand: TypeAlias = (
    ConsumerGroupHeartbeat | ConsumerGroupLeave | LeaveGroup | ClassicCommand | ExpireMember
)
"""What members say, and what is handled in the order of it."""

ImmediateCommand: TypeAlias = (
    ConvertToClassicGroup
    | ReconcileMember
    | PrepareAssignment
    | InstallAssignment
    | RefreshTopics
    | RefreshAssignor
    | DeleteTopicOffsets
    | ExpireOffsets
)
"""What is submitted as any command, and is not held up by what members say."""

ShardCommand: TypeAlias = (
    MemberCommand | ImmediateCommand | InstallTarget | InstallRegexes | ContinueMoves | OffsetCommit
)
"""What ``handle`` takes. ``OffsetFetch`` reads the store and is the runtime's."""


def handle(shard: Shard, command: ShardCommand, now: Now) -> Outcome:
    """What the command comes to. Reads the state and changes nothing.

    Raises the ``GroupError`` that is the answer.
    """
    if shard.soft.being_deleted and isinstance(command, ConsumerGroupHeartbeat | JoinGroup):
        check_not_being_deleted(shard, command.group_id)
    outcome = handle_command(shard, command, now)
    if outcome.slices is not None:
        return replace(outcome, slices=_settle(shard, command.group_id, outcome.slices))
    if outcome.records and not isinstance(command, OffsetCommit):
        return settle_local_state(shard, command.group_id, outcome)
    return outcome


def _settle(shard: Shard, group_id: GroupId, slices: Steps[Outcome]) -> Steps[Outcome]:
    outcome = yield from slices
    return settle_local_state(shard, group_id, outcome)


def handle_command(shard: Shard, command: ShardCommand, now: Now) -> Outcome:
    """``handle``, but for what ends with members and targets beside the log."""
    match command:
        case ConsumerGroupHeartbeat() | ConsumerGroupLeave():
            return handle_consumer_protocol(shard, command, now)
        case OffsetCommit():
            check_group_id_size(shard, command.group_id)
            return handle_offset_commit(shard, command, now)
        case ReconcileMember():
            return handle_second_half(shard, command, now)
        case InstallTarget() | InstallRegexes() | PrepareAssignment() | InstallAssignment():
            return handle_computed(shard, command, now)
        case LeaveGroup():
            return handle_leave_group(shard, command, now)
        case JoinGroup() | SyncGroup() | ClassicHeartbeat() | ExpireClassicDeadline():
            return handle_classic(shard, command, now)
        case ConvertToClassicGroup():
            return handle_convert_to_classic(shard, command, now)
        case ExpireMember():
            return handle_expire_member(shard, command, now)
        case RefreshTopics() | RefreshAssignor() | ContinueMoves():
            return handle_refresh(shard, command)
        case DeleteTopicOffsets():
            return handle_delete_topic_offsets(shard, command)
        case ExpireOffsets():
            return handle_expire_offsets(shard, command)
        case _:
            assert_never(command)


def handle_consumer_protocol(
    shard: Shard, command: ConsumerGroupHeartbeat | ConsumerGroupLeave, now: Now
) -> Outcome:
    """A heartbeat of the consumer protocol; one that joins a classic group converts it."""
    check_consumer_protocol(shard)
    check_group_id(shard, command.group_id)
    if isinstance(command, ConsumerGroupLeave):
        return handle_leave(shard, command, now)
    check_member_request(shard, command)
    classic = find_group_to_upgrade(shard, command)
    if classic is not None:
        return handle_upgrade(shard, classic, command, now)
    return handle_heartbeat(shard, command, now)


def handle_second_half(shard: Shard, command: ReconcileMember, now: Now) -> Outcome:
    """The rest of a heartbeat, or of a JoinGroup on a consumer group."""
    if command.by_join_group:
        return handle_reconcile_by_join_group(shard, command, now)
    return handle_reconcile_member(shard, command, now)


def handle_classic(shard: Shard, command: ClassicCommand, now: Now) -> Outcome:
    """What classic members ask, in a group of either type, and what their deadlines bring."""
    if isinstance(command, JoinGroup):
        check_member_metadata(shard.settings, command)
        check_subscriptions(command, shard.settings.group_subscriptions_max)
    group = shard.consumer_groups.get(command.group_id)
    if group is not None and group.member_count:
        return handle_translated(shard, group, command, now)
    if isinstance(command, ExpireClassicDeadline):
        return handle_expire_classic_deadline(shard, command, now)
    if not command.group_id:
        raise InvalidGroupId("The group id is empty.")
    match command:
        case JoinGroup():
            check_group_id_size(shard, command.group_id)
            return handle_join_group(shard, command, now)
        case SyncGroup():
            return handle_sync_group(shard, command, now)
        case ClassicHeartbeat():
            return handle_classic_heartbeat(shard, command)
        case _:
            assert_never(command)


def handle_translated(
    shard: Shard, group: ConsumerGroup, command: ClassicCommand, now: Now
) -> Outcome:
    """What classic members of a consumer group ask, and what their deadlines bring."""
    match command:
        case JoinGroup():
            check_session_timeout(shard.settings_of(command.group_id), command)
            if command.member_id is not None:
                check_member_id_size(command.member_id)
            return handle_join_of_classic_member(shard, group, command, now)
        case SyncGroup():
            return handle_sync_of_classic_member(shard, group, command)
        case ClassicHeartbeat():
            return handle_heartbeat_of_classic_member(shard, group, command, now)
        case ExpireClassicDeadline():
            return handle_expire_classic_member(shard, group, command, now)
        case _:
            assert_never(command)


def handle_computed(
    shard: Shard,
    command: InstallTarget | InstallRegexes | PrepareAssignment | InstallAssignment,
    now: Now,
) -> Outcome:
    """What was computed for a group comes in; or a member is about to compute it."""
    match command:
        case InstallTarget():
            return handle_install_target(shard, command, now)
        case InstallRegexes():
            return handle_install_regexes(shard, command)
        case _:
            return handle_local_assignment(shard, command, now)
