"""The store on RocksDB: reopening, crashes, torn writes, lost files, and locking."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import encode_batch
from storage.folder import watermark
from storage.folder.watermark import WatermarkHeader, create_watermark
from storage.log_store import (
    FormatTooNew,
    LatestEntry,
    PartitionAppend,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreLocked,
    StoreStalled,
    WatermarkViolation,
    pack_latest,
)
from storage.rocks import rocks_latest, rocks_opening, rocks_options, rocks_store
from storage.rocks.rocks_cursors import compute_store_error
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from storage.rocks.rocks_store import RocksLogStore
from tests.support.storage.appends import append, compact, mark_all, offset_key, offset_value
from tests.support.waiting import wait_until
from tests.unit.storage.writer import write_and_die, writing

P0 = LogPartition(0)
WRITES = 60


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a killed process leaves it; every write was acknowledged."""
    folder = tmp_path_factory.mktemp("marked") / "data"
    write_and_die(folder, writes=WRITES)
    return folder


@pytest.fixture(scope="module")
def unmarked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a killed process leaves it; no write was acknowledged."""
    folder = tmp_path_factory.mktemp("unmarked") / "data"
    write_and_die(folder, writes=WRITES, mark=False)
    return folder


@pytest.fixture(scope="module")
def two_wals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a killed process leaves it, with data in more than one WAL file."""
    folder = tmp_path_factory.mktemp("two") / "data"
    write_and_die(folder, writes=6, value_size=1 << 20)
    assert len(wals(folder)) > 1
    return folder


def wals(folder: Path) -> list[Path]:
    files = (folder / "rocksdb").glob("*.log")
    return sorted(file for file in files if file.stat().st_size)


def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "data"))


