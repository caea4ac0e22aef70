"""Identifiers as distinct types, so that mypy catches a swap."""

from __future__ import annotations

from functools import lru_cache
from typing import NewType

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
InstanceId = NewType("InstanceId", str)
TopicName = NewType("TopicName", str)
TopicId = NewType("TopicId", bytes)
"""The 16 bytes of a topic's UUID, big endian, as Kafka writes them."""

LogPartition = NewType("LogPartition", int)
"""A partition of ``__consumer_offsets``, which is also the number of a shard."""

LogOffset = NewType("LogOffset", int)

ProducerId = NewType("ProducerId", int)
"""The id of a transactional producer, never negative."""

ZERO_TOPIC_ID = TopicId(bytes(16))

_KEPT_LENGTH_MAX = 256


def compute_java_hash(text: str) -> int:
    """Java's ``String.hashCode`` over UTF-16 code units, as a signed 32-bit integer."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - 0x100000000 if value >= 0x80000000 else value


def compute_log_partition(group_id: GroupId, partitions: int) -> LogPartition:
    """The log partition of a group: ``Utils.abs(hashCode) % partitions``.

    As in Kafka, ``Integer.MIN_VALUE`` counts as 0. Only ids of usual length are cached: 65,536 ids
    of maximum length would take 2 GiB.
    """
    if len(group_id) > _KEPT_LENGTH_MAX:
        return _compute_log_partition(group_id, partitions)
    return _find_log_partition(group_id, partitions)


def _compute_log_partition(group_id: GroupId, partitions: int) -> LogPartition:
    value = compute_java_hash(group_id)
    return LogPartition((0 if value == -0x80000000 else abs(value)) % partitions)


_find_log_partition = lru_cache(maxsize=65_536)(_compute_log_partition)
