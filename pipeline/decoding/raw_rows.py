"""Rows in the schema of Spark's Kafka source (``schema.RAW``), without transaction markers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.decoding.arrays import make_int32s, make_int64s, make_timestamps
from pipeline.decoding.bounds import select_rows
from pipeline.decoding.byte_slices import Slices, make_binary
from pipeline.schema import HEADERS, TOPIC
from storage.codec.batches import decode_batch
from storage.columnar.batch_columns import BatchColumns
from storage.columnar.record_columns import RecordColumns
from storage.log.compression import decompress


def make_raw_rows(
    partition: int, batches: BatchColumns, records: RecordColumns, schema: pa.Schema
) -> pa.RecordBatch:
    """The records of a block in a schema, which has columns of Kafka's source."""
    are_control = batches.are_control[records.batches]
    if are_control.any():
        records = select_rows(records, ~are_control)
    arrays = [_make_column(name, partition, batches, records) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make_column(
    name: str, partition: int, batches: BatchColumns, records: RecordColumns
) -> pa.Array:
    count = len(records.offsets)
    match name:
        case "key":
            return _make_bytes(records, records.key_starts, records.key_lengths)
        case "value":
            return _make_bytes(records, records.value_starts, records.value_lengths)
        case "topic":
            return pa.array([TOPIC], pa.string()).take(pa.array(np.zeros(count, dtype=np.int32)))
        case "partition":
            return make_int32s(np.full(count, partition))
        case "offset":
            return make_int64s(records.offsets)
        case "timestamp":
            return make_timestamps(records.timestamps)
        case "timestampType":
            return make_int32s(batches.are_log_append_time[records.batches].astype(np.int64))
        case _:
            return _make_headers(batches, records)


def _make_bytes(records: RecordColumns, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    return make_binary(records.data, Slices(starts, lengths, lengths >= 0))


def _make_headers(batches: BatchColumns, records: RecordColumns) -> pa.Array:
    """Headers are rare: only batches with headers are decoded, record by record."""
    headers: list[list[dict[str, object]] | None] = [None] * len(records.offsets)
    rows = np.flatnonzero(records.have_headers)
    for batch in np.unique(records.batches[rows]).tolist():
        decoded = decode_batch(batches.data, int(batches.starts[batch]), decompress=decompress)
        by_offset = {record.offset: record.headers for record in decoded.records}
        for row in rows[records.batches[rows] == batch].tolist():
            found = by_offset[int(records.offsets[row])]
            headers[row] = [{"key": key, "value": value} for key, value in found]
    return pa.array(headers, HEADERS)
