"""Lag by windows, in messages and in seconds, and what it says of a group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.errors import CommandError
from cli.pipeline.cluster_end_offsets import compute_sample_times, find_end_offsets
from pipeline.tables.end_offsets_file import EndOffset, EndOffsetsError, read_end_offsets
from tests.pipeline.logged import SEGMENTS
from tests.server import MusterServer
from tests.support.cli.invoking import invoke_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


COMMITS = [
    # group, partition, committed offset, minute: the topic grows by 100 a minute.
    ("keeps up", 0, 500, 5.0),
    ("keeps up", 0, 1_500, 15.0),
    ("falls behind", 1, 400, 5.0),
    ("falls behind", 1, 700, 15.0),
    ("stalls", 2, 300, 5.0),
    ("stalls", 2, 300, 15.0),
    ("stops", 3, 300, 5.0),
    ("goes back", 4, 900, 9.0),
    ("goes back", 4, 100, 15.0),
    ("is deleted", 4, 100, 5.0),
    ("is deleted", 4, None, 15.0),
]
OVERTAKEN = [
    # And the offset of the record in the log, and where it became effective.
    ("a late marker", 0, 500, 5.0, 101, 101),
    ("a late marker", 0, 100, 15.0, 100, 105),
    ("a marker in the window", 0, 500, 5.0, 200, 200),
    ("a marker in the window", 0, 600, 12.0, 202, 202),
    ("a marker in the window", 0, 100, 15.0, 199, 203),
    ("a clock that goes back", 0, 100, 15.0, 300, 300),
    ("a clock that goes back", 0, 900, 5.0, 301, 301),
    ("deleted while it waits", 0, None, 5.0, 401, 401),
    ("deleted while it waits", 0, 100, 15.0, 400, 405),
]
"""What stands is the record with the highest offset in the log, of those that are effective."""

ENDS = [
    EndOffset("t", partition, minute * 100, at(minute))
    for partition in range(5)
    for minute in (0, 9, 19)
]


def test_lag_of_each_window(spark: SparkSession) -> None:
    from pyspark.sql import functions as sql

    from pipeline.tables.lag import compute_group_lag, make_end_offsets

    numbered = [(*commit, number, number) for number, commit in enumerate(COMMITS)]
    rows = [
        (0, group, "t", partition, offset, place, effective, at(minute), offset is None)
        for group, partition, offset, minute, place, effective in [*numbered, *OVERTAKEN]
    ]
    commits = spark.createDataFrame(
        rows,
        "log_partition int, group_id string, topic string, partition int, committed_offset long, "
        "offset long, effective_offset long, effective_ts timestamp, is_tombstone boolean",
    )
    lag = compute_group_lag(commits, make_end_offsets(spark, ENDS))
    found = {
        (row["group_id"], row["minute"]): row
        for row in lag.withColumn("minute", sql.minute("window_start")).collect()
    }
    shown = {
        place: (row["lag"], round(row["lag_seconds"]), row["status"])
        for place, row in found.items()
    }
    # The last end offset of the first window is 900, after 9 minutes, of the second 1,900.
    assert shown == {
        ("keeps up", 0): (400, 240, "OK"),
        ("keeps up", 10): (400, 240, "OK"),
        ("falls behind", 0): (500, 300, "OK"),
        ("falls behind", 10): (1_200, 720, "FALLING_BEHIND"),
        ("stalls", 0): (600, 360, "OK"),
        ("stalls", 10): (1_600, 960, "STALLED"),
        ("stops", 0): (600, 360, "OK"),
        ("stops", 10): (1_600, 960, "STOPPED"),
        ("goes back", 0): (0, 0, "OK"),
        ("goes back", 10): (1_800, 1_080, "REWOUND"),
        ("is deleted", 0): (800, 480, "OK"),
        ("a late marker", 0): (400, 240, "OK"),
        ("a late marker", 10): (1_400, 840, "STOPPED"),
        ("a marker in the window", 0): (400, 240, "OK"),
        ("a marker in the window", 10): (1_300, 780, "FALLING_BEHIND"),
        ("a clock that goes back", 0): (0, 0, "OK"),
        ("a clock that goes back", 10): (1_000, 600, "STOPPED"),
    }
    assert found["stops", 10]["commit_rate"] == 0
    assert found["stops", 0]["commit_rate"] == pytest.approx(1 / 600)
    late = [EndOffset("t", 3, 1_900, at(19)), EndOffset("t", 3, 2_000, at(20))]
    (before,) = [
        row
        for row in compute_group_lag(commits, make_end_offsets(spark, late)).collect()
        if row["group_id"] == "stops" and row["window_start"].minute == 10
    ]
    # When the topic ended at 300 was before the first end offset that is known.
    assert (before["lag"], before["lag_seconds"]) == (1_600, None)
    unknown = compute_group_lag(commits, make_end_offsets(spark, [])).collect()
    assert {(row["lag"], row["lag_seconds"], row["status"]) for row in unknown} == {
        (None, None, "UNKNOWN"),
        (None, None, "REWOUND"),
    }


def test_end_offsets_are_read_from_lines_or_an_object(tmp_path: Path) -> None:
    file = tmp_path / "ends"
    file.write_text(
        '{"topic": "t", "partition": 0, "end_offset": 12, "ts": "2026-01-01T00:00:00Z"}\n'
        '{"topic": "t", "partition": 1, "end_offset": 13, "ts": 1767225600000}\n'
        '{"topic": "u", "partition": 0, "end_offset": 14}\n',
        encoding="utf-8",
    )
    assert read_end_offsets(file, at(1)) == [
        EndOffset("t", 0, 12, START),
        EndOffset("t", 1, 13, START),
        EndOffset("u", 0, 14, at(1)),
    ]
    file.write_text('{"t": {"0": 12, "1": 13}}', encoding="utf-8")
    assert read_end_offsets(file, START) == [
        EndOffset("t", 0, 12, START),
        EndOffset("t", 1, 13, START),
    ]


@pytest.mark.parametrize(
    "text", ["[]", "1", "{}\nx", '{"t": 1}', '{"topic": "t"}', '{"t": {"x": 1}}']
)
def test_what_is_no_end_offsets_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ends"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(EndOffsetsError, match="expected"):
        read_end_offsets(file, START)
    with pytest.raises(EndOffsetsError, match="cannot be read"):
        read_end_offsets(tmp_path / "nothing", START)


def test_windows_end_a_moment_before_the_next() -> None:
    times = compute_sample_times(at(25), 0.5)
    assert times == [at(minute) - timedelta(milliseconds=1) for minute in (0, 10, 20)]
    assert compute_sample_times(at(25), 0) == []


def test_a_live_cluster_tells_where_topics_end_and_ended(tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    now = datetime.now(UTC).replace(microsecond=0)
    with MusterServer(tmp_path / "data", topics={"t": 2}) as server:
        producer = kafka.Producer({"bootstrap.servers": server.kafka, "log_level": 0})
        for minutes in (50, 30, 29, 1):
            ms = round((now - timedelta(minutes=minutes)).timestamp() * 1000)
            producer.produce("t", b"x", partition=0, timestamp=ms)
        assert producer.flush(30) == 0
        found = find_end_offsets(server.kafka, None, 30, 1, now)
        with pytest.raises(CommandError):
            find_end_offsets("127.0.0.1:1", None, 1, 1, now)
    assert {end.time for end in found} == {now, *compute_sample_times(now, 1)}
    ends = {(end.partition, now - end.time): end.end_offset for end in found}
    for (partition, age), end in ends.items():
        # Messages that were there: those older than the sample.
        there = sum(timedelta(minutes=minutes) > age for minutes in (50, 30, 29, 1))
        assert end == (there if partition == 0 else 0), age


def test_an_unknown_cluster_is_one_line_and_no_table_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = invoke_app(
        *("pipeline", "tables", "--path", SEGMENTS, "--out", tmp_path / "out"),
        *("--bootstrap-server", "127.0.0.1:1", "--timeout", "1"),
    )
    assert result.exit_code != 0
    assert len(result.error.splitlines()) == 1
    assert not (tmp_path / "out").exists()
