"""Appends for store tests, and the expected ``latest`` after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.ids import GroupId, LogOffset, LogPartition, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import decode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import (
    LatestEntry,
    LogStore,
    PartitionAppend,
    compute_latest_key,
    pack_latest,
)

Pair = tuple[bytes, bytes | None]


def offset_key(group: str, partition: int = 0, topic: str = "t") -> bytes:
    return encode_key(OffsetCommitKey(GroupId(group), TopicName(topic), partition))


def offset_value(offset: int) -> bytes:
    return encode_value(OffsetCommitValue(offset, -1, "", 5))


def make_append(
    partition: int, base_offset: int, pairs: list[Pair], time: int = 5
) -> PartitionAppend:
    """An append of keys and values, with its changes to ``latest``."""
    latest: dict[bytes, bytes | None] = {}
    for index, (key, value) in enumerate(pairs):
        packed = None if value is None else pack_latest(base_offset + index, time, value)
        latest[compute_latest_key(key)] = packed
    return PartitionAppend(
        LogPartition(partition),
        LogOffset(base_offset),
        encode_batch(base_offset, pairs, time),
        len(pairs),
        latest,
    )


def append(store: LogStore, pairs_by_partition: Mapping[int, list[Pair]]) -> None:
    """Append one batch per partition, in one write."""
    store.write(
        [
            make_append(partition, store.next_offset(LogPartition(partition)), pairs)
            for partition, pairs in pairs_by_partition.items()
        ]
    )


def mark_all(store: LogStore) -> None:
    """Sync the store and advance the watermark to the log end."""
    store.sync()
    store.mark_durable(
        {LogPartition(p): store.next_offset(LogPartition(p)) for p in range(store.partitions)}
    )


def write_checkpoint(store: LogStore, keys_max: int = 1_000) -> None:
    """Make a checkpoint at once."""
    assert all(store.write_checkpoint(keys_max))


def settle_all(store: LogStore) -> None:
    """``mark_all``, and make a checkpoint: the log may be trimmed up to its last batch."""
    write_checkpoint(store)
    mark_all(store)


def compact(batches: Iterable[bytes]) -> list[LatestEntry]:
    """The last entry of every key of a log, in key order."""
    found: dict[bytes, LatestEntry] = {}
    for data in batches:
        for record in decode_batch(data).records:
            key = compute_latest_key(record.key or b"")
            if record.value is None:
                found.pop(key, None)
            else:
                offset = LogOffset(record.offset)
                found[key] = LatestEntry(key, offset, record.timestamp, record.value)
    return [found[key] for key in sorted(found)]
