"""Pieces of a log as Arrow rows; an unreadable part becomes one row that reports it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from pipeline.decoding.bounds import ALL, Bounds, select_batches, select_records, select_rows
from pipeline.decoding.byte_source import BytesInMemory
from pipeline.decoding.record_rows import RecordRows, make_damage_row
from pipeline.decoding.scan import KEPT_BYTES, Damage, Piece, scan_batches
from pipeline.schema import RECORDS, UNREADABLE_BATCH
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns, split_block
from storage.columnar.record_columns import RecordColumns, read_record_columns
from storage.log.compression import decompress

MAX_COMPRESSED_BYTES = 512 << 10
"""Compressed bytes decoded at a time, because their uncompressed size is unknown."""

Columns = tuple[BatchColumns, RecordColumns]


def decode_blocks(data: bytes, partition: int = 0, schema: pa.Schema = RECORDS) -> pa.RecordBatch:
    """The rows of the batches in a segment file's bytes; damage becomes rows and does not raise.

    ``schema`` is ``RECORDS`` or a subset of its columns; other columns are not decoded.
    """
    found = [
        rows
        for piece in scan_batches(BytesInMemory(data))
        for rows in decode_piece(piece, partition, schema)
    ]
    if not found:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.concat_batches(found)


def decode_piece(
    piece: Piece, partition: int, schema: pa.Schema, bounds: Bounds = ALL
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece within the bounds, with columns of ``schema.RECORDS``."""
    for found in read_records(piece, bounds):
        if not isinstance(found, Damage):
            yield RecordRows(partition, *found).make(schema)
        elif bounds.holds_offset(found.offset):
            yield make_damage_row(
                schema, partition, found.offset, found.data, found.problem, found.detail
            )


def read_records(piece: Piece, bounds: Bounds = ALL) -> Iterator[Columns | Damage]:
    """The records of a piece within the bounds.

    A batch with a valid CRC but malformed records is damage.
    """
    if isinstance(piece, Damage):
        yield piece
        return
    wanted = select_batches(piece, bounds)
    for part in _split_compressed(wanted):
        try:
            columns = read_record_columns(part, decompress)
        except CodecError:
            yield from _read_one_by_one(part, bounds)
            continue
        records = select_records(columns, bounds)
        if len(records.offsets):
            yield part, records


def find_first_offset(pieces: Iterable[Piece], bounds: Bounds) -> int | None:
    """The offset of the first record of these pieces within the bounds."""
    for piece in pieces:
        for found in read_records(piece, bounds):
            if not isinstance(found, Damage):
                return int(found[1].offsets[0])
    return None


def _split_compressed(batches: BatchColumns) -> Iterator[BatchColumns]:
    if not len(batches.starts):
        return
    if not batches.compressions.any():
        yield batches
        return
    numbers = np.cumsum(batches.sizes) // MAX_COMPRESSED_BYTES
    for number in np.unique(numbers):
        yield select_rows(batches, numbers == number)


def _read_one_by_one(batches: BatchColumns, bounds: Bounds) -> Iterator[Columns | Damage]:
    for start, size in zip(batches.starts.tolist(), batches.sizes.tolist(), strict=True):
        data = batches.data[start : start + size]
        batch = split_block(data)
        try:
            records = select_records(read_record_columns(batch, decompress), bounds)
        except CodecError as error:
            offset = int(batch.base_offsets[0])
            kept = data[:KEPT_BYTES]
            yield Damage(0, size, offset, UNREADABLE_BATCH, str(error), kept)
            continue
        if len(records.offsets):
            yield batch, records
