"""Frozen groups stand still: S41."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from model.ids import GroupId
from tests.sim.checkers.violations import check
from tests.support.shadow import Place

Targets = Mapping[Place, str]


def find_frozen_targets(shard: Shard, group_id: GroupId) -> Targets | None:
    """Whom the target of a frozen group gives each partition; ``None`` for one that is not."""
    group = shard.consumer_groups.get(group_id)
    if group is None or group_id not in shard.freezes:
        return None
    return _compute_targets(group)


def check_frozen(shard: Shard, group_id: GroupId, before: Targets | None) -> None:
    """S41: while a group is frozen nobody gets what is not in its own target.

    Who takes the place of a member that is gone has the target of that one.
    """
    after = find_frozen_targets(shard, group_id)
    if before is None or after is None:
        return
    group = shard.consumer_groups[group_id]
    members = {member.member_id for member in group.members()}
    for place, member_id in after.items():
        earlier = before.get(place)
        is_own = earlier is not None and (earlier == member_id or earlier not in members)
        check(is_own, "S41", f"{group_id} is frozen: {place} of {earlier} goes to {member_id}")


def _compute_targets(group: ConsumerGroup) -> Targets:
    return {
        (topic.topic_id, partition): member.member_id
        for member in group.members()
        for topic in group.numbers.topic_partitions(member.target or ())
        for partition in topic.partitions
    }
