"""Compacts a partition: the last record of each key stays, at its offset.

Compaction runs on the event loop in small steps, on complete segments only. Offsets in a segment
have no gaps, so a run of batches without remaining records becomes one empty batch, as Kafka's log
cleaner leaves them. Records without a key stay. Tombstones stay for a day, so that consumers see
them. The output is never larger than the input, and one batch of each is in memory at a time.
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
    """Compact the segments that are complete now, in steps; appends and reads may interleave.

    Yields a file that must be fsynced before the next step, or ``None``. Raises ``OSError``. No
    record is lost after an error or if the steps are abandoned.
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
    """Write the remaining records of the first segments to one file, and replace them by it."""
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
    """The batches of a loaded segment; ends early if the segment is deleted meanwhile."""
    batches = segment.list_batches()
    # Check first: the file of a deleted segment is gone.
    while segment in log.segments and (located := next(batches, None)) is not None:
        yield segment.read_batch(located)


class _Writer:
    """Writes the remaining batches, and one empty batch for each run of removed ones.

    ``made`` is the segment that the file becomes.
    """

    def __init__(self, file: BinaryIO, made: Segment) -> None:
        self.made = made
        self._file = file
        self._run: Batch | None = None

    def add(self, data: bytes, kept: bytes | None) -> None:
        """Add the next batch ``data``, of which ``kept`` remains."""
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
        """Write the last run and flush the file."""
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
    """A batch without records and without a producer."""
    return Batch(base_offset, last_offset, 0, 0, 0, 0, -1, -1, NO_PRODUCER_ID, -1, -1, 0, ())
