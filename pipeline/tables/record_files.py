"""``records`` as Parquet files that the tasks write which decode it.

Rows for Spark's own writer cost several times what decoding does: here what is decoded stays in
columns. The files are those that Spark would write, a folder for each day of ``ts``.
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
"""So much is held before it is written, in a row group for each day: some 200,000 commits."""

MAX_OPEN_FILES = 16
"""Times that jump about could ask for a file a day at once."""

CODECS = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
"""Codecs of Parquet, as Spark's settings and Arrow call them."""

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
"""Columns with few values, which are written once a row group; of others that search is lost."""

_RISING = dict.fromkeys(("offset", "committed_offset"), "DELTA_BINARY_PACKED")
_SEARCHED = ["log_partition", "offset", "ts", "type_id", "problem"]
"""What row groups can be left out by; the least and greatest of all columns cost as much again."""


def write_record_files(
    spark: SparkSession, path: str | Path, folder: Path, codec: str
) -> list[DayFile]:
    """Writes every record of a log to files in a folder that all executors see.

    Only the files that are returned count: a task that failed, or was tried twice, may leave
    others. Raises ``SourceError`` where there is no log at the path.
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
    """A number that no other try of any task has."""
    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


class RecordFiles:
    """Writes rows to a file or more a day, all with a name in theirs that is nobody else's."""

    def __init__(self, folder: Path, name: str, codec: str) -> None:
        self._folder = folder
        self._name = name
        self._codec = codec
        self._held: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._held_bytes = 0
        self._open: dict[str, pq.ParquetWriter] = {}
        self._files: list[DayFile] = []

    def write(self, batches: Iterable[pa.RecordBatch]) -> Sequence[DayFile]:
        """The whole files of rows of ``schema.RECORDS``; no file where there is no row."""
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
    """The rows of each day of ``timestamp`` in UTC, in their order."""
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
