"""The target assignment: the problem for the assignor, and its result.

The assignor may run asynchronously. Its result is installed at the epoch it was computed for, less
the members and topics that are gone by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup, regex_of
from coordinator.core.state.consumer.consumer_member import Member, Subscription
from coordinator.core.state.consumer.prepared_target import PreparedTarget
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
    """An assignor's problem, with the ids of the members and topics that it numbers.

    ``topics``, ``slots`` and ``member_ids`` are in the order of the problem; ``index_of`` maps
    topic ids to indexes in ``topics``. ``old`` has the slot of each partition in the current
    target; ``outside`` are slots with partitions in the current target that the problem does not
    have. ``revision`` is that of the group: if it has changed, slots and ``old`` must be
    computed again. ``instance_ids`` are those of static members, which may be replaced in the
    meantime. ``group`` is for an identity check: another group may have its id by then.
    ``is_frozen``: the group was frozen, so that no assignor is asked.
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
    is_frozen: bool = False

    @property
    def group_id(self) -> GroupId:
        return self.group.group_id


@dataclass(frozen=True, slots=True, eq=False)
class InstallTarget:
    """The result of ``ComputeTarget``: the index of a member for each partition, or -1.

    ``changed`` are the partitions with another slot in the current target. ``moves_left`` is the
    number of moves that the move budget postponed.
    """

    problem: TargetProblem
    target: npt.NDArray[np.int32]
    changed: Indexes
    moves_left: int = 0
    prepared: PreparedTarget | None = None
    """The records that were built ahead of time, if any."""

    @property
    def group_id(self) -> GroupId:
        return self.problem.group_id


def compute_install(
    problem: TargetProblem, target: npt.NDArray[np.int32], moves_left: int = 0
) -> InstallTarget:
    """The result with its changed partitions: the only full scan of a result."""
    changed = np.flatnonzero(give_slots(problem.slots, target) != problem.old)
    return InstallTarget(problem, target, changed, moves_left)


def compute_preferred_assignor(shard: Shard, group: ConsumerGroup) -> str:
    """The server-side assignor that most members prefer; the first configured if none does."""
    return compute_preferred_of(shard.settings_of(group.group_id).group_consumer_assignors, group)


def compute_preferred_of(configured: tuple[str, ...], group: ConsumerGroup) -> str:
    """``compute_preferred_assignor`` for this list of configured assignors."""
    counts = group.server_assignors
    known = [name for name in configured if name in counts]
    return max(known, key=lambda name: counts[name]) if known else configured[0]


def find_target_problem(shard: Shard, group_id: GroupId) -> TargetProblem | None:
    """The current problem of a group; ``None`` if it does not need a target."""
    group = shard.consumer_groups.get(group_id)
    if group is None or not group.member_count or group.target_epoch >= group.group_epoch:
        return None
    return compute_target_problem(shard, group)


def compute_target_problem(shard: Shard, group: ConsumerGroup) -> TargetProblem:
    """The problem at the current group epoch: all members, and the subscribed existing topics."""
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
        group.group_id in shard.freezes,
    )


def compute_ordered_members(group: ConsumerGroup) -> list[Member]:
    """The members in the order in which assignors number them, independent of when they joined."""
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
    """The slot of each partition of these topics in the current target, or -1."""
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
    """Whether all members subscribe to the topic, either all by name or all by one expression.

    ``False`` may be wrong if some subscribe by name and others by expression.
    """
    everybody = group.member_count
    if group.subscribed_names.get(name, 0) == everybody:
        return True
    return any(
        count == everybody and name in group.resolved_regexes.get(regex, ())
        for regex, count in group.regexes.items()
    )


def is_assigned_otherwise(assignor: str, before: AssignorConfigs, configs: AssignorConfigs) -> bool:
    """Whether the change affects the assignor's input. A move budget alone does not."""
    changed = before.pins != configs.pins or before.co_partition != configs.co_partition
    weighs = (before.weights, before.skew_limit) != (configs.weights, configs.skew_limit)
    return changed or (weighs and compute_needs(assignor)[1])


def give_slots(slots: Slots, members: npt.NDArray[np.int32]) -> Slots:
    """The slots of these member indexes; ``NOBODY`` stays ``NOBODY``."""
    return np.where(members == NOBODY, np.int32(NOBODY), slots[members])


def _instance_ids(members: list[Member]) -> dict[MemberId, InstanceId]:
    return {
        member.member_id: member.metadata.instance_id
        for member in members
        if member.metadata is not None and member.metadata.instance_id is not None
    }


def find_outside(group: ConsumerGroup, old: Slots) -> frozenset[int]:
    """Slots that have partitions in the current target that are not in the problem."""
    if not len(group.target):
        return frozenset()
    target = np.frombuffer(group.target, np.int32)
    size = len(group.slots)
    held = np.bincount(target[target >= 0], minlength=size)
    inside = np.bincount(old[old >= 0], minlength=size)
    return frozenset(np.flatnonzero(held != inside).tolist())
