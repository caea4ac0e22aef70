"""Side records: what has to last and has no place in Kafka's log.

``storage.side_codec`` turns them into bytes and back.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from model.ids import (
    GroupId,
    LogOffset,
    LogPartition,
    ProducerId,
    TopicId,
    TopicName,
)
from model.local_assignors import (
    InstalledMetadataKey,
    InstalledMetadataValue,
    LocalAssignorsKey,
    LocalAssignorsValue,
)
from model.value import value


@value
class TopicSideKey:
    """A topic of the catalogue that is kept here."""

    topic: TopicName


@value
class TopicSideValue:
    """Its id, which a topic that is deleted and created again does not keep, and its size.

    ``racks`` are those of the replicas of each partition, as in ``Topic``.
    """

    topic_id: TopicId
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


@value
class TopicDeletionKey:
    """A topic that is deleted while offsets committed for it may still be there."""

    topic_id: TopicId


@value
class TopicDeletionValue:
    """Offsets are kept by name; a topic created anew under it has another id.

    ``deleted_at_ms`` is the wall time, 0 where it is not known. ``log_ends`` are the next offsets
    of all log partitions at that time: what was written from there on is of a later topic. They
    are empty where they are not known (a mark of an earlier version); the time tells then.
    """

    topic: TopicName
    deleted_at_ms: int
    log_ends: tuple[LogOffset, ...] = ()


@value
class ProducerIdBlockKey:
    """The block of producer ids that this process hands out from."""


@value
class ProducerIdBlockValue:
    """Ids below ``next_producer_id`` may have been handed out; a restart begins there."""

    next_producer_id: int


@value
class ImportGraceKey:
    """The last time that a log of Kafka was imported."""


@value
class ImportGraceValue:
    """No offset expires before the retention has passed since ``imported_at_ms`` (wall)."""

    imported_at_ms: int


@value
class GroupConfigsSideKey:
    """The settings that a group has of its own."""

    group_id: GroupId


@value
class GroupConfigsSideValue:
    """Names and values, in the order of the names.

    ``longest_session_timeout_ms`` was in force before: members may still count on it. 0 where that
    is no longer than what is in force.
    """

    configs: tuple[tuple[str, str], ...]
    longest_session_timeout_ms: int = 0


@value
class ProducerStateKey:
    """What one partition of the log knows of a transactional producer."""

    partition: LogPartition
    producer_id: ProducerId


@value
class ProducerStateValue:
    """The highest epochs of the markers of the producer, its own and those of the coordinators.

    Both are -1 before the first of them; ``last_timestamp`` is wall ms, and so is
    ``transaction_since_ms``, from when on a transaction that began here is open, -1 where none is.
    """

    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_since_ms: int = -1


@value
class ProducerGroupKey:
    """What one partition of the log knows of a transactional producer in one group."""

    partition: LogPartition
    producer_id: ProducerId
    group_id: GroupId


@value
class ProducerGroupValue:
    """The lowest epoch that the producer may still have in the group.

    ``timed_out_epoch`` is that of offsets which were aborted for nobody had ended them in time, -1
    where none were. Both are since its last marker.
    """

    producer_epoch: int
    timed_out_epoch: int = -1


SideKey: TypeAlias = (
    TopicSideKey
    | TopicDeletionKey
    | ProducerIdBlockKey
    | ImportGraceKey
    | GroupConfigsSideKey
    | ProducerStateKey
    | ProducerGroupKey
    | LocalAssignorsKey
    | InstalledMetadataKey
)

SideValue: TypeAlias = (
    TopicSideValue
    | TopicDeletionValue
    | ProducerIdBlockValue
    | ImportGraceValue
    | GroupConfigsSideValue
    | ProducerStateValue
    | ProducerGroupValue
    | LocalAssignorsValue
    | InstalledMetadataValue
)


class SideRecord(NamedTuple):
    """What Kafka's records cannot hold; written in the same batch as the records beside it."""

    key: SideKey
    value: SideValue | None
