"""Parses one batch of a compacted topic, and rewrites it without its superseded records.

Both run in steps, because they process untrusted data on the event loop. A batch that is damaged or
exceeds the bounds is left alone; Produce rejects such batches in a compacted topic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

from gateway.topics.log.batch_lookup import DECODED_BYTES_MAX, RECORDS_MAX
from storage.codec import wire
from storage.codec.batch_encoding import replace_records
from storage.codec.batches import HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from storage.codec.errors import CodecError, TruncatedError
from storage.log.compression import compress, decompress

KEYS_MAX: Final = 1_000_000
STEP: Final = 1_000
"""Records examined in one step."""

_DIGEST_BYTES = 20
_MIN_RECORD_SIZE = 7


class LastOffsets:
    """The last offset of each of up to ``keys_max`` keys; long keys are stored as digests.

    A key beyond that limit keeps all its records, tombstones included, which is always safe.
    """

    __slots__ = ("_keys_max", "_offsets")

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._offsets: dict[bytes, int] = {}

    def note(self, record: FoundRecord) -> None:
        """Note a record; records must be noted in offset order."""
        if record.key is not None and (
            record.key in self._offsets or len(self._offsets) < self._keys_max
        ):
            self._offsets[record.key] = record.offset

    def keeps(self, record: FoundRecord, horizon_ms: int) -> bool:
        """Whether compaction keeps the record; it drops tombstones up to ``horizon_ms`` (wall)."""
        if record.key is None:
            return True
        last = self._offsets.get(record.key)
        if last is None:
            return True
        return last <= record.offset and (not record.is_mark or record.timestamp > horizon_ms)


class FoundRecord(NamedTuple):
    """A record and its position in the batch's records; ``is_mark``: it is a tombstone."""

    offset: int
    timestamp: int
    key: bytes | None
    is_mark: bool
    start: int
    end: int


class LookedInto(NamedTuple):
    """A parsed batch: its header, its decompressed records, and each record."""

    header: BatchHeader
    records: bytes
    found: Sequence[FoundRecord]


def look_into(data: bytes) -> Generator[None, None, LookedInto | None]:
    """Parse a batch in steps; ``None`` if it is damaged or exceeds the bounds."""
    try:
        header = read_batch_header(data)
        check_crc(data, 0, header)
        if header.count > RECORDS_MAX:
            return None
        records = data[HEADER_SIZE : header.size]
        if header.compression:
            records = decompress(header.compression, records, max_bytes=DECODED_BYTES_MAX)
        wire.check_count(records, 0, header.count, _MIN_RECORD_SIZE)
        found: list[FoundRecord] = []
        pos, last = 0, header.base_offset - 1
        for number in range(header.count):
            record = _read_record(header, records, pos)
            if not last < record.offset <= header.last_offset:
                raise CodecError(f"record offset {record.offset} is out of order or range")
            found.append(record)
            pos, last = record.end, record.offset
            if number % STEP == STEP - 1:
                yield
    except wire.BAD_INPUT:
        return None
    return LookedInto(header, records, found) if pos == len(records) else None


def _read_record(header: BatchHeader, records: bytes, start: int) -> FoundRecord:
    length, pos = wire.read_zigzag(records, start)
    end = pos + length
    if length < 0 or end > len(records):
        raise TruncatedError(f"record at byte {pos} has {length} bytes")
    delta, pos = wire.read_zigzag(records, pos + 1, 10)
    offset_delta, pos = wire.read_zigzag(records, pos)
    size, pos = wire.read_zigzag(records, pos)
    key = None
    if size >= 0:
        key = _shorten(records[pos : pos + size])
        pos += size
    value_size, pos = wire.read_zigzag(records, pos)
    if pos + max(value_size, 0) >= end:
        raise TruncatedError(f"record at byte {start} ends within its value")
    timestamp = header.max_timestamp if header.is_log_append_time else header.base_timestamp + delta
    offset = header.base_offset + offset_delta
    return FoundRecord(offset, timestamp, key, value_size < 0, start, end)


def _shorten(key: bytes) -> bytes:
    """The key if it is short, else a digest, longer than any key that is stored as it is."""
    if len(key) < _DIGEST_BYTES:
        return key
    return hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()


def compact_batch(
    data: bytes, last_offsets: LastOffsets, horizon_ms: int
) -> Generator[None, None, bytes | None]:
    """Rewrite the batch with the records that compaction keeps; ``None`` if it keeps none.

    The result has the same compression and is never larger. ``data`` is returned unchanged if all
    records stay or the batch cannot be parsed.
    """
    looked = yield from look_into(data)
    if looked is None:
        return data
    header, records, found = looked
    kept = [record for record in found if last_offsets.keeps(record, horizon_ms)]
    if len(kept) == len(found):
        return data
    if not kept:
        return None
    yield
    left = b"".join([records[record.start : record.end] for record in kept])
    if header.compression:
        left = compress(header.compression, left)
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time:
        max_timestamp = max(record.timestamp for record in kept)
    made = replace_records(header, left, len(kept), max_timestamp)
    return made if len(made) <= len(data) else data
