"""The consumer group of a record, created by its first record."""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.shard import Shard
from model.ids import GroupId


def find_group(shard: Shard, group_id: GroupId, create: bool) -> ConsumerGroup | None:
    """The group, with its revision incremented; with ``create``, a missing one is created."""
    group = shard.consumer_groups.get(group_id)
    if group is None and create:
        group = shard.state.consumer_groups[group_id] = ConsumerGroup(group_id)
    if group is not None:
        group.revision += 1
    return group


def count_new_member(group: ConsumerGroup, entry: Member) -> None:
    """Update the counters for an entry that becomes a member; call before applying its record."""
    if not entry.is_member:
        group.member_count += 1
        if entry.target is None:
            group.untargeted.add(entry.slot)
