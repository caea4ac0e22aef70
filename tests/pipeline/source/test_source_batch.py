"""``format("grouplog")`` in batch queries; what needs no Spark is in ``test_log_reader``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.schema import TOPIC
from pipeline.source.errors import NotALog
from tests.pipeline.tables.golden_rows import compute_golden_row, parse_json
from tests.support.pipeline.blocks import START_MS, make_commits, make_log
from tests.support.storage.golden import GOLDEN, golden_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEGMENTS = GOLDEN / "segments"
HEADERS = (("a", b"1"), ("b", b""))


def read_raw(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("grouplog").options(**options).load(str(path))


def test_records_of_a_broker_are_what_kafka_says(spark: SparkSession) -> None:
    from pipeline.session import read_records

    wanted = {(line["partition"], line["offset"]): line for line in golden_lines()}
    rows = read_records(spark, SEGMENTS).collect()
    assert len(rows) == len(wanted) == 6144
    for found in rows:
        row = parse_json(found.asDict())
        line = compute_golden_row(wanted.pop((row["partition"], row["offset"])))
        assert {name: in_utc(row[name]) for name in line} == {
            name: in_utc(value) for name, value in line.items()
        }


def in_utc(value: Any) -> Any:
    """PySpark gives times as the machine's clock would show them."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def test_rows_are_those_of_the_kafka_source(spark: SparkSession) -> None:
    frame = read_raw(spark, SEGMENTS)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    wanted = {
        (line["partition"], line["offset"], line["key"], line["value"])
        for line in golden_lines()
        if not line["isControl"]
    }
    rows = frame.collect()
    assert len(rows) == len(wanted)
    assert {
        (row.partition, row.offset, row.key.hex(), None if row.value is None else row.value.hex())
        for row in rows
    } == wanted
    assert {(row.topic, row.timestampType) for row in rows} == {(TOPIC, 0)}


def test_headers_are_there_when_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(make_commits(0, 2) + make_headed(2) + make_commits(3, 1))
    rows = read_raw(spark, path, includeHeaders="true").orderBy("offset").collect()
    assert [row.headers is None for row in rows] == [True, True, False, True]
    assert tuple((each.key, bytes(each.value)) for each in rows[2].headers) == HEADERS


def make_headed(offset: int) -> bytes:
    from storage.codec.batch_encoding import select_records
    from storage.codec.batches import decode_batch

    batch = decode_batch(make_commits(offset, 1))
    records = [record._replace(headers=HEADERS) for record in batch.records]
    return select_records(batch, records, is_transactional=False)


def test_conditions_and_columns_are_answered_by_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pipeline.session import read_records

    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(make_log(10)))
    names = ["offset", "partition", "timestamp", "topic"]
    frame = read_records(spark, path, columns=names).where(
        "partition = 0 and offset >= 9 and timestamp < timestamp '2026-11-18 11:06:45Z' "
        "and topic = 't'"
    )
    assert frame.columns == names
    plan = frame._jdf.queryExecution().executedPlan().toString()
    (filters,) = [line for line in plan.splitlines() if "Filter (" in line]
    assert "topic" in filters
    # That a timestamp is there is asked of Spark, for what is no time has none.
    assert "offset#" not in filters
    assert "partition#" not in filters
    assert "timestamp#" not in filters.replace("isnotnull(timestamp#", "")
    assert [row.offset for row in frame.orderBy("offset").collect()] == list(range(9, 15))


def test_what_has_no_time_is_of_no_time(spark: SparkSession, tmp_path: Path) -> None:
    from pipeline.session import read_records

    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(make_log(2)) + b"damage")
    frame = read_records(spark, path, columns=["offset", "timestamp"])
    assert frame.where("timestamp is null").count() == 1
    for operator in ("=", "<=>"):
        first = frame.where(f"timestamp {operator} timestamp_millis({START_MS})")
        assert sorted(row.offset for row in first.collect()) == [0, 1, 2]


def test_what_is_wrong_is_said_before_a_query_starts(spark: SparkSession, tmp_path: Path) -> None:
    from pipeline.session import read_records

    with pytest.raises(NotALog):
        read_records(spark, tmp_path)
    with pytest.raises(Exception, match="holds no segments"):
        read_raw(spark, tmp_path).collect()
