"""Writes the table ``records`` as Parquet files, in the tasks that decode it.

Spark's own writer takes rows, which costs several times as much as decoding; here decoded data
stays in columns. The files are laid out as Spark's, with a folder for each day of ``ts``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.schema import RECORDS
from pipeline.source.data_source import GroupLogReader
from pipeline.source.options import parse_options
from pipeline.tables.record_table import TABLE_NAMES
from pipeline.tables.writing import NO_DAY, DayFile

HELD_BYTES = 64 << 20
"""Bytes held before writing a row group per day: some 200,000 commits."""

MAX_OPEN_FILES = 16
"""Limits open files if timestamps jump between many days."""

CODECS = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
"""Parquet codecs by Spark's names, with Arrow's."""

_FILES = pa.schema([("day", pa.string()), ("file", pa.string())])
_DAY_US = 24 * 60 * 60 * 1_000_000
_TIME = "timestamp"
_SCHEMA = pa.schema([field.with_name(TABLE_NAMES.get(field.name, field.name)) for field in RECORDS])
_REPEATED = [
    "ts",
    "base_offset",
    "compression",
    "record_type",
    "group_id",
    "member_id",
    "topic",
    "metadata",
    "commit_ts",
    "topic_id",
    "problem",
]
"""Columns with few distinct values, which get a dictionary; for others the attempt costs time."""

_RISING = dict.fromkeys(("offset", "committed_offset"), "DELTA_BINARY_PACKED")
_SEARCHED = ["log_partition", "offset", "ts", "type_id", "problem"]
"""Columns with statistics, to skip row groups; for all columns they would cost as much again."""


def write_record_files(
    spark: SparkSession, path: str | Path, folder: Path, codec: str
) -> list[DayFile]:
    """Write every record of a log to files in a folder that all executors see.

    Only the returned files count: failed or repeated tasks may leave others. Raise ``SourceError``
    if there is no log at the path.
    """
    options = parse_options({"decode": "records", "path": str(path)})
    reader = GroupLogReader(options, RECORDS)
    tasks = reader.partitions()
    folder.mkdir(parents=True)
    target = str(folder.absolute())

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                files = RecordFiles(Path(target), f"{number:06}-{_find_attempt()}", codec)
                written = files.write(reader.read(tasks[number]))
                rows = [{"day": found.day, "file": str(found.file)} for found in written]
                yield pa.RecordBatch.from_pylist(rows, schema=_FILES)

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(write, from_arrow_schema(_FILES)).collect()
    return [DayFile(row["day"], Path(row["file"])) for row in rows]


def _find_attempt() -> int:
    """A number that is unique to this attempt of a task."""
    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


class RecordFiles:
    """Writes rows to one or more files per day, with a unique name."""

    def __init__(self, folder: Path, name: str, codec: str) -> None:
        self._folder = folder
        self._name = name
        self._codec = codec
        self._held: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._held_bytes = 0
        self._open: dict[str, pq.ParquetWriter] = {}
        self._files: list[DayFile] = []

    def write(self, batches: Iterable[pa.RecordBatch]) -> Sequence[DayFile]:
        """Write rows of ``schema.RECORDS`` and return the files; no file for no rows."""
        try:
            for batch in batches:
                for day, rows in split_days(batch):
                    self._held[day].append(rows)
                self._held_bytes += batch.nbytes
                if self._held_bytes >= HELD_BYTES:
                    self._flush()
            self._flush()
        finally:
            self._close()
        return self._files

    def _flush(self) -> None:
        for day, rows in self._held.items():
            writer = self._open.get(day) or self._make_writer(day)
            writer.write_table(pa.Table.from_batches(rows).rename_columns(_SCHEMA.names))
        self._held.clear()
        self._held_bytes = 0

    def _make_writer(self, day: str) -> pq.ParquetWriter:
        if len(self._open) >= MAX_OPEN_FILES:
            self._close()
        file = self._folder / f"part-{self._name}-{len(self._files):05}.{self._codec}.parquet"
        writer = pq.ParquetWriter(
            file,
            _SCHEMA,
            compression=self._codec,
            use_dictionary=_REPEATED,
            column_encoding=_RISING,
            write_statistics=_SEARCHED,
            store_schema=False,
        )
        self._files.append(DayFile(day, file))
        self._open[day] = writer
        return writer

    def _close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def split_days(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each day of ``timestamp`` in UTC, in order."""
    times = rows.column(_TIME)
    micros: npt.NDArray[np.int64] = np.asarray(times.cast(pa.int64()).fill_null(0))
    days = micros // _DAY_US
    if times.null_count:
        are_there = times.is_valid()
        yield NO_DAY, rows.filter(pc.invert(are_there))
        rows, days = rows.filter(are_there), days[np.asarray(are_there)]
    found = np.unique(days)
    for day in found.tolist():
        name = str(np.datetime64(day, "D"))
        yield name, rows if len(found) == 1 else rows.filter(pa.array(days == day))
