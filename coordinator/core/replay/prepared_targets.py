"""Replay of a prepared target: its arrays are adopted instead of rebuilt."""

from __future__ import annotations

from array import array

import numpy as np

from coordinator.core.replay.assignment_records import share_numbers
from coordinator.core.replay.group_records import replay
from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import NO_NUMBERS
from coordinator.core.state.consumer.prepared_target import MadeRecord, PreparedTarget, select_made
from coordinator.core.state.shard import Shard
from model.ids import GroupId
from model.log.records import Record


def replay_prepared_target(
    shard: Shard, group_id: GroupId, records: tuple[Record, ...], prepared: PreparedTarget
) -> None:
    """``replay`` of each record; the records with valid prepared data are applied together."""
    group = shard.consumer_groups[group_id]
    together: list[MadeRecord] = []
    others: list[Record] = []
    for record, made in select_made(prepared, group, records):
        if made is None:
            others.append(record)
        else:
            together.append(made)
    _set_targets(group, together)
    for record in others:
        replay(shard, record)


def _set_targets(group: ConsumerGroup, together: list[MadeRecord]) -> None:
    """Set the targets of many members at once.

    A partition may move from one of them to another: clear all their targets first.
    """
    group.revision += len(together)
    slots = np.fromiter((made.member.slot for made in together), np.int32, len(together))
    if len(group.target):
        target = np.frombuffer(group.target, np.int32)
        is_affected = np.zeros(len(group.slots) + 1, np.bool_)  # The last is the index of NOBODY.
        is_affected[slots] = True
        target[is_affected[target]] = NOBODY
        numbers: array[int] = array("i")
        for made in together:
            numbers.extend(made.numbers or NO_NUMBERS)
        if numbers:
            sizes = [len(made.numbers or NO_NUMBERS) for made in together]
            target[np.frombuffer(numbers, np.int32)] = np.repeat(slots, sizes)
    for made in together:
        entry = made.member
        entry.target = share_numbers(made.numbers, entry.assigned) if made.numbers else NO_NUMBERS
    group.untargeted.difference_update(slots.tolist())
