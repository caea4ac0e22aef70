"""Removal of members that leave a consumer group, expire, or are removed by an administrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from coordinator.core.consumer.static_members import compute_tombstones
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.epoch_causes import note_departures
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
from model.ids import MemberId
from model.log.records import Record
from model.past.causes import CauseKind
from model.value import value


@value
class WhyRemoved:
    """Why members are removed, and what some of their clients said."""

    kind: CauseKind
    reasons: Mapping[MemberId, str | None] = field(default_factory=dict)


def compute_removal(
    shard: Shard,
    group: ConsumerGroup,
    members: Sequence[Member],
    why: WhyRemoved,
) -> tuple[tuple[Record, ...], tuple[Effect, ...]]:
    """The tombstones of members, and one new group epoch (``consumerGroupFenceMembers``).

    The remaining members get a new target at once. An empty group keeps its assignment epoch below
    its group epoch until the next join computes a target.
    """
    group_id = group.group_id
    records: list[Record] = []
    for member in members:
        records += compute_tombstones(group_id, member.member_id)
    gone = [member.metadata for member in members]
    records += compute_regex_tombstones(group, gone)
    names = compute_names_after(group, gone, ())
    if group.group_epoch < LAST_EPOCH:  # At the last epoch members can still go: then delete it.
        records += compute_epoch_bump(shard, group, group_id, names)
    said = ((member, why.reasons.get(member.member_id)) for member in members)
    noted = note_departures(group_id, why.kind, said, len(members))
    if group.member_count <= len(members):
        return tuple(records), (noted,)
    return tuple(records), (compute_target_effect(shard, group, group_id), noted)
