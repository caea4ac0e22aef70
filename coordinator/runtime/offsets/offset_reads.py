"""Reads committed offsets from the store."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from coordinator.core.offsets.deleted_topics import NOTHING_DELETED, DeletedTopics
from coordinator.core.offsets.offset_fetch import compute_fetched_offset
from coordinator.core.offsets.producers import UNKNOWN
from coordinator.core.state.open_transactions import OpenTransaction
from coordinator.core.state.shard import Shard
from coordinator.runtime.loop.slices import Steps
from model.commands.offsets import OffsetFetch, TopicToFetch
from model.errors import ErrorCode
from model.ids import ZERO_TOPIC_ID, GroupId, LogOffset, LogPartition, TopicId, TopicName
from model.log.records import (
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    RecordType,
)
from model.responses.offsets import FetchedOffset, FetchedTopic, OffsetFetchResponse
from model.responses.transactions import ListedTransaction, PendingOffset
from model.topics import TopicImage
from storage.codec.record_codec import decode_key, decode_value, encode_key
from storage.log_store import LatestEntry, LogStore

SLICE = 2_000
"""Offsets read per event-loop iteration, each in some 6 µs."""

SCANS_MAX = 32
"""A request for more topics than this scans the whole group instead of each topic."""

KEY_STRING_MAX_BYTES = 32_767
"""The longest group id or topic name that a key can hold; longer names have no offsets."""

_KEY_HEAD = struct.Struct(">hh")
_KEY_TOPIC_BYTES = 2
"""Of the length of the topic, which comes before it."""
_KEY_PARTITION_BYTES = 4

_Value: TypeAlias = OffsetCommitValue | LegacyOffsetCommitValue


class StoredOffset(NamedTuple):
    """A committed offset as stored."""

    group_id: GroupId
    topic: TopicName
    partition: int
    value: _Value
    log_offset: LogOffset


def _decode_value(entry: LatestEntry) -> _Value | None:
    _, value = decode_value(RecordType.OFFSET_COMMIT, entry.value)
    if isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue):
        return value
    return None


def decode_stored_offsets(entries: Iterable[LatestEntry]) -> Iterator[StoredOffset]:
    """Decode entries into offsets; skips values that this version cannot read."""
    for entry in entries:
        key = decode_key(entry.key)
        value = _decode_value(entry)
        if isinstance(key, OffsetCommitKey) and value is not None:
            yield StoredOffset(key.group, key.topic, key.partition, value, entry.offset)


def fits_in_key(name: str) -> bool:
    """Whether a record key can hold the name; a request may ask for one that is too long."""
    return len(name) <= KEY_STRING_MAX_BYTES and len(name.encode()) <= KEY_STRING_MAX_BYTES


def encode_offset_group_prefix(group_id: GroupId) -> bytes:
    """The common prefix of the group's offset keys."""
    encoded = group_id.encode()
    return _KEY_HEAD.pack(RecordType.OFFSET_COMMIT, len(encoded)) + encoded


def read_group_offsets(
    store: LogStore, partition: LogPartition, group_id: GroupId, deleted: DeletedTopics
) -> Iterator[StoredOffset]:
    """A group's committed offsets as of now, however late they are read, in key order."""
    prefix = encode_offset_group_prefix(group_id)
    # Lists of very many offsets are read: the rest of a key is decoded here.
    topic_at = len(prefix) + _KEY_TOPIC_BYTES
    names: dict[bytes, TopicName] = {}
    for entry in store.latest(partition, prefix):
        value = _decode_value(entry)
        if value is None:
            continue
        key = entry.key
        encoded = key[topic_at:-_KEY_PARTITION_BYTES]
        topic = names.get(encoded)
        if topic is None:
            topic = names[encoded] = TopicName(encoded.decode())
        if not deleted.has(topic, value, partition, entry.offset):
            number = int.from_bytes(key[-_KEY_PARTITION_BYTES:], "big")
            yield StoredOffset(group_id, topic, number, value, entry.offset)


