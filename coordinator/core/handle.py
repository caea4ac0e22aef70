"""One entrance to the state machine: which handler takes which command."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never

from coordinator.core.classic_join import (
    check_member_metadata,
    check_session_timeout,
    handle_join_group,
)
from coordinator.core.classic_leave import handle_expire_classic_deadline
from coordinator.core.classic_sync import handle_classic_heartbeat, handle_sync_group
from coordinator.core.classic_translator_join import (
    handle_join_of_classic_member,
    handle_reconcile_by_join_group,
)
from coordinator.core.classic_translator_sync import (
    handle_expire_classic_member,
    handle_heartbeat_of_classic_member,
    handle_sync_of_classic_member,
)
from coordinator.core.consumer_group import ConsumerGroup
from coordinator.core.consumer_protocol import check_subscriptions
from coordinator.core.expiry import handle_expire_offsets
from coordinator.core.group_deletion import check_not_being_deleted
from coordinator.core.heartbeat import (
    compute_epoch_bump,
    compute_target_effect,
    handle_heartbeat,
    handle_reconcile_member,
)
from coordinator.core.leave import compute_departure, handle_leave, handle_leave_group
from coordinator.core.local_assignments import handle_local_assignment
from coordinator.core.local_assignors import settle_local_state
from coordinator.core.metadata_hash import compute_metadata_hash
from coordinator.core.migration_plan import handle_convert_to_classic
from coordinator.core.move_steps import ContinueMoves, handle_continue_moves
from coordinator.core.offsets import handle_delete_topic_offsets, handle_offset_commit
from coordinator.core.outcome import Outcome
from coordinator.core.regex_resolution import InstallRegexes, handle_install_regexes
from coordinator.core.shard import Shard
from coordinator.core.steps import Steps
from coordinator.core.target import (
    InstallTarget,
    compute_preferred_assignor,
    compute_preferred_of,
    is_assigned_otherwise,
)
from coordinator.core.target_install import handle_install_target
from coordinator.core.upgrade import find_group_to_upgrade, handle_upgrade
from model.commands import (
    ClassicHeartbeat,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ConvertToClassicGroup,
    Deadline,
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
from model.errors import InvalidGroupId, InvalidRequest, UnsupportedVersion
from model.ids import GroupId, MemberId
from model.records import MemberState
from model.responses import Done

MEMBER_ID_MAX_BYTES = 32_767
"""What a string in the key of a record may have."""

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
    if shard.being_deleted and isinstance(command, ConsumerGroupHeartbeat | JoinGroup):
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


def check_consumer_protocol(shard: Shard) -> None:
    """Row C1: ``group.coordinator.rebalance.protocols`` says whether it is spoken here.

    Kafka: ``KafkaApis.isConsumerGroupProtocolEnabled``.
    """
    if "consumer" not in shard.settings.group_coordinator_rebalance_protocols:
        raise UnsupportedVersion("The consumer group protocol is switched off on this server.")


def check_group_id(shard: Shard, group_id: GroupId) -> None:
    """Row C3, and a bound on what becomes a key of the log."""
    if not group_id:
        raise InvalidRequest("GroupId can't be empty.")
    check_group_id_size(shard, group_id)


def check_group_id_size(shard: Shard, group_id: GroupId) -> None:
    """A group id must fit into the key of a record."""
    limit = shard.settings.group_id_max_bytes
    if _is_longer(group_id, limit):
        raise InvalidGroupId(f"The group id is longer than {limit} bytes.")


def _is_longer(text: str, limit: int) -> bool:
    """Whether the text has more bytes, which are at most four for each character."""
    return 4 * len(text) > limit and len(text.encode()) > limit


def check_member_id_size(member_id: MemberId) -> None:
    """A member id must fit into the key of a record."""
    if _is_longer(member_id, MEMBER_ID_MAX_BYTES):
        raise InvalidRequest(f"The member id is longer than {MEMBER_ID_MAX_BYTES} bytes.")


def check_member_request(shard: Shard, command: ConsumerGroupHeartbeat) -> None:
    """Rows C2 to C6 as far as no door has to know of a wire for them."""
    if not command.member_id:
        raise InvalidRequest("MemberId can't be empty.")
    check_member_id_size(command.member_id)
    if command.member_epoch < 0:
        raise InvalidRequest("MemberEpoch is invalid.")
    names = command.subscribed_topic_names
    if isinstance(names, tuple) and len(names) > shard.settings.group_subscriptions_max:
        raise InvalidRequest(
            f"A member cannot subscribe to more than {shard.settings.group_subscriptions_max} "
            "topics."
        )


def handle_expire_member(shard: Shard, command: ExpireMember, now: Now) -> Outcome:
    """Remove the member if the deadline still holds.

    A rebalance deadline holds while the member has not left the epoch in which it had to
    revoke (Kafka keys its timer by the member epoch).
    """
    group = shard.consumer_groups.get(command.group_id)
    member = group.member(command.member_id) if group is not None else None
    if group is None or member is None:
        return Outcome(response=Done())
    if command.deadline is Deadline.REBALANCE and (
        member.member_epoch != command.member_epoch
        or member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        return Outcome(response=Done())
    return compute_departure(shard, group, (member,), now, Done())


def handle_refresh(
    shard: Shard, command: RefreshTopics | RefreshAssignor | ContinueMoves
) -> Outcome:
    """What targets are computed from may be otherwise now."""
    if isinstance(command, RefreshTopics):
        return handle_refresh_topics(shard, command)
    if isinstance(command, ContinueMoves):
        return handle_continue_moves(shard, command)
    return handle_refresh_assignor(shard, command)


def handle_refresh_topics(shard: Shard, command: RefreshTopics) -> Outcome:
    """A new group epoch if the topics that the group subscribes to are not what they were."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not needs_epoch_for_topics(shard, group):
        return Outcome(response=Done())
    records = compute_epoch_bump(shard, group, command.group_id, group.subscribed_topic_names())
    effects = (compute_target_effect(shard, group, command.group_id),)
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def handle_refresh_assignor(shard: Shard, command: RefreshAssignor) -> Outcome:
    """A new group epoch if the target of a live group is computed otherwise than before."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not group.member_count:
        return Outcome(response=Done())
    before = compute_preferred_of(command.assignors_before, group)
    now = compute_preferred_assignor(shard, group)
    configs = shard.settings_of(command.group_id).assignor_configs
    if now == before and not is_assigned_otherwise(now, command.assignor_configs_before, configs):
        return Outcome(response=Done())
    records = compute_epoch_bump(shard, group, command.group_id, group.subscribed_topic_names())
    effects = (compute_target_effect(shard, group, command.group_id),)
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def needs_epoch_for_topics(shard: Shard, group: ConsumerGroup) -> bool:
    """Whether the group has members, and a metadata hash that is not of the topics as they are."""
    if group.member_count == 0:
        return False
    names = group.subscribed_topic_names()
    return compute_metadata_hash(names, shard.image, shard.topic_hashes) != group.metadata_hash
