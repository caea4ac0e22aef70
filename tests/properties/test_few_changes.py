"""A target that changes for a few of many: what is made of what they have is what is made of all.

Groups of the other properties are small, and what is looked at of those is always everything.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.replay.group_records import replay
from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.core.target import target_install
from coordinator.core.target.target_assignment import (
    InstallTarget,
    compute_install,
    compute_target_problem,
)
from coordinator.core.target.target_install import (
    Preparation,
    handle_install_target,
    prepare_target,
)
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, TopicId, TopicName
from model.log.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    Record,
)
from model.now import Now
from model.topics import Topic, compute_image_of

G = GroupId("g")
MEMBERS = 24
PARTITIONS = (17, 1, 30)
ALL_PARTITIONS = sum(PARTITIONS)
EVERYBODY = st.integers(NOBODY, MEMBERS - 1)
CHANGES = st.dictionaries(st.integers(0, ALL_PARTITIONS - 1), EVERYBODY, max_size=4)


def topics(sizes: tuple[int, ...]) -> tuple[Topic, ...]:
    return tuple(
        Topic(TopicName(f"t{n}"), TopicId(uuid.UUID(int=n + 1).bytes), size)
        for n, size in enumerate(sizes)
    )


def make_group(seed: int) -> tuple[Shard, ConsumerGroup]:
    """Members with a target that is anything at all, at epoch 2."""
    shard = Shard(LogPartition(0), CoordinatorSettings(), compute_image_of(topics(PARTITIONS)))
    names = tuple(topic.name for topic in topics(PARTITIONS))
    value = ConsumerGroupMemberMetadataValue(None, None, "c", "/", names, None, 60_000, None)
    for number in range(MEMBERS):
        key = ConsumerGroupMemberMetadataKey(G, MemberId(f"m{number:02}"))
        replay(shard, Record(key, value))
    group = shard.consumer_groups[G]
    bump(shard, 2)
    any_owners = np.random.default_rng(seed).integers(NOBODY, MEMBERS, ALL_PARTITIONS)
    command = compute_install(compute_target_problem(shard, group), any_owners.astype(np.int32))
    for record in handle_install_target(shard, command, Now(1, 1)).records:
        replay(shard, record)
    return shard, group


def bump(shard: Shard, epoch: int) -> None:
    replay(shard, Record(ConsumerGroupMetadataKey(G), ConsumerGroupMetadataValue(epoch)))


def change(shard: Shard, group: ConsumerGroup, changes: dict[int, int]) -> InstallTarget:
    """The target in force, with these partitions given to others."""
    bump(shard, 3)
    problem = compute_target_problem(shard, group)
    new = problem.problem.owner.copy()
    size = len(new)
    for partition, member in changes.items():
        new[partition % size] = member
    return compute_install(problem, new)


def install_both_ways(shard: Shard, command: InstallTarget) -> tuple[Record, ...]:
    few = handle_install_target(shard, command, Now(2, 2)).records
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_install, "FEW", MEMBERS + 1)
        whole = handle_install_target(shard, command, Now(2, 2)).records
    assert few == whole
    return few


@given(st.integers(0, 1000), CHANGES)
def test_records_are_the_same(seed: int, changes: dict[int, int]) -> None:
    shard, group = make_group(seed)
    command = change(shard, group, changes)
    for record in install_both_ways(shard, command):
        replay(shard, record)
    owner = compute_target_problem(shard, group).problem.owner
    assert owner.tolist() == command.target.tolist()


@given(st.integers(0, 1000), CHANGES, st.integers(0, MEMBERS - 1))
def test_also_where_the_group_has_changed_meanwhile(
    seed: int, changes: dict[int, int], leaving: int
) -> None:
    shard, group = make_group(seed)
    command = change(shard, group, changes)
    leaves = MemberId(f"m{leaving:02}")
    replay(shard, Record(ConsumerGroupTargetAssignmentMemberKey(G, leaves), None))
    replay(shard, Record(ConsumerGroupMemberMetadataKey(G, leaves), None))
    install_both_ways(shard, command)


@given(st.integers(0, 1000), CHANGES, st.sampled_from([(17, 1), (17, 1, 12), (20, 1, 30)]))
def test_also_where_a_topic_has_gone_or_is_of_another_size(
    seed: int, changes: dict[int, int], sizes: tuple[int, ...]
) -> None:
    shard, group = make_group(seed)
    shard.image = compute_image_of(topics(sizes))
    for record in install_both_ways(shard, change(shard, group, changes)):
        replay(shard, record)
    assert compute_target_problem(shard, group).outside == frozenset()


@given(st.integers(0, 1000), CHANGES)
def test_what_is_made_before_is_what_is_made_at_once(seed: int, changes: dict[int, int]) -> None:
    shard, group = make_group(seed)
    command = change(shard, group, changes)
    preparation = prepare_target(shard, command)
    assert isinstance(preparation, Preparation)
    while preparation.left:
        preparation.prepare(1)
    prepared = replace(command, prepared=preparation.prepared)
    few = handle_install_target(shard, command, Now(2, 2)).records
    assert handle_install_target(shard, prepared, Now(2, 2)).records == few
