"""Writes tables as folders of files, atomically.

A table is written beside the one that it replaces and then takes its place: atomically where
folders can be exchanged, else by two renames, on any file system that Hadoop supports. A killed run
leaves at most folders whose names begin with ``_``, which readers ignore and the next run deletes
or restores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DateType, StructField, StructType

from pipeline.tables.folder_exchange import exchange

MANIFEST = "_tables.json"
_WRITING = "_writing-"
_REPLACED = "_replaced-"
_CHECKPOINT = "_checkpoint"
_STREAM = "_stream.json"
_DATE = "date"
_ANY_DAY = "1970-01-01"
"""Of a file without rows: one of no day alone leaves the column without a type."""

PARQUET, JSON = "parquet", "json"
FORMATS = (PARQUET, JSON)

_PATTERN = re.compile(r"[\\*?{}\[\]]")

NO_DAY = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name of the folder of rows without a timestamp."""


class DayFile(NamedTuple):
    """A file, and the day of all its rows, such as ``2026-11-22``, or ``NO_DAY``."""

    day: str
    file: Path


class TableFolder:
    """A folder with a subfolder per table; ``manifest`` is the file that marks it complete."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        file_format: str = PARQUET,
        manifest: str = MANIFEST,
    ) -> None:
        if file_format not in FORMATS:
            raise ValueError(f"{file_format} is not one of {', '.join(FORMATS)}")
        self._spark = spark
        self.format = file_format
        self._manifest = manifest
        context: Any = spark.sparkContext
        self._make_path = context._jvm.org.apache.hadoop.fs.Path
        self._read_text = context._jvm.org.apache.commons.io.IOUtils.toString
        self._root = self._make_path(path)
        self._files = self._root.getFileSystem(context._jsc.hadoopConfiguration())

    def recover(self) -> None:
        """Delete or restore what a killed run has left."""
        self._files.mkdirs(self._root)
        for status in self._files.listStatus(self._root):
            name = _name(status)
            if name.startswith(_WRITING):
                self._files.delete(status.getPath(), True)
            elif name.startswith(_REPLACED):
                table = self._at(name.removeprefix(_REPLACED))
                if self._files.exists(table):
                    self._files.delete(status.getPath(), True)
                else:
                    self._files.rename(status.getPath(), table)

    def write(self, name: str, table: DataFrame, *, by_date: bool = True) -> int:
        """Replace the table of this name; return its number of rows.

        ``by_date``: partition it by the day of ``ts``, as a column ``date``.
        """
        writing = self._at(_WRITING + name)
        rows = table.withColumn(_DATE, sql.to_date("ts")) if by_date else table
        writer = rows.write.mode("overwrite").format(self.format)
        if by_date:
            writer = writer.partitionBy(_DATE)
        writer.save(str(writing))
        self._swap(name, writing)
        count = self.read(name, table).count()
        if not count and by_date:
            self.add_columns(name, table)
        return count

    def add_columns(self, name: str, like: DataFrame) -> None:
        """Add a file without rows, so that readers of an empty table find its columns."""
        if self.format == PARQUET:
            day = self._make_path(self._at(name), f"{_DATE}={_ANY_DAY}")
            none = self._spark.createDataFrame([], like.schema)
            none.write.mode("overwrite").parquet(str(day))

    def move_in(self, name: str, files: Iterable[DayFile]) -> None:
        """Replace the table of this name by files in ``local_scratch``.

        They are partitioned by day, as in ``write``.
        """
        writing = self.local_scratch(name)
        assert writing is not None
        writing.mkdir()
        for found in files:
            day = writing / f"{_DATE}={found.day}"
            day.mkdir(exist_ok=True)
            found.file.rename(day / found.file.name)
        self._swap(name, self._at(_WRITING + name))

    def append(self, name: str, rows: DataFrame, batch: int) -> None:
        """Add the rows of a micro-batch, in files with its number in their names.

        Files of the same micro-batch that a killed run has left are deleted first.
        """
        writing = self._at(_WRITING + name)
        dated = rows.withColumn(_DATE, sql.to_date("ts"))
        dated.write.mode("overwrite").format(self.format).partitionBy(_DATE).save(str(writing))
        prefix = f"batch-{batch:019}-"
        self._delete_files(self._at(name), prefix)
        for day in self._files.listStatus(writing):
            if day.isDirectory():
                self._move_files(day.getPath(), self._make_path(self._at(name), _name(day)), prefix)
        self._files.delete(writing, True)

    def _delete_files(self, table: Any, prefix: str) -> None:
        if not self._files.exists(table):
            return
        for day in self._files.listStatus(table):
            for file in self._files.listStatus(day.getPath()) if day.isDirectory() else ():
                if _name(file).startswith(prefix):
                    self._files.delete(file.getPath(), False)

    def _move_files(self, day: Any, target: Any, prefix: str) -> None:
        self._files.mkdirs(target)
        for number, file in enumerate(self._files.listStatus(day)):
            suffix = _name(file)[_name(file).index(".") :]
            moved = self._make_path(target, f"{prefix}{number:05}{suffix}")
            if not self._files.rename(file.getPath(), moved):
                raise OSError(f"{file.getPath()} could not be renamed to {moved}")

    def read(self, name: str, like: DataFrame) -> DataFrame:
        """A written table, with the columns of ``like`` and ``date``."""
        fields = [*like.schema.fields, StructField(_DATE, DateType())]
        schema = StructType(fields) if "ts" in like.columns else like.schema
        return self._spark.read.schema(schema).format(self.format).load(escape(str(self._at(name))))

    def _swap(self, name: str, writing: Any) -> None:
        table, replaced = self._at(name), self._at(_REPLACED + name)
        paths = self._local_path(writing), self._local_path(table)
        if paths[0] and paths[1] and exchange(paths[0], paths[1]):
            self._files.delete(writing, True)
            return
        if self._files.exists(table) and not self._files.rename(table, replaced):
            raise OSError(f"{table} could not be renamed")
        if not self._files.rename(writing, table):
            raise OSError(f"{writing} could not be renamed to {name}")
        self._files.delete(replaced, True)

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Write the manifest, last of all; a folder without it is incomplete."""
        self._write_json(self._manifest, content)

    def read_manifest(self) -> dict[str, Any] | None:
        """The manifest; ``None`` if no run has finished."""
        return self._read_json(self._manifest)

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        writing = self._at(_WRITING + "manifest")
        stream = self._files.create(writing, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        self._files.delete(self._at(name), False)
        self._files.rename(writing, self._at(name))

    def _read_json(self, name: str) -> dict[str, Any] | None:
        text = self._read_file(self._at(name))
        if text is None:
            return None
        found: dict[str, Any] = json.loads(text)
        return found

    def _read_file(self, path: Any) -> str | None:
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return str(self._read_text(stream, "UTF-8"))
        finally:
            stream.close()

    def delete_manifest(self) -> None:
        """Delete the manifest, because the tables are about to differ in age."""
        self._files.delete(self._at(self._manifest), False)

    def scratch(self, name: str) -> str:
        """A path for temporary files, which this run or, if it is killed, the next one deletes."""
        return str(self._at(_WRITING + name))

    def local_scratch(self, name: str) -> Path | None:
        """As ``scratch``; ``None`` if only Hadoop can write files there."""
        return self._local_path(self._at(_WRITING + name))

    def _local_path(self, path: Any) -> Path | None:
        if str(self._files.getScheme()) != "file":
            return None
        return Path(str(self._files.makeQualified(path).toUri().getPath()))

    def begin_stream(self) -> None:
        """Mark the beginning of a streaming run with its format, before anything is written."""
        self._write_json(_STREAM, {"format": self.format})

    def has_stream(self) -> bool:
        """Whether a streaming run has begun here."""
        return bool(self._files.exists(self._at(_CHECKPOINT)))

    def read_stream_format(self) -> str | None:
        """The format that the streaming run writes; ``None`` if unknown."""
        found = self._read_json(_STREAM) or self.read_manifest() or {}
        file_format = found.get("format")
        return None if file_format is None else str(file_format)

    def read_stream_offset(self) -> dict[str, Any] | None:
        """The end of the last micro-batch that the streaming run has planned."""
        folder = self._make_path(self._at(_CHECKPOINT), "offsets")
        if not self._files.exists(folder):
            return None
        names = [_name(status) for status in self._files.listStatus(folder)]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            return None
        text = self._read_file(self._make_path(folder, str(max(numbers)))) or ""
        try:
            # A version, Spark's settings, and the offset of each source.
            found: dict[str, Any] = json.loads(text.splitlines()[-1])
        except (IndexError, ValueError):
            return None
        return found

    @property
    def checkpoint(self) -> str:
        """The checkpoint folder of a streaming run."""
        return str(self._at(_CHECKPOINT))

    def delete_stream(self) -> None:
        """Delete the state of a streaming run, so that the next one starts over."""
        self._files.delete(self._at(_CHECKPOINT), True)
        self._files.delete(self._at(_STREAM), False)

    def delete_scratch(self, name: str) -> None:
        self._files.delete(self._at(_WRITING + name), True)

    def _at(self, name: str) -> Any:
        return self._make_path(self._root, name)


def escape(path: str) -> str:
    """Escape a path for Spark, which would read ``[1]`` in it as a glob pattern."""
    return _PATTERN.sub(r"\\\g<0>", path)


def _name(status: Any) -> str:
    return str(status.getPath().getName())
