"""The target assignment: the question to the assignor, and the answer made into records.

The assignor may run elsewhere and take its time; what it answers is installed at the epoch that it
was computed for, less what has gone since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import attrgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from assignors.order import compute_member_rank
from assignors.problem import Problem, Subscriptions
from assignors.rules import NO_RULES, Rules
from coordinator.core.assignor_inputs import (
    compute_needs,
    compute_racks,
    compute_rules,
    compute_weights,
)
from coordinator.core.consumer_group import (
    NOBODY,
    ConsumerGroup,
    Member,
    Subscription,
    regex_of,
)
from coordinator.core.heartbeat import compute_target_effect
from coordinator.core.outcome import Effect, Outcome
from coordinator.core.prepared_target import MadeRecord, PreparedTarget, make_numbers
from coordinator.core.shard import Shard
from model.assignor_configs import AssignorConfigs
from model.commands import Now
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.records import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    Record,
    TopicPartitions,
)
from model.responses import Done
from model.topics import Topic

Slots = npt.NDArray[np.int32]
Indexes = npt.NDArray[np.int64]
SlotsAt: TypeAlias = Callable[[Indexes | slice], Slots]

EVERYTHING = slice(None)
FEW = 8
"""Where not more than one in so many members is affected, only what they have is looked at."""

_BY_MEMBER_ID = attrgetter("member_id")


@dataclass(frozen=True, slots=True, eq=False)
class TargetProblem:
    """A problem for an assignor, with the names of what it numbers.

    ``topics`` are in the order of the problem; ``slots`` and ``member_ids`` are of its members.
    ``index_of`` has the place of each topic in them.
    ``old`` has, for each partition, the slot that the target in force gives it to; ``outside`` are
    slots to which it gives partitions that are not in the problem (any more). ``revision``
    is the group's: with another one, slots and ``old`` are to be read again. ``instance_ids`` are
    of static members, in whose place another may stand by then. ``group`` is only to be known
    again: there may be another of its id when the answer comes.
    """

    group: ConsumerGroup
    group_epoch: int
    revision: int
    assignor: str
    problem: Problem
    topics: tuple[Topic, ...]
    index_of: Mapping[TopicId, int]
    member_ids: tuple[MemberId, ...]
    instance_ids: Mapping[MemberId, InstanceId]
    slots: Slots
    old: Slots
    outside: frozenset[int]
    rules: Rules = NO_RULES

    @property
    def group_id(self) -> GroupId:
        return self.group.group_id


@dataclass(frozen=True, slots=True, eq=False)
class InstallTarget:
    """The answer to ``ComputeTarget``: for each partition of the problem a member, or -1.

    ``changed`` are the partitions that the target in force gives to another slot.
    ``moves_left``: how many partitions a move budget has held up.
    """

    problem: TargetProblem
    target: npt.NDArray[np.int32]
    changed: Indexes
    moves_left: int = 0
    prepared: PreparedTarget | None = None
    """Its records, as far as they were made before."""

    @property
    def group_id(self) -> GroupId:
        return self.problem.group_id


def compute_install(
    problem: TargetProblem, target: npt.NDArray[np.int32], moves_left: int = 0
) -> InstallTarget:
    """The answer with what it changes: the one look at all of it, wherever it was computed."""
    changed = np.flatnonzero(_give(problem.slots, target) != problem.old)
    return InstallTarget(problem, target, changed, moves_left)


# ------------------------------------------------------------------------------- the question


def compute_preferred_assignor(shard: Shard, group: ConsumerGroup) -> str:
    """What most members prefer, of those that name one; else the first that is configured."""
    return compute_preferred_of(shard.settings_of(group.group_id).group_consumer_assignors, group)


def compute_preferred_of(configured: tuple[str, ...], group: ConsumerGroup) -> str:
    """``compute_preferred_assignor`` where these are configured."""
    counts = group.server_assignors
    known = [name for name in configured if name in counts]
    return max(known, key=lambda name: counts[name]) if known else configured[0]


def find_target_problem(shard: Shard, group_id: GroupId) -> TargetProblem | None:
    """The problem of a group now; ``None`` where it needs no target (any more)."""
    group = shard.consumer_groups.get(group_id)
    if group is None or not group.member_count or group.target_epoch >= group.group_epoch:
        return None
    return compute_target_problem(shard, group)


def compute_target_problem(shard: Shard, group: ConsumerGroup) -> TargetProblem:
    """The problem at the group's epoch: its members, its topics that exist."""
    image = shard.image
    topics = tuple(
        image.by_name[name]
        for name in sorted(group.subscribed_topic_names())
        if name in image.by_name
    )
    assignor = compute_preferred_assignor(shard, group)
    members = compute_ordered_members(group)
    slots = np.fromiter((member.slot for member in members), np.int32, len(members))
    starts = np.zeros(len(topics) + 1, np.int64)
    np.cumsum([topic.partitions for topic in topics], out=starts[1:])
    old = compute_slots_of(group, topics, starts)
    index_of_slot = np.full(len(group.slots) + 1, NOBODY, np.int32)
    index_of_slot[slots] = np.arange(len(members), dtype=np.int32)
    configs = shard.settings_of(group.group_id).assignor_configs
    uses_racks, uses_weights = compute_needs(assignor)
    problem = Problem(
        topic_start=starts,
        members=len(members),
        owner=index_of_slot[old],
        subscriptions=_subscriptions(group, members, topics),
        racks=compute_racks(members, topics, starts) if uses_racks else None,
        weights=compute_weights(configs, topics, starts) if uses_weights else None,
    )
    return TargetProblem(
        group,
        group.group_epoch,
        group.revision,
        assignor,
        problem,
        topics,
        {topic.topic_id: index for index, topic in enumerate(topics)},
        tuple(member.member_id for member in members),
        _instance_ids(members) if group.static_members else {},
        slots,
        old,
        _find_outside(group, old),
        compute_rules(configs, members, topics, starts),
    )


