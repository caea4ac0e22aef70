"""Reading committed offsets out of the store."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator.core.offsets import compute_fetched_offset
from coordinator.core.producers import find_state
from coordinator.core.shard import Shard
from model.commands import OffsetFetch, TopicToFetch
from model.errors import ErrorCode
from model.ids import ZERO_TOPIC_ID, GroupId, LogPartition, TopicId, TopicName
from model.records import (
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    RecordType,
)
from model.responses import (
    FetchedOffset,
    FetchedTopic,
    ListedTransaction,
    OffsetFetchResponse,
    PendingOffset,
)
from model.topics import TopicImage
from storage.codec.records import decode_key, decode_value, encode_key
from storage.log_store import LatestEntry, LogStore

_KEY_HEAD = struct.Struct(">hh")


class StoredOffset(NamedTuple):
    """A committed offset as it is stored."""

    group_id: GroupId
    topic: TopicName
    partition: int
    value: OffsetCommitValue | LegacyOffsetCommitValue


def _decode_value(entry: LatestEntry) -> OffsetCommitValue | LegacyOffsetCommitValue | None:
    _, value = decode_value(RecordType.OFFSET_COMMIT, entry.value)
    if isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue):
        return value
    return None


def decode_stored_offsets(entries: Iterable[LatestEntry]) -> Iterator[StoredOffset]:
    """The entries as offsets; what this version cannot read is left out."""
    for entry in entries:
        key = decode_key(entry.key)
        value = _decode_value(entry)
        if isinstance(key, OffsetCommitKey) and value is not None:
            yield StoredOffset(key.group, key.topic, key.partition, value)


def encode_offset_group_prefix(group_id: GroupId) -> bytes:
    """What the keys of all offsets of a group begin with."""
    encoded = group_id.encode()
    return _KEY_HEAD.pack(RecordType.OFFSET_COMMIT, len(encoded)) + encoded


def read_group_offsets(
    store: LogStore, partition: LogPartition, group_id: GroupId
) -> Iterator[StoredOffset]:
    """All offsets of one group, by topic and partition."""
    return decode_stored_offsets(store.latest(partition, encode_offset_group_prefix(group_id)))


async def read_highest_offsets(
    store: LogStore, shards: Iterable[Shard]
) -> dict[tuple[TopicName, int], int]:
    """For each topic and partition the highest offset that any group has committed.

    Reads all committed offsets, in slices between which the loop runs.
    """
    highest: dict[tuple[TopicName, int], int] = {}
    for shard in shards:
        for group_id in list(shard.offset_groups):
            for stored in read_group_offsets(store, shard.partition, group_id):
                where = (stored.topic, stored.partition)
                highest[where] = max(highest.get(where, 0), stored.value.offset)
            await asyncio.sleep(0)
    return highest


def read_open_transactions(store: LogStore, shard: Shard) -> Iterator[ListedTransaction]:
    """The open transactions of a shard, in the order of the producers."""
    for producer_id, transaction in sorted(shard.open_transactions.producers()):
        entries = [entry for _, entry in store.pending(shard.partition, producer_id)]
        yield ListedTransaction(
            producer_id,
            transaction.producer_epoch,
            shard.partition,
            min((entry.timestamp for entry in entries), default=0),
            tuple(
                PendingOffset(stored.group_id, stored.topic, stored.partition, stored.value.offset)
                for stored in decode_stored_offsets(entries)
            ),
            max(find_state(shard, producer_id).coordinator_epoch, 0),
        )


def read_offsets(
    store: LogStore,
    partition: LogPartition,
    image: TopicImage,
    command: OffsetFetch,
    has_offsets: bool,
) -> OffsetFetchResponse:
    """The answer to a fetch that was found to be allowed."""
    if command.topics is None:
        topics = _read_all(store, partition, image, command.group_id) if has_offsets else ()
    else:
        topics = tuple(
            _read_topic(store, partition, image, command.group_id, wanted, has_offsets)
            for wanted in command.topics
        )
    return OffsetFetchResponse(command.group_id, topics)


def _read_all(
    store: LogStore, partition: LogPartition, image: TopicImage, group_id: GroupId
) -> tuple[FetchedTopic, ...]:
    found: dict[TopicName, list[FetchedOffset]] = {}
    for stored in read_group_offsets(store, partition, group_id):
        offset = compute_fetched_offset(stored.partition, stored.value, ZERO_TOPIC_ID)
        found.setdefault(stored.topic, []).append(offset)
    return tuple(
        FetchedTopic(name, _id_of(image, name), tuple(offsets)) for name, offsets in found.items()
    )


def _id_of(image: TopicImage, name: TopicName) -> TopicId | None:
    topic = image.by_name.get(name)
    return None if topic is None else topic.topic_id


def _read_topic(
    store: LogStore,
    partition: LogPartition,
    image: TopicImage,
    group_id: GroupId,
    wanted: TopicToFetch,
    has_offsets: bool,
) -> FetchedTopic:
    name, topic_id = wanted.name, wanted.topic_id
    if topic_id is not None:
        topic = image.by_id.get(topic_id)
        if topic is None:
            return FetchedTopic(
                name,
                topic_id,
                tuple(
                    FetchedOffset(number, -1, None, "", ErrorCode.UNKNOWN_TOPIC_ID)
                    for number in wanted.partitions
                ),
            )
        name = topic.name
    assert name is not None, "a topic is asked for by name or by id"
    values: list[OffsetCommitValue | LegacyOffsetCommitValue | None]
    if has_offsets:
        keys = [encode_key(OffsetCommitKey(group_id, name, n)) for n in wanted.partitions]
        entries = store.get_many_latest(partition, keys)
        values = [None if entry is None else _decode_value(entry) for entry in entries]
    else:
        values = [None] * len(wanted.partitions)
    asked_id = ZERO_TOPIC_ID if topic_id is None else topic_id
    offsets = tuple(
        compute_fetched_offset(number, value, asked_id)
        for number, value in zip(wanted.partitions, values, strict=True)
    )
    return FetchedTopic(name, topic_id or _id_of(image, name), offsets)
