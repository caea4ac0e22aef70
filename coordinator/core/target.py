"""The target assignment: the question to the assignor, and the answer made into records.

The assignor may run elsewhere and take its time; what it answers is installed at the epoch that it
was computed for, less what has gone since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem, Subscriptions
from assignors.registry import ASSIGNORS
from coordinator.core.consumer_group import (
    NOBODY,
    ConsumerGroup,
    Member,
    Subscription,
    regex_of,
)
from coordinator.core.heartbeat import compute_target_effect
from coordinator.core.outcome import Effect, Outcome
from coordinator.core.shard import Shard
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


@dataclass(frozen=True, slots=True, eq=False)
class TargetProblem:
    """A problem for an assignor, with the names of what it numbers.

    ``topics`` are in the order of the problem; ``slots`` and ``member_ids`` are of its members.
    ``old`` has, for each partition, the slot that the target in force gives it to. ``revision``
    is the group's: with another one, slots and ``old`` are to be read again. ``instance_ids`` are
    of static members, in whose place another may stand by then.
    """

    group_id: GroupId
    group_epoch: int
    revision: int
    assignor: str
    problem: Problem
    topics: tuple[Topic, ...]
    member_ids: tuple[MemberId, ...]
    instance_ids: Mapping[MemberId, InstanceId]
    slots: Slots
    old: Slots


@dataclass(frozen=True, slots=True, eq=False)
class InstallTarget:
    """The answer to ``ComputeTarget``: for each partition of the problem a member, or -1."""

    problem: TargetProblem
    target: npt.NDArray[np.int32]

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


def compute_target_problem(shard: Shard, group: ConsumerGroup) -> TargetProblem:
    """The problem at the group's epoch: its members, its topics that exist."""
    image = shard.image
    topics = tuple(
        image.by_name[name]
        for name in sorted(group.subscribed_topic_names())
        if name in image.by_name
    )
    assignor = compute_preferred_assignor(shard, group)
    members = list(group.members())
    if ASSIGNORS[assignor].needs_member_order:
        members.sort(key=_compute_rank)
    slots = np.fromiter((member.slot for member in members), np.int32, len(members))
    starts = np.zeros(len(topics) + 1, np.int64)
    np.cumsum([topic.partitions for topic in topics], out=starts[1:])
    old = compute_slots_of(group, topics, starts)
    index_of_slot = np.full(len(group.slots) + 1, NOBODY, np.int32)
    index_of_slot[slots] = np.arange(len(members), dtype=np.int32)
    problem = Problem(
        topic_start=starts,
        members=len(members),
        owner=index_of_slot[old],
        subscriptions=_subscriptions(group, members, topics),
    )
    return TargetProblem(
        group.group_id,
        group.group_epoch,
        group.revision,
        assignor,
        problem,
        topics,
        tuple(member.member_id for member in members),
        _instance_ids(members) if group.static_members else {},
        slots,
        old,
    )


def _compute_rank(member: Member) -> tuple[bool, str]:
    """Static members come first, by their instance ids: they keep their place when replaced."""
    instance_id = member.metadata.instance_id if member.metadata is not None else None
    return (True, member.member_id) if instance_id is None else (False, instance_id)


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


def handle_install_target(shard: Shard, command: InstallTarget, now: Now) -> Outcome:
    """Records for the members whose target changed, and the new assignment epoch.

    Does nothing where the group has gone, is empty, or has a target as new as this.
    """
    problem = command.problem
    group = shard.consumer_groups.get(problem.group_id)
    if group is None or not group.member_count or group.target_epoch >= problem.group_epoch:
        return Outcome(response=Done())
    if group.revision == problem.revision:
        old, slots = problem.old, problem.slots
    else:
        old = compute_slots_of(group, problem.topics, problem.problem.topic_start)
        slots = _slots_now(group, problem)
    new = np.append(slots, np.int32(NOBODY))[command.target]
    if group.revision != problem.revision:
        _drop_what_has_gone(shard, group, problem, new)
    records = _member_records(group, problem, old, new)
    value = ConsumerGroupTargetAssignmentMetadataValue(problem.group_epoch, now.wall_ms)
    records.append(Record(ConsumerGroupTargetAssignmentMetadataKey(group.group_id), value))
    effects: tuple[Effect, ...] = ()
    if group.group_epoch > problem.group_epoch:
        effects = (compute_target_effect(shard, group, group.group_id),)
    return Outcome(records=tuple(records), response=Done(), effects=effects)


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
    group: ConsumerGroup, problem: TargetProblem, old: Slots, new: Slots
) -> list[Record]:
    changed = np.flatnonzero(new != old)
    affected = set(np.unique(old[changed]).tolist()) | set(np.unique(new[changed]).tolist())
    affected |= group.untargeted
    affected |= _slots_outside(group, old)
    affected.discard(NOBODY)
    slots = sorted(affected)
    found = _topics_of(problem, new, slots, len(group.slots))
    return [_member_record(group, slot, topics) for slot, topics in zip(slots, found, strict=True)]


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


def _member_record(group: ConsumerGroup, slot: int, topics: tuple[TopicPartitions, ...]) -> Record:
    member = group.slots[slot]
    assert member is not None
    return Record(
        ConsumerGroupTargetAssignmentMemberKey(group.group_id, member.member_id),
        ConsumerGroupTargetAssignmentMemberValue(topics),
    )
