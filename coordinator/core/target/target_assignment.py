"""The target assignment: the question to the assignor, and its answer.

The assignor may run elsewhere and take its time; what it answers is installed at the epoch that it
was computed for, less what has gone since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from coordinator.core.state.consumer_group import NOBODY, ConsumerGroup, regex_of
from coordinator.core.state.consumer_member import Member, Subscription
from coordinator.core.state.prepared_target import PreparedTarget
from coordinator.core.state.shard import Shard
from coordinator.core.target.assignor_inputs import (
    compute_needs,
    compute_racks,
    compute_rules,
    compute_weights,
)
from model.configs.assignor_configs import AssignorConfigs
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.topics import Topic
from muster.assignors.order import compute_member_rank
from muster.assignors.problem import Problem, Subscriptions
from muster.assignors.rules import NO_RULES, Rules

Slots = npt.NDArray[np.int32]
Indexes = npt.NDArray[np.int64]

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
    changed = np.flatnonzero(give_slots(problem.slots, target) != problem.old)
    return InstallTarget(problem, target, changed, moves_left)


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
        find_outside(group, old),
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


def is_assigned_otherwise(assignor: str, before: AssignorConfigs, configs: AssignorConfigs) -> bool:
    """Whether the assignor would be asked something else. A budget alone moves nothing."""
    changed = before.pins != configs.pins or before.co_partition != configs.co_partition
    weighs = (before.weights, before.skew_limit) != (configs.weights, configs.skew_limit)
    return changed or (weighs and compute_needs(assignor)[1])


def give_slots(slots: Slots, members: npt.NDArray[np.int32]) -> Slots:
    """The slot of each of these members; nobody's for nobody."""
    return np.where(members == NOBODY, np.int32(NOBODY), slots[members])


def _instance_ids(members: list[Member]) -> dict[MemberId, InstanceId]:
    return {
        member.member_id: member.metadata.instance_id
        for member in members
        if member.metadata is not None and member.metadata.instance_id is not None
    }


def find_outside(group: ConsumerGroup, old: Slots) -> frozenset[int]:
    """Slots whose target in force has partitions that are not in the problem any more."""
    if not len(group.target):
        return frozenset()
    target = np.frombuffer(group.target, np.int32)
    size = len(group.slots)
    held = np.bincount(target[target >= 0], minlength=size)
    inside = np.bincount(old[old >= 0], minlength=size)
    return frozenset(np.flatnonzero(held != inside).tolist())
