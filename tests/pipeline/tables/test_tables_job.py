"""The tables of Kafka's own log beside what the broker showed, and the fold of the log."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from model.ids import LogPartition
from storage.log.fold import PartitionFold
from storage.log_store import LatestEntry
from tests.golden.kafka_log import final_state
from tests.pipeline.logged import SEGMENTS, compute_rows, golden_table, read_group_events
from tests.support.batches import decode_batches
from tests.support.pipeline.blocks import START_MS, make_commits
from tests.support.pipeline.derived import leave_out_derived
from tests.support.pipeline.notebook import run_notebook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.tables.tables_job import TablesSummary

COMMITTED = 410
WAITING = 8
FIRST_MS = -62_135_596_800_000
"""The year 1."""
GREGORIAN_MS = -12_219_292_800_000
"""Where calendars differ that begin in 1582."""


@pytest.fixture
def out(golden_out: Path) -> Path:
    return golden_out


@pytest.fixture
def summary(golden_summary: TablesSummary) -> TablesSummary:
    return golden_summary


def write(spark: SparkSession, path: Path, out: Path, **options: Any) -> TablesSummary:
    from pipeline.tables.tables_job import write_tables

    return write_tables(spark, path, str(out), **options)


def read(spark: SparkSession, out: Path, table: str) -> DataFrame:
    return spark.read.parquet(str(out / table))


def test_the_notebook_runs_on_them(summary: TablesSummary, out: Path) -> None:
    asked = {"GROUP": "o08-consumer-uniform", "AT": "2026-11-20 00:00:00"}
    answers = run_notebook(out, asked)
    assert sum(answers["rebalances_per_day"]) == summary.rows["rebalances"]
    assert sum(answers["causes"].total) == summary.rows["rebalances"]
    assert len(answers["commits_per_member"]) > 10
    assert not answers["slowest"].empty
    owned = answers["ownership"].dropna(subset=["topic"]).iloc[0]
    found = answers["find_owner"](owned.group_id, owned.topic, owned.partition, owned.valid_from)
    assert owned.member_id in [member_id for _, member_id in found]


def test_every_table_is_there_and_whole(summary: TablesSummary, out: Path) -> None:
    from pipeline.tables.tables_job import TABLES

    assert list(summary.rows) == list(TABLES)
    assert all(summary.rows.values())
    assert summary.rows["records"] == golden_table().num_rows
    assert summary.problems == {}
    folders = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    assert folders == {*TABLES, "_tables.json"}
    manifest = json.loads((out / "_tables.json").read_text(encoding="utf-8"))
    assert manifest["tables"] == summary.rows


def test_history_is_that_of_one_pass_without_spark(summary: TablesSummary) -> None:
    rows = compute_rows(read_group_events(golden_table()))
    assert {name: len(found) for name, found in rows.items()} == {
        name: summary.rows[name] for name in rows
    }


def find_waiting(commits: DataFrame) -> DataFrame:
    """Commits of transactions that are open in the end, and that no deletion has dropped since."""
    from pyspark.sql import functions as sql

    key = ["log_partition", "group_id", "topic", "partition"]
    deletions = commits.where("is_tombstone").groupBy(*key).agg(sql.max("offset").alias("deleted"))
    return (
        commits.where("transaction = 'open'")
        .join(deletions, key, "left")
        .where("deleted is null or deleted < offset")
        .drop("deleted")
    )


def test_offsets_are_those_of_the_broker_after_a_restart(
    spark: SparkSession, summary: TablesSummary, out: Path
) -> None:
    from pipeline.tables.committed_offsets import compute_latest_offsets

    commits = read(spark, out, "offset_commits")
    latest = compute_latest_offsets(commits).collect()
    waiting = find_waiting(commits).collect()
    assert (len(latest), len(waiting)) == (COMMITTED, WAITING)
    unstable = {(row["group_id"], row["topic"], row["partition"]) for row in waiting}
    ours: dict[str, dict[tuple[str, int], Any]] = defaultdict(dict)
    for row in latest:
        place = row["topic"], row["partition"]
        leader_epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        ours[row["group_id"]][place] = row["committed_offset"], leader_epoch, row["metadata"]
    compared = 0
    for group in final_state()["groups"]:
        group_id = group["groupId"]
        kafkas = read_offsets(group["offsetFetch.v9"])
        found = ours.pop(group_id, {})
        # Offsets of a topic that is there again under another id are not shown any more.
        assert {place: found[place] for place in kafkas} == kafkas, group_id
        for place, (_, _, _, error) in read_stable(group).items():
            assert (error == 88) == ((group_id, *place) in unstable)
        compared += len(kafkas)
    assert compared > 100
    assert not ours


def read_offsets(answer: dict[str, Any]) -> dict[tuple[str, int], tuple[int, int, str]]:
    return {
        (topic["name"], found["partitionIndex"]): (
            found["committedOffset"],
            found["committedLeaderEpoch"],
            found["metadata"],
        )
        for topic in answer["topics"]
        for found in topic["partitions"]
        if found["committedOffset"] != -1 or found["metadata"]
    }


def read_stable(group: dict[str, Any]) -> dict[tuple[str, int], tuple[int, int, str, int]]:
    return {
        (topic["name"], found["partitionIndex"]): (
            found["committedOffset"],
            found["committedLeaderEpoch"],
            found["metadata"],
            found["errorCode"],
        )
        for topic in group["offsetFetch.v9.requireStable"]["topics"]
        for found in topic["partitions"]
    }


def test_offsets_are_those_of_the_servers_own_fold(
    spark: SparkSession, summary: TablesSummary, out: Path
) -> None:
    from pipeline.tables.committed_offsets import compute_latest_offsets

    latest: set[tuple[int, int]] = set()
    pending: set[tuple[int, int, int]] = set()
    for file in sorted(SEGMENTS.glob("*/*.log")):
        partition = LogPartition(int(file.parent.name.rpartition("-")[2]))
        fold = PartitionFold()
        for batch in decode_batches(file.read_bytes()):
            fold.apply_batch(batch)
        entries = [entry for entry in fold.latest.values() if is_offset(entry)]
        latest.update((partition, entry.offset) for entry in entries)
        for producer_id, waiting in fold.pending.items():
            pending.update((partition, producer_id, entry.offset) for entry in waiting.values())
    commits = read(spark, out, "offset_commits")
    ours = compute_latest_offsets(commits).select("log_partition", "offset").collect()
    assert {tuple(row) for row in ours} == latest
    waiting_rows = find_waiting(commits)
    found = waiting_rows.select("log_partition", "producer_id", "offset").collect()
    assert {tuple(row) for row in found} == pending


def is_offset(entry: LatestEntry) -> bool:
    return entry.key[:2] == b"\0\1"


def test_groups_are_those_of_the_broker_after_a_restart(
    spark: SparkSession, summary: TablesSummary, out: Path
) -> None:
    """Types, states, epochs and generations; nobody is a member any more."""
    epochs = read_last(spark, out, "group_epochs", "group_epoch")
    generations = read_last(spark, out, "classic_generations", "generation")
    members = read(spark, out, "member_epochs").collect()
    standing = {}
    for row in sorted(members, key=lambda row: row["offset"]):
        standing[row["group_id"], row["member_id"]] = row["member_epoch"]
    live = {group_id for (group_id, _), epoch in standing.items() if epoch is not None}
    compared = 0
    for group in final_state()["groups"]:
        group_id, listed = group["groupId"], group["listed"]
        if listed["type"] == "consumer":
            described = group["consumerGroupDescribe.v1"]
            assert (epochs[group_id], described["groupState"]) == (described["groupEpoch"], "Empty")
            assert group_id not in live
        elif listed["type"] == "classic":
            row = generations.get(group_id)
            # A simple group has nothing but offsets.
            assert (row is None) == (listed["protocolType"] == "")
            assert epochs.get(group_id) is None
        compared += 1
    assert compared == len(final_state()["groups"])
    open_ended = read(spark, out, "partition_ownership").where("valid_to is null")
    assert open_ended.count() == 0


def read_last(spark: SparkSession, out: Path, table: str, column: str) -> dict[str, Any]:
    rows = read(spark, out, table).select("group_id", "offset", column).collect()
    return {row["group_id"]: row[column] for row in sorted(rows, key=lambda row: row["offset"])}


def test_nobody_owned_what_another_did(
    spark: SparkSession, summary: TablesSummary, out: Path
) -> None:
    from pipeline.audit.audit_job import find_overlaps

    ownership = read(spark, out, "partition_ownership")
    assert find_overlaps(ownership).count() == 0
    unnamed = ownership.where("topic is null").select("topic_id").distinct().count()
    assert unnamed < ownership.select("topic_id").distinct().count()


def test_running_again_and_after_a_crash_gives_the_same_rows(
    spark: SparkSession, summary: TablesSummary, out: Path, tmp_path: Path
) -> None:
    from pipeline.tables.tables_job import TABLES

    again = tmp_path / "again"
    shutil.copytree(out, again)
    # As if killed while one table was written and another one swapped.
    (again / "_writing-records").mkdir()
    (again / "rebalances").rename(again / "_replaced-rebalances")
    assert write(spark, SEGMENTS, again) == summary
    for name in TABLES:
        assert read_all(spark, again, name) == read_all(spark, out, name), name
    assert not list(again.glob("_writing*")) + list(again.glob("_replaced*"))


def test_records_that_tasks_write_are_those_that_spark_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all days that Kafka's times can have, and of bytes that cannot be read."""
    from pyspark.sql.functions import unix_micros

    from pipeline.tables import tables_job as job

    leave_out_derived(monkeypatch)
    log, ours, sparks = tmp_path / "log", tmp_path / "ours", tmp_path / "sparks"
    segment = log / "__consumer_offsets-3" / f"{0:020}.log"
    segment.parent.mkdir(parents=True)
    times = [FIRST_MS, GREGORIAN_MS - 1, -1, START_MS, START_MS + 1, 1 << 62]
    batches = [make_commits(at, 1, time_ms=time_ms) for at, time_ms in enumerate(times)]
    segment.write_bytes(b"".join(batches) + batches[0][:-1])
    (ours / "records").mkdir(parents=True)
    summary = write(spark, log, ours)
    with monkeypatch.context() as patch:
        patch.setattr(job, "CODECS", {})
        assert write(spark, log, sparks) == summary
    assert summary.rows["records"] == len(times) + 1
    ours_read, sparks_read = read(spark, ours, "records"), read(spark, sparks, "records")
    assert ours_read.schema == sparks_read.schema
    # Python has no times of the year 1 in every time zone.
    names = ["ts", "commit_ts", "expire_ts"]
    found = [
        rows.withColumns({name: unix_micros(name) for name in names}).orderBy("offset").collect()
        for rows in (ours_read, sparks_read)
    ]
    assert found[0] == found[1]
    assert [row["ts"] for row in found[0]] == [time_ms * 1000 for time_ms in times[:-1]] + [
        None
    ] * 2
    assert list_days(ours) == list_days(sparks)


