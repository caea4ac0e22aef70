"""The log that a real Kafka 4.3.0 wrote, as a store to load from and as states at any time."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from coordinator.core.replay.group_records import replay
from coordinator.core.replay.offset_records import replay_no_offsets, replay_offset_group
from coordinator.core.state.shard import Shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import (
    GroupId,
    LogOffset,
    LogPartition,
    TopicId,
    TopicName,
    compute_log_partition,
)
from model.log.records import OffsetCommitKey, Record
from model.log.side_records import SideRecord, TopicSideKey, TopicSideValue
from model.topics import Topic, TopicImage
from storage.codec.batches import Batch, BatchRecord
from storage.codec.record_codec import decode_key, decode_value
from storage.log.compression import decompress
from storage.log.fold import PartitionFold
from storage.log_store import LatestEntry, PartitionAppend, pack_latest
from storage.side_codec import encode_side
from tests.support.batches import decode_batches
from tests.support.memory import MemoryLogStore
from tests.support.storage.golden import GOLDEN, segments

PARTITIONS = 50
SETTINGS = CoordinatorSettings(offsets_transactional_commits="all")
"""Kafka asks the transaction coordinator about who names no member."""


@cache
def final_state() -> dict[str, Any]:
    """Every group as the broker showed it once it was started again on this log."""
    text = (GOLDEN / "truth" / "final_state_after_restart.json").read_text(encoding="utf-8")
    state: dict[str, Any] = json.loads(text)
    return state


def decode_uuid(text: str) -> bytes:
    """Kafka's 22 characters."""
    return base64.urlsafe_b64decode(text + "==")


def final_topics() -> list[Topic]:
    """The topics of the broker in the end."""
    return [
        Topic(TopicName(name), TopicId(decode_uuid(facts["topicId"])), facts["partitions"])
        for name, facts in final_state()["topics"].items()
    ]


def load_store() -> MemoryLogStore:
    """A store that holds the whole log, and the topics."""
    store = MemoryLogStore(PARTITIONS)
    side = [
        encode_side(SideRecord(TopicSideKey(t.name), TopicSideValue(t.topic_id, t.partitions)))
        for t in final_topics()
    ]
    store.write(
        [
            append
            for number, data in segments().items()
            for append in make_appends(LogPartition(number), data)
        ],
        side,
    )
    store.sync()
    return store


def make_appends(partition: LogPartition, data: bytes) -> Iterator[PartitionAppend]:
    """A segment, batch by batch; what it all comes to is said with the last one."""
    fold = PartitionFold()
    position = 0
    for batch in decode_batches(data, decompress=decompress):
        raw = data[position : position + batch.size]
        position += batch.size
        fold.apply(raw)
        count = batch.last_offset - batch.base_offset + 1
        base_offset = LogOffset(batch.base_offset)
        if position < len(data):
            yield PartitionAppend(partition, base_offset, raw, count, {})
            continue
        latest = {key: pack(entry) for key, entry in fold.latest.items()}
        pending = {
            (producer_id, key): pack(entry)
            for producer_id, entries in fold.pending.items()
            for key, entry in entries.items()
        }
        yield PartitionAppend(partition, base_offset, raw, count, latest, pending)


def pack(entry: LatestEntry) -> bytes:
    return pack_latest(entry.offset, entry.timestamp, entry.value)


def decode_record(record: BatchRecord) -> Record:
    assert record.key is not None
    type_id = int.from_bytes(record.key[:2], "big")
    value = None if record.value is None else decode_value(type_id, record.value)[1]
    return Record(decode_key(record.key), value)


def compute_offset_groups(fold: PartitionFold) -> set[GroupId]:
    """Groups with offsets, committed or waiting for the end of a transaction."""
    keys = [*fold.latest, *(key for entries in fold.pending.values() for key in entries)]
    return {key.group for key in map(decode_key, keys) if isinstance(key, OffsetCommitKey)}


class LogInTime:
    """The shards of the log as it grew: ``advance`` replays one batch after another."""

    def __init__(self, image: TopicImage) -> None:
        self.shards = [Shard(LogPartition(number), SETTINGS, image) for number in range(PARTITIONS)]
        self._batches: dict[int, list[Batch]] = {
            number: list(decode_batches(data, decompress=decompress))
            for number, data in segments().items()
        }
        self._folds = {number: PartitionFold() for number in self._batches}
        self._next = dict.fromkeys(self._batches, 0)

    def shard_of(self, group_id: GroupId) -> Shard:
        return self.shards[compute_log_partition(group_id, PARTITIONS)]

    def next_batch(self, partition: int) -> Batch:
        """The batch that ``advance`` would replay next."""
        return self._batches[partition][self._next[partition]]

    def latest_keys(self, partition: int) -> list[bytes]:
        """The keys that the log has a value for."""
        return [] if partition not in self._folds else list(self._folds[partition].latest)

    def advance(self, partition: int, until_ms: int) -> bool:
        """Replay the next batch of a partition if it is not younger; whether there was one.

        Which groups have offsets only a store knows, and the fold of the log in its place.
        """
        batches = self._batches.get(partition, [])
        place = self._next.get(partition, 0)
        if place >= len(batches) or batches[place].max_timestamp > until_ms:
            return False
        batch, shard, fold = batches[place], self.shards[partition], self._folds[partition]
        fold.apply_batch(batch)
        for record in () if batch.is_control else batch.records:
            replay(shard, decode_record(record))
        if batch.is_control or any(record.value is None for record in batch.records):
            found = compute_offset_groups(fold)
            for group_id in shard.offset_groups - found:
                replay_no_offsets(shard, group_id)
            for group_id in found - shard.offset_groups:
                replay_offset_group(shard, group_id)
        self._next[partition] = place + 1
        return True
