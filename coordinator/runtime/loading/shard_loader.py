"""Loading: the state of the shards from ``latest``, group records only.

Committed offsets stay in the store and are read when asked for, so that a start costs what the
live groups cost, not what the history costs.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator

from coordinator.core.groups.topic_records import Catalogue, make_topic, replay_side
from coordinator.core.replay.client_assignor_records import replay_local
from coordinator.core.replay.group_records import replay
from coordinator.core.replay.offset_records import (
    replay_imported_transaction,
    replay_offset_group,
    replay_producer_state,
    replay_waiting_offset,
)
from coordinator.core.state.shard import Shard
from model.ids import LogOffset, LogPartition, ProducerId
from model.log.records import OffsetCommitKey, Record, RecordType, RecordValue
from model.log.side_records import TopicSideKey, TopicSideValue
from model.topics import compute_image_of
from storage.codec.batches import read_batch_header
from storage.codec.record_codec import decode_key, decode_value
from storage.log_store import LatestEntry, LogStore, read_batch_range
from storage.side_codec import (
    SHARD_KINDS,
    decode_side,
    encode_local_prefixes,
    encode_producer_prefixes,
)
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
"""Values that are kept to be compared."""

NOT_KNOWN = -1

_TYPE = struct.Struct(">h")


def read_last_timestamp(store: LogStore) -> int:
    """The wall time (ms) of the last batch that was written here, 0 where there is none.

    The times of an imported log are those of other clocks, one of which may have been ahead.
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
    """The topics and the producer ids, from the side records.

    Topics become one image: an image for each would be as many copies.
    """
    topics = []
    for key, value in store.side():
        if key.startswith(SHARD_KINDS):
            # There may be very many; each shard reads its own.
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
    """The groups of one shard; the number of records read. Wants the topics in place."""
    loader = ShardLoader(store, shard)
    for _ in loader.steps():
        pass
    return loader.records


class ShardLoader:
    """Loads one shard in steps, between which nothing may be written to its partition.

    ``records`` counts those of groups, and the offsets that wait for a marker.
    """

    def __init__(self, store: LogStore, shard: Shard) -> None:
        self.shard = shard
        self.records = 0
        self._store = store

    def steps(self) -> Iterator[int]:
        """What each step cost, in about microseconds."""
        shard, store = self.shard, self._store
        # Members that say the same of themselves are many: their values are decoded once.
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
        yield from load_producers(store, shard)
        self.records += yield from load_open_transactions(store, shard)
        yield from load_local_state(store, shard)


def load_open_transactions(store: LogStore, shard: Shard) -> Generator[int, None, int]:
    """What waits for markers, from ``pending``, in steps; how many offsets. Wants the producers.

    The producers' epochs are in the headers of the batches. A transaction that did not begin here,
    or under a version that did not note when, is open since the first of what waits.
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


def load_producers(store: LogStore, shard: Shard) -> Iterator[int]:
    """What the partition knows of producers, from the side records; what each cost."""
    for prefix in encode_producer_prefixes(shard.partition):
        for key, value in store.side(prefix):
            replay_producer_state(shard, decode_side(key, value))
            yield RECORD_COST


def load_local_state(store: LogStore, shard: Shard) -> Iterator[int]:
    """What members have of client-side assignors, from the side records; what each cost."""
    for prefix in encode_local_prefixes(shard.partition):
        for key, value in store.side(prefix):
            replay_local(shard, decode_side(key, value))
            yield RECORD_COST + (len(value) >> BYTES_COST_SHIFT)


def _read_producer_epochs(
    store: LogStore, shard: Shard, entries: Iterable[LatestEntry]
) -> Generator[int, None, dict[LogOffset, int]]:
    """The epoch with each of these was written, by offset; a batch is read once for all in it."""
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