def overwrite(file: Path, position: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(position)
        opened.write(data)


def check_consistent(folder: Path) -> list[int]:
    """Open the store, check latest == compaction(log), and return the log end offset."""
    store = open_store(folder, partitions=1)
    try:
        for partition in map(LogPartition, range(store.partitions)):
            assert list(store.latest(partition)) == compact(store.read_log(partition))
        return [store.next_offset(LogPartition(p)) for p in range(store.partitions)]
    finally:
        store.close()


# ----------------------------------------------------------------------------------- reopening


def test_what_was_closed_is_there(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=3, cluster_id="C" * 22)
    append(store, {0: [(b"a", b"1"), (b"b", None)], 2: [(b"c", b"2")]})
    store.write([], [(b"side", b"value")])
    log, latest = list(store.read_log(P0)), list(store.latest(P0))
    store.close()
    again = open_store(tmp_path, partitions=50)
    assert (again.partitions, again.cluster_id) == (3, "C" * 22)
    assert [again.next_offset(LogPartition(p)) for p in range(3)] == [2, 0, 1]
    assert (list(again.read_log(P0)), list(again.latest(P0))) == (log, latest)
    assert list(again.side()) == [(b"side", b"value")]
    append(again, {0: [(b"a", b"2")]})
    mark_all(again)
    again.close()
    assert check_consistent(tmp_path) == [3, 0, 1]


def test_new_stores_have_different_ids(tmp_path: Path) -> None:
    stores = [open_store(tmp_path / name, partitions=1) for name in "ab"]
    assert len({store.cluster_id for store in stores}) == 2
    for store in stores:
        store.close()


def test_an_unfinished_creation_is_finished(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    create_watermark(tmp_path / "watermark", WatermarkHeader(4, "C" * 22)).close()
    store = open_store(tmp_path, partitions=9)
    assert (store.partitions, store.cluster_id) == (4, "C" * 22)
    store.close()


def test_a_scan_ends_with_the_store_and_does_not_keep_it_open(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    append(store, {0: [(b"\x00\x01\x00\x01a", b"1"), (b"\x00\x01\x00\x01b", b"1")]})
    scans = [store.latest(P0), store.read_log(P0), store.offset_group_ids(P0)]
    next(scans[0])
    store.close()
    for scan in scans:
        with pytest.raises(StoreError, match="closed"):
            next(scan)
    open_store(tmp_path, partitions=1).close()


@pytest.mark.parametrize("partitions", [0, -1, 65_537])
def test_impossible_numbers_of_partitions(tmp_path: Path, partitions: int) -> None:
    with pytest.raises(ValueError, match="1 to 65536 partitions"):
        open_store(tmp_path / "data", partitions=partitions)
    assert not (tmp_path / "data").exists()


def test_the_most_partitions(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=65_536)
    append(store, {65_535: [(b"k", b"v")], 0: [(b"k", b"w")]})
    last = LogPartition(65_535)
    store.sync()
    store.mark_durable({last: LogOffset(1)})
    assert [entry.value for entry in store.latest(last)] == [b"v"]
    assert store.next_offset(LogPartition(65_534)) == 0
    store.close()


# ------------------------------------------------------------------------------------- killing


@pytest.mark.parametrize("lines", [1, 40, 200])
def test_all_that_was_marked_survives_a_kill(tmp_path: Path, lines: int) -> None:
    folder = tmp_path / "data"
    with writing(folder, writes=100_000) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.kill()
        told = [lines, *map(int, process.stdout.read().split("\n")[:-1])][-1]
    store = open_store(folder, partitions=1)
    ends = {store.next_offset(LogPartition(p)) for p in range(3)}
    ((_, side),) = store.side()
    store.close()
    assert len(ends) == 1, "one write is in all partitions or in none"
    assert ends == {int(side) + 1}, "and its side record with it"
    assert min(ends) >= told
    assert check_consistent(folder) == [min(ends)] * 3


def test_a_killed_store_is_whole(marked: Path, tmp_path: Path) -> None:
    assert check_consistent(copy(marked, tmp_path)) == [WRITES] * 3


# ------------------------------------------------------------------------------------- tearing


def cut(bytes_off: int) -> Callable[[Path], None]:
    return lambda wal: os.truncate(wal, wal.stat().st_size - bytes_off)


def blank(size: int, byte: bytes) -> Callable[[Path], None]:
    return lambda wal: overwrite(wal, wal.stat().st_size - size, byte * size)


TORN = {
    "one byte missing": cut(1),
    "half a record missing": cut(300),
    "zeros for one byte": blank(1, b"\0"),
    "zeros for half a record": blank(300, b"\0"),
    "garbage for half a record": blank(300, b"\xa5"),
}


@pytest.mark.parametrize("name", TORN)
def test_a_torn_tail_loses_only_what_was_not_acknowledged(
    unmarked: Path, tmp_path: Path, name: str
) -> None:
    folder = copy(unmarked, tmp_path)
    TORN[name](wals(folder)[-1])
    assert check_consistent(folder) == [WRITES - 1] * 3
    assert check_consistent(folder) == [WRITES - 1] * 3


@pytest.mark.parametrize("name", TORN)
def test_a_torn_tail_that_was_acknowledged_is_refused(
    marked: Path, tmp_path: Path, name: str
) -> None:
    folder = copy(marked, tmp_path)
    TORN[name](wals(folder)[-1])
    for _ in range(2):
        with pytest.raises((WatermarkViolation, StoreCorrupt)) as caught:
            open_store(folder, partitions=1)
        assert "\n" not in str(caught.value)


def test_a_loss_below_the_watermark_is_named(marked: Path, tmp_path: Path) -> None:
    folder = copy(marked, tmp_path)
    cut(1)(wals(folder)[-1])
    with pytest.raises(WatermarkViolation) as caught:
        open_store(folder, partitions=1)
    for partition in range(3):
        assert f"log partition {partition} ends at offset 59, 1 records below 60" in str(
            caught.value
        )


def test_a_lost_side_record_is_noticed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "live", partitions=1)
    append(store, {0: [(b"k", b"v")]})
    mark_all(store)
    store.write([], [(b"side", b"value")])
    store.sync()
    store.mark_durable({})
    folder = Path(shutil.copytree(tmp_path / "live", tmp_path / "data"))
    store.close()
    cut(1)(wals(folder)[-1])
    with pytest.raises(WatermarkViolation, match="in side records"):
        open_store(folder, partitions=1)


def test_how_much_was_cut_is_told(unmarked: Path, tmp_path: Path) -> None:
    folder = copy(unmarked, tmp_path)
    blank(10, b"\0")(wals(folder)[-1])
    store = open_store(folder, partitions=1)
    assert store.cut_bytes > 10
    store.close()


def test_damage_within_the_log_is_refused(unmarked: Path, tmp_path: Path) -> None:
    folder = copy(unmarked, tmp_path)
    wal = wals(folder)[-1]
    overwrite(wal, wal.stat().st_size // 2, b"\xa5" * 10)
    before = wal.read_bytes()
    with pytest.raises(StoreCorrupt, match="damaged, restore the data folder"):
        open_store(folder, partitions=1)
    assert wal.read_bytes() == before, "nothing is cut that could be read"


def test_a_hole_above_the_watermark_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, partitions=2)
    append(store, {0: [(b"a", b"1")]})
    with monkeypatch.context() as patch:
        patch.setattr(rocks_store, "check_append", lambda *_: None)
        store._ends[0] = 5
        append(store, {0: [(b"a", b"1")]})
    store.close()
    with pytest.raises(StoreCorrupt, match="log partition 0 has no batch at offset 1"):
        open_store(tmp_path, partitions=1)


# -------------------------------------------------------------------------------- losing files


def delete(pattern: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        files = sorted(folder.glob(pattern))
        assert files, pattern
        for file in files:
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    return damage


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (delete("rocksdb/CURRENT"), "CURRENT is missing"),
        (delete("rocksdb"), "CURRENT is missing"),
        (delete("rocksdb/MANIFEST-*"), "MANIFEST-"),
        (delete("watermark"), "watermark is missing"),
        (lambda folder: os.truncate(folder / "watermark", 400), "not a watermark file"),
        (lambda folder: os.truncate(folder / "watermark", 600), "neither of its slots is valid"),
        (lambda folder: overwrite(folder / "watermark", 0, b"x"), "not a watermark file"),
        (lambda folder: overwrite(folder / "watermark", 20, b"!"), "wrong checksum"),
        (lambda folder: os.truncate(next(folder.glob("rocksdb/MANIFEST-*")), 90), "MANIFEST-"),
    ],
)
def test_lost_files_are_named(
    marked: Path, tmp_path: Path, damage: Callable[[Path], None], named: str
) -> None:
    folder = copy(marked, tmp_path)
    damage(folder)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=named) as caught:
            open_store(folder, partitions=1)
        assert "\n" not in str(caught.value)


