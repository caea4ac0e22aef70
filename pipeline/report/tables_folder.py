"""Reads tables that a run of ``tables`` has written, with their columns."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.schema import RECORDS as RECORD_COLUMNS
from pipeline.source.errors import NotALog
from pipeline.tables.committed_offsets import compute_offset_commits
from pipeline.tables.histories.history_tables import HISTORY_TABLES
from pipeline.tables.lag import compute_group_lag, make_end_offsets
from pipeline.tables.record_table import name_columns
from pipeline.tables.tables_job import GROUP_LAG, OFFSET_COMMITS, RECORDS
from pipeline.tables.writing import MANIFEST, TableFolder


class WrittenTables:
    """A folder of tables; ``counts`` and ``problems`` are from its manifest."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        content = read_manifest(spark, path)
        if content is None:
            raise NotALog(f"{path} has no {MANIFEST}: no run of `tables` has finished there")
        self.spark = spark
        self.path = path
        self.counts: dict[str, int] = content["tables"]
        self.problems: dict[str, int] = content["problems"]
        self._folder = TableFolder(spark, path, content["format"])
        empty = from_arrow_schema(RECORD_COLUMNS)
        records = name_columns(spark.createDataFrame([], empty))
        commits = compute_offset_commits(records)
        lag = compute_group_lag(commits, make_end_offsets(spark, []))
        self._like = {RECORDS: records, OFFSET_COMMITS: commits, GROUP_LAG: lag}
        for name, schema in HISTORY_TABLES.items():
            self._like[name] = spark.createDataFrame([], from_arrow_schema(schema))

    def read(self, name: str) -> DataFrame:
        """A table without its partition column ``date``."""
        return self._folder.read(name, self._like[name]).drop("date")


def read_manifest(spark: SparkSession, path: str) -> dict[str, Any] | None:
    """The manifest of a run of ``tables``; ``None`` if no run has finished."""
    context: Any = spark.sparkContext
    hadoop = context._jvm.org.apache.hadoop.fs
    file = hadoop.Path(hadoop.Path(path), MANIFEST)
    files = file.getFileSystem(context._jsc.hadoopConfiguration())
    if not files.exists(file):
        return None
    stream = files.open(file)
    try:
        text = context._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    content: dict[str, Any] = json.loads(text)
    return content
