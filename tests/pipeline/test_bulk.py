"""A log folded by Spark into sorted files: the store of them is what `muster log import` makes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.errors import ExitCode
from coordinator.core.groups.group_description import describe_consumer_group, list_groups
from coordinator.core.groups.topic_records import Catalogue
from coordinator.core.state.shard import Shard
from coordinator.runtime.loading.shard_loader import load_catalogue, load_shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogPartition
from model.log.records import OffsetCommitValue
from storage.codec.batch_encoding import encode_batch, encode_marker
from storage.codec.record_codec import encode_value
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import RocksLogReader, open_store_reader
from storage.segments.folder import open_segments
from storage.transfer.bulk import BULK_FILE, read_bulk
from storage.transfer.export_log import compact_log
from storage.transfer.import_log import ImportOptions, import_segments
from storage.transfer.sorted_files import LATEST, LOG, PENDING
from tests.pipeline.logged import SEGMENTS
from tests.support.cli.invoking import Result, invoke_app
from tests.support.storage.appends import offset_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEGACY = b"\0\0"


def invoke(*arguments: str | Path) -> Result:
    result = invoke_app("pipeline", *arguments)
    assert result.exit_code == ExitCode.DONE, result.error
    return result


@pytest.fixture(scope="module")
def by_log_import(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that `muster log import` makes of Kafka's own log."""
    folder = tmp_path_factory.mktemp("by-log") / "data"
    result = invoke_app("log", "import", SEGMENTS, "--data-dir", folder, "--keep-clock")
    assert result.exit_code == ExitCode.DONE, result.error
    return folder


def test_a_real_log_becomes_the_store_that_log_import_makes(
    spark: SparkSession, by_log_import: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    made = invoke("import", "--path", SEGMENTS, "--data-dir", data, "--keep-clock", "-o", "json")
    counted = json.loads(made.out)
    assert (counted["partitions"], counted["batches"], counted["records"]) == (50, 2511, 6144)
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]
    check_same(by_log_import / "store", data / "store")
    assert show_groups(data) == show_groups(by_log_import)
    verified = [invoke_app("log", "verify", f, "-o", "json") for f in (by_log_import, data)]
    assert [result.exit_code for result in verified] == [ExitCode.DONE, ExitCode.DONE]
    reports = [json.loads(result.out) for result in verified]
    assert reports[0]["partitions"] == reports[1]["partitions"]
    offsets = [
        invoke_app("log", "offsets", folder, "--group", "o19-txn-classic", "-o", "json").out
        for folder in (by_log_import, data)
    ]
    assert json.loads(offsets[0]) == json.loads(offsets[1])
    again = invoke_app("pipeline", "import", "--path", SEGMENTS, "--data-dir", data)
    assert again.exit_code == ExitCode.PRECONDITION
    assert "holds groups" in again.error


def check_same(
    wanted: Path, found: Path, *, is_compacted: bool = False, is_aborted: bool = False
) -> None:
    """All that two stores hold; the log of the second may be compacted, and end with aborts."""
    stores = open_store_reader(wanted), open_store_reader(found)
    try:
        assert stores[0].partitions == stores[1].partitions
        for number in range(stores[0].partitions):
            partition = LogPartition(number)
            for read in _reads(partition, is_compacted=is_compacted):
                assert read(stores[1]) == read(stores[0]), partition
            log = list(stores[1].read_log(partition))
            if is_aborted:
                continue
            if is_compacted:
                assert log == list(compact_log(stores[0], partition))
            else:
                assert log == list(stores[0].read_log(partition))
        assert list(stores[0].side()) == list(stores[1].side())
    finally:
        for store in stores:
            store.close()


def _reads(
    partition: LogPartition, *, is_compacted: bool
) -> Iterator[Callable[[RocksLogReader], Any]]:
    yield lambda store: list(store.latest(partition))
    yield lambda store: list(store.pending(partition))
    yield lambda store: store.durable_offset(partition)
    if not is_compacted:
        yield lambda store: list(store.kept(partition))


def show_groups(data: Path) -> list[Any]:
    store = open_store(data / "store", partitions=50)
    try:
        catalogue = Catalogue()
        load_catalogue(store, catalogue)
        shown: list[Any] = []
        for number in range(store.partitions):
            shard = Shard(LogPartition(number), CoordinatorSettings(), catalogue.image)
            load_shard(store, shard)
            shown += list_groups(shard)
            shown += [describe_consumer_group(shard, group) for group in shard.consumer_groups]
    finally:
        store.close()
    assert len(shown) > 50
    return shown


# -------------------------------------------------------------------------- all that may happen