def compute_ordered_members(group: ConsumerGroup) -> list[Member]:
    """The members in the order in which assignors number them, whenever each of them came."""
    members = list(group.members())
    if not group.static_members:
        members.sort(key=_BY_MEMBER_ID)
        return members
    members.sort(key=_compute_rank)
    return members


def _compute_rank(member: Member) -> tuple[bool, str]:
    metadata = member.metadata
    return compute_member_rank(
        member.member_id, metadata.instance_id if metadata is not None else None
    )


def compute_slots_of(
    group: ConsumerGroup, topics: tuple[Topic, ...], starts: npt.NDArray[np.int64]
) -> Slots:
    """For each partition of these topics, the slot that the target gives it to, or -1."""
    slots = np.full(int(starts[-1]), NOBODY, np.int32)
    target = np.frombuffer(group.target, np.int32) if len(group.target) else slots
    for topic, start in zip(topics, starts, strict=False):
        for first, base, size, _ in group.numbers.ranges(topic.topic_id):
            size = min(size, topic.partitions - first)
            if size > 0:
                slots[start + first : start + first + size] = target[base : base + size]
    return slots


def _subscriptions(
    group: ConsumerGroup, members: list[Member], topics: tuple[Topic, ...]
) -> Subscriptions:
    if all(is_subscribed_by_all(group, name) for name in group.subscribed_topic_names()):
        return Subscriptions.all(len(members), len(topics))
    index_of = {topic.name: index for index, topic in enumerate(topics)}
    known: dict[Subscription, list[int]] = {}
    lists = []
    for member in members:
        metadata = member.metadata
        names = metadata.subscribed_topic_names if metadata is not None else ()
        subscription = names, regex_of(metadata)
        indexes = known.get(subscription)
        if indexes is None:
            found = [index_of[name] for name in group.topics_of(metadata) if name in index_of]
            indexes = known[subscription] = sorted(found)
        lists.append(indexes)
    return Subscriptions.of(lists, len(topics))


