"""Installation of a target: the records of changed members, and the new assignment epoch.

The result may be based on an older state of the group: members and topics that are gone since are
left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import islice, pairwise, repeat
from typing import TypeAlias

import numpy as np

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.consumer.prepared_target import MadeRecord, PreparedTarget, make_numbers
from coordinator.core.state.group_epochs import compute_target_effect
from coordinator.core.state.outcome import Effect, Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    Indexes,
    InstallTarget,
    Slots,
    TargetProblem,
    compute_slots_of,
    find_outside,
    give_slots,
    is_subscribed_by_all,
)
from model.ids import MemberId, TopicName
from model.log.records import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    Record,
    TopicPartitions,
)
from model.now import Now
from model.responses.response import Done

SlotsAt: TypeAlias = Callable[[Indexes | slice], Slots]

EVERYTHING = slice(None)
FEW = 8
"""If at most one in this many members is affected, only their partitions are examined."""


def handle_install_target(shard: Shard, command: InstallTarget, now: Now) -> Outcome:
    """Write the changed target assignments and the new assignment epoch.

    Does nothing if the group is gone or empty, or its target is not older than this one. If another
    group has the id by now, requests a target for that group.
    """
    problem = command.problem
    group = shard.consumer_groups.get(problem.group_id)
    if group is not None and group is not problem.group:
        return Outcome(response=Done(), effects=_compute_own_target(shard, group))
    if group is None or not group.member_count or group.target_epoch >= problem.group_epoch:
        return Outcome(response=Done())
    if _is_too_late(shard, problem):
        return Outcome(response=Done(), effects=_compute_own_target(shard, group))
    change = _compute_change(shard, group, command)
    records = _member_records(group, change, command.prepared)
    value = ConsumerGroupTargetAssignmentMetadataValue(problem.group_epoch, now.wall_ms)
    records.append(Record(ConsumerGroupTargetAssignmentMetadataKey(group.group_id), value))
    effects: tuple[Effect, ...] = ()
    if group.group_epoch > problem.group_epoch:
        effects = (compute_target_effect(shard, group, group.group_id, now.wall_ms),)
    return Outcome(
        records=tuple(records), response=Done(), effects=effects, prepared=command.prepared
    )


def prepare_target(shard: Shard, command: InstallTarget) -> Preparation | None:
    """Begin to prepare an install in slices; ``None`` if the group is gone or empty."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not group.member_count:
        return None
    return Preparation(shard, group, command)


class Preparation:
    """Builds the records of an install in slices, while the group keeps changing.

    ``left`` is the number of slots still to be examined.
    """

    def __init__(self, shard: Shard, group: ConsumerGroup, command: InstallTarget) -> None:
        self._group = group
        change = _compute_change(shard, group, command)
        self.left = len(change.slots)
        self._members = [group.slots[slot] for slot in change.slots]
        self._made = self._make(change)
        self._prepared: PreparedTarget | None = None
        self._change = change

    @property
    def prepared(self) -> PreparedTarget:
        """The records built so far."""
        if self._prepared is None:
            self._prepared = PreparedTarget(self._change.slots_at(EVERYTHING))
        return self._prepared

    def prepare(self, count: int) -> list[MadeRecord]:
        """Build the records of the next ``count`` slots whose members still are in the group."""
        self.left = max(0, self.left - count)
        made = [one for one in islice(self._made, count) if one is not None]
        for one in made:
            self.prepared.add(one)
        return made

    def _make(self, change: _Change) -> Iterator[MadeRecord | None]:
        group = self._group
        topics = _topics_of(change, change.slots)
        for member, given in zip(self._members, topics, strict=True):
            if member is None or group.slots[member.slot] is not member:
                yield None
                continue
            record, numbers = _member_record(group, member, given), group.numbers
            yield MadeRecord(member, record, make_numbers(numbers, given), numbers)


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """The changes of a target: ``slots`` are those whose target assignment may change.

    ``slots_at`` returns the slots of some or all partitions in the new target. The new assignments
    of ``slots`` all are ``among`` these partitions.
    """

    problem: TargetProblem
    slots: list[int]
    slots_at: SlotsAt
    among: Indexes | slice


def _compute_change(shard: Shard, group: ConsumerGroup, command: InstallTarget) -> _Change:
    problem, target = command.problem, command.target
    if group.revision == problem.revision:
        changed, old, outside = command.changed, problem.old, problem.outside
        slots_at: SlotsAt = lambda indexes: give_slots(problem.slots, target[indexes])  # noqa: E731
    else:
        new = give_slots(_slots_now(group, problem), target)
        _drop_what_has_gone(shard, group, problem, new)
        old = compute_slots_of(group, problem.topics, problem.problem.topic_start)
        changed, outside = np.flatnonzero(new != old), find_outside(group, old)
        slots_at = lambda indexes: new[indexes]  # noqa: E731
    affected = set(old[changed].tolist()) | set(slots_at(changed).tolist())
    affected |= group.untargeted | outside
    affected.discard(NOBODY)
    among: Indexes | slice = EVERYTHING
    if FEW * len(affected) <= group.member_count:
        among = np.union1d(changed, _find_in_force(group, problem, affected))
    return _Change(problem, sorted(affected), slots_at, among)


def _is_too_late(shard: Shard, problem: TargetProblem) -> bool:
    """Whether the group was frozen while an assignor computed."""
    return problem.group_id in shard.freezes and not problem.is_frozen


def _compute_own_target(shard: Shard, group: ConsumerGroup) -> tuple[Effect, ...]:
    if not group.member_count or group.target_epoch >= group.group_epoch:
        return ()
    return (compute_target_effect(shard, group, group.group_id),)


