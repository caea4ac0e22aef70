"""Converts rows of Spark's Kafka source to ``schema.RECORDS``, with the segment decoder.

A consumer sees neither batch headers nor markers: their columns are null or those of a
non-transactional record, and each record counts as one batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decoding.record_rows import RecordRows
from pipeline.schema import RECORDS
from storage.columnar.batch_columns import PADDING, BatchColumns, Int64Array
from storage.columnar.record_columns import RecordColumns

KAFKA_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType")

_LOG_APPEND_TIME = 0x08
_UNKNOWN = ("partition_leader_epoch", "compression", "producer_epoch")


def decode_kafka_rows(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Decode rows with ``KAFKA_COLUMNS``; one batch per partition."""
    partitions = rows.column("partition")
    for partition in partitions.unique().to_pylist():
        wanted = rows.filter(pc.equal(partitions, partition))
        made = RecordRows(partition, *_make_columns(wanted)).make(RECORDS)
        for name in _UNKNOWN:
            field = RECORDS.field(name)
            index = RECORDS.get_field_index(name)
            made = made.set_column(index, field, pa.nulls(made.num_rows, field.type))
        yield made


def _make_columns(rows: pa.RecordBatch) -> tuple[BatchColumns, RecordColumns]:
    count = rows.num_rows
    keys, key_starts, key_lengths = _read_binary(rows.column("key"))
    values, value_starts, value_lengths = _read_binary(rows.column("value"))
    data = keys + values + PADDING
    offsets = _read_int64s(rows.column("offset"))
    times = _read_int64s(rows.column("timestamp").cast(pa.timestamp("ms", tz="UTC")))
    are_appended = _read_int64s(rows.column("timestampType")) == 1
    nothing = np.zeros(count, dtype=np.int64)
    none = np.full(count, -1, dtype=np.int64)
    batches = BatchColumns(
        data=data,
        starts=nothing,
        sizes=nothing,
        base_offsets=offsets,
        last_offsets=offsets,
        leader_epochs=none,
        crcs=nothing,
        attributes=np.where(are_appended, _LOG_APPEND_TIME, 0),
        base_timestamps=times,
        max_timestamps=times,
        producer_ids=none,
        producer_epochs=none,
        counts=np.ones(count, dtype=np.int64),
    )
    records = RecordColumns(
        data=data,
        batches=np.arange(count, dtype=np.int64),
        offsets=offsets,
        timestamps=times,
        key_starts=key_starts,
        key_lengths=key_lengths,
        value_starts=value_starts + len(keys),
        value_lengths=value_lengths,
        have_headers=np.zeros(count, dtype=bool),
    )
    return batches, records


def _read_int64s(column: pa.Array) -> Int64Array:
    values: npt.NDArray[np.int64] = np.asarray(column.cast(pa.int64()).fill_null(-1))
    return values


def _read_binary(column: pa.Array) -> tuple[bytes, Int64Array, Int64Array]:
    """All bytes, and the start and length of each value; the length is -1 for null."""
    column = pa.concat_arrays([column.cast(pa.large_binary())])
    bounds = np.frombuffer(column.buffers()[1], dtype=np.int64)
    bounds = bounds[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    whole = b"" if data is None else data.to_pybytes()
    lengths = np.diff(bounds)
    lengths[np.asarray(column.is_null())] = -1
    return whole, bounds[:-1].copy(), lengths
