"""Figures of groups, taken on the event loop in slices: many groups, or large ones, take long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from coordinator.core.state.shard import Shard
from coordinator.runtime.loop.slices import Steps
from model.ids import GroupId

SLICE: Final = 5_000
"""What one event-loop iteration looks at: a member counts 1, at some 0.2 µs, a group 10."""
_GROUP: Final = 10


class GroupFigures(NamedTuple):
    """Figures of a consumer group, or of a classic group, whose epoch is its generation."""

    group_id: str
    state: str
    members: int
    unconverged: int
    group_epoch: int
    assignment_epoch: int


@dataclass(frozen=True, slots=True)
class AllGroups:
    """The groups of each shard, how many there are by type and state, and how many are frozen."""

    shards: tuple[tuple[GroupFigures, ...], ...]
    by_state: Mapping[tuple[str, str], int]
    frozen: int


def take_groups(shards: Iterable[Shard]) -> Steps[AllGroups]:
    """Look at all groups. One that comes or goes meanwhile may be missing."""
    taken: list[tuple[GroupFigures, ...]] = []
    by_state = Counter({("consumer", state.value): 0 for state in ConsumerGroupState})
    frozen = 0
    for shard in shards:
        frozen += len(shard.freezes)
        figures = yield from _take_consumer_groups(shard)
        by_state.update(("consumer", group.state) for group in figures)
        # Include live groups: a classic group is only written when its rebalance completes.
        classic = shard.all_classic_groups()
        by_state.update(_count_other_groups(shard, classic))
        yield
        figures += yield from _take_classic_groups(shard, classic)
        taken.append(tuple(figures))
    return AllGroups(tuple(taken), dict(by_state), frozen)


def _take_consumer_groups(shard: Shard) -> Steps[list[GroupFigures]]:
    figures: list[GroupFigures] = []
    left = SLICE
    for group_id in tuple(shard.consumer_groups):
        group = shard.consumer_groups.get(group_id)
        if group is None:
            continue
        if group.member_count > SLICE:
            unconverged = yield from _count_unconverged(group)
        else:
            epoch = group.group_epoch
            unconverged = sum(not member.is_reconciled_to(epoch) for member in group.members())
        left -= _GROUP + min(group.member_count, SLICE)
        figures.append(
            GroupFigures(
                group_id,
                group.state().value,
                group.member_count,
                unconverged,
                group.group_epoch,
                group.target_epoch,
            )
        )
        if left <= 0:
            left = SLICE
            yield
    return figures


def _count_unconverged(group: ConsumerGroup) -> Steps[int]:
    """The same for a group whose members are too many for one slice."""
    epoch, found = group.group_epoch, 0
    for number, member in enumerate(tuple(group.members()), 1):
        found += not member.is_reconciled_to(epoch)
        if number % SLICE == 0:
            yield
    return found


def _take_classic_groups(
    shard: Shard, classic: Mapping[GroupId, ClassicGroup]
) -> Steps[list[GroupFigures]]:
    figures: list[GroupFigures] = []
    for number, (group_id, group) in enumerate(classic.items(), 1):
        if group_id not in shard.consumer_groups and group_id not in shard.foreign_groups:
            figures.append(_compute_classic_figures(group))
        if number % (SLICE // _GROUP) == 0:
            yield
    return figures


def _count_other_groups(
    shard: Shard, classic: Mapping[GroupId, ClassicGroup]
) -> Counter[tuple[str, str]]:
    """Groups other than consumer groups by type and state; offsets alone make a classic group."""
    consumers, foreign = shard.consumer_groups, shard.foreign_groups
    counts: Counter[tuple[str, str]] = Counter()
    for group_id, group in foreign.items():
        if group_id not in consumers:
            counts[group.group_type, group.state()] += 1
    for group_id, known in classic.items():
        if group_id not in consumers and group_id not in foreign:
            counts["classic", known.state.value] += 1
    counts["classic", "Empty"] += len(
        shard.offset_groups - consumers.keys() - foreign.keys() - classic.keys()
    )
    return counts


def _compute_classic_figures(group: ClassicGroup) -> GroupFigures:
    """A member that still has to rejoin, or to sync, has not converged."""
    match group.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            unconverged = len(group.members) - group.awaiting_joins
        case ClassicGroupState.COMPLETING_REBALANCE:
            unconverged = len(group.pending_syncs)
        case _:
            unconverged = 0
    is_settled = group.state in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY)
    return GroupFigures(
        group.group_id,
        group.state.value,
        len(group.members),
        unconverged,
        group.generation,
        group.generation if is_settled else group.generation - 1,
    )
