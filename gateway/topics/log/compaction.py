"""Compaction of a partition: of each key the last record stays, at its own offset.

A little at a time, on the event loop, and only in segments that nothing more is written to. Offsets
of a segment have no gaps, so a run of batches of which nothing stays becomes one batch without
records, as Kafka's cleaner leaves them. Records without a key stay. What marks a key as deleted
stays for a day, so that readers come by. What is written is never more than what was read, and of
neither is more than a batch in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from gateway.topics.log.partition_log import DRAFT_SUFFIX, PartitionLog
from gateway.topics.log.rewriting import LastOffsets, compact_batch, look_into
from gateway.topics.log.segment import Segment
from storage.codec.batch_encoding import reencode_batch
from storage.codec.batches import NO_PRODUCER_ID, Batch, read_batch_header

DELETE_RETENTION_MS: Final = 86_400_000
_RUN_MAX: Final = (1 << 31) - 1


def compact_in_steps(log: PartitionLog, now_ms: int, segment_bytes: int) -> Iterator[Path | None]:
    """Compact the segments that are complete now, in steps; appends and reads may come between.

    Yields a file that is to be made durable before the next step, or ``None``. Raises ``OSError``,
    where the records are as they were; so they are where the steps are not gone to their end.
    """
    closed, newest = deque(log.segments[:-1]), log.segments[-1:]
    last_offsets = LastOffsets()
    for segment in (*closed, *newest):
        yield from log.load_in_steps(segment)
        for data in read_batches(log, segment):
            looked = yield from look_into(data)
            for record in () if looked is None else looked.found:
                last_offsets.note(record)
            yield None
    while closed and closed[0] in log.segments:
        yield from _compact_some(log, closed, last_offsets, now_ms, segment_bytes)
    log.compacted_bytes = log.closed_bytes


def _compact_some(
    log: PartitionLog,
    left: deque[Segment],
    last_offsets: LastOffsets,
    now_ms: int,
    segment_bytes: int,
) -> Iterator[Path | None]:
    """Write what stays of the first segments into one file, and put it in their place."""
    group: list[Segment] = []
    draft = left[0].path.with_suffix(DRAFT_SUFFIX)
    with draft.open("wb") as file:
        writer = _Writer(file, log.make_segment(left[0].base_offset))
        while left and (
            not group
            or (writer.made.size < segment_bytes and group[-1].next_offset == left[0].base_offset)
        ):
            group.append(left.popleft())
            yield from log.load_in_steps(group[-1])
            for data in read_batches(log, group[-1]):
                kept = yield from compact_batch(data, last_offsets, now_ms - DELETE_RETENTION_MS)
                writer.add(data, kept)
                yield None
        writer.finish()
    yield draft
    log.replace_segments(group, draft, writer.made)


def read_batches(log: PartitionLog, segment: Segment) -> Iterator[bytes]:
    """The batches of a loaded segment, one by one; it ends where that is dropped meanwhile."""
    batches = segment.list_batches()
    # Before the file is looked at, which may be gone.
    while segment in log.segments and (located := next(batches, None)) is not None:
        yield segment.read_batch(located)


class _Writer:
    """Writes batches that stay, with runs of offsets between them of which nothing does.

    ``made`` is the segment that the file becomes.
    """

    def __init__(self, file: BinaryIO, made: Segment) -> None:
        self.made = made
        self._file = file
        self._run: Batch | None = None

    def add(self, data: bytes, kept: bytes | None) -> None:
        """What stays of the next batch, whose offsets follow those of the one before."""
        if kept is not None:
            self._end_run()
            self._append(kept)
            return
        header = read_batch_header(data)
        if self._run is not None and header.last_offset - self._run.base_offset <= _RUN_MAX:
            self._run = replace(self._run, last_offset=header.last_offset)
            return
        self._end_run()
        self._run = _make_empty(header.base_offset, header.last_offset)

    def finish(self) -> None:
        """All is written, and in the file."""
        self._end_run()
        self._file.flush()

    def _end_run(self) -> None:
        if self._run is not None:
            self._append(reencode_batch(self._run))
            self._run = None

    def _append(self, data: bytes) -> None:
        self._file.write(data)
        self.made.note_written(read_batch_header(data))


def _make_empty(base_offset: int, last_offset: int) -> Batch:
    """A batch without records, of no producer."""
    return Batch(base_offset, last_offset, 0, 0, 0, 0, -1, -1, NO_PRODUCER_ID, -1, -1, 0, ())
