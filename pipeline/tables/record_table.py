"""The records of a log as Spark columns, with the tables' column names.

``partition`` in the source is the log partition; in the tables it is that of a topic, as in Kafka's
tools.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from pipeline import session
from pipeline.tables.kafka_topic import is_kafka, read_kafka_records

FIRST_GROUP_TYPE = 2
"""Lower types are offsets."""

TABLE_NAMES = {
    "partition": "log_partition",
    "topic_partition": "partition",
    "timestamp": "ts",
    "commit_timestamp": "commit_ts",
    "expire_timestamp": "expire_ts",
}
"""The tables' names of columns of ``pipeline.schema.RECORDS``, if they differ."""


def read_records(spark: SparkSession, path: str | Path) -> DataFrame:
    """Every record of a log: a store, segments, or a live topic at ``kafka://HOST:PORT``."""
    if is_kafka(str(path)):
        return name_columns(read_kafka_records(spark, str(path)))
    return name_columns(session.read_records(spark, path))


def name_columns(source: DataFrame) -> DataFrame:
    """Rename the columns of ``pipeline.schema.RECORDS`` to those of the tables."""
    return source.withColumnsRenamed(TABLE_NAMES)


def count_problems(records: DataFrame) -> dict[str, int]:
    """The number of rows by problem."""
    found = records.where(col("problem").isNotNull()).groupBy("problem").count().collect()
    return {row["problem"]: row["count"] for row in found}
