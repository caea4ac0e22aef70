"""Tables that follow a log: of one log and in one format, and with the rows that a batch has."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.schema import TOPIC
from pipeline.source.errors import DataLoss, OptionError
from storage.codec.batch_encoding import reencode_batch
from storage.codec.batches import Batch, decode_batch
from tests.pipeline.planted_groups import read_partition
from tests.support.pipeline.blocks import make_commits
from tests.support.pipeline.broker_log import BrokerLog
from tests.support.pipeline.derived import leave_out_derived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.tables.writing import TableFolder


@pytest.fixture
def without_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    """``records`` alone, which is what a stream adds to."""
    leave_out_derived(monkeypatch)


def follow(spark: SparkSession, log: Path, out: Path, **options: Any) -> None:
    from pipeline.tables.tables_stream import StreamOptions, stream_tables

    stream_tables(spark, str(log), str(out), StreamOptions(**options))


def list_offsets(spark: SparkSession, out: Path) -> list[int]:
    from pipeline.tables.writing import escape

    rows = spark.read.parquet(escape(str(out / "records"))).collect()
    return sorted(row["offset"] for row in rows)


def list_files(out: Path) -> list[str]:
    return sorted(str(path) for path in out.rglob("*") if path.is_file())


@pytest.mark.usefixtures("without_derived")
def test_a_folder_is_of_one_log_and_one_format(spark: SparkSession, tmp_path: Path) -> None:
    first, second = BrokerLog(tmp_path / "first"), BrokerLog(tmp_path / "second")
    first.append(make_commits(0, 3))
    second.append(make_commits(0, 3, time_ms=1), make_commits(3, 9))
    out = tmp_path / "{out}"
    follow(spark, tmp_path / "first", out)
    files = list_files(out)
    with pytest.raises(DataLoss, match=r"out} has tables of another log than .*second: "):
        follow(spark, tmp_path / "second", out)
    with pytest.raises(
        OptionError, match="out} has tables in parquet, to which json cannot be added"
    ):
        follow(spark, tmp_path / "first", out, file_format="json")
    assert list_files(out) == files
    first.append(make_commits(3, 2))
    follow(spark, tmp_path / "first", out)
    assert list_offsets(spark, out) == list(range(5))


@pytest.mark.usefixtures("without_derived")
def test_a_log_that_is_cut_while_it_is_followed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.tables.writing import TableFolder

    log = BrokerLog(tmp_path / "log")
    log.append(make_commits(0, 3), make_commits(3, 3))
    append = TableFolder.append

    def append_and_cut(self: TableFolder, *arguments: Any) -> None:
        append(self, *arguments)
        log.cut(3)
        log.append(make_commits(3, 3, time_ms=1), make_commits(6, 3))

    monkeypatch.setattr(TableFolder, "append", append_and_cut)
    with pytest.raises(DataLoss, match=r"0\.log, byte \d+: the record at offset 5 is not"):
        follow(spark, tmp_path / "log", tmp_path / "out", max_offsets=6, trigger_s=0.1)
    assert list_offsets(spark, tmp_path / "out") == list(range(6))


# ------------------------------------------------------------------------------------------ law

ASKED_SEEDS = int(os.environ.get("STREAM_SEEDS", "0"))
SEEDS = max(1, ASKED_SEEDS // 20)
"""One log, and of its tables `records` alone, from which one function computes the others for
batches and streams alike; with `STREAM_SEEDS` more logs, and all tables."""
PARTITIONS = (5, 43, 47)
"""Of Kafka's own log: conversions, deletions, many members."""


