"""For whom of a group there is news: what a heartbeat would bring, were it sent now."""

from __future__ import annotations

import numpy as np

from coordinator.core.state.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer_member import Member
from coordinator.core.state.shard import Shard
from model.ids import GroupId, MemberId
from model.log.records import MemberState


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
    if member.classic is not None:
        return has_to_rejoin(group, member)
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
    """Whether it has what is of a topic that is gone since, before the target says so."""
    subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
    return not group.numbers.topic_indexes_of(member.assigned) <= subscribed


def _would_move(shard: Shard, group: ConsumerGroup, member: Member) -> bool:
    """Whether a member that waits for partitions would get or lose one at its next heartbeat."""
    if member.metadata is None:
        return False
    if _would_lose(shard, group, member):
        return True
    subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
    numbers, holder = group.numbers, group.holder
    return any(
        holder[number] < 0 and numbers.topic_index(number) in subscribed
        for number in member.target or ()
    )


def compute_members_in_transit(shard: Shard, group_id: GroupId) -> list[MemberId]:
    """Who has partitions to give up, and who is to get what nobody holds: others wait for them."""
    group = shard.consumer_groups.get(group_id)
    if group is None or not len(group.target):
        return []
    target = np.frombuffer(group.target, np.int32)
    holder = np.frombuffer(group.holder, np.int32)
    moving = np.flatnonzero(target != holder)
    slots = set(holder[moving].tolist()) | set(target[moving].tolist())
    members = (group.slots[slot] for slot in sorted(slots - {NOBODY}))
    return [member.member_id for member in members if member is not None]


def has_to_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """Row T8: whether a classic member has a step to take, which it takes by JoinGroup.

    One that waits for partitions is called when all of them are free: each step may stop it.
    """
    if member.member_epoch < group.target_epoch:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            held, holder = set(member.assigned), group.holder
            return all(number in held or holder[number] < 0 for number in member.target or ())
        case _:
            return False