def is_subscribed_by_all(group: ConsumerGroup, name: TopicName) -> bool:
    """Whether all members name the topic, or all have a pattern that it is of.

    ``False`` is no more than a guess where some do the one and some the other.
    """
    everybody = group.member_count
    if group.subscribed_names.get(name, 0) == everybody:
        return True
    return any(
        count == everybody and name in group.resolved_regexes.get(regex, ())
        for regex, count in group.regexes.items()
    )


# --------------------------------------------------------------------------------- the answer


def is_assigned_otherwise(assignor: str, before: AssignorConfigs, configs: AssignorConfigs) -> bool:
    """Whether the assignor would be asked something else. A budget alone moves nothing."""
    changed = before.pins != configs.pins or before.co_partition != configs.co_partition
    weighs = (before.weights, before.skew_limit) != (configs.weights, configs.skew_limit)
    return changed or (weighs and compute_needs(assignor)[1])


def handle_install_target(shard: Shard, command: InstallTarget, now: Now) -> Outcome:
    """Records for the members whose target changed, and the new assignment epoch.

    Does nothing where the group has gone, is empty, or has a target as new as this. Where another
    group has its id by now, that one gets a target of its own.
    """
    problem = command.problem
    group = shard.consumer_groups.get(problem.group_id)
    if group is not None and group is not problem.group:
        return Outcome(response=Done(), effects=_compute_own_target(shard, group))
    if group is None or not group.member_count or group.target_epoch >= problem.group_epoch:
        return Outcome(response=Done())
    change = _compute_change(shard, group, command)
    records = _member_records(group, change, command.prepared)
    value = ConsumerGroupTargetAssignmentMetadataValue(problem.group_epoch, now.wall_ms)
    records.append(Record(ConsumerGroupTargetAssignmentMetadataKey(group.group_id), value))
    effects: tuple[Effect, ...] = ()
    if group.group_epoch > problem.group_epoch:
        effects = (compute_target_effect(shard, group, group.group_id),)
    return Outcome(
        records=tuple(records), response=Done(), effects=effects, prepared=command.prepared
    )


def prepare_target(shard: Shard, command: InstallTarget) -> Preparation | None:
    """The beginning of an install in slices; ``None`` for one that does nothing as things are."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not group.member_count:
        return None
    return Preparation(shard, group, command)


class Preparation:
    """Makes the records of an install, slice by slice, while the group goes on.

    ``left`` is how many slots are still to be looked at.
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
        """What was made."""
        if self._prepared is None:
            self._prepared = PreparedTarget(self._change.slots_at(EVERYTHING))
        return self._prepared

    def prepare(self, count: int) -> list[MadeRecord]:
        """Make the records of so many more slots, where their members are there still."""
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
            record = _member_record(group, member, given)
            yield MadeRecord(member, record, make_numbers(group.numbers, given))


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """What a target changes: ``slots`` are those that get something else than before.

    ``slots_at`` has the slots of these partitions, or of all of them. All that ``slots`` get is
    ``among`` these partitions.
    """

    problem: TargetProblem
    slots: list[int]
    slots_at: SlotsAt
    among: Indexes | slice


def _give(slots: Slots, members: npt.NDArray[np.int32]) -> Slots:
    """The slot of each of these members; nobody's for nobody."""
    return np.where(members == NOBODY, np.int32(NOBODY), slots[members])