def test_a_lost_table_is_named(two_wals: Path, tmp_path: Path) -> None:
    folder = copy(two_wals, tmp_path)
    check_consistent(folder)
    delete("rocksdb/*.sst")(folder)
    with pytest.raises(StoreCorrupt, match=r"\.sst"):
        open_store(folder, partitions=1)


def test_a_write_ahead_log_that_is_gone_though_a_newer_one_is_there(
    two_wals: Path, tmp_path: Path
) -> None:
    folder = copy(two_wals, tmp_path)
    wals(folder)[0].unlink()
    with pytest.raises(StoreCorrupt, match="Missing WAL"):
        open_store(folder, partitions=1)


def test_a_write_ahead_log_that_is_cut_though_a_newer_one_is_there(
    two_wals: Path, tmp_path: Path
) -> None:
    folder = copy(two_wals, tmp_path)
    cut(2 << 20)(wals(folder)[0])
    with pytest.raises(StoreCorrupt, match="Size mismatch"):
        open_store(folder, partitions=1)


def test_a_watermark_of_another_store_is_refused(marked: Path, tmp_path: Path) -> None:
    folder = copy(marked, tmp_path)
    open_store(tmp_path / "other", partitions=3).close()
    shutil.copy(tmp_path / "other" / "watermark", folder / "watermark")
    with pytest.raises(StoreCorrupt, match="belongs to another store"):
        open_store(folder, partitions=1)


