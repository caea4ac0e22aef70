"""What makes a store of a bulk, and the files of one: its work grows as what there is to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from model.ids import GroupId, LogPartition, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import pack_latest
from storage.rocks.rocks_store import RocksLogStore
from storage.transfer.bulk import Bulk, BulkPartition
from storage.transfer.import_bulk import check_is_empty, import_bulk
from storage.transfer.import_side import SideImport
from storage.transfer.sorted_files import (
    LATEST,
    LOG,
    PENDING,
    SortedFileWriter,
    pack_entry_key,
    pack_log_key,
)
from tests.cost.counting import check_linear

NOW_MS = 1_700_000_000_000
N = 250

Make = Callable[[Path, int], Bulk]
Pair = tuple[bytes, bytes]


def make_records(count: int) -> Iterator[Pair]:
    """A commit of each of so many groups, in the order of their keys."""
    value = encode_value(OffsetCommitValue(7, -1, "", NOW_MS))
    for number in range(count):
        group = GroupId(f"g{number:09}")
        yield encode_key(OffsetCommitKey(group, TopicName("t"), 0)), value


def write(folder: Path, family: str, pairs: Iterator[Pair]) -> tuple[str, ...]:
    writer = SortedFileWriter(folder, family, family)
    for key, value in pairs:
        writer.put(key, value)
    return tuple(writer.close())


def make_bulk(folder: Path, count: int, open_producers: int = 0) -> Bulk:
    """A batch of one record for each group."""
    folder.mkdir(parents=True)
    log = (
        (pack_log_key(0, offset), encode_batch(offset, [record], NOW_MS))
        for offset, record in enumerate(make_records(count))
    )
    latest = (
        (pack_entry_key(0, key), pack_latest(offset, NOW_MS, value))
        for offset, (key, value) in enumerate(make_records(count))
    )
    files = {LOG: write(folder, LOG, log), LATEST: write(folder, LATEST, latest), PENDING: ()}
    part = BulkPartition(
        partition=0,
        next_offset=count + 1,
        records=count,
        last_offset=count - 1,
        last_ms=NOW_MS,
        highest_ms=NOW_MS,
        open_producers=dict.fromkeys(range(open_producers), 0),
        aborts_open=True,
    )
    return Bulk(1, True, (part,), files, count, count, 0, open_producers)


def make_groups(folder: Path, count: int) -> Bulk:
    return make_bulk(folder, count)


def make_producers(folder: Path, count: int) -> Bulk:
    return make_bulk(folder, 1, count)


@pytest.mark.parametrize("make", [make_groups, make_producers])
def test_a_bulk_becomes_a_store_in_linear_work(make: Make, tmp_path: Path) -> None:
    def prepare(count: int) -> Callable[[], None]:
        shutil.rmtree(tmp_path, ignore_errors=True)
        bulk = make(tmp_path / "bulk", count)

        def work() -> None:
            store = tmp_path / "store"
            check_is_empty(store)
            counted, batches = import_bulk(bulk, tmp_path / "bulk", store, SideImport(), _count)
            assert len(counted.aborted_producers) == len(bulk.partitions[0].open_producers)
            # The groups', the end of the log, and the markers.
            assert batches == bulk.batches + 1 + len(counted.aborted_producers)

        return work

    check_linear(prepare, N)


def _count(store: RocksLogStore) -> int:
    return sum(1 for _ in store.read_log(LogPartition(0)))


def test_sorted_files_are_written_in_linear_work(tmp_path: Path) -> None:
    def prepare(count: int) -> Callable[[], object]:
        return lambda: write(tmp_path, LOG, make_records(count))

    check_linear(prepare, 10 * N)
