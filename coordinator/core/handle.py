"""One entrance to the state machine: which handler takes which command."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from coordinator.core.consumer_group import ConsumerGroup, Member
from coordinator.core.expiry import handle_expire_offsets
from coordinator.core.heartbeat import (
    compute_epoch_bump,
    compute_target_effect,
    handle_heartbeat,
    handle_reconcile_member,
)
from coordinator.core.leave import compute_removal, handle_leave, handle_leave_group
from coordinator.core.metadata_hash import compute_metadata_hash
from coordinator.core.offsets import handle_delete_topic_offsets, handle_offset_commit
from coordinator.core.outcome import Outcome
from coordinator.core.regex_resolution import InstallRegexes, handle_install_regexes
from coordinator.core.shard import Shard
from coordinator.core.target import (
    InstallTarget,
    compute_preferred_assignor,
    compute_preferred_of,
    handle_install_target,
)
from model.commands import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    Deadline,
    DeleteTopicOffsets,
    ExpireMember,
    ExpireOffsets,
    LeaveGroup,
    Now,
    OffsetCommit,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
)
from model.errors import InvalidGroupId, InvalidRequest
from model.ids import GroupId, MemberId
from model.records import MemberState
from model.responses import Done

MEMBER_ID_MAX_BYTES = 32_767
"""What a string in the key of a record may have."""

ShardCommand: TypeAlias = (
    ConsumerGroupHeartbeat
    | ConsumerGroupLeave
    | LeaveGroup
    | ReconcileMember
    | ExpireMember
    | InstallTarget
    | InstallRegexes
    | RefreshTopics
    | RefreshAssignor
    | OffsetCommit
    | DeleteTopicOffsets
    | ExpireOffsets
)
"""What ``handle`` takes. ``OffsetFetch`` reads the store and is the runtime's."""


def handle(shard: Shard, command: ShardCommand, now: Now) -> Outcome:
    """What the command comes to. Reads the state and changes nothing.

    Raises the ``GroupError`` that is the answer.
    """
    match command:
        case ConsumerGroupHeartbeat():
            check_group_id(shard, command.group_id)
            check_member_request(shard, command)
            return handle_heartbeat(shard, command, now)
        case OffsetCommit():
            check_group_id_size(shard, command.group_id)
            return handle_offset_commit(shard, command, now)
        case ReconcileMember():
            return handle_reconcile_member(shard, command, now)
        case InstallTarget() | InstallRegexes():
            return handle_install(shard, command, now)
        case ConsumerGroupLeave():
            check_group_id(shard, command.group_id)
            return handle_leave(shard, command)
        case LeaveGroup():
            return handle_leave_group(shard, command)
        case ExpireMember():
            return handle_expire_member(shard, command)
        case RefreshTopics():
            return handle_refresh_topics(shard, command)
        case RefreshAssignor():
            return handle_refresh_assignor(shard, command)
        case DeleteTopicOffsets():
            return handle_delete_topic_offsets(shard, command)
        case ExpireOffsets():
            return handle_expire_offsets(shard, command)
        case _:
            assert_never(command)


def handle_install(shard: Shard, command: InstallTarget | InstallRegexes, now: Now) -> Outcome:
    """What was computed for a group comes in."""
    if isinstance(command, InstallTarget):
        return handle_install_target(shard, command, now)
    return handle_install_regexes(shard, command)


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


def check_member_request(shard: Shard, command: ConsumerGroupHeartbeat) -> None:
    """Rows C2 to C6 as far as no door has to know of a wire for them."""
    if not command.member_id:
        raise InvalidRequest("MemberId can't be empty.")
    if _is_longer(command.member_id, MEMBER_ID_MAX_BYTES):
        raise InvalidRequest(f"The member id is longer than {MEMBER_ID_MAX_BYTES} bytes.")
    if command.member_epoch < 0:
        raise InvalidRequest("MemberEpoch is invalid.")
    names = command.subscribed_topic_names
    if isinstance(names, tuple) and len(names) > shard.settings.group_subscriptions_max:
        raise InvalidRequest(
            f"A member cannot subscribe to more than {shard.settings.group_subscriptions_max} "
            "topics."
        )


def handle_expire_member(shard: Shard, command: ExpireMember) -> Outcome:
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
    records, effects = compute_removal(shard, group, (member,))
    return Outcome(records=records, response=Done(), effects=effects)


def handle_refresh_topics(shard: Shard, command: RefreshTopics) -> Outcome:
    """A new group epoch if the topics that the group subscribes to are not what they were."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not needs_epoch_for_topics(shard, group):
        return Outcome(response=Done())
    records = compute_epoch_bump(shard, group, command.group_id, group.subscribed_topic_names())
    effects = (compute_target_effect(shard, group, command.group_id),)
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def handle_refresh_assignor(shard: Shard, command: RefreshAssignor) -> Outcome:
    """A new group epoch if another assignor than before computes the target of a live group."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not group.member_count:
        return Outcome(response=Done())
    before = compute_preferred_of(command.assignors_before, group)
    if compute_preferred_assignor(shard, group) == before:
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


def has_news(shard: Shard, group_id: GroupId, member_id: MemberId) -> bool:
    """Whether a heartbeat of the member would say something new, or that it is gone.

    A member that must revoke first has no news until it says that it has. Nor is it any that a
    partition is free to which the member does not subscribe any more: a heartbeat would not bring
    it, and whoever waits for news would ask again and again.
    """
    group = shard.consumer_groups.get(group_id)
    member = None if group is None else group.member(member_id)
    if group is None or member is None:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return False
        case MemberState.UNRELEASED_PARTITIONS:
            return member.member_epoch != group.target_epoch or _would_move(shard, group, member)
        case _:
            return member.member_epoch != group.target_epoch


def _would_move(shard: Shard, group: ConsumerGroup, member: Member) -> bool:
    """Whether a member that waits for partitions would get or lose one at its next heartbeat.

    It loses what is of a topic that is gone since, before the target says so.
    """
    if member.metadata is None:
        return False
    subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
    numbers, holder = group.numbers, group.holder
    if not numbers.topic_indexes_of(member.assigned) <= subscribed:
        return True
    return any(
        holder[number] < 0 and numbers.topic_index(number) in subscribed
        for number in member.target or ()
    )