class RandomLog:
    """Commits, deletions and other records of a few keys, plain and in transactions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._offset = 0
        self._time = 1_700_000_000_000

    def make(self, count: int) -> list[bytes]:
        return [self._make_batch() for _ in range(count)]

    def _make_batch(self) -> bytes:
        chance = self._random.random()
        producer = self._random.randrange(4)
        self._time += self._random.randrange(3)
        if chance < 0.2:
            batch = encode_marker(
                self._offset,
                self._time,
                producer_id=producer,
                producer_epoch=1,
                committed=self._random.random() < 0.7,
                coordinator_epoch=0,
            )
            self._offset += 1
            return batch
        records = [self._make_record() for _ in range(self._random.randrange(1, 5))]
        known: dict[str, Any] = {}
        if chance < 0.6:
            known = {"producer_id": producer, "producer_epoch": 1, "is_transactional": True}
        elif chance < 0.65:
            known = {"producer_id": producer, "producer_epoch": 0}
        batch = encode_batch(self._offset, records, self._time, **known)
        self._offset += len(records)
        if self._random.random() < 0.1:
            self._offset += self._random.randrange(1, 9)
        return batch

    def _make_record(self) -> tuple[bytes, bytes | None]:
        key = offset_key(f"group {self._random.randrange(3)}", self._random.randrange(3))
        version, chance = None, self._random.random()
        if chance < 0.1:
            key, version = _LEGACY + key[2:], 1
        elif chance < 0.2:
            # A type that nobody knows is kept as it is, and never waits.
            key = b"\x00\x63" + key[2:]
        if self._random.random() < 0.2:
            return key, None
        value = OffsetCommitValue(self._random.randrange(1000), -1, "", 5)
        return key, encode_value(value, version)


def write_segments(folder: Path, batches: Sequence[bytes], sizes: Sequence[int]) -> Path:
    """A partition whose segments have so many batches, and one more has the rest."""
    target = folder / "__consumer_offsets-0"
    target.mkdir(parents=True)
    rest = list(batches)
    for size in (*sizes, len(batches)):
        taken, rest = rest[:size], rest[size:]
        if taken:
            name = f"{int.from_bytes(taken[0][:8], 'big'):020}.log"
            (target / name).write_bytes(b"".join(taken))
    return folder


@pytest.mark.parametrize(("seed", "aborts_open"), [(1, False), (2, True)])
def test_what_counts_of_any_log_is_what_the_servers_own_fold_keeps(
    seed: int,
    aborts_open: bool,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pipeline.source.logs import segment_log

    # Many slices: what one of them says is decided in others.
    monkeypatch.setattr(segment_log, "SLICE_BYTES", 4_000)
    log = write_segments(tmp_path / "log", RandomLog(seed).make(300), (100, 50))
    options = ImportOptions(aborts_open=aborts_open)
    count, _ = import_segments(open_segments(log), tmp_path / "wanted", options, lambda _: None)
    more = ("--abort-open",) if aborts_open else ()
    bulk, data = tmp_path / "bulk", tmp_path / "data"
    made = invoke("compact", "--path", log, "--out", bulk, "-o", "json", *more)
    compacted = json.loads(made.out)
    assert 0 < compacted["records_kept"] < compacted["records_read"]
    files = read_bulk(bulk).files
    assert all(files[family] for family in (LOG, LATEST))
    assert bool(files[PENDING]) is not aborts_open
    imported = json.loads(
        invoke("import", "--path", bulk, "--data-dir", data, "--keep-clock", "-o", "json").out
    )
    assert imported["open_producer_ids"] == sorted(count.open_producers)
    assert imported["aborted_producer_ids"] == sorted(count.aborted_producers)
    check_same(tmp_path / "wanted", data / "store", is_compacted=True, is_aborted=aborts_open)
    verified = invoke_app("log", "verify", data)
    assert verified.exit_code == ExitCode.DONE, verified.error


# --------------------------------------------------------------------------------- bad input


def test_a_damaged_log_is_named_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    batches = RandomLog(2).make(20)
    log = write_segments(tmp_path / "log", [*batches[:-1], batches[-1][:-3]], ())
    out, replaced = tmp_path / "out", tmp_path / "out.replaced"
    replaced.mkdir()
    (replaced / BULK_FILE).write_text("{}", encoding="utf-8")
    torn = invoke_app("pipeline", "compact", "--path", log, "--out", out)
    assert torn.exit_code == ExitCode.FAILED
    assert "partition 0, offset" in torn.error
    assert "--cut-torn-tail" in torn.error
    # What a run that was killed at its end had moved away is there as before.
    assert [entry.name for entry in out.iterdir()] == [BULK_FILE]
    (segment,) = log.glob("*/*.log")
    data = bytearray(b"".join(batches))
    data[len(batches[0]) + 70] ^= 1
    segment.write_bytes(data)
    data_dir = tmp_path / "data"
    bad = invoke_app("pipeline", "import", "--path", log, "--data-dir", data_dir)
    assert bad.exit_code == ExitCode.FAILED
    assert str(segment) in bad.error
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log", "out"]


def test_a_bulk_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    bulk = tmp_path / "bulk"
    bulk.mkdir()
    data = tmp_path / "data"
    content = {"version": 1, "files": {"log": ["x.sst"], "latest": [], "pending": []}}
    rest = dict.fromkeys(
        ("partition_count", "batches", "records", "bytes", "highest_producer_id"), 1
    )
    cases = [
        ("{", ExitCode.FAILED, "cannot be read"),
        (json.dumps(content), ExitCode.FAILED, "cannot be read"),
        ('{"version": 2}', ExitCode.PRECONDITION, "use a newer version"),
        (
            json.dumps({**content, **rest, "is_compacted": True, "partitions": [], "notes": []}),
            ExitCode.FAILED,
            "x.sst is missing",
        ),
    ]
    for text, code, line in cases:
        (bulk / BULK_FILE).write_text(text, encoding="utf-8")
        result = invoke_app("pipeline", "import", "--path", bulk, "--data-dir", data)
        assert (result.exit_code, len(result.error.splitlines())) == (code, 1), result.error
        assert line in result.error
        assert not data.exists()