def list_days(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "records").iterdir() if path.is_dir())


def test_records_are_as_they_were_until_all_are_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.tables import tables_job as job
    from pipeline.tables.writing import DayFile, TableFolder

    leave_out_derived(monkeypatch)
    segment, out = tmp_path / "log" / "__consumer_offsets-3" / f"{0:020}.log", tmp_path / "out"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(make_commits(0, 3))
    summary = write(spark, tmp_path / "log", out)
    before = read_all(spark, out, "records")

    def die(*arguments: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(TableFolder, "_swap", die)
        with pytest.raises(RuntimeError, match="killed"):
            write(spark, tmp_path / "log", out)
    assert read_all(spark, out, "records") == before
    write_files = job.write_record_files

    def write_twice(*arguments: Any) -> list[DayFile]:
        found = write_files(*arguments)
        for day_file in found:
            shutil.copy(day_file.file, day_file.file.with_name("part-of-another-try.parquet"))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(job, "write_record_files", write_twice)
        assert write(spark, tmp_path / "log", out) == summary
    assert read_all(spark, out, "records") == before
    assert not list(out.glob("_writing*")) + list(out.glob("_replaced*"))


def test_a_stream_that_is_killed_anywhere_ends_with_the_tables_of_a_batch(
    spark: SparkSession,
    summary: TablesSummary,
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pipeline.tables.tables_job import TABLES
    from pipeline.tables.tables_stream import StreamOptions, stream_tables
    from pipeline.tables.writing import TableFolder

    log, ours = tmp_path / "log", tmp_path / "out"
    shutil.copytree(SEGMENTS, log)
    withheld = {}
    for segment in sorted(log.glob("*/*.log"))[::2]:
        withheld[segment] = segment.read_bytes()
        segment.write_bytes(withheld[segment][: len(withheld[segment]) // 2])
    options = StreamOptions(max_offsets=4_000)
    append, move = TableFolder.append, TableFolder._move_files

    def die_after(self: TableFolder, *arguments: Any) -> None:
        append(self, *arguments)
        raise RuntimeError("killed before the checkpoint knows of it")

    def die_between(self: TableFolder, *arguments: Any) -> None:
        move(self, *arguments)
        raise RuntimeError("killed between two files")

    for name, dying in (("append", die_after), ("_move_files", die_between)):
        with monkeypatch.context() as patch:
            patch.setattr(TableFolder, name, dying)
            with pytest.raises(Exception, match="killed"):
                stream_tables(spark, str(log), str(ours), options)
        assert not (ours / "_tables.json").exists()
    for segment, whole in withheld.items():
        segment.write_bytes(whole)
    assert stream_tables(spark, str(log), str(ours), options) == summary
    assert json.loads((ours / "_tables.json").read_text(encoding="utf-8"))["problems"] == {}
    for name in TABLES:
        assert read_all(spark, ours, name) == read_all(spark, out, name), name
    # Nothing has come since, and nothing is read again.
    files = sorted((ours / "records").glob("*/*"))
    assert stream_tables(spark, str(log), str(ours), options) == summary
    assert sorted((ours / "records").glob("*/*")) == files


def test_a_log_without_records_has_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    from pipeline.tables.tables_job import TABLES

    folder = tmp_path / "log" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(b"")
    summary = write(spark, folder, tmp_path / "out")
    assert summary.rows == dict.fromkeys(TABLES, 0)
    assert (tmp_path / "out" / "_tables.json").exists()
    # With the columns of each, or its readers would fail.
    answers = run_notebook(tmp_path / "out", {})
    assert answers["causes"].empty
    assert answers["still_classic"].empty


def read_all(spark: SparkSession, out: Path, table: str) -> list[str]:
    return sorted(str(row) for row in read(spark, out, table).collect())
