"""Selection of the client-side assignor that computes the next target, and of its members.

Source: KIP-848, "Client Side Assignor".
"""

from __future__ import annotations

from collections import Counter

from coordinator.core.client_assignors.declaration import VERSION_MAX
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    compute_ordered_members,
    compute_preferred_assignor,
)
from model.client_assignors import CLASSIC_VERSION
from model.ids import MemberId
from model.value import value


@value
class ClientAssignorChoice:
    """The selected assignor, the version of its metadata, and the members that can run it."""

    name: str
    version: int
    member_ids: tuple[MemberId, ...]


def compute_client_assignor_choice(group: ConsumerGroup) -> ClientAssignorChoice | None:
    """Select the assignor that most members prefer, among those that all declaring members share.

    A shared assignor has a common version; the highest one is used. With classic members in the
    group, version -1 must be common too. A tie goes to the preference of the first member in
    order. ``None`` if no assignor is shared, or no member declares one.
    """
    if group.client_assignor_state is None:
        return None
    named = group.client_assignor_state.assignors
    members = [member for member in compute_ordered_members(group) if member.member_id in named]
    versions = compute_common_versions(group)
    if not versions:
        return None
    votes = Counter(
        next(each.name for each in named[member.member_id] if each.name in versions)
        for member in members
    )
    first = [each.name for each in named[members[0].member_id] if each.name in versions]
    name = max(first, key=lambda each: (votes[each], -first.index(each)))
    there = tuple(
        member.member_id for member in members if member.member_epoch != STATIC_LEAVE_EPOCH
    )
    return ClientAssignorChoice(name, versions[name], there)


def compute_selected_assignor(shard: Shard, group: ConsumerGroup) -> str:
    """The assignor that the members select: client-side if they share one, else server-side."""
    choice = compute_client_assignor_choice(group)
    return compute_preferred_assignor(shard, group) if choice is None else choice.name


def compute_common_versions(group: ConsumerGroup) -> dict[str, int]:
    """The assignors that all declaring members share, each with the highest common version."""
    lowest: dict[str, int] = {}
    highest: dict[str, int] = {}
    counts: Counter[str] = Counter()
    named = (
        group.client_assignor_state.assignors.values()
        if group.client_assignor_state is not None
        else ()
    )
    for assignors in named:
        for each in assignors:
            counts[each.name] += 1
            lowest[each.name] = max(each.minimum_version, lowest.get(each.name, CLASSIC_VERSION))
            highest[each.name] = min(each.maximum_version, highest.get(each.name, VERSION_MAX))
    limit = CLASSIC_VERSION if group.classic_member_count else VERSION_MAX
    return {
        name: highest[name]
        for name, count in counts.items()
        if count == len(named) and lowest[name] <= min(highest[name], limit)
    }
