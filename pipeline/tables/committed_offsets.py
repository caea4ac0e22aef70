"""Committed offsets: every commit with its outcome, and the current ones at the end."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"

_MARKERS = {"control:COMMIT": COMMITTED, "control:ABORT": ABORTED}
_OFFSET_TYPES = (0, 1)
_KEY = ("log_partition", "group_id", "topic", "partition")


def compute_offset_commits(records: DataFrame) -> DataFrame:
    """Every offset record, including deletions.

    ``transaction`` is the outcome of the record's transaction, null for plain commits and
    deletions. ``effective_offset`` and ``effective_ts`` are the log offset and time from which the
    commit is visible: its own, or for a transactional commit those of its marker.
    """
    usable = records.where(col("problem").isNull() | col("key").isNotNull())
    is_commit = col("type_id").isin(*_OFFSET_TYPES) & col("topic").isNotNull()
    waits = col("is_transactional") & (col("producer_id") >= 0) & ~col("is_tombstone")
    plain = usable.where(is_commit & ~waits).select(
        *_commit_columns(),
        lit(None).cast("string").alias("transaction"),
        col("offset").alias("effective_offset"),
        col("ts").alias("effective_ts"),
    )
    is_marker = col("record_type").isin(*_MARKERS)
    by_producer = (
        Window.partitionBy("log_partition", "producer_id")
        .orderBy(sql.desc("offset"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    fate = when(is_marker, sql.struct("record_type", "offset", "ts"))
    waiting = (
        usable.where(is_marker | (is_commit & waits))
        .withColumn("marker", sql.last(fate, ignorenulls=True).over(by_producer))
        .where(~is_marker)
        .select(
            *_commit_columns(),
            _name_fate(col("marker.record_type")).alias("transaction"),
            when(col("marker.record_type") == "control:COMMIT", col("marker.offset")).alias(
                "effective_offset"
            ),
            when(col("marker.record_type") == "control:COMMIT", col("marker.ts")).alias(
                "effective_ts"
            ),
        )
    )
    return plain.unionByName(waiting)


def _name_fate(record_type: Column) -> Column:
    named = when(record_type == "control:COMMIT", COMMITTED)
    return named.when(record_type == "control:ABORT", ABORTED).otherwise(OPEN)


def _commit_columns() -> list[Column]:
    has_producer = col("producer_id") >= 0
    return [
        col("group_id"),
        col("topic"),
        col("topic_id"),
        col("partition"),
        col("committed_offset"),
        col("leader_epoch"),
        col("metadata"),
        col("commit_ts"),
        col("expire_ts"),
        col("is_tombstone"),
        when(has_producer, col("producer_id")).alias("producer_id"),
        col("log_partition"),
        col("offset"),
        col("base_offset"),
        col("ts"),
    ]


def compute_latest_offsets(commits: DataFrame) -> DataFrame:
    """The committed offsets at the end: for each partition the visible write with the highest
    offset.

    A transactional commit is ordered by its own log offset, not by its marker's.
    """
    values = [name for name in commits.columns if name not in _KEY]
    latest = sql.max_by(sql.struct(*values), col("offset")).alias("latest")
    return (
        commits.where(col("effective_offset").isNotNull())
        .groupBy(*_KEY)
        .agg(latest)
        .where(~col("latest.is_tombstone"))
        .select(*_KEY, *[col(f"latest.{name}").alias(name) for name in values])
    )


def compute_offset_lives(commits: DataFrame) -> DataFrame:
    """The lives of offsets, each from the first commit of a partition to its deletion.

    ``born_offset`` is where the log first has a visible commit, ``born`` its batch and time;
    ``deleted_offset`` is null while the offset exists. A life that is deleted before it is visible
    does not count.
    """
    in_order = Window.partitionBy(*_KEY).orderBy("offset")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    is_deletion = col("is_tombstone")
    is_plain = col("transaction").isNull()
    born_in = when(is_plain, col("base_offset")).otherwise(col("effective_offset"))
    number = sql.coalesce(sql.sum(col("is_tombstone").cast("int")).over(before), lit(0))
    visible = commits.where(col("effective_offset").isNotNull())
    lives = (
        visible.withColumn("life", number)
        .groupBy(*_KEY, "life")
        .agg(
            sql.min(when(~is_deletion, col("effective_offset"))).alias("born_offset"),
            sql.min_by(
                sql.struct(born_in.alias("base_offset"), col("effective_ts").alias("ts")),
                when(~is_deletion, col("effective_offset")),
            ).alias("born"),
            sql.max(when(is_deletion, col("offset"))).alias("deleted_offset"),
            sql.max(when(is_deletion, col("base_offset"))).alias("deleted_base_offset"),
            sql.max(when(is_deletion, col("ts"))).alias("deleted_ts"),
            sql.max_by(col("commit_ts"), when(~is_deletion, col("offset"))).alias("commit_ts"),
            sql.max_by(col("expire_ts"), when(~is_deletion, col("offset"))).alias("expire_ts"),
        )
    )
    was_visible = col("born_offset").isNotNull() & (
        col("deleted_offset").isNull() | (col("born_offset") < col("deleted_offset"))
    )
    return lives.where(was_visible)


def compute_topic_names(commits: DataFrame) -> DataFrame:
    """The name of each topic id in a commit."""
    # Take a maximum first: for the latest name, a string, Spark would sort all commits.
    pairs = (
        commits.where(col("topic_id").isNotNull())
        .groupBy("topic_id", "topic")
        .agg(sql.max("ts").alias("ts"))
    )
    return pairs.groupBy("topic_id").agg(sql.max_by("topic", col("ts")).alias("topic"))
