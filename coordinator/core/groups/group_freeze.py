"""Freeze and resume of a consumer group's rebalancing.

While a group is frozen no assignor is asked: joins, leaves and changes of topics get their group
epochs, and the target of each is what there is of the last one (``target.frozen_target``). Members
that are on their way to it come to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from coordinator.core.groups.group_deletion import check_is_there, check_not_being_deleted
from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.freezes import check_not_frozen
from coordinator.core.state.group_epochs import compute_epoch_bump
from coordinator.core.state.outcome import ComputeTarget, Effect, NoteEpochCauses, Outcome
from coordinator.core.state.shard import Shard
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.errors import FreezeRefused
from model.group_freeze import GroupFreeze
from model.ids import GroupId, MemberId
from model.log.records import Record
from model.log.side_records import GroupFreezeKey, SideRecord
from model.now import Now
from model.past.causes import Cause, CauseKind
from model.responses.freezes import GroupFrozen, GroupResumed
from model.what_if import Move

LISTED_MAX: Final = 1_000
"""The most moves, and the most members, that a response lists."""


def handle_freeze_group(shard: Shard, command: FreezeGroup, now: Now) -> Outcome:
    """Freeze the group; a target that is being computed is not waited for."""
    group = _find_group(shard, command.group_id)
    check_not_frozen(shard, group.group_id)
    reset = shard.resets.get(group.group_id)
    if reset is not None and not reset.is_set:
        raise FreezeRefused(
            f"The offsets of group {group.group_id} are being reset, which its members have to "
            "follow: wait for it."
        )
    moving = _find_moving(group)
    response = GroupFrozen(
        group.group_epoch,
        tuple(_list_moves(shard, group, moving[:LISTED_MAX].tolist())),
        tuple(_list_without_target(group)),
        len(moving),
        len(group.untargeted),
    )
    if command.validate_only:
        return Outcome(response=response)
    effects: tuple[Effect, ...] = ()
    if group.member_count and group.target_epoch < group.group_epoch:
        effects = (ComputeTarget(group.group_id),)
    key = GroupFreezeKey(shard.partition, group.group_id)
    freeze = GroupFreeze(now.wall_ms, command.caller.principal)
    return Outcome(response=response, effects=effects, side=(SideRecord(key, freeze),))


def handle_resume_group(shard: Shard, command: ResumeGroup) -> Outcome:
    """End the freeze, under a new group epoch that gets a target at once.

    An empty group needs no target before somebody joins.
    """
    group = _find_group(shard, command.group_id)
    group_id = group.group_id
    freeze = shard.freezes.get(group_id)
    if freeze is None:
        raise FreezeRefused(f"Rebalancing of group {group_id} is not frozen.")
    has_members = group.member_count > 0
    response = GroupResumed(group.group_epoch + has_members, freeze.since_ms, freeze.principal)
    if command.validate_only:
        return Outcome(response=response)
    records: list[Record] = []
    effects: tuple[Effect, ...] = ()
    if has_members:
        names = group.subscribed_topic_names()
        records = compute_epoch_bump(shard, group, group_id, names)
        caller = command.caller
        cause = Cause(
            CauseKind.ADMINISTRATOR,
            client_id=caller.client_id,
            client_host=caller.client_host,
            reason=f"{caller.principal} resumes rebalancing, which {freeze.principal} froze",
        )
        effects = (ComputeTarget(group_id), NoteEpochCauses(group_id, (cause,)))
    side = (SideRecord(GroupFreezeKey(shard.partition, group_id), None),)
    return Outcome(tuple(records), response, effects, side=side)


def _find_group(shard: Shard, group_id: GroupId) -> ConsumerGroup:
    """Raises ``FreezeRefused`` for a group of another type: its clients or others assign there."""
    check_not_being_deleted(shard, group_id)
    group = shard.consumer_groups.get(group_id)
    if group is None:
        check_is_there(shard, group_id)
        raise FreezeRefused(
            f"Group {group_id} is not a consumer group: only rebalances of those can be frozen."
        )
    return group


def _find_moving(group: ConsumerGroup) -> NDArray[np.intp]:
    """The numbers of the partitions that are not with the member of their target yet."""
    return np.flatnonzero(np.array(group.target, np.int32) != np.array(group.owner, np.int32))


def _list_moves(shard: Shard, group: ConsumerGroup, moving: Iterable[int]) -> Iterator[Move]:
    """The moves of partitions of existing topics."""
    by_id = shard.image.by_id
    for number in moving:
        (topic,) = group.numbers.topic_partitions((number,))
        known = by_id.get(topic.topic_id)
        if known is not None:
            (partition,) = topic.partitions
            source = _find_id(group, group.owner[number])
            destination = _find_id(group, group.target[number])
            yield Move(known.name, partition, source, destination)


def _find_id(group: ConsumerGroup, slot: int) -> MemberId | None:
    member = None if slot == NOBODY else group.slots[slot]
    return None if member is None else member.member_id


def _list_without_target(group: ConsumerGroup) -> Iterator[MemberId]:
    for slot in islice(group.untargeted, LISTED_MAX):
        member = group.slots[slot]
        if member is not None:
            yield member.member_id
