"""A stream whose log is compacted, truncated or replaced during the query or between runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from model.ids import LogPartition
from pipeline.schema import DATA_LOSS, TOPIC
from pipeline.source.errors import DataLoss, LogReplaced, NotALog, SourceError
from pipeline.source.logs.segment_log import SegmentLog
from storage.rocks.rocks_opening import open_store
from tests.support.pipeline.blocks import make_commits, make_log
from tests.support.pipeline.broker_log import BrokerLog
from tests.support.storage.appends import append, mark_all, offset_key, offset_value
from tests.support.trimming import trim_once
from tests.unit.pipeline.source.streams import Row, Stream


def offsets(rows: list[Row]) -> list[int]:
    return [row["offset"] for row in rows if row["problem"] is None]


def losses(rows: list[Row]) -> list[tuple[int, int]]:
    found = [(row["partition"], row["offset"]) for row in rows if row["problem"] == DATA_LOSS]
    assert len(found) == sum(row["problem"] is not None for row in rows)
    return found


def read(stream: Stream, tasks: Any) -> list[Row]:
    return [row for task in tasks for rows in stream.reader.read(task) for row in rows.to_pylist()]


@pytest.fixture
def log(tmp_path: Path) -> BrokerLog:
    """Offsets 0 to 29, three in a batch, of seven keys."""
    log = BrokerLog(tmp_path / "log")
    log.append(*make_log(10))
    return log


# ------------------------------------------------------------------------------------ compacted


def test_a_segment_that_is_compacted_behind_a_running_stream(log: BrokerLog) -> None:
    stream = Stream(log.folder)
    assert offsets(stream.step(15)) == list(range(15))
    log.roll()
    log.append(make_commits(30, 3))
    log.clean(Random(0))
    # The last commit of each of the seven keys remains, in a much shorter file.
    assert offsets(stream.step()) == list(range(23, 33))


def count_looks(stream: Stream, most: int) -> tuple[int, list[int]]:
    """The number of micro-batches up to the end, and their offsets."""
    found: list[int] = []
    for count in range(100):
        before = stream.position
        found += offsets(stream.step(most))
        if stream.position == before:
            return count, found
    raise AssertionError("it does not come to the end")


def test_no_micro_batch_is_of_what_compaction_has_taken_alone(log: BrokerLog) -> None:
    """Bug: a limit counted the gap, so a billion offsets of an old log took a million batches."""
    log.roll()
    log.clean(Random(0))
    log.append(make_commits(5_000_000, 3))
    assert count_looks(Stream(log.folder), 2) == (7, [*range(23, 30), *range(5_000_000, 5_000_003)])


def test_nor_of_what_a_store_has_trimmed(tmp_path: Path) -> None:
    write(tmp_path, 1, 1)
    for _ in range(10):
        write(tmp_path, 3, 2)
    store = open_store(tmp_path, partitions=1)
    assert trim_once(store, LogPartition(0), 30)
    store.close()
    stream = Stream(tmp_path)
    assert count_looks(stream, 1) == (4, [27, 28, 29, 30])
    stream.reader.stop()


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "restarted"])
def test_what_was_read_may_be_compacted_away(log: BrokerLog, is_running: bool) -> None:
    stream = Stream(log.folder)
    stream.step()
    log.append(*make_log(20)[10:])
    log.roll()
    log.clean(Random(0))
    if not is_running:
        stream.start()
    assert offsets(stream.step()) == list(range(53, 60))
    assert stream.step() == []


def test_a_file_that_is_replaced_between_plan_and_task(log: BrokerLog) -> None:
    stream = Stream(log.folder, minPartitions="3")
    end = stream.plan(None)
    tasks = stream.reader.partitions(stream.offset, end)
    log.roll()
    log.clean(Random(0))
    with pytest.raises(
        LogReplaced, match=r"log, byte \d+: the file was replaced while it was read"
    ):
        read(stream, tasks)
    # A new plan reads it, as for a restarted query.
    assert offsets(stream.read(end)) == list(range(23, 30))


def test_a_file_that_is_merged_away_between_plan_and_task(log: BrokerLog) -> None:
    for base in (30, 33):
        log.roll()
        log.append(make_commits(base, 3))
    stream = Stream(log.folder)
    stream.step(31)
    end = stream.plan(None)
    tasks = stream.reader.partitions(stream.offset, end)
    log.merge(Random(0))
    with pytest.raises(LogReplaced, match=rf"{30:020}\.log: the file no longer exists"):
        read(stream, tasks)
    stream.start()
    assert offsets(stream.read(end)) == list(range(31, 36))


@pytest.mark.parametrize("name", [f"{0:020}.log.swap", f"{3:020}.index", f"{3:020}.timeindex"])
def test_a_folder_in_the_middle_of_a_cleaning_is_looked_at_again(log: BrokerLog, name: str) -> None:
    passing = log.folder / name
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            passing.unlink()

    passing.touch()
    found = SegmentLog(log.folder, pause)
    assert len(pauses) == 3
    pauses.clear()
    passing.touch()
    found.refresh()
    assert len(pauses) == 3
    assert found.end(0) == 30


@pytest.mark.parametrize(
    ("name", "message"),
    [(f"{0:020}.log.swap", "was cleaning this log"), (f"{3:020}.index", r"3\.log is missing")],
)
def test_what_stays_of_a_cleaning_is_an_error_after_a_second(
    log: BrokerLog, name: str, message: str
) -> None:
    pauses: list[float] = []
    found = SegmentLog(log.folder, pauses.append)
    (log.folder / name).touch()
    with pytest.raises(SourceError, match=message):
        found.refresh()
    assert sum(pauses) == pytest.approx(1)
    # Report at once what waiting cannot repair.
    pauses.clear()
    (log.folder / name).rename(log.folder / "x.log")
    with pytest.raises(NotALog):
        found.refresh()
    assert pauses == []


def test_a_file_that_grows_between_plan_and_task_is_the_same(log: BrokerLog) -> None:
    stream = Stream(log.folder)
    end = stream.plan(None)
    file = next(log.folder.glob("*.log"))
    # A broker that preallocates has zeros there, and overwrites them.
    file.write_bytes(file.read_bytes() + bytes(100))
    tasks = stream.reader.partitions(stream.offset, end)
    log.append(make_commits(30, 3))
    os.truncate(file, file.stat().st_size - 1)
    log.mend()
    assert offsets(read(stream, tasks)) == list(range(30))


def test_what_is_known_of_files_does_not_grow_with_time(log: BrokerLog) -> None:
    found = SegmentLog(log.folder)
    for number in range(200):
        log.append(make_commits(30 + number, 1))
        found.end(0)
    assert len(found._places) <= 2
    for _ in range(5):
        log.roll()
        log.append(make_commits(log.end, 1))
        found.refresh()
        found.end(0)
    for base in list(log.segments)[:-1]:
        (log.folder / f"{base:020}.log").unlink()
    found.refresh()
    assert len(found._places) == 1


# -------------------------------------------------------------------------------- cut, replaced


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "restarted"])
def test_a_log_that_is_cut(log: BrokerLog, is_running: bool) -> None:
    stream, lenient = Stream(log.folder), Stream(log.folder, failOnDataLoss="false")
    for query in (stream, lenient):
        query.step()
    log.cut(20)
    if not is_running:
        stream.start()
        lenient.start()
    with pytest.raises(DataLoss, match="partition 0 ends at offset 18, before 30"):
        stream.step()
    rows = lenient.step()
    assert (losses(rows), offsets(rows)) == ([(0, 18)], [])
    assert lenient.step() == []
    log.append(make_commits(18, 2))
    assert offsets(lenient.step()) == [18, 19]


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "restarted"])
def test_a_log_that_is_cut_and_written_on(log: BrokerLog, is_running: bool) -> None:
    stream, lenient = Stream(log.folder), Stream(log.folder, failOnDataLoss="false")
    for query in (stream, lenient):
        query.step()
    log.cut(20)
    log.append(make_commits(18, 5), make_commits(23, 9))
    if not is_running:
        stream.start()
        lenient.start()
    with pytest.raises(
        DataLoss,
        match=r"partition 0, before offset 30: .*0\.log, byte \d+: the batch has offsets 23",
    ):
        stream.step()
    rows = lenient.step()
    assert (losses(rows), offsets(rows)) == ([(0, 30)], [30, 31])
    assert lenient.step() == []


def test_batches_at_the_same_offsets_with_other_records(log: BrokerLog) -> None:
    stream = Stream(log.folder)
    stream.step()
    log.cut(20)
    log.append(*make_log(20, step_ms=999)[6:])
    with pytest.raises(DataLoss, match="the record at offset 29 is not the one that was read"):
        stream.step()


def test_a_log_that_is_cut_after_a_micro_batch_was_planned(log: BrokerLog) -> None:
    """A restart reads what its checkpoint has planned, and fails without the rest of it."""
    stream = Stream(log.folder)
    end = stream.plan(None)
    log.cut(20)
    stream.start()
    with pytest.raises(DataLoss, match="partition 0 ends at offset 18, before 30"):
        stream.read(end)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{TOPIC}-0/partition.metadata", "version: 0\ntopic_id: {}\n"),
        ("meta.properties", "version=1\ncluster.id={}\nnode.id=1\n"),
        ("muster-side.json", '{{\n "version": 1,\n "cluster_id": "{}",\n "records": []\n}}\n'),
    ],
    ids=["topic", "cluster", "export"],
)
def test_a_log_of_another_name_is_another(tmp_path: Path, name: str, text: str) -> None:
    """Even if nothing is left at the last record that was read."""
    log = BrokerLog(tmp_path)
    log.append(*make_log(10))
    (tmp_path / name).write_text(text.format("first"), encoding="utf-8")
    stream = Stream(tmp_path)
    stream.step()
    log.append(*make_log(20)[12:])
    stream.start()
    (tmp_path / name).write_text(text.format("second"), encoding="utf-8")
    with pytest.raises(DataLoss, match=r"the log is \w+:second, not \w+:first"):
        stream.step()
    (tmp_path / name).unlink()
    assert offsets(stream.step()) == list(range(36, 60))


def test_a_partition_that_is_gone(tmp_path: Path) -> None:
    logs = [BrokerLog(tmp_path, partition) for partition in range(2)]
    for log in logs:
        log.append(*make_log(2))
    lenient = Stream(tmp_path, failOnDataLoss="false")
    lenient.step()
    shutil.rmtree(logs[1].folder)
    assert losses(lenient.step()) == [(1, 0)]
    assert lenient.step() == []


def write(folder: Path, count: int, value: int) -> None:
    """A new store, or more records in one."""
    store = open_store(folder, partitions=1)
    for number in range(count):
        append(store, {0: [(offset_key("g", number), offset_value(value))]})
    mark_all(store)
    store.close()


@pytest.mark.parametrize("is_known", [True, False], ids=["with", "without"])
def test_a_store_that_is_replaced_by_a_longer_one(tmp_path: Path, is_known: bool) -> None:
    """With a cluster id in the checkpoint, and without: a restored store has the same id."""
    folder = tmp_path / "store"
    write(folder, 3, 1)
    stream, lenient = Stream(folder), Stream(folder, failOnDataLoss="false")
    for query in (stream, lenient):
        assert offsets(query.step()) == [0, 1, 2]
        query.start()
        if not is_known:
            del query.offset["log"]
    write(folder, 2, 1)
    shutil.rmtree(folder)
    write(folder, 5, 2)
    with pytest.raises(
        DataLoss, match="the log is cluster:" if is_known else "not the one that was read"
    ):
        stream.step()
    rows = lenient.step()
    assert (losses(rows), offsets(rows)) == ([(0, 3)], [3, 4])
    assert lenient.step() == []
    stream.reader.stop()
    lenient.reader.stop()
