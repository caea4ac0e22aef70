"""Lag of groups by windows of time, and groups that rebalance too often."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from pipeline.tables.end_offsets import EndOffset
from pipeline.tables.history_tables import REBALANCES

LAG_WINDOW = "10 minutes"
FLAPPING_WINDOW = "1 hour"

OK, FALLING_BEHIND, STALLED, STOPPED, REWOUND, UNKNOWN = (
    "OK",
    "FALLING_BEHIND",
    "STALLED",
    "STOPPED",
    "REWOUND",
    "UNKNOWN",
)

_PLACE = ["topic", "partition"]
_KEY = ["log_partition", "group_id", *_PLACE]
_END_OFFSETS = StructType(
    [
        StructField("topic", StringType(), nullable=False),
        StructField("partition", LongType(), nullable=False),
        StructField("end_offset", LongType(), nullable=False),
        StructField("ts", TimestampType(), nullable=False),
    ]
)


def make_end_offsets(spark: SparkSession, found: list[EndOffset]) -> DataFrame:
    """End offsets of topics as a table."""
    rows = [(end.topic, end.partition, end.end_offset, end.time) for end in found]
    return spark.createDataFrame(rows, _END_OFFSETS).withColumn(
        "partition", col("partition").cast("int")
    )


def compute_group_lag(
    commits: DataFrame, end_offsets: DataFrame, window: str = LAG_WINDOW
) -> DataFrame:
    """A row for each partition of a group and window that has a commit, or an end offset.

    ``lag`` is in messages, at the end of the window; ``lag_seconds`` how long ago the end of the
    partition was where the group is, between two known end offsets by a straight line. Both are
    null where end offsets do not tell. ``commit_rate`` is in commits a second.
    """
    seen = _compute_windows(commits, end_offsets, window)
    so_far = Window.partitionBy(*_KEY).orderBy("window_start")
    known = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    filled = (
        seen.withColumn("last", sql.last("last", ignorenulls=True).over(known))
        .withColumn("end", sql.last("end", ignorenulls=True).over(known))
        .where(col("last").isNotNull() & ~col("last.is_tombstone"))
        .withColumn("committed", col("last.committed_offset"))
        .withColumn("lag", _at_least_zero(col("end.end_offset") - col("committed")))
        .withColumn("lag_before", sql.lag("lag").over(so_far))
        .withColumn("committed_before", sql.lag("committed").over(so_far))
    )
    ends = end_offsets.groupBy(*_PLACE).agg(
        sql.sort_array(sql.collect_set(sql.struct("ts", "end_offset"))).alias("ends")
    )
    seconds = sql.unix_timestamp("window_end") - sql.unix_timestamp("window_start")
    return filled.join(sql.broadcast(ends), _PLACE, "left").select(
        sql.struct(col("window_start").alias("start"), col("window_end").alias("end")).alias(
            "window"
        ),
        "group_id",
        *_PLACE,
        col("committed").alias("committed_offset"),
        col("end.end_offset").alias("end_offset"),
        "lag",
        _compute_lag_seconds().alias("lag_seconds"),
        (col("commits") / seconds).alias("commit_rate"),
        _compute_status().alias("status"),
        "log_partition",
        col("window_start").alias("ts"),
    )


def _compute_windows(commits: DataFrame, end_offsets: DataFrame, window: str) -> DataFrame:
    """What was committed last in each window, and the last end offset where one was taken."""
    visible = commits.where(col("effective_ts").isNotNull())
    is_commit = ~col("is_tombstone")
    bounds = sql.window("effective_ts", window)
    by_commit = (
        visible.withColumn("w", bounds)
        .groupBy(*_KEY, col("w.start").alias("window_start"), col("w.end").alias("window_end"))
        .agg(
            sql.max_by(sql.struct("committed_offset", "is_tombstone"), "offset").alias("last"),
            sql.count(when(is_commit, 1)).alias("commits"),
            sql.min(when(is_commit, col("committed_offset"))).alias("lowest"),
        )
    )
    by_end = (
        end_offsets.withColumn("w", sql.window("ts", window))
        .groupBy(*_PLACE, col("w.start").alias("window_start"), col("w.end").alias("window_end"))
        .agg(sql.max_by(sql.struct("end_offset", "ts"), col("ts")).alias("end"))
    )
    keys = visible.select(*_KEY).distinct().join(sql.broadcast(by_end), _PLACE)
    joined = by_commit.join(keys, [*_KEY, "window_start", "window_end"], "full")
    return joined.withColumn("commits", sql.coalesce("commits", lit(0)))


def _compute_lag_seconds() -> Column:
    """The end offset passed the committed one between two samples, on a straight line."""
    before = sql.filter("ends", lambda end: end["end_offset"] <= col("committed"))
    after = sql.filter("ends", lambda end: end["end_offset"] > col("committed"))
    last, first = sql.try_element_at(before, lit(-1)), sql.try_element_at(after, lit(1))
    last_s, first_s = _seconds(last["ts"]), _seconds(first["ts"])
    part = (col("committed") - last["end_offset"]) / (first["end_offset"] - last["end_offset"])
    passed_s = last_s + part * (first_s - last_s)
    seconds = _at_least_zero(_seconds(col("end.ts")) - passed_s)
    return when(col("lag").isNotNull(), when(col("lag") == 0, lit(0.0)).otherwise(seconds))


def _at_least_zero(value: Column) -> Column:
    """Null stays null, which ``greatest`` would pass over."""
    return when(value < 0, value * 0).otherwise(value)


def _seconds(ts: Column) -> Column:
    return sql.unix_micros(ts) / 1e6


def _compute_status() -> Column:
    lag, committed = col("lag"), col("committed")
    return (
        when(col("lowest") < col("committed_before"), REWOUND)
        .when(lag.isNull(), UNKNOWN)
        .when(lag == 0, OK)
        .when(col("commits") == 0, STOPPED)
        .when(committed == col("committed_before"), STALLED)
        .when(lag > col("lag_before"), FALLING_BEHIND)
        .otherwise(OK)
    )


def compute_flapping(rebalances: DataFrame, window: str = FLAPPING_WINDOW) -> DataFrame:
    """How often each group rebalanced in each window, and for how many reasons."""
    return (
        rebalances.withColumn("window", sql.window("ts", window))
        .groupBy("group_id", "log_partition", "window")
        .agg(
            sql.count("*").alias(REBALANCES),
            sql.count_distinct("cause").alias("distinct_causes"),
            sql.sum("partitions_moved").alias("partitions_moved"),
        )
        .withColumn("ts", col("window.start"))
    )
