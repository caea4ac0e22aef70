"""Conversion of a group to the other type, built before its records are replayed.

A large group is converted in slices, between which the event loop runs. The new group is built from
a snapshot and is invisible until it is complete; then it is replayed at once and written in one
batch. The caller first checks that the group still ``is_as_it_was``; if not, it handles the command
that caused the conversion again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicMember, compute_size
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import take_slices
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    Record,
    TopicPartitions,
)
from model.topics import TopicImage

AT_ONCE_MAX = 200
"""A group with a greater weight is converted in slices; a plain member weighs 1."""
SLICE = 200
"""The weight of one slice, each unit of which takes some 10 µs."""
BYTES_OF_ONE = 200
"""This many bytes of a member's metadata and assignment add a weight of 1."""
TOPICS_OF_ONE = 10
"""This many topics and partitions in decoded form add a weight of 1."""

T = TypeVar("T")


def in_slices(items: Iterable[T], weigh: Callable[[T], int] | None = None) -> Iterator[list[T]]:
    """Split the items into slices, after each of which the caller pauses."""
    return take_slices(items, SLICE, weigh)


def weigh_said(member: ClassicMember) -> int:
    """The weight of a classic member, by the size of its metadata and assignment."""
    size = len(member.metadata) + len(member.assignment) + compute_size(member.protocols)
    return 1 + size // BYTES_OF_ONE


def weigh_group(members: Iterable[ClassicMember]) -> int:
    """The weight of the members; counting stops once they need slices in any case."""
    return sum(map(weigh_said, islice(members, AT_ONCE_MAX + 1)))


def weigh_bytes(said: bytes) -> int:
    """The weight of an encoded subscription, which many members may share."""
    return 1 + len(said) // BYTES_OF_ONE


def weigh_metadata(metadata: ConsumerGroupMemberMetadataValue | None) -> int:
    """The weight of a member of a consumer group, by its subscribed topics."""
    return 1 if metadata is None else 1 + len(metadata.subscribed_topic_names) // TOPICS_OF_ONE


def weigh_record(record: Record) -> int:
    """The weight of a record of a member, by its topics and partitions."""
    value = record.value
    match value:
        case ConsumerGroupMemberMetadataValue():
            return weigh_metadata(value)
        case ConsumerGroupTargetAssignmentMemberValue():
            return _weigh_partitions(value.topic_partitions)
        case ConsumerGroupCurrentMemberAssignmentValue():
            return _weigh_partitions(value.assigned_partitions)
        case _:
            return 1


def _weigh_partitions(topics: Iterable[TopicPartitions | AssignedTopicPartitions]) -> int:
    return 1 + sum(1 + len(topic.partitions) for topic in topics) // TOPICS_OF_ONE


@dataclass(frozen=True, slots=True, eq=False)
class RecordBlock:
    """The encoded keys and values of the records of one batch, and the body of the batch."""

    pairs: Sequence[tuple[bytes, bytes | None]]
    body: bytes


@dataclass(slots=True, eq=False)
class Converted:
    """The group of the new type, as the first ``count`` records build it.

    ``names`` are the topics that it depends on. ``gone`` are the members of the old group that are
    not in the new one. ``blocks`` are all records in the log format, if already encoded.
    """

    group: ConsumerGroup | ClassicGroup
    count: int
    names: Collection[TopicName] = ()
    gone: tuple[MemberId, ...] = ()
    blocks: tuple[RecordBlock, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The input of a conversion; ``revision`` is that of a consumer group."""

    group_id: GroupId
    group: ConsumerGroup | ClassicGroup | None
    revision: int
    image: TopicImage
    settings: CoordinatorSettings

    def is_as_it_was(self, shard: Shard) -> bool:
        """Whether neither the group nor its configs have changed since."""
        now = take_snapshot(shard, self.group_id)
        is_same = now.group is self.group and now.revision == self.revision
        return is_same and now.settings is self.settings

    def has_topics(self, image: TopicImage, names: Collection[TopicName]) -> bool:
        """Whether these topics are unchanged; a missing one must still be missing."""
        if image is self.image:
            return True
        before, now = self.image.by_name, image.by_name
        return all(now.get(name) is before.get(name) for name in names)


def take_snapshot(shard: Shard, group_id: GroupId) -> Snapshot:
    """Take a snapshot. A classic group is an immutable value: a change makes another object."""
    consumer = shard.consumer_groups.get(group_id)
    group = shard.classic_group(group_id) if consumer is None else consumer
    revision = 0 if consumer is None else consumer.revision
    return Snapshot(group_id, group, revision, shard.image, shard.settings_of(group_id))
