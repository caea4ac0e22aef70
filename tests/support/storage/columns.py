"""Conversion of columns to the objects of ``codec.batches``, to compare the two decoders."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec.batches import BatchRecord, decode_batch
from storage.columnar.batch_columns import check_crcs, read_batch_columns
from storage.columnar.record_columns import RecordColumns, read_record_columns
from storage.log.compression import decompress

Rows = list[tuple[int, BatchRecord]]


def read_rows(batches: Sequence[bytes]) -> Rows:
    """Decode records through columns: batch index and record, without headers."""
    columns = read_batch_columns(batches)
    check_crcs(columns)
    return compute_rows(read_record_columns(columns, decompress))


def compute_rows(records: RecordColumns) -> Rows:
    def read(start: int, length: int) -> bytes | None:
        return None if length < 0 else records.data[start : start + length]

    fields = (
        records.batches,
        records.offsets,
        records.timestamps,
        records.key_starts,
        records.key_lengths,
        records.value_starts,
        records.value_lengths,
    )
    return [
        (batch, BatchRecord(offset, time, read(key, key_length), read(value, value_length)))
        for batch, offset, time, key, key_length, value, value_length in zip(
            *(field.tolist() for field in fields), strict=True
        )
    ]


def decode_rows(batches: Sequence[bytes]) -> Rows:
    """Decode the same batch by batch."""
    return [
        (index, record._replace(headers=()))
        for index, batch in enumerate(batches)
        for record in decode_batch(batch, decompress=decompress).records
    ]
