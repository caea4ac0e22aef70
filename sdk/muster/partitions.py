"""Topics, partitions and offsets as applications see them, and their encoding."""

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
    """A committed offset, that of the next record to read, with its metadata."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


Owned: TypeAlias = dict[TopicPartition, bytes]
"""Partitions with their topic ids: a topic that was deleted and created again has a new one."""


def make_member_id() -> str:
    """A new unique member id."""
    return str(uuid.uuid4())


def decode_partitions(
    topics: Iterable[types_pb2.TopicPartitions], names: Mapping[bytes, str]
) -> Owned:
    """Decode an assignment. ``names`` has the names of topics that the server has deleted."""
    owned: Owned = {}
    for topic in topics:
        name = topic.topic_name or names.get(topic.topic_id)
        if name is not None:
            for partition in topic.partitions:
                owned[TopicPartition(name, partition)] = topic.topic_id
    return owned


def decode_tokens(
    topics: Iterable[types_pb2.TopicPartitions], names: Mapping[bytes, str]
) -> dict[TopicPartition, int]:
    """Decode the fencing tokens of an assignment; a server of an earlier version gives none."""
    return {
        TopicPartition(name, partition): token
        for topic in topics
        if (name := topic.topic_name or names.get(topic.topic_id)) is not None
        for partition, token in zip(topic.partitions, topic.tokens, strict=False)
    }


def encode_partitions(owned: Owned) -> list[types_pb2.TopicPartitions]:
    """Group partitions by topic id."""
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
    """Group offsets by topic; topics of owned partitions get their id too."""
    by_topic: dict[tuple[str, bytes], list[types_pb2.PartitionOffset]] = {}
    for key, value in offsets.items():
        partition = TopicPartition(*key)
        given = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
        entry = types_pb2.PartitionOffset(
            partition=partition.partition,
            offset=given.offset,
            leader_epoch=given.leader_epoch,
            metadata=given.metadata,
        )
        by_topic.setdefault((partition.topic, owned.get(partition, b"")), []).append(entry)
    return [
        types_pb2.TopicOffsets(topic_name=name, topic_id=topic_id, partitions=entries)
        for (name, topic_id), entries in by_topic.items()
    ]


def encode_names(partitions: Iterable[TopicPartition]) -> list[types_pb2.TopicPartitions]:
    """Group partitions by topic name."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return [
        types_pb2.TopicPartitions(topic_name=topic, partitions=indexes)
        for topic, indexes in by_topic.items()
    ]