async def read_highest_offsets(
    store: LogStore, shards: Iterable[Shard], deleted: DeletedTopics = NOTHING_DELETED
) -> dict[tuple[TopicName, int], int]:
    """The highest offset that any group has committed, per topic and partition.

    Skips offsets of ``deleted`` topics, since a new topic may have the same name. Reads all
    committed offsets in slices, between which the loop runs.
    """
    highest: dict[tuple[TopicName, int], int] = {}
    for shard in shards:
        for group_id in list(shard.offset_groups):
            entries = store.latest(shard.partition, encode_offset_group_prefix(group_id))
            while taken := list(islice(entries, SLICE)):
                for stored in _decode_shown(taken, shard.partition, deleted):
                    where = (stored.topic, stored.partition)
                    highest[where] = max(highest.get(where, 0), stored.value.offset)
                await asyncio.sleep(0)
    return highest


def read_open_transactions(
    store: LogStore, shard: Shard, times_out_ms: Callable[[OpenTransaction], int]
) -> Iterator[ListedTransaction]:
    """The open transactions of a shard, by producer id, each as it is when it is yielded."""
    for producer_id, transaction in sorted(shard.open_transactions.producers(), key=itemgetter(0)):
        if shard.open_transactions.get(producer_id) is not transaction:
            continue
        entries = [entry for _, entry in store.pending(shard.partition, producer_id)]
        yield ListedTransaction(
            producer_id,
            transaction.producer_epoch,
            shard.partition,
            transaction.since_ms,
            tuple(
                PendingOffset(stored.group_id, stored.topic, stored.partition, stored.value.offset)
                for stored in decode_stored_offsets(entries)
            ),
            max(shard.producers.get(producer_id, UNKNOWN).coordinator_epoch, 0),
            times_out_ms(transaction),
        )


def read_offsets(
    store: LogStore,
    partition: LogPartition,
    image: TopicImage,
    command: OffsetFetch,
    has_offsets: bool,
    deleted: DeletedTopics = NOTHING_DELETED,
) -> Steps[OffsetFetchResponse]:
    """The response to an authorized OffsetFetch, read in slices.

    It omits offsets of ``deleted`` topics and shows the others as of the first slice: later slices
    read scans of the store opened then.
    """
    if command.topics is None:
        prefixes = [encode_offset_group_prefix(command.group_id)] if has_offsets else ()
        entries = _scan(store, partition, prefixes)
        topics = yield from _read_all(entries, partition, image, deleted)
    elif sum(1 + len(wanted.partitions) for wanted in command.topics) <= SLICE:
        topics = tuple(
            _read_topic(
                store, partition, image, command.group_id, wanted, has_offsets, deleted=deleted
            )
            for wanted in command.topics
        )
    else:
        topics = yield from _read_many(store, partition, image, command, has_offsets, deleted)
    return OffsetFetchResponse(command.group_id, topics)


def _scan(
    store: LogStore, partition: LogPartition, prefixes: Sequence[bytes]
) -> Iterator[LatestEntry]:
    """All entries below the prefixes, as of now, however late they are read."""
    return chain.from_iterable([store.latest(partition, prefix) for prefix in prefixes])


def _read_all(
    entries: Iterator[LatestEntry],
    partition: LogPartition,
    image: TopicImage,
    deleted: DeletedTopics,
) -> Steps[tuple[FetchedTopic, ...]]:
    found: dict[TopicName, list[FetchedOffset]] = {}
    while taken := list(islice(entries, SLICE)):
        for stored in _decode_shown(taken, partition, deleted):
            offset = compute_fetched_offset(stored.partition, stored.value, ZERO_TOPIC_ID)
            found.setdefault(stored.topic, []).append(offset)
        if len(taken) == SLICE:
            yield
    return tuple(
        FetchedTopic(name, _id_of(image, name), tuple(offsets)) for name, offsets in found.items()
    )


