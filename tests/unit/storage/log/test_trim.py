"""Trimming: on RocksDB, on a real Kafka's log, and the cases in which it must refuse."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import encode_batch, encode_marker, select_records
from storage.codec.batches import Batch, decode_batch
from storage.log.fold import PartitionFold
from storage.log.trim import (
    RECORDS_PER_BATCH_MAX,
    HistoryStart,
    compute_plan,
    compute_rewrite,
    compute_trim_limit,
    decode_old,
    read_history_start,
    read_old,
    read_waiting,
)
from storage.log_store import LogStore, PartitionAppend, PartitionRewrite, StoreCorrupt, pack_latest
from storage.rocks.rocks_opening import open_store
from tests.support.memory import MemoryLogStore
from tests.support.storage.appends import append, offset_key, offset_value, settle_all
from tests.support.storage.golden import segments
from tests.support.storage.raw_log import RawLog
from tests.support.trimming import trim_once

PARTITION = LogPartition(0)


def split(data: bytes) -> list[bytes]:
    batches, position = [], 0
    while position < len(data):
        size = decode_batch(data, position).size
        batches.append(data[position : position + size])
        position += size
    return batches


def fold(store: LogStore, partition: LogPartition) -> PartitionFold:
    folded = PartitionFold()
    for batch in store.read_log(partition):
        folded.apply(batch)
    return folded


def read_batches(store: LogStore) -> list[Batch]:
    return [decode_batch(batch) for batch in store.read_log(PARTITION)]


def log_bytes(store: LogStore) -> int:
    return sum(
        len(batch)
        for number in range(store.partitions)
        for batch in store.read_log(LogPartition(number))
    )


def trim_all(store: LogStore, bytes_max: int = 1 << 20) -> None:
    for number in range(store.partitions):
        partition = LogPartition(number)
        limit = compute_trim_limit(store, partition)
        while trim_once(store, partition, limit, bytes_max):
            pass


@pytest.mark.parametrize("bytes_max", [1, 4096])
def test_kafkas_own_log_is_trimmed_and_comes_to_the_same(tmp_path: Path, bytes_max: int) -> None:
    """The log has open, aborted and committed transactions, and groups of every type."""
    store = open_store(tmp_path, partitions=50)
    log = RawLog(store)
    for partition, data in segments().items():
        log.append(partition, split(data))
    log.make_durable()
    whole = log_bytes(store)
    trim_all(store, bytes_max)
    assert log_bytes(store) < whole // 2
    store.close()
    store = open_store(tmp_path, partitions=50)
    for partition, before in log.folds.items():
        after = fold(store, LogPartition(partition))
        assert (after.latest, after.pending) == (before.latest, before.pending)
        start = read_history_start(store, LogPartition(partition))
        assert start.offset == compute_trim_limit(store, LogPartition(partition))
    store.close()


def test_what_many_commits_leave_is_the_last_of_each(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    for round_number in range(100):
        pairs = [
            (offset_key("g", number), offset_value(round_number * 10 + number))
            for number in range(10)
        ]
        append(store, {0: list(pairs)})
    settle_all(store)
    trim_all(store, bytes_max=3_000)
    assert [batch.base_offset for batch in read_batches(store)] == [980, 990]
    assert read_history_start(store, PARTITION) == HistoryStart(LogOffset(990), 5)
    store.close()


def test_what_is_left_of_a_large_batch_that_loses_records_is_in_small_ones() -> None:
    store = MemoryLogStore(1)
    append(store, {0: [(offset_key("g", n), offset_value(n)) for n in range(250)]})
    append(store, {0: [(offset_key("g", 120), offset_value(1))]})
    append(store, {0: [(offset_key("h"), offset_value(1))]})
    settle_all(store)
    limit = compute_trim_limit(store, PARTITION)
    assert trim_once(store, PARTITION, limit, 1)
    cuts = [(batch.base_offset, len(batch.records)) for batch in read_batches(store)]
    assert cuts == [(0, 250), (250, 1), (251, 1)]
    assert trim_once(store, PARTITION, limit, 1)
    cuts = [(batch.base_offset, len(batch.records)) for batch in read_batches(store)]
    assert cuts == [(0, RECORDS_PER_BATCH_MAX), (100, 100), (201, 49), (250, 1), (251, 1)]


def test_the_last_batch_and_what_is_not_durable_are_left_alone() -> None:
    store = MemoryLogStore(1)
    append(store, {0: [(offset_key("g"), offset_value(1))]})
    assert compute_trim_limit(store, PARTITION) == 0
    settle_all(store)
    assert compute_trim_limit(store, PARTITION) == 0
    for value in (2, 3, 4):
        append(store, {0: [(offset_key("g"), offset_value(value))]})
    assert compute_trim_limit(store, PARTITION) == 1
    assert not trim_once(store, PARTITION, 0)
    with pytest.raises(ValueError, match="it cannot be rewritten up to 2"):
        trim_once(store, PARTITION, 3)
    assert len(read_batches(store)) == 4
    settle_all(store)
    assert compute_trim_limit(store, PARTITION) == 3
    with pytest.raises(ValueError, match="ends at 4: it cannot be rewritten up to 4"):
        store.rewrite(PartitionRewrite(PARTITION, [LogOffset(3)], [], {}))


def test_a_log_of_which_nothing_counts_any_more_goes_on_where_it_was(tmp_path: Path) -> None:
    """Every record is superseded or a tombstone, but no offset may be assigned twice."""
    store = open_store(tmp_path, partitions=1)
    for value in (offset_value(1), None, offset_value(2), None):
        append(store, {0: [(offset_key("g"), value)]})
    settle_all(store)
    trim_all(store)
    assert [batch.base_offset for batch in read_batches(store)] == [2, 3]
    store.close()
    store = open_store(tmp_path, partitions=1)
    assert store.next_offset(PARTITION) == 4
    append(store, {0: [(offset_key("h"), offset_value(1))]})
    settle_all(store)
    trim_all(store)
    assert [batch.base_offset for batch in read_batches(store)] == [4]
    store.close()


def test_a_record_that_should_be_there_and_is_not_is_refused() -> None:
    store = MemoryLogStore(1)
    for value in range(3):
        append(store, {0: [(offset_key("g"), offset_value(value))]})
    settle_all(store)
    assert trim_once(store, PARTITION, 1)
    store.rewrite(PartitionRewrite(PARTITION, [LogOffset(0)], [], {}))
    with pytest.raises(StoreCorrupt, match="log partition 0 has lost the record at offset 0"):
        trim_once(store, PARTITION, 2)


def test_a_log_that_was_never_trimmed_is_whole() -> None:
    store = MemoryLogStore(1)
    assert read_history_start(store, PARTITION) == HistoryStart(LogOffset(0), -1)
    assert not trim_once(store, PARTITION, compute_trim_limit(store, PARTITION))


def test_a_batch_whose_offsets_lie_far_apart_costs_no_more_than_its_records() -> None:
    """A cleaner may remove all records of a batch except the first and the last."""
    far = 2_000_000_000
    whole = decode_batch(
        encode_batch(0, [(offset_key("g"), offset_value(1)), (offset_key("h"), offset_value(2))], 5)
    )
    first, second = whole.records
    apart = select_records(whole, [first, second._replace(offset=far)], is_transactional=False)
    log = RawLog(MemoryLogStore(1))
    log.append(0, [apart])
    for number, group in enumerate(("g", "h", "i"), far + 1):
        log.append(0, [encode_batch(number, [(offset_key(group), offset_value(3))], 5)])
    log.make_durable()
    trim_all(log.store, 1)
    assert [batch.base_offset for batch in read_batches(log.store)] == [far + 1, far + 2, far + 3]


class CountingStore(MemoryLogStore):
    """Counts the entries of ``kept`` that are read."""

    read = 0

    def kept(self, partition: LogPartition, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for entry in super().kept(partition, prefix):
            self.read += 1
            yield entry


def add_waiting(store: LogStore, producers: int) -> None:
    """Each producer has one pending offset in an open transaction."""
    for producer in range(producers):
        first = store.next_offset(PARTITION)
        key, value = offset_key("waits", producer), offset_value(1)
        batch = encode_batch(
            first, [(key, value)], 5, producer_id=producer, producer_epoch=0, is_transactional=True
        )
        pending = {(producer, key): pack_latest(first, 5, value)}
        store.write([PartitionAppend(PARTITION, first, batch, 1, {}, pending)])


def test_what_waits_is_read_once_for_all_steps() -> None:
    """Regression: each step read all pending records of its partition on the event loop."""
    store = CountingStore(1)
    add_waiting(store, 200)
    for number in range(40):
        append(store, {0: [(offset_key(f"g{number}", n), offset_value(n)) for n in range(5)]})
        append(store, {0: [(offset_key(f"g{number}", n), None) for n in range(5)]})
    append(store, {0: [(offset_key("waits", producer), None) for producer in range(0, 200, 2)]})
    append(store, {0: [(offset_key("last"), offset_value(1))]})
    settle_all(store)
    before = fold(store, PARTITION)
    limit, steps = compute_trim_limit(store, PARTITION), 0
    waiting = read_waiting(store, PARTITION)
    store.read = 0
    while old := read_old(store, PARTITION, limit, 500, lambda batch: True):
        store.rewrite(compute_rewrite(compute_plan(store, PARTITION, decode_old(old), waiting)))
        steps += 1
    assert steps > 20
    assert store.read == 0
    found = fold(store, PARTITION)
    assert found.latest == before.latest
    assert [p for p, entries in found.pending.items() if entries] == list(range(1, 200, 2))


@pytest.mark.parametrize("seed", range(20))
def test_what_waits_holds_from_step_to_step(seed: int) -> None:
    """Pending offsets kept between steps equal those read from the store for each step."""
    choice = random.Random(seed)
    stores = [MemoryLogStore(1), MemoryLogStore(1)]
    for store in stores:
        raw, choice = RawLog(store), random.Random(seed)
        for _ in range(60):
            first, producer = store.next_offset(PARTITION), choice.randrange(4)
            key = offset_key("g", choice.randrange(6))
            value = None if choice.random() < 0.2 else offset_value(first)
            kind = choice.random()
            if kind < 0.5:
                raw.append(
                    0,
                    [
                        encode_batch(
                            first,
                            [(key, offset_value(first))],
                            5,
                            producer_id=producer,
                            producer_epoch=0,
                            is_transactional=True,
                        )
                    ],
                )
            elif kind < 0.8:
                raw.append(0, [encode_batch(first, [(key, value)], 5)])
            else:
                marker = encode_marker(
                    first,
                    5,
                    producer_id=producer,
                    producer_epoch=0,
                    committed=choice.random() < 0.5,
                    coordinator_epoch=0,
                )
                raw.append(0, [marker])
        raw.make_durable()
    kept, read = stores
    limit = compute_trim_limit(kept, PARTITION)
    waiting = read_waiting(kept, PARTITION)
    while old := read_old(kept, PARTITION, limit, 300, lambda batch: True):
        kept.rewrite(compute_rewrite(compute_plan(kept, PARTITION, decode_old(old), waiting)))
        trim_once(read, PARTITION, limit, 300)
        assert list(kept.kept(PARTITION)) == list(read.kept(PARTITION))
        assert list(kept.read_log(PARTITION)) == list(read.read_log(PARTITION))
