"""Leaving a consumer group: for good, for a while (static members), or by an administrator."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.core.consumer.static_members import compute_tombstones
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.consumer_member import Member
from coordinator.core.state.group_epochs import (
    LAST_EPOCH,
    compute_epoch_bump,
    compute_target_effect,
)
from coordinator.core.state.outcome import Effect
from coordinator.core.state.shard import Shard
from coordinator.core.subscriptions.regex_changes import (
    compute_names_after,
    compute_regex_tombstones,
)
from model.log.records import Record


def compute_removal(
    shard: Shard, group: ConsumerGroup, members: Sequence[Member]
) -> tuple[tuple[Record, ...], tuple[Effect, ...]]:
    """The tombstones of members and one new group epoch (``consumerGroupFenceMember``).

    The group that is left over gets a new target at once; one that is empty keeps an
    assignment epoch below its group epoch, and the next join computes one.
    """
    group_id = group.group_id
    records: list[Record] = []
    for member in members:
        records += compute_tombstones(group_id, member.member_id)
    gone = [member.metadata for member in members]
    records += compute_regex_tombstones(group, gone)
    names = compute_names_after(group, gone, ())
    if group.group_epoch < LAST_EPOCH:  # Else it can at least become empty, and be deleted.
        records += compute_epoch_bump(shard, group, group_id, names)
    if group.member_count <= len(members):
        return tuple(records), ()
    return tuple(records), (compute_target_effect(shard, group, group_id),)
