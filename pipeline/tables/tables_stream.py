"""All tables of a growing log: ``records`` follows it, the others are computed from it again.

A micro-batch lies between offsets that are in Spark's checkpoint before it is read, so a
micro-batch of a killed run is read again identically, and its files replace the previous ones. Rows
of other tables may depend on later records (a marker, a member that revokes), so these tables are
computed from all of ``records`` by the code for batches, with the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline import session
from pipeline.source.errors import DataLoss, LogReplaced, OptionError, find_cause
from pipeline.source.losses import find_losses
from pipeline.source.slice_reading import open_log
from pipeline.source.stream_offset import read_offset
from pipeline.tables.end_offsets_file import EndOffset
from pipeline.tables.record_table import name_columns
from pipeline.tables.tables_job import RECORDS, TablesSummary, Tell, derive_tables
from pipeline.tables.writing import PARQUET, TableFolder

_POLL_S = 0.2
_TRIES = 10
_NO_SOURCE = "Python worker failed to connect back"
"""Spark gives the process of a Python source ten seconds, which no setting changes."""

FindEnds = Callable[[], list[EndOffset]]
"""Returns the end offsets of topics that are known when lag is computed."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """``trigger_s``: how often to look for new records; ``None`` to read the existing ones and
    stop.

    ``refresh_s``: how often to compute the other tables meanwhile; they always are at the end.
    """

    trigger_s: float | None = None
    refresh_s: float | None = None
    max_offsets: int | None = None
    file_format: str = PARQUET
    find_ends: FindEnds | None = None


def stream_tables(
    spark: SparkSession,
    path: str,
    out: str,
    options: StreamOptions,
    tell: Tell = lambda name, rows: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TablesSummary:
    """Continue the last streaming run into this folder, until the end or ``should_stop``.

    Tables of a batch run are replaced. Raise ``SourceError``, also if the folder is of another log
    or format, and Spark's errors.
    """
    more = {} if options.max_offsets is None else {"maxOffsetsPerTrigger": str(options.max_offsets)}
    source = session.stream_records(spark, path, startingOffsets="earliest", **more)
    records = name_columns(source)
    folder = TableFolder(spark, out, options.file_format)
    check_stream(folder, path, out)
    folder.recover()
    if not folder.has_stream():
        folder.delete_manifest()
        folder.begin_stream()
        folder.write(RECORDS, spark.createDataFrame([], records.schema))
    run = _Run(spark, folder, path, records, options, tell)
    writer = records.writeStream.foreachBatch(run.add)
    writer = writer.option("checkpointLocation", folder.checkpoint)
    if options.trigger_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.trigger_s} seconds")
    run_query(lambda: run.wait(writer.start(), should_stop))
    return run.finish()


def check_stream(folder: TableFolder, path: str, out: str) -> None:
    """Raise ``SourceError`` unless the streaming run of a folder can continue.

    It needs the same format, and the log that it has read: not another one, nor one that was
    truncated since.
    """
    if not folder.has_stream():
        return
    file_format = folder.read_stream_format()
    if file_format not in (None, folder.format):
        raise OptionError(
            f"{out} has tables in {file_format}, to which {folder.format} cannot be added: "
            f"use {file_format}, or start over without --stream"
        )
    offset = folder.read_stream_offset()
    if offset is None:
        return
    log = open_log(path)
    try:
        losses = find_losses(log, read_offset(offset))
    finally:
        log.close()
    for loss in losses.values():
        raise DataLoss(
            f"{out} has tables of another log than {path}: {loss.detail}; "
            "use another folder, or start over without --stream"
        )


def run_query(run: Callable[[], None]) -> None:
    """Run a query to its end; retry if Spark did not wait for its source's process.

    Nothing has been read in that case, and the query continues from its checkpoint. So it does if a
    file was replaced or merged between the planning of a micro-batch and its tasks.
    """
    for left in reversed(range(_TRIES)):
        try:
            return run()
        except StreamingQueryException as error:
            again = any(sign in str(error) for sign in (_NO_SOURCE, LogReplaced.__name__))
            if not (again and left):
                raise find_cause(error) or error from error
    raise AssertionError("the last attempt returns or raises")


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        folder: TableFolder,
        path: str,
        like: DataFrame,
        options: StreamOptions,
        tell: Tell,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._path = path
        self._like = spark.createDataFrame([], like.schema)
        self._options = options
        self._tell = tell
        self._busy = Lock()
        self._refreshed = time.monotonic()
        self._has_added = False

    def add(self, rows: DataFrame, batch: int) -> None:
        """Add one micro-batch, in a thread of Spark."""
        with self._busy:
            self._has_added = True
            self._folder.delete_manifest()
            self._folder.append(RECORDS, rows, batch)
            refresh_s = self._options.refresh_s
            if refresh_s is not None and time.monotonic() - self._refreshed >= refresh_s:
                self.derive()

    def finish(self) -> TablesSummary:
        """Compute the tables at the end; skip that if there were no new records."""
        manifest = self._folder.read_manifest()
        if self._has_added or self._options.find_ends is not None or manifest is None:
            return self.derive()
        return TablesSummary(manifest["tables"], manifest["problems"])

    def derive(self) -> TablesSummary:
        """Compute all other tables from the current records."""
        options = self._options
        found = derive_tables(
            self._spark,
            self._folder,
            self._path,
            self._like,
            [] if options.find_ends is None else options.find_ends(),
            self._tell,
        )
        self._refreshed = time.monotonic()
        return found

    def wait(self, query: StreamingQuery, should_stop: Callable[[], bool]) -> None:
        """Wait until the query ends, or stop it if requested, but never within a micro-batch."""
        try:
            # The stub wants whole seconds.
            while not query.awaitTermination(_POLL_S):  # type: ignore[arg-type]
                if should_stop():
                    with self._busy:
                        query.stop()
        finally:
            if query.isActive:
                query.stop()