def _compute_change(shard: Shard, group: ConsumerGroup, command: InstallTarget) -> _Change:
    problem, target = command.problem, command.target
    if group.revision == problem.revision:
        changed, old, outside = command.changed, problem.old, problem.outside
        slots_at: SlotsAt = lambda indexes: _give(problem.slots, target[indexes])  # noqa: E731
    else:
        new = _give(_slots_now(group, problem), target)
        _drop_what_has_gone(shard, group, problem, new)
        old = compute_slots_of(group, problem.topics, problem.problem.topic_start)
        changed, outside = np.flatnonzero(new != old), _find_outside(group, old)
        slots_at = lambda indexes: new[indexes]  # noqa: E731
    affected = set(old[changed].tolist()) | set(slots_at(changed).tolist())
    affected |= group.untargeted | outside
    affected.discard(NOBODY)
    among: Indexes | slice = EVERYTHING
    if FEW * len(affected) <= group.member_count:
        among = np.union1d(changed, _find_in_force(group, problem, affected))
    return _Change(problem, sorted(affected), slots_at, among)


def _compute_own_target(shard: Shard, group: ConsumerGroup) -> tuple[Effect, ...]:
    if not group.member_count or group.target_epoch >= group.group_epoch:
        return ()
    return (compute_target_effect(shard, group, group.group_id),)


def _instance_ids(members: list[Member]) -> dict[MemberId, InstanceId]:
    return {
        member.member_id: member.metadata.instance_id
        for member in members
        if member.metadata is not None and member.metadata.instance_id is not None
    }


def _slots_now(group: ConsumerGroup, problem: TargetProblem) -> Slots:
    found = (_find_now(group, problem, member_id) for member_id in problem.member_ids)
    return np.fromiter(
        (NOBODY if member is None else member.slot for member in found),
        np.int32,
        len(problem.member_ids),
    )


def _find_now(group: ConsumerGroup, problem: TargetProblem, member_id: MemberId) -> Member | None:
    """The member, or the one that took its place: that costs no epoch, so no other target comes."""
    member = group.member(member_id)
    if member is None:
        instance_id = problem.instance_ids.get(member_id)
        return None if instance_id is None else group.static_member(instance_id)
    return member


def _drop_what_has_gone(
    shard: Shard, group: ConsumerGroup, problem: TargetProblem, new: Slots
) -> None:
    """Take out topics that were deleted and topics that their new owner unsubscribed from."""
    starts = problem.problem.topic_start
    for index, topic in enumerate(problem.topics):
        part = new[starts[index] : starts[index + 1]]
        if topic.topic_id not in shard.image.by_id:
            part[:] = NOBODY
            continue
        if is_subscribed_by_all(group, topic.name):
            continue
        for slot in np.unique(part[part >= 0]).tolist():
            member = group.slots[slot]
            assert member is not None
            if not group.is_subscribed(member.metadata, topic.name):
                part[part == slot] = NOBODY


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


def _find_outside(group: ConsumerGroup, old: Slots) -> frozenset[int]:
    """Slots whose target in force has partitions that are not in the problem any more."""
    if not len(group.target):
        return frozenset()
    target = np.frombuffer(group.target, np.int32)
    size = len(group.slots)
    held = np.bincount(target[target >= 0], minlength=size)
    inside = np.bincount(old[old >= 0], minlength=size)
    return frozenset(np.flatnonzero(held != inside).tolist())


def _find_in_force(group: ConsumerGroup, problem: TargetProblem, slots: set[int]) -> Indexes:
    """The partitions of the problem that the target in force gives to these slots."""
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
    """The partitions of the problem that these slots get, and where each one's begin and end."""
    owners = change.slots_at(change.among)
    is_affected = np.zeros(slots[-1] + 2, np.bool_)  # The last one is nobody's, and all others'.
    is_affected[slots] = True
    found = np.flatnonzero(is_affected[np.minimum(owners, slots[-1] + 1)])
    owners = owners[found]
    indexes = found if isinstance(change.among, slice) else change.among[found]
    order = np.argsort(owners, kind="stable")
    bounds = [0, *np.searchsorted(owners[order], slots, side="right").tolist()]
    return indexes[order], list(pairwise(bounds))


def _topics_of(change: _Change, slots: list[int]) -> Iterator[tuple[TopicPartitions, ...]]:
    """For each slot what it gets, by topic. One look at all of them: slots are many."""
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
