"""The history of every group, in one pass over the records other than offsets.

Spark sorts the records by group and offset, and each task takes one group after another through
``follow_groups``, which keeps the state of a single group, so memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.schema import UNKNOWN_VERSION
from pipeline.tables.histories.epochs import EpochRows
from pipeline.tables.histories.history_tables import HISTORY_TABLES
from pipeline.tables.histories.migrations import MigrationRows
from pipeline.tables.histories.ownership import OwnershipRows
from pipeline.tables.histories.rebalances import ClassicRebalances, ConsumerRebalances
from pipeline.tables.histories.rows import Row, Rows
from pipeline.tables.histories.written_records import LoggedRecord, Observer, follow_groups
from pipeline.tables.record_table import FIRST_GROUP_TYPE

KIND = "kind"
_ROWS_A_BATCH = 4_096
_LARGE_WRITE_BYTES = 1 << 18
"""Size of keys and values: a smaller write is never split into batches."""

MakeRowObservers = Callable[[Rows], Sequence[Observer]]


def make_table_observers(rows: Rows) -> Sequence[Observer]:
    """All observers for the tables."""
    return (
        EpochRows(rows),
        OwnershipRows(rows),
        ConsumerRebalances(rows),
        ClassicRebalances(rows),
        MigrationRows(rows),
    )


def select_group_events(records: DataFrame, *, with_unknown: bool = False) -> DataFrame:
    """The records other than offsets, with the columns of ``LoggedRecord``.

    ``with_unknown``: include records with a version of a newer Kafka.
    """
    is_readable = col("problem").isNull()
    if with_unknown:
        is_readable |= col("problem") == UNKNOWN_VERSION
    readable = records.where(
        (col("type_id") >= FIRST_GROUP_TYPE) & col("group_id").isNotNull() & is_readable
    )
    size = sql.coalesce(sql.length("key"), lit(0)) + sql.coalesce(sql.length("value"), lit(0))
    large = (
        records.where(~col("is_transactional"))
        .groupBy("log_partition", "base_offset")
        .agg(sql.sum(size).alias("bytes"), sql.max("offset").alias("last_offset"))
        .where(col("bytes") > _LARGE_WRITE_BYTES)
        .select("log_partition", (col("last_offset") + 1).alias("base_offset"))
        .withColumn("follows_large", lit(True))
    )
    return readable.join(sql.broadcast(large), ["log_partition", "base_offset"], "left").select(
        "log_partition",
        "group_id",
        "offset",
        "base_offset",
        sql.unix_millis("ts").alias("ts_ms"),
        "type_id",
        "key",
        "value",
        (sql.coalesce("follows_large", lit(False)) & ~col("is_transactional")).alias("goes_on"),
        _nothing("string", "topic"),
        _nothing("int", "topic_partition"),
        _nothing("long", "commit_ts_ms"),
        _nothing("long", "expire_ts_ms"),
    )


def _nothing(data_type: str, name: str) -> Column:
    return lit(None).cast(data_type).alias(name)


def compute_history(
    events: DataFrame, tables: dict[str, pa.Schema], make_observers: MakeRowObservers
) -> DataFrame:
    """Rows of all tables in one: ``kind`` names the table, whose column has the row."""
    schema = _compute_union_schema(tables)
    shuffled = events.repartition("log_partition", "group_id")
    in_order = shuffled.sortWithinPartitions("log_partition", "group_id", "offset", "type_id")

    def follow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from follow_history(batches, tables, make_observers)

    return in_order.mapInArrow(follow, from_arrow_schema(schema))


def compute_group_history(records: DataFrame) -> DataFrame:
    """The history tables of a log."""
    events = select_group_events(records)
    return compute_history(events, HISTORY_TABLES, make_table_observers)


def select_table(history: DataFrame, table: str) -> DataFrame:
    """One table of the history."""
    return history.where(col(KIND) == table).select(f"{table}.*")


def _compute_union_schema(tables: dict[str, pa.Schema]) -> pa.Schema:
    columns = [pa.field(name, pa.struct(list(schema))) for name, schema in tables.items()]
    return pa.schema([pa.field(KIND, pa.string()), *columns])


def follow_history(
    batches: Iterable[pa.RecordBatch],
    tables: dict[str, pa.Schema],
    make_observers: MakeRowObservers,
) -> Iterator[pa.RecordBatch]:
    """The history rows of events that are sorted by group and offset."""
    schema = _compute_union_schema(tables)
    rows = Rows()
    for _ in follow_groups(_read(batches), lambda partition, group_id: make_observers(rows)):
        if rows.count >= _ROWS_A_BATCH:
            yield from _make_batches(rows.take(), tables, schema)
    yield from _make_batches(rows.take(), tables, schema)


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[LoggedRecord]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from map(LoggedRecord._make, zip(*columns, strict=True))


def _make_batches(
    rows: dict[str, list[Row]], tables: dict[str, pa.Schema], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for table, found in rows.items():
        batch = pa.RecordBatch.from_pylist(found, schema=tables[table])
        filled = pa.StructArray.from_arrays(batch.columns, fields=list(tables[table]))
        columns = [pa.repeat(pa.scalar(table), len(found))]
        columns += [
            filled if name == table else pa.nulls(len(found), schema.field(name).type)
            for name in tables
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
