"""Looking into a stored batch for the record that a timestamp asks for.

It runs on the event loop over what a client wrote, so both the bytes that a compressed batch may
become and the records that are looked at are bounded.
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
"""What a compressed batch of a compacted topic may come to: it is unpacked again and again."""
RECORDS_MAX: Final = 20_000
"""Of a batch: so many are looked at when it is produced, in one turn."""
STEP: Final = 1_000
"""Records that are looked at in one step."""


def find_record(data: bytes, timestamp: int) -> Steps[tuple[int, int] | None]:
    """The first (offset, timestamp) of a batch that is at or after ``timestamp``, in steps.

    Of a batch that cannot be looked into, or not within bounds, it is the first record, with the
    timestamp of the header: a reader that starts there misses nothing. ``None`` where no record
    reaches the timestamp.
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
            raise CodecError("a record of negative length")
        delta, offset_at = wire.read_zigzag(records, start + 1, 10)
        if header.base_timestamp + delta >= timestamp:
            offset_delta, _ = wire.read_zigzag(records, offset_at)
            return header.base_offset + offset_delta, header.base_timestamp + delta
        pos = start + length
        if number % STEP == 0:
            yield
    return None