def _slots_now(group: ConsumerGroup, problem: TargetProblem) -> Slots:
    found = (_find_now(group, problem, member_id) for member_id in problem.member_ids)
    return np.fromiter(
        (NOBODY if member is None else member.slot for member in found),
        np.int32,
        len(problem.member_ids),
    )


def _find_now(group: ConsumerGroup, problem: TargetProblem, member_id: MemberId) -> Member | None:
    """The member or its replacement, which bumped no epoch, so that no other target follows."""
    member = group.member(member_id)
    if member is None:
        instance_id = problem.instance_ids.get(member_id)
        return None if instance_id is None else group.static_member(instance_id)
    return member


def _drop_what_has_gone(
    shard: Shard, group: ConsumerGroup, problem: TargetProblem, new: Slots
) -> None:
    """Unassign deleted topics, and topics that the new owner no longer subscribes to."""
    topics, by_id = problem.topics, shard.image.by_id
    count = len(topics)
    topic_of = np.repeat(np.arange(count), np.diff(problem.problem.topic_start))
    is_gone = np.fromiter((topic.topic_id not in by_id for topic in topics), np.bool_, count)
    new[is_gone[topic_of]] = NOBODY
    is_for_all = (is_subscribed_by_all(group, topic.name) for topic in topics)
    is_for_some = ~np.fromiter(is_for_all, np.bool_, count)
    left = np.flatnonzero((new != NOBODY) & is_for_some[topic_of])
    # Check each (topic, owner) pair once: topics may have very many partitions.
    size = len(group.slots)
    owned, places = np.unique(topic_of[left] * size + new[left], return_inverse=True)
    names: dict[int, Set[TopicName]] = {}
    is_wanted = [
        topics[topic].name in _names_of(group, slot, names)
        for topic, slot in map(divmod, owned.tolist(), repeat(size))
    ]
    new[left[~np.array(is_wanted, np.bool_)[places]]] = NOBODY


def _names_of(group: ConsumerGroup, slot: int, known: dict[int, Set[TopicName]]) -> Set[TopicName]:
    """The topics of a member, cached: there may be very many, and each is looked up."""
    found = known.get(slot)
    if found is None:
        member = group.slots[slot]
        assert member is not None
        found = known[slot] = frozenset(group.topics_of(member.metadata))
    return found


def _member_records(
    group: ConsumerGroup, change: _Change, prepared: PreparedTarget | None
) -> list[Record]:
    slots = change.slots
    known = {} if prepared is None else prepared.find(group, slots, change.slots_at(EVERYTHING))
    left = [slot for slot in slots if slot not in known] if known else slots
    topics = _topics_of(change, left) if left else iter(())
    for slot, given in zip(left, topics, strict=True):
        member = group.slots[slot]
        assert member is not None
        known[slot] = _member_record(group, member, given)
    return [known[slot] for slot in slots]


def _find_in_force(group: ConsumerGroup, problem: TargetProblem, slots: set[int]) -> Indexes:
    """The partitions of the problem that these slots have in the current target."""
    found: list[int] = []
    starts = problem.problem.topic_start
    for slot in slots:
        member = group.slots[slot]
        assert member is not None
        for topic in group.numbers.topic_partitions(member.target or ()):
            index = problem.index_of.get(topic.topic_id)
            if index is not None:
                start, limit = int(starts[index]), problem.topics[index].partitions
                found += [start + partition for partition in topic.partitions if partition < limit]
    return np.array(found, np.int64)


def _indexes_of(change: _Change, slots: list[int]) -> tuple[Indexes, list[tuple[int, int]]]:
    """The partitions that these slots get, grouped by slot, with the bounds of each group."""
    owners = change.slots_at(change.among)
    is_affected = np.zeros(slots[-1] + 2, np.bool_)  # The last is for NOBODY and greater slots.
    is_affected[slots] = True
    found = np.flatnonzero(is_affected[np.minimum(owners, slots[-1] + 1)])
    owners = owners[found]
    indexes = found if isinstance(change.among, slice) else change.among[found]
    order = np.argsort(owners, kind="stable")
    bounds = [0, *np.searchsorted(owners[order], slots, side="right").tolist()]
    return indexes[order], list(pairwise(bounds))


def _topics_of(change: _Change, slots: list[int]) -> Iterator[tuple[TopicPartitions, ...]]:
    """The new assignment of each slot, by topic. All slots in one pass: there may be many."""
    if not slots:
        return
    topics, starts = change.problem.topics, change.problem.problem.topic_start
    indexes, bounds = _indexes_of(change, slots)
    if len(topics) == 1:
        topic_id = topics[0].topic_id
        numbers = indexes.tolist()
        for first, end in bounds:
            yield (TopicPartitions(topic_id, tuple(numbers[first:end])),) if end > first else ()
        return
    topic_of = np.searchsorted(starts, indexes, side="right") - 1
    partitions = (indexes - starts[topic_of]).tolist()
    topic_list = topic_of.tolist()
    changes = [*(np.flatnonzero(np.diff(topic_of)) + 1).tolist(), len(topic_list)]
    for first, end in bounds:
        found = []
        while first < end:
            cut = min(changes[bisect_right(changes, first)], end)
            topic = topics[topic_list[first]]
            found.append(TopicPartitions(topic.topic_id, tuple(partitions[first:cut])))
            first = cut
        yield tuple(found)


def _member_record(
    group: ConsumerGroup, member: Member, topics: tuple[TopicPartitions, ...]
) -> Record:
    return Record(
        ConsumerGroupTargetAssignmentMemberKey(group.group_id, member.member_id),
        ConsumerGroupTargetAssignmentMemberValue(topics),
    )