# ------------------------------------------------------------------------------------- opening


def test_a_folder_of_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(StoreCorrupt, match=r"not empty and holds no store \(it has precious.txt\)"):
        open_store(tmp_path, partitions=1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["precious.txt"]


def test_a_mount_point_is_empty(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    open_store(tmp_path, partitions=1).close()


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="cannot be opened"):
        open_store(tmp_path / "file", partitions=1)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with writing(folder, writes=100_000) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreLocked, match=f"in use by process {process.pid}"):
            open_store(folder, partitions=1)
        process.kill()
        process.wait()
    open_store(folder, partitions=1).close()


def test_a_second_store_in_this_process_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    with pytest.raises(StoreLocked, match=f"in use by process {os.getpid()}"):
        open_store(tmp_path, partitions=1)
    append(store, {0: [(b"k", b"v")]})
    store.close()
    assert check_consistent(tmp_path) == [1]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    create_watermark(tmp_path / "watermark", WatermarkHeader(1, "C" * 22)).close()
    overwrite(tmp_path / "watermark", 8, (5).to_bytes(4, "big"))
    with pytest.raises(FormatTooNew, match="has format 5, this version reads up to 4"):
        open_store(tmp_path, partitions=1)


def test_a_newer_format_within_the_store_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(tmp_path, partitions=1).close()
    monkeypatch.setattr(rocks_opening, "FORMAT_VERSION", 0)
    with pytest.raises(FormatTooNew, match="has format 4, this version reads up to 0"):
        open_store(tmp_path, partitions=1)


