"""The state of a whole log from the rows of all slices: ``storage.log.fold`` in Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when

from pipeline.bulk.bulk_scan import MARKER, PRODUCER, RECORD

_KEY = ("partition", "key")


def compute_latest(scanned: DataFrame) -> DataFrame:
    """The current record of each key: its offset, bytes and slice.

    The last visible record of the log counts, even if its marker came after later records.
    """
    records = scanned.where(col("kind") == RECORD)
    plain = records.where(col("producer_id").isNull())
    committed = _compute_fates(scanned).where("committed")
    columns = [*_KEY, "packed", "offset", "part"]
    visible = plain.select(*columns).unionByName(committed.select(*columns))
    last = sql.max_by(sql.struct("packed", "part"), "offset").alias("last")
    return (
        visible.groupBy(*_KEY)
        .agg(last, sql.max("offset").alias("offset"))
        .where(col("last.packed").isNotNull())
        .select(*_KEY, "last.packed", "offset", "last.part")
    )


def compute_pending(scanned: DataFrame) -> DataFrame:
    """Pending records that no deletion has dropped: as ``compute_latest``, per producer."""
    records = scanned.where(col("kind") == RECORD)
    deletions = (
        records.where(col("packed").isNull()).groupBy(*_KEY).agg(sql.max("offset").alias("deleted"))
    )
    is_dropped = sql.coalesce(col("deleted") > col("offset"), lit(False))
    waiting = _compute_fates(scanned).where(col("committed").isNull())
    last = sql.max_by(sql.struct("packed", "part"), "offset").alias("last")
    return (
        waiting.join(deletions, list(_KEY), "left")
        .where(~is_dropped)
        .groupBy(*_KEY, "producer_id")
        .agg(last, sql.max("offset").alias("offset"))
        .select(*_KEY, "producer_id", "last.packed", "offset", "last.part")
    )


def _compute_fates(scanned: DataFrame) -> DataFrame:
    """Transactional records with ``committed`` of the first marker after them, null for none."""
    waiting = scanned.where((col("kind") == RECORD) & col("producer_id").isNotNull())
    markers = (
        scanned.where(col("kind") == MARKER)
        .groupBy("partition", "producer_id")
        .agg(sql.sort_array(sql.collect_list(sql.struct("offset", "committed"))).alias("markers"))
    )
    after = sql.filter("markers", lambda marker: marker["offset"] > col("offset"))
    return (
        waiting.drop("committed")
        .join(sql.broadcast(markers), ["partition", "producer_id"], "left")
        .withColumn("committed", sql.try_element_at(after, lit(1))["committed"])
        .drop("markers")
    )


def compute_open_producers(scanned: DataFrame) -> DataFrame:
    """Producers with an open transaction, by partition, and their epochs."""
    is_batch = col("kind") == PRODUCER
    return (
        scanned.where(is_batch | (col("kind") == MARKER))
        .groupBy("partition", "producer_id")
        .agg(
            sql.max(when(is_batch, col("offset"))).alias("last"),
            sql.max(when(~is_batch, col("offset"))).alias("ended"),
            sql.max_by("producer_epoch", when(is_batch, col("offset"))).alias("producer_epoch"),
        )
        .where(col("last").isNotNull() & (col("ended").isNull() | (col("ended") < col("last"))))
    )
