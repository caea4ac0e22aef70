"""Marks of what a stream has read, which tell whether the log still has it.

Compaction removes records but never changes one: a batch keeps its offsets, or a subset of them. So
whatever is at the offsets of a batch that was read belongs to that batch, and a record that still
exists is the one that was read. Otherwise it is another log.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import crc32c
import numpy as np

from pipeline.decoding.bounds import Bounds, select_records, select_rows
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns
from storage.columnar.record_columns import RecordColumns, read_record_columns
from storage.log.compression import decompress

_HEAD = struct.Struct(">qqqq")
_LOOKED_AT = 16
"""Batches searched for a record: compaction leaves few empty ones, and damage is rare."""


class Mark(NamedTuple):
    """The last record that was read, and the offsets of its batch.

    ``checksum`` is the CRC-32C of its offset, timestamp, key and value.
    """

    base_offset: int
    last_offset: int
    offset: int
    checksum: int


def find_last_mark(batches: BatchColumns, bounds: Bounds) -> tuple[Mark, int] | None:
    """The mark of the last record within the bounds, and its batch's index."""
    wanted = (batches.last_offsets >= bounds.start_offset) & (batches.counts > 0)
    if bounds.end_offset is not None:
        wanted &= batches.base_offsets < bounds.end_offset
    for index in np.flatnonzero(wanted)[: -_LOOKED_AT - 1 : -1].tolist():
        records = _read(batches, index, bounds)
        if records is not None and len(records.offsets):
            base, last = int(batches.base_offsets[index]), int(batches.last_offsets[index])
            offset, checksum = int(records.offsets[-1]), _compute_checksum(records, -1)
            return Mark(base, last, offset, checksum), index
    return None


def find_overlaps(batches: BatchColumns, mark: Mark) -> list[int]:
    """The indexes of batches that share offsets with the mark's batch."""
    overlaps = (batches.base_offsets <= mark.last_offset) & (
        batches.last_offsets >= mark.base_offset
    )
    found: list[int] = np.flatnonzero(overlaps).tolist()
    return found


def find_difference(batches: BatchColumns, index: int, mark: Mark) -> str | None:
    """Why a batch cannot be what is left of the mark's batch; ``None`` if it can."""
    base, last = int(batches.base_offsets[index]), int(batches.last_offsets[index])
    if base < mark.base_offset or last > mark.last_offset:
        return (
            f"the batch has offsets {base} to {last}, but one of {mark.base_offset} to "
            f"{mark.last_offset} was read"
        )
    records = _read(batches, index, Bounds(mark.offset, mark.offset + 1))
    if records is None:
        return f"the batch of offsets {base} to {last} is no longer readable"
    if len(records.offsets) and _compute_checksum(records, 0) != mark.checksum:
        return f"the record at offset {mark.offset} is not the one that was read"
    return None


def _read(batches: BatchColumns, index: int, bounds: Bounds) -> RecordColumns | None:
    one = select_rows(batches, slice(index, index + 1))
    try:
        return select_records(read_record_columns(one, decompress), bounds)
    except CodecError:
        return None


def _compute_checksum(records: RecordColumns, index: int) -> int:
    key_length, value_length = int(records.key_lengths[index]), int(records.value_lengths[index])
    head = _HEAD.pack(
        int(records.offsets[index]), int(records.timestamps[index]), key_length, value_length
    )
    checksum = crc32c.crc32c(head)
    for starts, length in (
        (records.key_starts, key_length),
        (records.value_starts, value_length),
    ):
        start = int(starts[index])
        checksum = crc32c.crc32c(records.data[start : start + max(0, length)], checksum)
    return int(checksum)
