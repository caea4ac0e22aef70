"""Writes all tables of a log, one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pipeline.tables.committed_offsets import compute_offset_commits, compute_topic_names
from pipeline.tables.end_offsets_file import EndOffset
from pipeline.tables.histories.group_histories import KIND, compute_group_history, select_table
from pipeline.tables.histories.history_tables import HISTORY_TABLES, PARTITION_OWNERSHIP, REBALANCES
from pipeline.tables.kafka_topic import is_kafka
from pipeline.tables.lag import compute_flapping, compute_group_lag, make_end_offsets
from pipeline.tables.ledger import name_departures, read_departures
from pipeline.tables.record_files import CODECS, write_record_files
from pipeline.tables.record_table import count_problems, read_records
from pipeline.tables.writing import PARQUET, TableFolder, escape

RECORDS = "records"
OFFSET_COMMITS = "offset_commits"
GROUP_LAG = "group_lag"
FLAPPING = "flapping"
TABLES = (RECORDS, OFFSET_COMMITS, *HISTORY_TABLES, GROUP_LAG, FLAPPING)

_HISTORY = "history"
_RECORD_FILES = "record-files"
_CODEC = "spark.sql.parquet.compression.codec"

Tell = Callable[[str, int], None]
"""Called with the name and row count of each table that was written."""


@dataclass(frozen=True, slots=True)
class TablesSummary:
    """The number of rows by table, and of rows with a problem by its name."""

    rows: dict[str, int]
    problems: dict[str, int] = field(default_factory=dict)


def write_tables(
    spark: SparkSession,
    path: str | Path,
    out: str,
    *,
    file_format: str = PARQUET,
    end_offsets: list[EndOffset] | None = None,
    tell: Tell = lambda name, rows: None,
) -> TablesSummary:
    """Write every table of a log to a folder, each replacing the previous one.

    The log, a path or ``kafka://HOST:PORT``, is decoded once: all other tables are computed from
    ``records``. Raise ``SourceError`` if there is no log.
    """
    records = read_records(spark, path)
    folder = TableFolder(spark, out, file_format)
    folder.recover()
    folder.delete_manifest()
    folder.delete_stream()
    write_records(spark, folder, path)
    return derive_tables(spark, folder, path, records, end_offsets or [], tell)


def write_records(spark: SparkSession, folder: TableFolder, path: str | Path) -> None:
    """Write ``records``: in the tasks that decode them if possible, otherwise with Spark."""
    codec = CODECS.get(str(spark.conf.get(_CODEC)).lower())
    scratch = folder.local_scratch(_RECORD_FILES)
    is_parquet = folder.format == PARQUET
    if is_kafka(str(path)) or scratch is None or codec is None or not is_parquet:
        folder.write(RECORDS, read_records(spark, path))
        return
    folder.move_in(RECORDS, write_record_files(spark, path, scratch, codec))
    folder.delete_scratch(_RECORD_FILES)


def derive_tables(
    spark: SparkSession,
    folder: TableFolder,
    path: str | Path,
    like: DataFrame,
    end_offsets: list[EndOffset],
    tell: Tell,
) -> TablesSummary:
    """Write all tables computed from the ``records`` of a log; ``like`` has their columns."""
    written = folder.read(RECORDS, like).drop("date")
    rows = {RECORDS: written.count()}
    tell(RECORDS, rows[RECORDS])
    if not rows[RECORDS]:
        folder.add_columns(RECORDS, like)

    def write(name: str, table: DataFrame) -> DataFrame:
        rows[name] = folder.write(name, table)
        tell(name, rows[name])
        return folder.read(name, table).drop("date")

    problems = count_problems(written)
    commits = write(OFFSET_COMMITS, compute_offset_commits(written))
    kept = folder.scratch(_HISTORY)
    history = compute_group_history(written)
    history.write.mode("overwrite").partitionBy(KIND).parquet(kept)
    history = spark.read.schema(history.schema).parquet(escape(kept))
    tables = {name: select_table(history, name) for name in HISTORY_TABLES}
    tables[PARTITION_OWNERSHIP] = _name_topics(tables[PARTITION_OWNERSHIP], commits)
    tables[REBALANCES] = name_departures(spark, tables[REBALANCES], read_departures(path))
    for name, table in tables.items():
        tables[name] = write(name, table)
    folder.delete_scratch(_HISTORY)
    ends = make_end_offsets(spark, end_offsets)
    write(GROUP_LAG, compute_group_lag(commits, ends))
    write(FLAPPING, compute_flapping(tables[REBALANCES]))
    folder.write_manifest({"tables": rows, "problems": problems, "format": folder.format})
    return TablesSummary(rows, problems)


def _name_topics(ownership: DataFrame, commits: DataFrame) -> DataFrame:
    """Fill in topic names from commits that have both id and name."""
    names = compute_topic_names(commits).withColumnRenamed("topic", "known_name")
    named = ownership.join(sql.broadcast(names), "topic_id", "left")
    return named.withColumn("topic", sql.coalesce("topic", "known_name")).select(*ownership.columns)
