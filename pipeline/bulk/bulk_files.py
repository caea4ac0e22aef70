"""The tasks that write sorted files: of ``latest``, of ``pending``, and of a compacted log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.decoding.scan import Damage
from pipeline.source.logs.group_log import SegmentSlice
from pipeline.source.logs.segment_log import read_segment_slice
from storage.codec.batches import read_batch_header
from storage.columnar.batch_columns import BatchColumns
from storage.columnar.record_columns import read_record_columns, slice_bytes
from storage.log.compacted import Kept, select_kept
from storage.log.compression import decompress
from storage.transfer.sorted_files import (
    LATEST,
    LOG,
    PENDING,
    SortedFileWriter,
    pack_entry_key,
    pack_log_key,
    pack_waiting_key,
)

_NAMES = pa.schema([("name", pa.string())])
_WRITTEN = pa.schema(
    [
        ("partition", pa.int32()),
        ("last_offset", pa.int64()),
        ("records", pa.int64()),
        ("names", pa.list_(pa.string())),
    ]
)

Pairs = Callable[[pa.RecordBatch], Iterator[tuple[bytes, bytes]]]


def find_attempt() -> int:
    """A number that is unique to this attempt of a task."""
    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


def write_latest(latest: DataFrame, folder: Path) -> list[str]:
    """Write the files for ``latest`` and return their names."""
    ordered = _order(latest, "partition", "key").select("partition", "key", "packed")
    return _write(ordered, folder, LATEST, _pair_entries)


def write_pending(pending: DataFrame, folder: Path) -> list[str]:
    """Write the files for ``pending`` and return their names."""
    ordered = _order(pending, "partition", "producer_id", "key")
    columns = ordered.select("partition", "producer_id", "key", "packed")
    return _write(columns, folder, PENDING, _pair_waiting)


def _order(rows: DataFrame, *columns: str) -> DataFrame:
    return rows.repartitionByRange(*columns).sortWithinPartitions(*columns)


def _write(rows: DataFrame, folder: Path, family: str, make_pairs: Pairs) -> list[str]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = SortedFileWriter(folder, family, f"{family}-{find_attempt()}")
        for batch in batches:
            for key, value in make_pairs(batch):
                writer.put(key, value)
        yield pa.RecordBatch.from_arrays([pa.array(writer.close(), pa.string())], schema=_NAMES)

    found = rows.mapInArrow(write, from_arrow_schema(_NAMES)).collect()
    return [row["name"] for row in found]


def _pair_entries(batch: pa.RecordBatch) -> Iterator[tuple[bytes, bytes]]:
    partitions, keys, values = (column.to_pylist() for column in batch.columns)
    for partition, key, value in zip(partitions, keys, values, strict=True):
        yield pack_entry_key(partition, key), value


def _pair_waiting(batch: pa.RecordBatch) -> Iterator[tuple[bytes, bytes]]:
    partitions, producers, keys, values = (column.to_pylist() for column in batch.columns)
    for partition, producer, key, value in zip(partitions, producers, keys, values, strict=True):
        yield pack_waiting_key(partition, producer, key), value


# ------------------------------------------------------------------------------ a compacted log


def write_compacted_log(
    latest: DataFrame, pending: DataFrame, slices: Mapping[int, SegmentSlice], folder: Path
) -> list[tuple[int, int, int, list[str]]]:
    """Write the current records, slice by slice, at their own offsets.

    For each slice that has any: its partition, last offset, number of records, and files.
    """
    columns = ["part", "offset"]
    kept = latest.select(*columns, lit(False).alias("is_open")).unionByName(
        pending.select(*columns, lit(True).alias("is_open"))
    )

    def write(group: pa.Table) -> pa.Table:
        number = group.column("part")[0].as_py()
        offsets = np.asarray(group.column("offset"))
        are_open = np.asarray(group.column("is_open"))
        return _write_slice(number, slices[number], offsets, offsets[are_open], folder)

    schema = from_arrow_schema(_WRITTEN)
    rows = kept.groupBy(sql.col("part")).applyInArrow(write, schema).collect()
    return [(row["partition"], row["last_offset"], row["records"], row["names"]) for row in rows]


def _write_slice(
    number: int, part: SegmentSlice, kept: np.ndarray, are_open: np.ndarray, folder: Path
) -> pa.Table:
    name = f"{LOG}-{part.partition:05}-{number:06}-{find_attempt()}"
    writer = SortedFileWriter(folder, LOG, name)
    last = -1
    for piece in read_segment_slice(part):
        if isinstance(piece, Damage):
            continue
        for batch in _select(piece, kept, are_open):
            header = read_batch_header(batch)
            writer.put(pack_log_key(part.partition, header.base_offset), batch)
            last = header.last_offset
    row = {
        "partition": part.partition,
        "last_offset": last,
        "records": len(kept),
        "names": writer.close(),
    }
    return pa.Table.from_pylist([row], schema=_WRITTEN)


def _select(batches: BatchColumns, kept: np.ndarray, are_open: np.ndarray) -> Iterator[bytes]:
    records = read_record_columns(batches, decompress)
    keep = np.isin(records.offsets, kept)
    count = len(batches.starts)
    open_batches = np.zeros(count, dtype=bool)
    open_batches[records.batches[np.isin(records.offsets, are_open)]] = True
    counts = np.bincount(records.batches[keep], minlength=count)
    block = slice_bytes(batches.data, batches.starts, batches.sizes)
    yield from select_kept(block, batches, Kept(keep, counts, open_batches))