def _decode_shown(
    entries: Iterable[LatestEntry], partition: LogPartition, deleted: DeletedTopics
) -> Iterator[StoredOffset]:
    for stored in decode_stored_offsets(entries):
        if not deleted.has(stored.topic, stored.value, partition, stored.log_offset):
            yield stored


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
    *,
    deleted: DeletedTopics,
) -> FetchedTopic:
    name = _name_of(image, wanted)
    values: list[_Value | None] = [None] * len(wanted.partitions)
    if name is not None and has_offsets and fits_in_key(name):
        keys = [encode_key(OffsetCommitKey(group_id, name, n)) for n in wanted.partitions]
        entries = store.get_many_latest(partition, keys)
        for index, entry in enumerate(entries):
            value = None if entry is None else _decode_value(entry)
            if entry is None or value is None:
                continue
            if not deleted.has(name, value, partition, entry.offset):
                values[index] = value
    return _make_topic(image, wanted, name, _show(wanted, name, wanted.partitions, values))


def _read_many(
    store: LogStore,
    partition: LogPartition,
    image: TopicImage,
    command: OffsetFetch,
    has_offsets: bool,
    deleted: DeletedTopics,
) -> Steps[tuple[FetchedTopic, ...]]:
    """Read offsets of very many partitions by scanning the store.

    Looking up each partition takes longer, and in slices each would be as of another time.
    """
    assert command.topics is not None
    names = [_name_of(image, wanted) for wanted in command.topics]
    prefixes = _compute_prefixes(command.group_id, names) if has_offsets else ()
    entries = _scan(store, partition, prefixes)
    found: dict[tuple[TopicName | None, int], _Value] = {}
    while taken := list(islice(entries, SLICE)):
        for stored in _decode_shown(taken, partition, deleted):
            found[stored.topic, stored.partition] = stored.value
        yield
    topics = []
    left = SLICE
    for wanted, name in zip(command.topics, names, strict=True):
        rows: list[FetchedOffset] = []
        for begin in range(0, len(wanted.partitions), SLICE):
            numbers = wanted.partitions[begin : begin + SLICE]
            values = [found.get((name, n)) for n in numbers]
            rows += _show(wanted, name, numbers, values)
            left -= len(numbers)
            if left <= 0:
                left = SLICE
                yield
        topics.append(_make_topic(image, wanted, name, rows))
        left -= 1
        if left <= 0:
            left = SLICE
            yield
    return tuple(topics)


def _compute_prefixes(group_id: GroupId, names: Sequence[TopicName | None]) -> list[bytes]:
    """The key prefixes of the topics' offsets; of very many topics the group's prefix."""
    if len(names) > SCANS_MAX:
        return [encode_offset_group_prefix(group_id)]
    distinct = dict.fromkeys(name for name in names if name is not None and fits_in_key(name))
    keys = (encode_key(OffsetCommitKey(group_id, name, 0)) for name in distinct)
    return [key[:-_KEY_PARTITION_BYTES] for key in keys]


def _name_of(image: TopicImage, wanted: TopicToFetch) -> TopicName | None:
    """The name of the requested topic; ``None`` for an unknown topic id."""
    if wanted.topic_id is None:
        assert wanted.name is not None, "a topic is requested by name or by id"
        return wanted.name
    topic = image.by_id.get(wanted.topic_id)
    return None if topic is None else topic.name


def _show(
    wanted: TopicToFetch,
    name: TopicName | None,
    partitions: Sequence[int],
    values: Sequence[_Value | None],
) -> list[FetchedOffset]:
    """The topic's partitions as the response shows them."""
    if name is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        return [FetchedOffset(number, -1, None, "", code) for number in partitions]
    asked_id = wanted.topic_id or ZERO_TOPIC_ID
    return [
        compute_fetched_offset(number, value, asked_id)
        for number, value in zip(partitions, values, strict=True)
    ]


def _make_topic(
    image: TopicImage, wanted: TopicToFetch, name: TopicName | None, rows: Sequence[FetchedOffset]
) -> FetchedTopic:
    if name is None:
        return FetchedTopic(wanted.name, wanted.topic_id, tuple(rows))
    return FetchedTopic(name, wanted.topic_id or _id_of(image, name), tuple(rows))
