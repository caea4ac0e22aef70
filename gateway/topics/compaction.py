"""Compaction of a partition: of each key the last record stays, at its own offset.

A little at a time, on the event loop, and only in segments that nothing more is written to. Offsets
of a segment have no gaps, so a run of batches of which nothing stays becomes one batch without
records, as Kafka's cleaner leaves them. Records without a key stay. What marks a key as deleted
stays for a day, so that readers come by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway.topics.files import write_at
from gateway.topics.partition_log import PartitionLog
from gateway.topics.records import UNPACKED_BYTES_MAX
from gateway.topics.segment import Segment
from storage.codec.batches import (
    NO_PRODUCER_ID,
    Batch,
    BatchRecord,
    compute_max_timestamp,
    decode_batch,
    read_batch_header,
    reencode_batch,
)
from storage.codec.errors import CodecError
from storage.compression import decompress

DELETE_RETENTION_MS: Final = 86_400_000
_RUN_MAX: Final = (1 << 31) - 1
_UNCOMPRESSED: Final = ~0x07


def compact_in_steps(log: PartitionLog, now_ms: int, segment_bytes: int) -> Iterator[Path | None]:
    """Compact the segments that are complete now, in steps; appends and reads may come between.

    Yields a file that is to be made durable before the next step, or ``None``. Raises ``OSError``,
    where the records are as they were; so they are where the steps are not gone to their end.
    """
    closed, newest = log.segments[:-1], log.segments[-1:]
    last_offsets: dict[bytes, int] = {}
    for segment in (*closed, *newest):
        for data in read_batches(log, segment):
            for record in _decode(data):
                if record.key is not None:
                    last_offsets[record.key] = record.offset
            yield None
    horizon_ms = now_ms - DELETE_RETENTION_MS
    group: list[Segment] = []
    writer = _Writer()
    for segment in closed:
        if group and (writer.size >= segment_bytes or group[-1].next_offset != segment.base_offset):
            yield from _put_in_place(log, group, writer)
            group, writer = [], _Writer()
        group.append(segment)
        for data in read_batches(log, segment):
            writer.add(data, last_offsets, horizon_ms)
            yield None
    if group:
        yield from _put_in_place(log, group, writer)
    log.compacted_bytes = log.closed_bytes


def read_batches(log: PartitionLog, segment: Segment) -> Iterator[bytes]:
    """The batches of a segment, one by one; it ends where the partition is gone meanwhile."""
    if not segment.is_loaded:
        for _ in segment.load():
            pass
    for located in segment.list_batches():
        if segment not in log.segments:
            return
        yield segment.read_batch(located)


def compact_batch(data: bytes, last_offsets: dict[bytes, int], horizon_ms: int) -> bytes | None:
    """The batch with the records that stay, or ``None`` where none does.

    The same bytes where all stay, and where the batch cannot be looked into.
    """
    try:
        batch = decode_batch(data, decompress=_decompress)
    except CodecError:
        return data
    kept = tuple(
        record
        for record in batch.records
        if record.key is None
        or (
            last_offsets.get(record.key, record.offset) <= record.offset
            and (record.value is not None or record.timestamp > horizon_ms)
        )
    )
    if len(kept) == len(batch.records):
        return data
    return reencode_batch(_with_records(batch, kept)) if kept else None


def _with_records(batch: Batch, kept: tuple[BatchRecord, ...]) -> Batch:
    return replace(
        batch,
        attributes=batch.attributes & _UNCOMPRESSED,
        max_timestamp=compute_max_timestamp(batch, kept),
        count=len(kept),
        records=kept,
    )


def _decode(data: bytes) -> Sequence[BatchRecord]:
    try:
        return decode_batch(data, decompress=_decompress).records
    except CodecError:
        return ()


def _decompress(codec: int, data: bytes) -> bytes:
    return decompress(codec, data, max_bytes=UNPACKED_BYTES_MAX)


def _put_in_place(
    log: PartitionLog, group: Sequence[Segment], writer: _Writer
) -> Iterator[Path | None]:
    """Write what stays of these segments, and put it in their place."""
    batches = writer.finish()
    draft = group[0].path.with_suffix(".draft")
    with draft.open("wb") as file:
        write_at(file.fileno(), b"".join(batches), 0)
    yield draft
    log.replace_segments(group, draft, [read_batch_header(data) for data in batches])


class _Writer:
    """Batches that stay, with runs of offsets between them of which nothing does."""

    def __init__(self) -> None:
        self.size = 0
        self._batches: list[bytes] = []
        self._run: Batch | None = None

    def add(self, data: bytes, last_offsets: dict[bytes, int], horizon_ms: int) -> None:
        """The next batch, whose offsets follow those of the one before."""
        kept = compact_batch(data, last_offsets, horizon_ms)
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

    def finish(self) -> list[bytes]:
        """All batches."""
        self._end_run()
        return self._batches

    def _end_run(self) -> None:
        if self._run is not None:
            self._append(reencode_batch(self._run))
            self._run = None

    def _append(self, data: bytes) -> None:
        self._batches.append(data)
        self.size += len(data)


def _make_empty(base_offset: int, last_offset: int) -> Batch:
    """A batch without records, of no producer."""
    return Batch(base_offset, last_offset, 0, 0, 0, 0, -1, -1, NO_PRODUCER_ID, -1, -1, 0, ())
