"""Loads a shard's state from the ``latest`` view of the log: group records only.

Committed offsets stay in the store and are read on demand. The cost of a start thus depends on the
live groups, not on the history.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator, Sequence

from coordinator.core.groups.topic_records import Catalogue, make_topic, replay_side
from coordinator.core.replay.group_records import replay
from coordinator.core.replay.offset_records import (
    replay_imported_transaction,
    replay_offset_group,
    replay_waiting_offset,
)
from coordinator.core.replay.shard_side_records import replay_shard_side
from coordinator.core.state.shard import Shard
from model.ids import LogOffset, LogPartition, ProducerId
from model.log.records import OffsetCommitKey, Record, RecordType, RecordValue
from model.log.side_records import GroupPlaceKey, TopicSideKey, TopicSideValue
from model.topics import compute_image_of
from storage.codec.batches import read_batch_header
from storage.codec.record_codec import decode_key, decode_value
from storage.log_store import LatestEntry, LogStore, read_batch_range
from storage.shard_side_codec import (
    GROUP_PLACE_KIND,
    SHARD_KINDS,
    encode_client_assignor_prefixes,
    encode_group_prefixes,
    encode_producer_prefixes,
)
from storage.side_codec import decode_side
from storage.transfer.imported import read_imported

GROUP_TYPES = tuple(
    kind
    for kind in RecordType
    if kind not in (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
)

RECORD_COST = 8
BYTES_COST_SHIFT = 6
OFFSET_GROUP_COST = 30
SCAN_COST = 20

ALIKE_MAX = 10_000
"""How many decoded values are cached, to decode equal ones once."""

NOT_KNOWN = -1

_TYPE = struct.Struct(">h")


def read_last_timestamp(store: LogStore) -> int:
    """The wall time (ms) of the last batch that this server wrote, 0 if there is none.

    Imported batches do not count: another clock dated them, and it may have been ahead.
    """
    last = 0
    for number in range(store.partitions):
        partition = LogPartition(number)
        end = store.next_offset(partition)
        if end > read_imported(store, partition).end:
            for batch in store.read_log(partition, LogOffset(end - 1)):
                last = max(last, read_batch_header(batch).max_timestamp)
    return last


def load_catalogue(store: LogStore, catalogue: Catalogue) -> None:
    """Load the topics, the group configs and the producer ids from the side records.

    All topics make one image, to avoid a copy of the image per topic.
    """
    topics = []
    for key, value in store.side():
        if key.startswith(SHARD_KINDS):
            # There may be very many of these; each shard reads its own.
            continue
        record = decode_side(key, value)
        if record is None:
            continue
        if isinstance(record.key, TopicSideKey) and isinstance(record.value, TopicSideValue):
            topics.append(make_topic(record.key, record.value))
        else:
            replay_side(catalogue, record)
    catalogue.image = compute_image_of(tuple(topics), len(topics))


def load_shard(store: LogStore, shard: Shard) -> int:
    """Load the groups of one shard, after the topics; returns the number of records read."""
    loader = ShardLoader(store, shard)
    for _ in loader.steps():
        pass
    return loader.records


class ShardLoader:
    """Loads one shard in steps. Nothing may be written to its partition in between.

    ``records`` counts group records and the offsets pending in transactions.
    """

    def __init__(self, store: LogStore, shard: Shard) -> None:
        self.shard = shard
        self.records = 0
        self._store = store

    def steps(self) -> Iterator[int]:
        """Load; yields the cost of each step in approximate microseconds."""
        shard, store = self.shard, self._store
        # Many members have equal metadata, so equal values are decoded once.
        known: dict[bytes, RecordValue] = {}
        for kind in GROUP_TYPES:
            yield SCAN_COST
            type_id = int(kind)
            are_alike = kind is RecordType.CONSUMER_GROUP_MEMBER_METADATA
            for entry in store.latest(shard.partition, _TYPE.pack(type_id)):
                data = entry.value
                value = known.get(data) if are_alike else None
                if value is None:
                    value = decode_value(type_id, data)[1]
                    if are_alike and len(known) < ALIKE_MAX:
                        known[data] = value
                replay(shard, Record(decode_key(entry.key), value))
                self.records += 1
                yield RECORD_COST + (len(data) >> BYTES_COST_SHIFT)
        known.clear()
        for group_id in store.offset_group_ids(shard.partition):
            replay_offset_group(shard, group_id)
            yield OFFSET_GROUP_COST
        yield from load_side_records(store, shard, encode_producer_prefixes(shard.partition))
        self.records += yield from load_open_transactions(store, shard)
        prefixes = encode_client_assignor_prefixes(shard.partition)
        yield from load_side_records(store, shard, prefixes)
        own = encode_group_prefixes(shard.partition)
        yield from load_side_records(store, shard, own)


def load_places(store: LogStore, shards: Sequence[Shard]) -> None:
    """Load the places of all groups, which must be known before the groups are loaded."""
    for key, value in store.side(GROUP_PLACE_KIND):
        record = decode_side(key, value)
        assert isinstance(record.key, GroupPlaceKey), "the prefix selects places"
        if record.key.partition < len(shards):
            replay_shard_side(shards[record.key.partition], record)


def load_open_transactions(store: LogStore, shard: Shard) -> Generator[int, None, int]:
    """Load the offsets pending in open transactions; returns their number. Needs the producers.

    Yields the cost of each step. The producers' epochs are in the headers of the batches. If the
    begin of a transaction is unknown (it began on another server, or under a version that did not
    record it), the transaction counts as open since its first pending offset.
    """
    found: dict[ProducerId, list[LatestEntry]] = {}
    for producer_id, entry in store.pending(shard.partition):
        found.setdefault(ProducerId(producer_id), []).append(entry)
        yield RECORD_COST
    began = []
    for producer, entries in found.items():
        state = shard.producers.get(producer)
        since_ms = NOT_KNOWN if state is None else state.transaction_since_ms
        first_ms = min(entry.timestamp for entry in entries)
        began.append((first_ms if since_ms == NOT_KNOWN else since_ms, producer, since_ms))
        yield 1
    for _, producer, since_ms in sorted(began):
        waiting = {}
        epochs = yield from _read_producer_epochs(store, shard, found[producer])
        for entry in found[producer]:
            key = decode_key(entry.key)
            assert isinstance(key, OffsetCommitKey), "only offsets wait"
            waiting[key] = epochs[entry.offset], entry.timestamp
            yield RECORD_COST
        if since_ms == NOT_KNOWN:
            replay_imported_transaction(shard, producer, waiting)
            continue
        for key, (epoch, _) in waiting.items():
            replay_waiting_offset(shard, producer, epoch, key, since_ms)
            yield RECORD_COST
    return sum(map(len, found.values()))


def load_side_records(store: LogStore, shard: Shard, prefixes: Iterable[bytes]) -> Iterator[int]:
    """Load the partition's side records whose keys begin so; yields each cost."""
    for prefix in prefixes:
        for key, value in store.side(prefix):
            replay_shard_side(shard, decode_side(key, value))
            yield RECORD_COST + (len(value) >> BYTES_COST_SHIFT)


def _read_producer_epochs(
    store: LogStore, shard: Shard, entries: Iterable[LatestEntry]
) -> Generator[int, None, dict[LogOffset, int]]:
    """The producer epoch of each entry's batch, by log offset; each batch is read once."""
    epochs: dict[LogOffset, int] = {}
    end, epoch = 0, -1
    for offset in sorted(entry.offset for entry in entries):
        cost = RECORD_COST
        if offset >= end:
            batch = next(store.read_log(shard.partition, offset), None)
            epoch = -1 if batch is None else read_batch_header(batch).producer_epoch
            end = offset + 1 if batch is None else sum(read_batch_range(batch))
            cost += SCAN_COST
        epochs[offset] = epoch
        yield cost
    return epochs
