"""Pending changes: which members of a group would learn something from a heartbeat sent now."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.reset_of_group import compute_withheld
from coordinator.core.state.shard import Shard
from model.ids import GroupId, MemberId
from model.log.records import MemberState


def has_pending_change(shard: Shard, group_id: GroupId, member_id: MemberId) -> bool:
    """Whether the response to a heartbeat would have a change, or the member is no longer one.

    A member that must revoke partitions has no pending change until it acknowledges that. A free
    partition that the member no longer subscribes to is no pending change: a heartbeat would not
    assign it, and a watcher of the member would send one after another.
    """
    group = shard.consumer_groups.get(group_id)
    member = None if group is None else group.member(member_id)
    if group is None or member is None:
        return True
    if member.classic is not None:
        return has_to_rejoin(group, member, compute_withheld(shard, group))
    if group.waits_for_regex(member) and _would_lose(shard, group, member):
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return False
        case MemberState.UNRELEASED_PARTITIONS:
            return member.member_epoch != group.target_epoch or _would_move(shard, group, member)
        case _:
            return member.member_epoch != group.target_epoch


def _would_lose(shard: Shard, group: ConsumerGroup, member: Member) -> bool:
    """Whether it owns partitions of a topic that is deleted, or that it no longer subscribes to.

    The target may still have them.
    """
    subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
    return not group.numbers.topic_indexes_of(member.assigned) <= subscribed


def _would_move(shard: Shard, group: ConsumerGroup, member: Member) -> bool:
    """Whether a member that waits for partitions would gain or lose one at its next heartbeat."""
    if member.metadata is None:
        return False
    if _would_lose(shard, group, member):
        return True
    subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
    numbers, owner = group.numbers, group.owner
    withheld = compute_withheld(shard, group)
    return any(
        owner[number] < 0 and number not in withheld and numbers.topic_index(number) in subscribed
        for number in member.target or ()
    )


def compute_members_in_transit(shard: Shard, group_id: GroupId) -> list[MemberId]:
    """The members at either end of a partition that is not with its target owner yet.

    They must give partitions up or can take free ones; other members wait for them.
    """
    group = shard.consumer_groups.get(group_id)
    if group is None or not len(group.target):
        return []
    target = np.frombuffer(group.target, np.int32)
    owner = np.frombuffer(group.owner, np.int32)
    moving = np.flatnonzero(target != owner)
    slots = set(owner[moving].tolist()) | set(target[moving].tolist())
    members = (group.slots[slot] for slot in sorted(slots - {NOBODY}))
    return [member.member_id for member in members if member is not None]


def has_to_rejoin(group: ConsumerGroup, member: Member, withheld: Set[int] = frozenset()) -> bool:
    """Whether a classic member must rejoin to reconcile (row T8, tests/scenarios/README.md).

    A member that waits for partitions rejoins once all of them are free: an eager client stops
    consuming for each JoinGroup.
    """
    if member.member_epoch < group.target_epoch:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            held, owner = set(member.assigned), group.owner
            return all(
                number in held or (owner[number] < 0 and number not in withheld)
                for number in member.target or ()
            )
        case _:
            return False
