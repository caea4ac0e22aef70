"""A group that changes its type: what the records of it come to, made before they are replayed.

A large group is converted in slices, between which the loop runs. All of it is made of the group as
it was at the beginning, in the sight of nobody; then it is replayed at once and written in one
batch. Whoever carries it out asks first whether the group ``is_as_it_was``; if it is not, the
command that brings the conversion is handled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from coordinator.core.state.classic_group import ClassicGroup, ClassicMember, compute_size
from coordinator.core.state.consumer_group import ConsumerGroup
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
"""A group of more members, or of members that say as much, is converted in slices."""
SLICE = 200
"""So many members, or records of them, in one slice, each in some 10 µs."""
BYTES_OF_ONE = 200
"""So many bytes of what a member says, or has, count as one more."""
TOPICS_OF_ONE = 10
"""The same of topics, and of their partitions, that are read already."""

T = TypeVar("T")


def in_slices(items: Iterable[T], weigh: Callable[[T], int] | None = None) -> Iterator[list[T]]:
    """The members in parts, after each of which the caller is to stop."""
    return take_slices(items, SLICE, weigh)


def weigh_said(member: ClassicMember) -> int:
    """A member of a classic group, by what it says and what it was assigned."""
    size = len(member.metadata) + len(member.assignment) + compute_size(member.protocols)
    return 1 + size // BYTES_OF_ONE


def weigh_group(members: Iterable[ClassicMember]) -> int:
    """All members, or so many that they are too many to be converted at once."""
    return sum(map(weigh_said, islice(members, AT_ONCE_MAX + 1)))


def weigh_bytes(said: bytes) -> int:
    """A subscription that many members may have said."""
    return 1 + len(said) // BYTES_OF_ONE


def weigh_metadata(metadata: ConsumerGroupMemberMetadataValue | None) -> int:
    """A member of a consumer group, by the topics that it subscribes to."""
    return 1 if metadata is None else 1 + len(metadata.subscribed_topic_names) // TOPICS_OF_ONE


def weigh_record(record: Record) -> int:
    """A record of a member, by its topics and their partitions."""
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
    """Keys and values of records for a batch of their own, and what it has behind its header."""

    pairs: Sequence[tuple[bytes, bytes | None]]
    body: bytes


@dataclass(slots=True, eq=False)
class Converted:
    """What the first ``count`` records come to: the group, of its new type.

    ``names`` are those of the topics that it depends on. ``gone`` are members of the group of the
    old type that are not in the new one. ``blocks`` are all records in the bytes of the log, where
    somebody has made them.
    """

    group: ConsumerGroup | ClassicGroup
    count: int
    names: Collection[TopicName] = ()
    gone: tuple[MemberId, ...] = ()
    blocks: tuple[RecordBlock, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What a conversion is made of; ``revision`` is that of a consumer group."""

    group_id: GroupId
    group: ConsumerGroup | ClassicGroup | None
    revision: int
    image: TopicImage
    settings: CoordinatorSettings

    def is_as_it_was(self, shard: Shard) -> bool:
        """Whether the group is, and what is in force for it."""
        now = take_snapshot(shard, self.group_id)
        is_same = now.group is self.group and now.revision == self.revision
        return is_same and now.settings is self.settings

    def has_topics(self, image: TopicImage, names: Collection[TopicName]) -> bool:
        """Whether these are the same topics, or none, as they were."""
        if image is self.image:
            return True
        before, now = self.image.by_name, image.by_name
        return all(now.get(name) is before.get(name) for name in names)


def take_snapshot(shard: Shard, group_id: GroupId) -> Snapshot:
    """The group as it is. A classic group is a value: another one where anything has changed."""
    consumer = shard.consumer_groups.get(group_id)
    group = shard.classic_group(group_id) if consumer is None else consumer
    revision = 0 if consumer is None else consumer.revision
    return Snapshot(group_id, group, revision, shard.image, shard.settings_of(group_id))
