"""A live ``__consumer_offsets`` as a log, through Spark's own Kafka source.

Requires Spark's connector (``--packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION``).
Reads committed records only. A consumer does not see which records were written atomically:
consecutive records of a partition with the same timestamp are taken for one write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.decoding.kafka_rows import KAFKA_COLUMNS, decode_kafka_rows
from pipeline.schema import RECORDS, TOPIC
from pipeline.source.errors import MissingConnector, NotALog

SCHEME = "kafka://"

_ASKS_A_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""With an admin client, Spark's default, Spark sees no partitions of a cluster's internal topics:
reading this one would silently find nothing."""


def is_kafka(path: str) -> bool:
    """Whether a path names a cluster: ``kafka://HOST:PORT``."""
    return path.startswith(SCHEME)


def read_kafka_records(spark: SparkSession, path: str) -> DataFrame:
    """Every committed record of the topic, with the columns of ``schema.RECORDS``.

    Raise ``MissingConnector`` if Spark has no Kafka source, and ``NotALog`` if the topic is empty.
    """
    spark.conf.set(_ASKS_A_CONSUMER, "true")
    reader = spark.read.format("kafka").option("subscribe", TOPIC)
    reader = reader.option("kafka.bootstrap.servers", path.removeprefix(SCHEME).rstrip("/"))
    reader = reader.option("kafka.isolation.level", "read_committed")
    try:
        rows = reader.option("startingOffsets", "earliest").load()
    except PySparkException as error:
        if "kafka" not in str(error):
            raise
        raise MissingConnector(
            f"{path} needs Spark's Kafka source: set PYSPARK_SUBMIT_ARGS='--packages "
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version} pyspark-shell'"
        ) from error
    if not rows.rdd.getNumPartitions():
        raise NotALog(f"{path} has no record in {TOPIC}")
    return decode_kafka_frame(rows)


def decode_kafka_frame(rows: DataFrame) -> DataFrame:
    """Rows of the Kafka source, or of ``grouplog`` with ``decode=raw``, as records."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from decode_kafka_rows(batch)

    records = rows.select(*KAFKA_COLUMNS).mapInArrow(decode, from_arrow_schema(RECORDS))
    # Compare neighbours only: after a clock goes back, earlier timestamps recur.
    in_order = Window.partitionBy("partition").orderBy("offset")
    goes_on = sql.col("timestamp").eqNullSafe(sql.lag("timestamp").over(in_order))
    first = sql.when(goes_on & sql.lag("offset").over(in_order).isNotNull(), None)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        records.withColumn("first_of_write", first.otherwise(sql.col("offset")))
        .withColumn("base_offset", sql.last("first_of_write", ignorenulls=True).over(so_far))
        .drop("first_of_write")
    )
