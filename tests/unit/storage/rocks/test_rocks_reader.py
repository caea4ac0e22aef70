"""The read-only reader beside a writer: it sees a snapshot and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.ids import LogOffset, LogPartition
from storage.folder.watermark import FORMAT_VERSION, WatermarkHeader, create_watermark
from storage.log_store import FormatTooNew, StoreCorrupt, read_batch_range
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import RocksLogReader, open_store_reader
from tests.support.storage.appends import append, mark_all, offset_key, offset_value, settle_all

P1 = LogPartition(1)


def write(folder: Path, count: int) -> None:
    """Open a store, write batches of two records and close it, which flushes them to files."""
    store = open_store(folder, partitions=3)
    for number in range(count):
        pairs = [(offset_key("g", each), offset_value(number)) for each in (number, number + 1)]
        append(store, {1: pairs, 2: pairs[:1]})
    store.close()


def bases(reader: RocksLogReader, start: int = 0) -> list[int]:
    return [read_batch_range(batch)[0] for batch in reader.read_log(P1, LogOffset(start))]


def test_a_reader_gives_what_a_store_gives(tmp_path: Path) -> None:
    write(tmp_path, 10)
    reader = open_store_reader(tmp_path)
    store = open_store(tmp_path, partitions=3)
    assert (reader.partitions, reader.cluster_id) == (store.partitions, store.cluster_id)
    for partition in map(LogPartition, range(3)):
        assert list(reader.read_log(partition)) == list(store.read_log(partition))
        assert list(reader.latest(partition)) == list(store.latest(partition))
    prefix = offset_key("g", 3)[:-4]
    assert list(reader.latest(P1, prefix)) == list(store.latest(P1, prefix))
    assert bases(reader, 5) == [4, 6, 8, 10, 12, 14, 16, 18]
    assert bases(reader, 18) == [18]
    assert bases(reader, 20) == []
    store.close()
    reader.close()
    reader.close()


def test_what_is_written_later_is_not_seen(tmp_path: Path) -> None:
    write(tmp_path, 3)
    store = open_store(tmp_path, partitions=3)
    append(store, {1: [(offset_key("g"), offset_value(1))]})
    reader = open_store_reader(tmp_path)
    append(store, {1: [(offset_key("g"), offset_value(2))]})
    assert bases(reader) == [0, 2, 4, 6]
    store.close()
    assert bases(reader) == [0, 2, 4, 6]
    reader.close()


def test_files_that_the_server_removes_can_still_be_read(tmp_path: Path) -> None:
    write(tmp_path, 3)
    write(tmp_path, 3)
    reader = open_store_reader(tmp_path)
    removed = [*(tmp_path / "rocksdb").glob("*.blob"), *(tmp_path / "rocksdb").glob("*.sst")]
    assert {file.suffix for file in removed} == {".blob", ".sst"}
    for file in removed:
        file.unlink()
    assert bases(reader) == list(range(0, 12, 2))
    reader.close()


def test_nothing_is_written(tmp_path: Path) -> None:
    write(tmp_path, 3)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    reader = open_store_reader(tmp_path)
    assert bases(reader) == [0, 2, 4]
    reader.close()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    header = WatermarkHeader(3, "A" * 22, FORMAT_VERSION + 1)
    with pytest.raises(FormatTooNew):
        create_watermark(tmp_path / "watermark", header)
    with pytest.raises(FormatTooNew):
        open_store_reader(tmp_path)


@pytest.mark.parametrize("missing", ["watermark", "rocksdb/CURRENT"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    write(tmp_path, 1)
    (tmp_path / missing).unlink()
    with pytest.raises(StoreCorrupt, match=f"{missing} is missing"):
        open_store_reader(tmp_path)


def test_a_missing_table_is_damage(tmp_path: Path) -> None:
    write(tmp_path, 3)
    next((tmp_path / "rocksdb").glob("*.sst")).unlink()
    with pytest.raises(StoreCorrupt):
        open_store_reader(tmp_path)


def test_a_store_whose_log_of_writes_is_in_two_files(tmp_path: Path) -> None:
    """RocksDB starts a new WAL file when one family is flushed; the others still need the old."""
    store = open_store(tmp_path / "store", partitions=1)
    append(store, {0: [(offset_key("g"), offset_value(1))]})
    settle_all(store)
    store._families.families["latest"].flush(True)
    append(store, {0: [(offset_key("g"), offset_value(2))]})
    mark_all(store)
    assert len(list((tmp_path / "store" / "rocksdb").glob("*.log"))) == 2
    reader = open_store_reader(tmp_path / "store")
    assert reader.durable_offset(LogPartition(0)) == reader.next_offset(LogPartition(0)) == 2
    assert len(list(reader.read_log(LogPartition(0)))) == 2
    reader.close()
    store.close()