class Busy:
    """Logs that a broker writes, rolls and compacts between the micro-batches of a stream.

    Of each micro-batch it keeps what the log had of its offsets when it was read.
    """

    def __init__(self, folder: Path, checkpoint: Path, seed: int) -> None:
        self._chance = Random(seed)
        self._checkpoint = checkpoint
        self._waiting: dict[int, Iterator[Batch]] = {}
        self._logs: dict[int, BrokerLog] = {}
        self._read: dict[int, dict[int, dict[int, Batch]]] = {}
        for partition in PARTITIONS:
            self._waiting[partition] = iter(read_partition(partition))
            self._logs[partition] = BrokerLog(folder, partition)
            self.grow(partition, 60)

    def grow(self, partition: int, batches: int) -> None:
        for _, batch in zip(range(batches), self._waiting[partition], strict=False):
            self._logs[partition].append(reencode_batch(batch))

    def change(self) -> None:
        for partition, log in self._logs.items():
            self.grow(partition, self._chance.randint(0, 40))
            if self._chance.random() < 0.7:
                log.roll()
            self.grow(partition, self._chance.randint(0, 10))
            log.clean(self._chance, keep=self._chance.choice((0.0, 0.5)))
            if self._chance.random() < 0.3:
                log.merge(self._chance)

    def note(self, batch: int) -> None:
        """A micro-batch was read: its offsets are in the checkpoint."""
        starts = self._read_offsets(batch - 1) if batch else {}
        ends = self._read_offsets(batch)
        self._read[batch] = {
            partition: _select(log, starts.get(str(partition), 0), ends[str(partition)])
            for partition, log in self._logs.items()
        }

    def _read_offsets(self, batch: int) -> dict[str, int]:
        text = (self._checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8")
        offsets: dict[str, int] = json.loads(text.splitlines()[-1])[TOPIC]
        return offsets

    def write_read(self, folder: Path) -> None:
        """All that was read, as a log."""
        for partition in PARTITIONS:
            whole: defaultdict[int, list[Batch]] = defaultdict(list)
            for batches in self._read.values():
                for base_offset, batch in batches[partition].items():
                    whole[base_offset].append(batch)
            log = BrokerLog(folder, partition)
            for _, parts in sorted(whole.items()):
                records = tuple(record for part in parts for record in part.records)
                log.append(reencode_batch(replace(parts[0], records=records, count=len(records))))


def _select(log: BrokerLog, start: int, end: int) -> dict[int, Batch]:
    found = {}
    for batches in log.segments.values():
        for batch in map(decode_batch, batches):
            records = tuple(record for record in batch.records if start <= record.offset < end)
            if records:
                found[batch.base_offset] = replace(batch, records=records)
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_tables_of_a_stream_are_those_of_a_batch_over_what_was_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    from pipeline.tables.tables_job import RECORDS, TABLES, write_tables
    from pipeline.tables.writing import TableFolder

    names = TABLES if ASKED_SEEDS else (RECORDS,)
    if not ASKED_SEEDS:
        leave_out_derived(monkeypatch)
    log, out, there, batch_out = (tmp_path / name for name in ("log", "out", "there", "batch"))
    busy = Busy(log, out / "_checkpoint", seed)
    append = TableFolder.append
    killed = {2}

    def append_beside_a_broker(self: TableFolder, name: str, rows: Any, batch: int) -> None:
        append(self, name, rows, batch)
        busy.note(batch)
        busy.change()
        if batch in killed:
            killed.remove(batch)
            raise RuntimeError("killed before the checkpoint knows of it")

    with monkeypatch.context() as patch:
        patch.setattr(TableFolder, "append", append_beside_a_broker)
        with pytest.raises(Exception, match="killed"):
            follow(spark, log, out, max_offsets=200)
        # What the broker has done meanwhile is read with what waits.
        follow(spark, log, out, max_offsets=400)
        assert not killed
    busy.write_read(there)
    write_tables(spark, there, str(batch_out))
    for name in names:
        assert read_all(spark, out / name) == read_all(spark, batch_out / name), name


def read_all(spark: SparkSession, table: Path) -> list[str]:
    return sorted(str(row) for row in spark.read.parquet(str(table)).collect())
