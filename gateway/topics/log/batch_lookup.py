"""Finds the first record of a stored batch at or after a timestamp.

It runs on the event loop on data that a client wrote, so the decompressed size and the number of
records are bounded.
"""

from __future__ import annotations

from typing import Final

from coordinator.runtime.loop.slices import Steps
from storage.codec import wire
from storage.codec.batches import HEADER_SIZE, BatchHeader, read_batch_header
from storage.codec.errors import CodecError
from storage.log.compression import decompress

UNPACKED_BYTES_MAX: Final = 16 << 20
DECODED_BYTES_MAX: Final = 4 << 20
"""Decompressed size limit in a compacted topic, where batches are decompressed repeatedly."""
RECORDS_MAX: Final = 20_000
"""Records of a batch; Produce checks them all in one iteration."""
STEP: Final = 1_000
"""Records examined in one step."""


def find_record(data: bytes, timestamp: int) -> Steps[tuple[int, int] | None]:
    """The (offset, timestamp) of the batch's first record at or after ``timestamp``, in steps.

    For a batch that is damaged or exceeds the bounds, this is the base offset with the header's
    largest timestamp: a consumer that starts there misses no record. ``None`` if all records are
    older.
    """
    header = read_batch_header(data)
    try:
        if header.count > RECORDS_MAX:
            raise CodecError("too many records")
        records = data[HEADER_SIZE : header.size]
        if header.compression:
            records = decompress(header.compression, records, max_bytes=UNPACKED_BYTES_MAX)
        return (yield from _find(header, records, timestamp))
    except wire.BAD_INPUT:
        return header.base_offset, header.max_timestamp


def _find(header: BatchHeader, records: bytes, timestamp: int) -> Steps[tuple[int, int] | None]:
    pos = 0
    for number in range(1, header.count + 1):
        length, start = wire.read_zigzag(records, pos)
        if length < 0:
            raise CodecError("negative record length")
        delta, offset_at = wire.read_zigzag(records, start + 1, 10)
        if header.base_timestamp + delta >= timestamp:
            offset_delta, _ = wire.read_zigzag(records, offset_at)
            return header.base_offset + offset_delta, header.base_timestamp + delta
        pos = start + length
        if number % STEP == 0:
            yield
    return None
