"""Streaming queries over a log: micro-batches between offsets, which restarts read identically.

A stream keeps marks of the last records read with its offsets, and checks before each micro-batch
that the log still has them: a truncated, trimmed or replaced log is ``DataLoss``, or, with
``failOnDataLoss=false``, a row that reports it, after which the stream continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pipeline.decoding.bounds import Bounds
from pipeline.source.errors import OptionError
from pipeline.source.logs.group_log import GroupLog, LogTask, LossSlice
from pipeline.source.logs.marks import Mark
from pipeline.source.losses import Loss, find_losses
from pipeline.source.offset_ranges import check_loss, check_partitions, compute_start, limit_offsets
from pipeline.source.one_line import told_in_one_line
from pipeline.source.options import LATEST, LogOptions, Offsets
from pipeline.source.slice_reading import open_log, read_slices
from pipeline.source.stream_offset import JsonOffset, StreamOffset, read_offset, write_offsets


class GroupLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads up to what was durable, or complete in its file, when a micro-batch was planned."""

    def __init__(self, options: LogOptions, schema: pa.Schema) -> None:
        if options.ending_offsets is not None:
            raise OptionError("endingOffsets is only for batch queries")
        self._options = options
        self._schema = schema
        self._log: GroupLog | None = None
        self._target: dict[int, int] | None = None
        self._latest: dict[int, int] = {}

    @told_in_one_line
    def initialOffset(self) -> JsonOffset:  # noqa: N802
        """The start of a query without a checkpoint: the end of the log, unless options differ."""
        log = self._reopen()
        named = self._options.starting_offsets
        check_partitions(log, () if named is None else tuple(named.by_partition))
        default = Offsets(LATEST)
        starts = {
            partition: compute_start(log, self._options, partition, default)
            for partition in log.partitions
        }
        return StreamOffset(starts, log.identity, _find_marks(log, {}, starts, {})).write()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit ``maxOffsetsPerTrigger``."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @told_in_one_line
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the ends up to which the query reads."""
        self._target = self._find_ends()

    @told_in_one_line
    def latestOffset(self, start: JsonOffset, limit: ReadLimit) -> JsonOffset:  # noqa: N802
        """The end of the next micro-batch; before its start if the log was truncated."""
        known = read_offset(start)
        ends = self._find_ends()
        log = self._open()
        losses = self._find_losses(log, known)
        if self._target is not None:
            target = self._target
            ends = {part: min(end, target[part]) for part, end in ends.items() if part in target}
        self._latest = ends
        starts = _compute_starts(log, known, losses, ends)
        reachable = {partition: max(ends[partition], begin) for partition, begin in starts.items()}
        if isinstance(limit, ReadMaxRows) and _exceeds(starts, reachable, limit.max_rows):
            # Skip gaps of compaction, which could leave many micro-batches empty.
            begins = {
                partition: log.find_next(partition, begin, reachable[partition])
                for partition, begin in starts.items()
                if begin < reachable[partition]
            }
            reachable = limit_offsets({**starts, **begins}, reachable, limit.max_rows)
        kept = {part: offset for part, offset in known.offsets.items() if part not in losses}
        marks = {part: mark for part, mark in known.marks.items() if part not in losses}
        offsets = {**kept, **reachable}
        identity = log.identity or known.log
        return StreamOffset(offsets, identity, _find_marks(log, starts, offsets, marks)).write()

    def reportLatestOffset(self) -> JsonOffset | None:  # noqa: N802
        """The ends when the last micro-batch was planned."""
        return write_offsets(self._latest) if self._latest else None

    @told_in_one_line
    def partitions(self, start: JsonOffset, end: JsonOffset) -> Sequence[InputPartition]:
        """The tasks of a micro-batch; the first one reports losses."""
        log = self._open()
        known, planned = read_offset(start), read_offset(end)
        losses = self._find_losses(log, known)
        if self._options.fail_on_data_loss:
            # The log may have been truncated since the micro-batch was planned (before a restart).
            self._find_losses(log, planned)
        ends = {part: planned.offsets[part] for part in log.partitions if part in planned.offsets}
        starts = _compute_starts(log, known, losses, ends)
        wanted = [
            (partition, Bounds(starts[partition], stop))
            for partition, stop in sorted(ends.items())
            if stop > starts[partition]
        ]
        rows = [
            LossSlice(partition, loss.goes_on or 0, loss.detail)
            for partition, loss in losses.items()
        ]
        tasks = log.plan(wanted, self._options.min_partitions)
        return [LogTask(slices) for slices in ([rows] if rows else []) + tasks]

    @told_in_one_line
    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        yield from read_slices(partition.slices, self._options, self._schema)

    def stop(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _find_losses(self, log: GroupLog, known: StreamOffset) -> dict[int, Loss]:
        """Raise ``DataLoss`` for the first loss, unless ``failOnDataLoss`` is false."""
        losses = find_losses(log, known)
        for loss in losses.values():
            check_loss(self._options, f"{self._options.path}: {loss.detail}")
        return losses

    def _find_ends(self) -> dict[int, int]:
        log = self._reopen()
        return {partition: log.end(partition) for partition in log.partitions}

    def _open(self) -> GroupLog:
        return self._log or self._reopen()

    def _reopen(self) -> GroupLog:
        if self._log is None:
            self._log = open_log(self._options.path)
        else:
            self._log.refresh()
        return self._log


def _exceeds(starts: Mapping[int, int], ends: Mapping[int, int], most: int) -> bool:
    return sum(end - starts[partition] for partition, end in ends.items()) > most


def _compute_starts(
    log: GroupLog, known: StreamOffset, losses: Mapping[int, Loss], ends: Mapping[int, int]
) -> dict[int, int]:
    """New partitions start at their beginning, others where the log continues."""
    starts = {}
    for partition in ends:
        loss = losses.get(partition)
        goes_on = known.offsets.get(partition) if loss is None else loss.goes_on
        starts[partition] = log.beginning(partition) if goes_on is None else goes_on
    return starts


def _find_marks(
    log: GroupLog,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    known: Mapping[int, Mark],
) -> dict[int, Mark]:
    """The marks at these ends; unchanged for partitions without a new record."""
    found = {}
    for partition, end in ends.items():
        if partition not in log.partitions:
            continue
        beginning = log.beginning(partition)
        mark = known.get(partition)
        start = beginning if mark is None else starts.get(partition, beginning)
        if end > start:
            mark = log.find_mark(partition, start, end) or mark
        if mark is not None:
            found[partition] = mark
    return found