def make_format_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of format 1, which has no column family for open transactions."""
    families = tuple(name for name in rocks_store.FAMILIES if name != "pending")
    with monkeypatch.context() as patch:
        patch.setattr(rocks_store, "FAMILIES", families)
        patch.setattr(rocks_options, "FAMILIES", families)
        patch.setattr(watermark, "FORMAT_VERSION", 1)
        create_watermark(folder / "watermark", WatermarkHeader(1, "C" * 22, 1)).close()
        store = open_store(folder, partitions=1)
        append(store, {0: [(b"k", b"v")]})
        mark_all(store)
        store.close()


def test_a_store_of_format_1_opens_and_becomes_one_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    make_format_1(folder, monkeypatch)
    for _ in range(2):
        store = open_store(folder, partitions=1)
        assert store.cluster_id == "C" * 22
        assert [entry.key for entry in store.latest(P0)] == [b"k"]
        assert list(store.pending(P0)) == []
        store.close()
    with monkeypatch.context() as patch:
        patch.setattr(watermark, "FORMAT_VERSION", 1)
        with pytest.raises(FormatTooNew, match="has format 4, this version reads up to 1"):
            open_store(folder, partitions=1)


def test_a_store_of_format_3_opens_and_then_takes_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    families = tuple(name for name in rocks_store.FAMILIES if name != "causes")
    with monkeypatch.context() as patch:
        patch.setattr(rocks_store, "FAMILIES", families)
        patch.setattr(rocks_options, "FAMILIES", families)
        patch.setattr(watermark, "FORMAT_VERSION", 3)
        patch.setattr(rocks_latest, "FORMAT_VERSION", 3)
        create_watermark(folder / "watermark", WatermarkHeader(1, "C" * 22, 3)).close()
        store = open_store(folder, partitions=1)
        append(store, {0: [(b"k", b"v")]})
        mark_all(store)
        store.close()
    reader = open_store_reader(folder)
    assert list(reader.causes()) == []
    reader.close()
    for number in range(2):
        store = open_store(folder, partitions=1)
        assert [entry.key for entry in store.latest(P0)] == [b"k"]
        assert len(list(store.causes())) == number
        store.write([], causes=[(b"%d" % number, b"why")])
        store.close()
    reader = open_store_reader(folder)
    assert [key for key, _ in reader.causes()] == [b"0", b"1"]
    reader.close()
    with monkeypatch.context() as patch:
        patch.setattr(watermark, "FORMAT_VERSION", 3)
        with pytest.raises(FormatTooNew, match="has format 4, this version reads up to 3"):
            open_store(folder, partitions=1)


def test_causes_are_read_in_either_order(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    keys = [b"a1", b"a2", b"a3", b"b1"]
    store.write([], causes=[(key, key) for key in keys])
    assert [key for key, _ in store.causes(b"a2")] == keys[1:]
    assert [key for key, _ in store.causes_before(b"b", b"a")] == [b"a3", b"a2", b"a1"]
    assert [key for key, _ in store.causes_before(b"a3", b"a")] == [b"a2", b"a1"]
    assert [key for key, _ in store.causes_before(b"a1", b"a")] == []
    store.write([], causes=[(b"a2", None)])
    assert [key for key, _ in store.causes_before(b"b", b"a")] == [b"a3", b"a1"]
    left = store.causes_before(b"b", b"a")
    assert next(left) == (b"a3", b"a3")
    store.close()
    with pytest.raises(StoreError, match="closed"):
        next(left)


def test_pending_survives_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=2)
    key, packed = offset_key("g"), pack_latest(0, 5, offset_value(3))
    batch = encode_batch(0, [(key, offset_value(3))], 5, producer_id=9, is_transactional=True)
    store.write([PartitionAppend(P0, LogOffset(0), batch, 1, {}, {(9, key): packed})])
    store.close()
    store = open_store(tmp_path, partitions=2)
    assert list(store.pending(P0)) == [(9, LatestEntry(key, LogOffset(0), 5, offset_value(3)))]
    store.close()


def write_until_stalled(store: RocksLogStore) -> int:
    """Write to a RocksDB configured to stall early; returns how many writes succeeded."""
    family = store._families.families["log"]
    triggers = ("file_num_compaction", "slowdown_writes", "stop_writes")
    family.set_options({f"level0_{name}_trigger": "1" for name in triggers})
    for number in range(1000):
        try:
            append(store, {0: [(b"k%d" % number, os.urandom(200_000))]})
        except StoreStalled:
            return number
        family.flush()
    raise AssertionError("RocksDB never stalled")


def test_a_stall_writes_nothing_and_passes(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    end = write_until_stalled(store)
    assert store.next_offset(P0) == end

    def append_one() -> None:
        with suppress(StoreStalled):
            append(store, {0: [(b"k", b"v")]})

    wait_until(lambda: store.next_offset(P0) > end, "the stall is over", 60, between=append_one)
    store.close()
    assert check_consistent(tmp_path) == [end + 1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Result incomplete: Write stall", StoreStalled),
        ("IO error: While lock file: /x/LOCK: Resource temporarily unavailable", StoreLocked),
        ("IO error: lock hold by current process, acquire time 1: /x/LOCK", StoreLocked),
        ("IO error: No space left on device: /mnt/blockstore/000012.sst", StoreFailed),
        ("IO error: Input/output error: While pread block in /locks/000012.sst", StoreFailed),
        ("Corruption: block checksum mismatch in /x/000012.sst", StoreCorrupt),
        ("IO error: No space left on device: While appending to file", StoreFailed),
        ("Shutdown in progress", StoreFailed),
    ],
)
def test_rocksdb_errors_in_our_words(text: str, kind: type[StoreError]) -> None:
    assert type(compute_store_error(Path("/x"), Exception(text))) is kind


def test_offsets_are_marked_before_a_close_without_a_mark(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    append(store, {0: [(b"k", b"v")]})
    store.close()
    store = open_store(tmp_path, partitions=1)
    store.mark_durable({P0: LogOffset(1)})
    store.close()
    assert check_consistent(tmp_path) == [1]
