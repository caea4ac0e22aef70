"""The consumer group that a record is of, made by its first record."""

from __future__ import annotations

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.consumer_member import Member
from coordinator.core.state.shard import Shard
from model.ids import GroupId


def find_group(shard: Shard, group_id: GroupId, create: bool) -> ConsumerGroup | None:
    """The group, whose revision is another from now on; ``create``: it is made if there is none."""
    group = shard.consumer_groups.get(group_id)
    if group is None and create:
        group = shard.state.consumer_groups[group_id] = ConsumerGroup(group_id)
    if group is not None:
        group.revision += 1
    return group


def count_new_member(group: ConsumerGroup, entry: Member) -> None:
    """Before the record that makes an entry a member is applied."""
    if not entry.is_member:
        group.member_count += 1
        if entry.target is None:
            group.untargeted.add(entry.slot)
