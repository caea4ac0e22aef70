"""The target assignment: the question to the assignor, and the answer made into records.

The assignor may run elsewhere and take its time; what it answers is installed at the epoch that it
was computed for, less what has gone since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import attrgetter

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
from model.ids import GroupId, InstanceId, MemberId, TopicName
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

_BY_MEMBER_ID = attrgetter("member_id")


@dataclass(frozen=True, slots=True, eq=False)
class TargetProblem:
    """A problem for an assignor, with the names of what it numbers.

    ``topics`` are in the order of the problem; ``slots`` and ``member_ids`` are of its members.
    ``old`` has, for each partition, the slot that the target in force gives it to. ``revision``
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
    member_ids: tuple[MemberId, ...]
    instance_ids: Mapping[MemberId, InstanceId]
    slots: Slots
    old: Slots
    rules: Rules = NO_RULES

    @property
    def group_id(self) -> GroupId:
        return self.group.group_id


@dataclass(frozen=True, slots=True, eq=False)
class InstallTarget:
    """The answer to ``ComputeTarget``: for each partition of the problem a member, or -1.

    ``moves_left``: how many partitions a move budget has held up.
    """

    problem: TargetProblem
    target: npt.NDArray[np.int32]
    moves_left: int = 0
    prepared: PreparedTarget | None = None
    """Its records, as far as they were made before."""

    @property
    def group_id(self) -> GroupId:
        return self.problem.group_id


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
        tuple(member.member_id for member in members),
        _instance_ids(members) if group.static_members else {},
        slots,
        old,
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
    new, slots = _compute_new(shard, group, command)
    records = _member_records(group, problem, new, slots, command.prepared)
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
        new, slots = _compute_new(shard, group, command)
        self.prepared = PreparedTarget(new)
        self.left = len(slots)
        members = [group.slots[slot] for slot in slots]
        topics = _topics_of(command.problem, new, slots, len(group.slots))
        self._left = zip(members, topics, strict=True)

    def prepare(self, count: int) -> list[MadeRecord]:
        """Make the records of so many more slots, where their members are there still."""
        group, made = self._group, []
        self.left = max(0, self.left - count)
        for member, topics in islice(self._left, count):
            if member is not None and group.slots[member.slot] is member:
                record = _member_record(group, member, topics)
                made.append(MadeRecord(member, record, make_numbers(group.numbers, topics)))
                self.prepared.add(made[-1])
        return made


def _compute_new(
    shard: Shard, group: ConsumerGroup, command: InstallTarget
) -> tuple[Slots, list[int]]:
    """For each partition of the problem its new slot, and the slots whose target changes."""
    problem = command.problem
    if group.revision == problem.revision:
        old, slots = problem.old, problem.slots
    else:
        old = compute_slots_of(group, problem.topics, problem.problem.topic_start)
        slots = _slots_now(group, problem)
    new = np.append(slots, np.int32(NOBODY))[command.target]
    if group.revision != problem.revision:
        _drop_what_has_gone(shard, group, problem, new)
    return new, _compute_affected(group, old, new)


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


def _compute_affected(group: ConsumerGroup, old: Slots, new: Slots) -> list[int]:
    changed = np.flatnonzero(new != old)
    affected = set(np.unique(old[changed]).tolist()) | set(np.unique(new[changed]).tolist())
    affected |= group.untargeted
    affected |= _slots_outside(group, old)
    affected.discard(NOBODY)
    return sorted(affected)


def _member_records(
    group: ConsumerGroup,
    problem: TargetProblem,
    new: Slots,
    slots: list[int],
    prepared: PreparedTarget | None,
) -> list[Record]:
    known = {} if prepared is None else prepared.find(group, slots, new)
    left = [slot for slot in slots if slot not in known] if known else slots
    topics = _topics_of(problem, new, left, len(group.slots)) if left else iter(())
    for slot, given in zip(left, topics, strict=True):
        member = group.slots[slot]
        assert member is not None
        known[slot] = _member_record(group, member, given)
    return [known[slot] for slot in slots]


def _slots_outside(group: ConsumerGroup, old: Slots) -> set[int]:
    """Members whose target in force has partitions that are not in the problem any more."""
    if not len(group.target):
        return set()
    target = np.frombuffer(group.target, np.int32)
    size = len(group.slots)
    held = np.bincount(target[target >= 0], minlength=size)
    inside = np.bincount(old[old >= 0], minlength=size)
    return set(np.flatnonzero(held != inside).tolist())


def _indexes_of(
    new: Slots, slots: list[int], slot_count: int
) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]]:
    """The partitions of the problem that these slots get, and where each one's begin and end."""
    is_affected = np.zeros(slot_count + 1, np.bool_)  # The last one is nobody's.
    is_affected[slots] = True
    indexes = np.flatnonzero(is_affected[new])
    owners = new[indexes]
    order = np.argsort(owners, kind="stable")
    bounds = [0, *np.searchsorted(owners[order], slots, side="right").tolist()]
    return indexes[order], list(pairwise(bounds))


def _topics_of(
    problem: TargetProblem, new: Slots, slots: list[int], slot_count: int
) -> Iterator[tuple[TopicPartitions, ...]]:
    """For each slot what it gets, by topic. One look at all of it: slots are many."""
    topics, starts = problem.topics, problem.problem.topic_start
    indexes, bounds = _indexes_of(new, slots, slot_count)
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
