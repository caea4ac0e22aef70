"""A live `__consumer_offsets` through Spark's own Kafka source, as far as no cluster is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from cli.errors import ExitCode
from tests.pipeline.logged import SEGMENTS
from tests.support.cli.invoking import invoke_app
from tests.support.pipeline.blocks import make_commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_of_the_kafka_source_are_records(spark: SparkSession) -> None:
    """``decode=raw`` has its schema; what was written at once is told by the time."""
    from pipeline.session import read_records
    from pipeline.tables.kafka_topic import decode_kafka_frame

    segment = str(SEGMENTS / "__consumer_offsets-5")
    raw = spark.read.format("grouplog").load(segment)
    found = decode_kafka_frame(raw).select("offset", "base_offset", "group_id", "value").collect()
    wanted = read_records(spark, segment, columns=["offset", "base_offset", "group_id", "value"])
    known = {row["offset"]: row for row in wanted.collect()}
    assert [row["offset"] for row in sorted(found)] == sorted(known)
    for row in found:
        kafkas = known[row["offset"]]
        assert (row["group_id"], row["value"]) == (kafkas["group_id"], kafkas["value"])
        assert row["base_offset"] <= kafkas["base_offset"]


def test_writes_of_a_clock_that_went_back_are_not_those_of_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pipeline.tables.kafka_topic import decode_kafka_frame

    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    times = (1, 1, 2, 1, 1)
    batches = [make_commits(offset, 1, time_ms=time) for offset, time in enumerate(times)]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    rows = decode_kafka_frame(spark.read.format("grouplog").load(str(folder))).collect()
    assert sorted((row["offset"], row["base_offset"]) for row in rows) == [
        *((0, 0), (1, 0)),
        (2, 2),
        *((3, 3), (4, 3)),
    ]


def test_without_the_connector_a_line_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke_app("pipeline", "tables", "--path", "kafka://127.0.0.1:1", "--out", out)
    assert (result.exit_code, len(result.error.splitlines())) == (ExitCode.PRECONDITION, 1)
    assert f"spark-sql-kafka-0-10_2.13:{spark.version}" in result.error
    assert not out.exists()


def test_internal_topics_are_read_and_one_without_records_is_no_log() -> None:
    """Spark's Kafka source leaves internal topics out, silently, unless a consumer is asked."""
    from pipeline.source.errors import NotALog
    from pipeline.tables.kafka_topic import read_kafka_records

    spark = MagicMock()
    reader = spark.read.format.return_value
    reader.option.return_value = reader
    reader.load.return_value.rdd.getNumPartitions.return_value = 0
    with pytest.raises(NotALog, match="__consumer_offsets"):
        read_kafka_records(spark, "kafka://127.0.0.1:1")
    name = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set.assert_called_once_with(name, "true")
