"""The records of a log as Spark columns, named for people who read tables.

``partition`` and ``offset`` of the source are of the log; in the tables ``partition`` is that of a
topic, as in Kafka's tools.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from pipeline import session
from pipeline.tables.kafka_topic import is_kafka, read_kafka_records

FIRST_GROUP_TYPE = 2
"""Below are offsets."""

TABLE_NAMES = {
    "partition": "log_partition",
    "topic_partition": "partition",
    "timestamp": "ts",
    "commit_timestamp": "commit_ts",
    "expire_timestamp": "expire_ts",
}
"""What tables call columns of ``pipeline.schema.RECORDS``; they have the others as they are."""


def read_records(spark: SparkSession, path: str | Path) -> DataFrame:
    """Every record of a log: a store, segments, or with ``kafka://HOST:PORT`` a live topic."""
    if is_kafka(str(path)):
        return name_columns(read_kafka_records(spark, str(path)))
    return name_columns(session.read_records(spark, path))


def name_columns(source: DataFrame) -> DataFrame:
    """The columns of ``pipeline.schema.RECORDS`` under the names of the tables."""
    return source.withColumnsRenamed(TABLE_NAMES)


def count_problems(records: DataFrame) -> dict[str, int]:
    """How many rows have which problem."""
    found = records.where(col("problem").isNotNull()).groupBy("problem").count().collect()
    return {row["problem"]: row["count"] for row in found}
