"""Streaming queries over a log: micro-batches between offsets, which a restart reads alike."""

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
from pipeline.schema import TOPIC
from pipeline.source.errors import OptionError
from pipeline.source.group_log import GroupLog, LogTask
from pipeline.source.offsets import check_loss, check_partitions, compute_start, limit_offsets
from pipeline.source.options import LATEST, LogOptions, Offsets
from pipeline.source.reading import open_log, read_slices

StreamOffset = dict[str, dict[str, int]]
"""As the Kafka source writes it into checkpoints: topic, partition, next offset."""


class GroupLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads up to what was durable, or whole in its file, when a micro-batch was planned."""

    def __init__(self, options: LogOptions, schema: pa.Schema) -> None:
        if options.ending_offsets is not None:
            raise OptionError("endingOffsets is for batch queries alone")
        self._options = options
        self._schema = schema
        self._log: GroupLog | None = None
        self._target: dict[int, int] | None = None
        self._latest: dict[int, int] = {}

    def initialOffset(self) -> StreamOffset:  # noqa: N802
        """Where a query without a checkpoint begins: at the end, unless options say otherwise."""
        log = self._reopen()
        named = self._options.starting_offsets
        check_partitions(log, () if named is None else tuple(named.by_partition))
        default = Offsets(LATEST)
        return _write(
            {
                partition: compute_start(log, self._options, partition, default)
                for partition in log.partitions
            }
        )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """``maxOffsetsPerTrigger``."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remembers the ends that the query goes up to."""
        self._target = self._find_ends()

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Where the next micro-batch ends."""
        known = _read(start)
        ends = self._find_ends() if self._target is None else self._target
        self._latest = ends
        starts = self._compute_starts(known, ends)
        reachable = {
            partition: max(ends[partition], begin)
            for partition, begin in starts.items()
            if partition in ends
        }
        if isinstance(limit, ReadMaxRows):
            reachable = limit_offsets(starts, reachable, limit.max_rows)
        return _write({**known, **reachable})

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Up to where there was something when the last micro-batch was planned."""
        return _write(self._latest) if self._latest else None

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        log = self._log or self._reopen()
        known, ends = _read(start), _read(end)
        present = {partition: ends[partition] for partition in log.partitions if partition in ends}
        starts = self._compute_starts(known, present)
        wanted = [
            (partition, Bounds(starts[partition], stop))
            for partition, stop in sorted(present.items())
            if stop > starts[partition]
        ]
        tasks = log.plan(wanted, self._options.min_partitions)
        return [LogTask(slices) for slices in tasks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        return read_slices(partition.slices, self._options, self._schema)

    def stop(self) -> None:
        """Lets go of the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _compute_starts(self, known: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
        """Partitions that are new begin at their beginning."""
        log = self._log or self._reopen()
        for partition, offset in known.items():
            if partition not in log.partitions:
                check_loss(self._options, f"partition {partition} is gone")
            elif offset < log.beginning(partition):
                beginning = log.beginning(partition)
                what = f"partition {partition} begins at offset {beginning}, not {offset}"
                check_loss(self._options, what)
            elif partition in ends and ends[partition] < offset:
                what = f"partition {partition} ends at offset {ends[partition]}, before {offset}"
                check_loss(self._options, what)
        return {partition: known.get(partition, log.beginning(partition)) for partition in ends}

    def _find_ends(self) -> dict[int, int]:
        log = self._reopen()
        return {partition: log.end(partition) for partition in log.partitions}

    def _reopen(self) -> GroupLog:
        if self._log is None:
            self._log = open_log(self._options.path)
        else:
            self._log.refresh()
        return self._log


def _write(offsets: Mapping[int, int]) -> StreamOffset:
    return {TOPIC: {str(partition): offset for partition, offset in sorted(offsets.items())}}


def _read(offset: StreamOffset) -> dict[int, int]:
    return {int(partition): value for partition, value in offset[TOPIC].items()}
