"""One pass over a slice of the log: what each record would leave in a store.

A task folds only within a block: of non-transactional records it keeps the last of each key, since
earlier ones cannot be current. The fate of a transaction is known only with all markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.decoding.scan import Damage
from pipeline.source.logs.group_log import SegmentSlice
from pipeline.source.logs.segment_log import read_segment_slice
from storage.codec.batches import decode_batch, decode_marker
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns, Int64Array
from storage.columnar.block_fold import compute_latest_keys, pack_records
from storage.columnar.record_columns import RecordColumns, read_record_columns, slice_bytes
from storage.log.compression import decompress
from storage.transfer.sorted_files import LOG, SortedFileWriter, pack_log_key

RECORD, MARKER, PRODUCER, PART, DAMAGE = "record", "marker", "producer", "part", "damage"

SCANNED = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),  # the number of the slice
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("packed", pa.binary()),  # the entry for ``latest``; null for a tombstone
        pa.field("producer_id", pa.int64()),  # of a record only if it awaits a marker
        pa.field("producer_epoch", pa.int32()),
        pa.field("committed", pa.bool_()),
        pa.field("detail", pa.string()),
    ]
)


@dataclass(slots=True)
class PartFound:
    """Statistics of a slice. ``last_offset`` is -1 if it has no batch."""

    first_offset: int = -1
    last_offset: int = -1
    batches: int = 0
    records: int = 0
    bytes: int = 0
    last_ms: int = 0
    highest_ms: int = 0
    highest_producer_id: int = -1
    waiting: int = 0
    files: tuple[str, ...] = ()

    def add(self, batches: BatchColumns) -> None:
        """Count a block."""
        if self.first_offset < 0:
            self.first_offset = int(batches.base_offsets[0])
        self.last_offset = int(batches.last_offsets[-1])
        self.batches += len(batches.starts)
        self.records += int(batches.counts.sum())
        self.bytes += int(batches.sizes.sum())
        self.last_ms = int(batches.max_timestamps[-1])
        self.highest_ms = max(self.highest_ms, int(batches.max_timestamps.max()))
        self.highest_producer_id = max(self.highest_producer_id, int(batches.producer_ids.max()))


@dataclass(frozen=True, slots=True)
class Place:
    """A slice by its number, and the folder for its log files, ``None`` to write none.

    ``attempt`` distinguishes attempts of the same task.
    """

    number: int
    slice: SegmentSlice
    folder: Path | None
    attempt: int


def scan_slice(place: Place) -> Iterator[pa.RecordBatch]:
    """The rows of ``SCANNED`` of a slice; its batches go unchanged into sorted files."""
    found, partition = PartFound(), place.slice.partition
    name = f"{LOG}-{partition:05}-{place.number:06}-{place.attempt}"
    writer = None if place.folder is None else SortedFileWriter(place.folder, LOG, name)
    for piece in read_segment_slice(place.slice):
        if isinstance(piece, Damage):
            yield _make_damage(place, piece.offset, piece.problem, piece.detail)
            continue
        found.add(piece)
        if writer is not None:
            _write(writer, partition, piece)
        try:
            records = read_record_columns(piece, decompress)
            markers = list(_find_markers(place, piece))
        except CodecError as error:
            detail = f"{place.slice.file}, {error}"
            yield _make_damage(place, int(piece.base_offsets[0]), "unreadable_batch", detail)
            continue
        yield _make_records(place, piece, records, found)
        yield from markers
        yield from _find_producers(place, piece)
    if writer is not None:
        found.files = tuple(writer.close())
    yield _make_row(place, PART, max(found.first_offset, 0), detail=json.dumps(asdict(found)))


def _write(writer: SortedFileWriter, partition: int, batches: BatchColumns) -> None:
    values = slice_bytes(batches.data, batches.starts, batches.sizes)
    for base_offset, value in zip(batches.base_offsets.tolist(), values, strict=True):
        writer.put(pack_log_key(partition, base_offset), value)


def _make_records(
    place: Place, batches: BatchColumns, records: RecordColumns, found: PartFound
) -> pa.RecordBatch:
    keys = compute_latest_keys(records)
    are_control = batches.are_control[records.batches]
    producers = batches.producer_ids[records.batches]
    are_there = (records.key_lengths >= 0) & ~are_control
    are_tombstones = records.value_lengths < 0
    wait = are_there & ~are_tombstones & (producers >= 0)
    wait &= batches.are_transactional[records.batches]
    candidates = np.flatnonzero(wait).tolist()
    waiting = [index for index in candidates if keys[index][:2] == b"\0\1"]
    are_plain = are_there.copy()
    are_plain[waiting] = False
    chosen = {
        *waiting,
        *_find_last(keys, np.flatnonzero(are_plain)),
        # A deletion also drops earlier pending records, whatever follows it.
        *_find_last(keys, np.flatnonzero(are_plain & are_tombstones)),
    }
    found.waiting += len(waiting)
    indices = np.array(sorted(chosen), dtype=np.int64)
    return _make_record_rows(place, records, keys, indices, (producers, set(waiting)))


def _find_last(keys: Sequence[bytes], indices: Int64Array) -> list[int]:
    rows: list[int] = indices.tolist()
    return list(dict(zip((keys[row] for row in rows), rows, strict=True)).values())


def _make_record_rows(
    place: Place,
    records: RecordColumns,
    keys: Sequence[bytes],
    indices: Int64Array,
    waiting: tuple[Int64Array, set[int]],
) -> pa.RecordBatch:
    producers, rows = waiting[0], indices.tolist()
    known = {
        "offset": records.offsets[indices],
        "key": [keys[row] for row in rows],
        "packed": pack_records(records, indices),
        "producer_id": [int(producers[row]) if row in waiting[1] else None for row in rows],
    }
    return _make_rows(place, RECORD, len(rows), known)


def _find_markers(place: Place, batches: BatchColumns) -> Iterator[pa.RecordBatch]:
    for index in np.flatnonzero(batches.are_control).tolist():
        batch = decode_batch(batches.data, int(batches.starts[index]), decompress=decompress)
        for record in batch.records:
            marker = decode_marker(record)
            if marker is not None:
                yield _make_row(
                    place,
                    MARKER,
                    record.offset,
                    producer_id=batch.producer_id,
                    committed=marker.committed,
                )


def _find_producers(place: Place, batches: BatchColumns) -> Iterator[pa.RecordBatch]:
    """The last batch of each producer with a transaction."""
    last: dict[int, int] = {}
    for index in np.flatnonzero(batches.are_transactional & ~batches.are_control).tolist():
        last[int(batches.producer_ids[index])] = index
    for producer_id, index in last.items():
        yield _make_row(
            place,
            PRODUCER,
            int(batches.base_offsets[index]),
            producer_id=producer_id,
            producer_epoch=int(batches.producer_epochs[index]),
        )


def _make_damage(place: Place, offset: int, problem: str, detail: str) -> pa.RecordBatch:
    content = {"problem": problem, "detail": detail}
    return _make_row(place, DAMAGE, offset, detail=json.dumps(content))


def _make_row(place: Place, kind: str, offset: int, **known: Any) -> pa.RecordBatch:
    columns = {name: [value] for name, value in known.items()}
    return _make_rows(place, kind, 1, {"offset": [offset], **columns})


def _make_rows(place: Place, kind: str, count: int, known: dict[str, Any]) -> pa.RecordBatch:
    constants = {"kind": kind, "part": place.number, "partition": place.slice.partition}
    arrays = []
    for field in SCANNED:
        if field.name in constants:
            arrays.append(pa.array([constants[field.name]] * count, field.type))
        elif field.name in known:
            arrays.append(pa.array(known[field.name], field.type))
        else:
            arrays.append(pa.nulls(count, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCANNED)
