"""Lag of groups per time window, and groups that rebalance too often."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when

from pipeline.schema import TIMESTAMP
from pipeline.tables.end_offsets_file import EndOffset
from pipeline.tables.histories.history_tables import REBALANCES

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
_END_OFFSETS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("end_offset", pa.int64(), nullable=False),
        pa.field("ts", TIMESTAMP, nullable=False),
    ]
)


def make_end_offsets(spark: SparkSession, found: list[EndOffset]) -> DataFrame:
    """End offsets of topics as a table."""
    columns = [
        [end.topic for end in found],
        [end.partition for end in found],
        [end.end_offset for end in found],
        [end.time for end in found],
    ]
    arrays = [
        pa.array(values, field.type) for values, field in zip(columns, _END_OFFSETS, strict=True)
    ]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_END_OFFSETS))


def compute_group_lag(
    commits: DataFrame, end_offsets: DataFrame, window: str = LAG_WINDOW
) -> DataFrame:
    """A row for each partition of a group in each window with a commit or an end offset.

    ``lag`` is in messages, at the end of the window. ``lag_seconds`` is the time since the
    partition's end was at the committed offset, interpolated linearly between two known end
    offsets. Both are null if unknown. ``commit_rate`` is in commits per second.
    """
    in_order = Window.partitionBy(*_KEY).orderBy("window_start")
    lags = (
        _compute_windows(commits, end_offsets, window)
        .where(col("last").isNotNull() & ~col("last.is_tombstone"))
        .withColumn("committed", col("last.committed_offset"))
        .withColumn("lag", _compute_lag())
        .withColumn("lag_before", sql.lag("lag").over(in_order))
        .withColumn("committed_before", sql.lag("committed").over(in_order))
        .withColumn("window_end", sql.window("window_start", window)["end"])
    )
    seconds = sql.unix_timestamp("window_end") - sql.unix_timestamp("window_start")
    return _find_ends(lags, end_offsets).select(
        "window_start",
        "window_end",
        "group_id",
        *_PLACE,
        col("committed").alias("committed_offset"),
        "end_offset",
        "lag",
        _compute_lag_seconds().alias("lag_seconds"),
        (col("commits") / seconds).alias("commit_rate"),
        _compute_status().alias("status"),
        "log_partition",
        col("window_start").alias("ts"),
    )


def _compute_windows(commits: DataFrame, end_offsets: DataFrame, window: str) -> DataFrame:
    """The committed offset and the end offset known at the end of each window.

    As in OffsetFetch, the effective write with the highest log offset counts: one that becomes
    effective later at a lower offset (of a transaction with a late marker, or after a clock went
    back) is ignored.

    Nearly every commit is alone in its window, so aggregating would give as many rows: instead
    commits and ends are sorted once, by partition and time, and evaluated in that order.
    """
    visible = commits.where(col("effective_ts").isNotNull())
    is_commit = ~col("is_tombstone")
    written = visible.select(
        *_KEY,
        sql.window("effective_ts", window)["start"].alias("window_start"),
        "effective_ts",
        "effective_offset",
        "offset",
        sql.struct("committed_offset", "is_tombstone").alias("write"),
        when(is_commit, col("committed_offset")).alias("commit"),
        is_commit.cast("int").alias("is_commit"),
    )
    by_end = (
        end_offsets.withColumn("window_start", sql.window("ts", window)["start"])
        .groupBy(*_PLACE, "window_start")
        .agg(sql.max_by(sql.struct("end_offset", "ts"), col("ts")).alias("end"))
    )
    ended = (
        visible.select(*_KEY)
        .distinct()
        .join(by_end, _PLACE)
        .select(*_KEY, "window_start", col("end.end_offset"), col("end.ts").alias("end_ts"))
    )
    # An end has no effective_ts, so it sorts before the commits of its window.
    in_order = Window.partitionBy(*_KEY).orderBy("window_start", "effective_ts", "effective_offset")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = Window.partitionBy(*_KEY, "window_start")
    following = sql.lead("window_start").over(in_order)
    return (
        written.unionByName(ended, allowMissingColumns=True)
        .withColumn("highest", sql.max("offset").over(so_far))
        .where(col("offset").isNull() | (col("offset") == col("highest")))
        .withColumn("last", sql.last("write", ignorenulls=True).over(so_far))
        .withColumn("end_offset", sql.last("end_offset", ignorenulls=True).over(so_far))
        .withColumn("end_ts", sql.last("end_ts", ignorenulls=True).over(so_far))
        .withColumn("following", following)
        .withColumn("commits", sql.coalesce(sql.sum("is_commit").over(whole), lit(0)))
        .withColumn("lowest", sql.min("commit").over(whole))
        .where(col("following").isNull() | (col("following") > col("window_start")))
    )


def _find_ends(lags: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Add the end offsets ``before`` and ``after`` the committed offset, if there is lag."""
    ends = end_offsets.groupBy(
        col("topic").alias("end_topic"), col("partition").alias("end_partition")
    ).agg(sql.sort_array(sql.collect_set(sql.struct("ts", "end_offset"))).alias("ends"))
    # The join key is null without lag, so that few rows carry all the ends.
    lags = lags.withColumn("lagging", when(col("lag") > 0, col("topic")))
    is_place = (col("lagging") == col("end_topic")) & (col("partition") == col("end_partition"))
    before = sql.filter("ends", lambda end: end["end_offset"] <= col("committed"))
    after = sql.filter("ends", lambda end: end["end_offset"] > col("committed"))
    # Separate columns, because Spark evaluates an expression again wherever it is used.
    return (
        lags.join(sql.broadcast(ends), is_place, "left")
        .withColumn("before", sql.try_element_at(before, lit(-1)))
        .withColumn("after", sql.try_element_at(after, lit(1)))
    )


def _compute_lag_seconds() -> Column:
    """When the end passed the committed offset, interpolated linearly between two samples."""
    before_s, after_s = _seconds(col("before.ts")), _seconds(col("after.ts"))
    before, after = col("before.end_offset"), col("after.end_offset")
    passed_s = before_s + (col("committed") - before) / (after - before) * (after_s - before_s)
    seconds = _at_least_zero(_seconds(col("end_ts")) - passed_s)
    return when(col("lag").isNotNull(), when(col("lag") == 0, lit(0.0)).otherwise(seconds))


def _compute_lag() -> Column:
    """The lag; null if the committed offset is so low that the difference overflows."""
    return _at_least_zero(sql.try_subtract(col("end_offset"), col("committed")))


def _at_least_zero(value: Column) -> Column:
    """At least 0; null stays null, unlike with ``greatest``."""
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
    """The number of rebalances and of distinct causes, per group and window."""
    return (
        rebalances.withColumn("window", sql.window("ts", window))
        .groupBy("group_id", "log_partition", "window")
        .agg(
            sql.count("*").alias(REBALANCES),
            sql.count_distinct("cause").alias("distinct_causes"),
            sql.sum("partitions_moved").alias("partitions_moved"),
        )
        .withColumn("ts", col("window.start"))
        .withColumn("window_start", col("window.start"))
        .withColumn("window_end", col("window.end"))
        .drop("window")
    )
