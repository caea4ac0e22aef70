"""Topics, partitions and offsets as applications see them, and their messages."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from muster.v1 import types_pb2


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """An offset, that of the next record to read, and what goes with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


Owned: TypeAlias = dict[TopicPartition, bytes]
"""Partitions, each with the id of its topic: a topic that was created again is another one."""


def make_member_id() -> str:
    """A member id that nobody else has."""
    return str(uuid.uuid4())


def decode_partitions(
    topics: Iterable[types_pb2.TopicPartitions], names: Mapping[bytes, str]
) -> Owned:
    """Partitions of an assignment. ``names`` knows topics that the server no longer does."""
    owned: Owned = {}
    for topic in topics:
        name = topic.topic_name or names.get(topic.topic_id)
        if name is not None:
            for partition in topic.partitions:
                owned[TopicPartition(name, partition)] = topic.topic_id
    return owned


def encode_partitions(owned: Owned) -> list[types_pb2.TopicPartitions]:
    """Partitions by topic id."""
    by_topic: dict[bytes, list[int]] = {}
    for (_, partition), topic_id in owned.items():
        by_topic.setdefault(topic_id, []).append(partition)
    return [
        types_pb2.TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]


def encode_offsets(
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata], owned: Owned
) -> list[types_pb2.TopicOffsets]:
    """Offsets to commit; topics that are owned are named by id too."""
    by_topic: dict[tuple[str, bytes], list[types_pb2.PartitionOffset]] = {}
    for key, value in offsets.items():
        partition = TopicPartition(*key)
        said = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
        entry = types_pb2.PartitionOffset(
            partition=partition.partition,
            offset=said.offset,
            leader_epoch=said.leader_epoch,
            metadata=said.metadata,
        )
        by_topic.setdefault((partition.topic, owned.get(partition, b"")), []).append(entry)
    return [
        types_pb2.TopicOffsets(topic_name=name, topic_id=topic_id, partitions=entries)
        for (name, topic_id), entries in by_topic.items()
    ]


def encode_names(partitions: Iterable[TopicPartition]) -> list[types_pb2.TopicPartitions]:
    """Partitions by topic name."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return [
        types_pb2.TopicPartitions(topic_name=topic, partitions=indexes)
        for topic, indexes in by_topic.items()
    ]
