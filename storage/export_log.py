"""Exporting a store as segment files that a Kafka broker takes for its own.

The whole history is the batches as they are stored. The present is the log compacted as Kafka's
cleaner does it: the records that still count, at their own offsets, in batches with gaps. What
transactions have settled is written as if it had never been in one, so no markers are needed; what
is open stays open.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model.ids import LogPartition
from storage.codec.batches import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Batch,
    compute_max_timestamp,
    decode_batch,
    reencode_batch,
)
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import (
    BatchColumns,
    BoolArray,
    Int64Array,
    read_batch_columns,
)
from storage.columnar.record_columns import RecordColumns, read_record_columns
from storage.compression import decompress
from storage.import_side import Pair
from storage.log_store import compute_latest_key, read_batch_range
from storage.rocks_reader import RocksLogReader
from storage.segments.writer import create_segments

SIDE_FILE = "muster-side.json"
"""What Kafka's records cannot hold, beside the segments; a broker does not look at it."""

BLOCK_BYTES = 4 << 20

_SIDE_VERSION = 1
_SPAN_MAX = (1 << 31) - 1
_COMPRESSION_MASK = 0x07
_TRANSACTIONAL = 0x10


@dataclass(slots=True)
class ExportCount:
    """What was exported, and how many side records there are."""

    partitions: int = 0
    batches: int = 0
    bytes: int = 0
    side_records: int = 0
    open_producers: set[int] = field(default_factory=set)


def export_segments(
    reader: RocksLogReader, target: Path, *, is_whole: bool, with_side: bool
) -> ExportCount:
    """Writes a new folder; partitions without batches have no folder in it.

    ``is_whole`` for the whole history. Raises ``SegmentError``, ``StoreError`` and ``CodecError``;
    there is no folder then.
    """
    count = ExportCount()
    side = list(reader.side())
    count.side_records = len(side)
    with create_segments(target) as writer:
        for number in range(reader.partitions):
            partition = LogPartition(number)
            log = reader.read_log(partition)
            batches = log if is_whole else compact_log(reader, partition)
            count.open_producers.update(producer for producer, _ in reader.pending(partition))
            first = next(batches, None)
            if first is None:
                continue
            count.partitions += 1
            start = 0 if sum(read_batch_range(first)) <= _SPAN_MAX else None
            counted = _count(chain((first,), batches), count)
            writer.write_partition(partition, counted, start_offset=start)
        if with_side:
            writer.write_file(SIDE_FILE, encode_side_file(reader.cluster_id, side))
    return count


def _count(batches: Iterator[bytes], count: ExportCount) -> Iterator[bytes]:
    for batch in batches:
        count.batches += 1
        count.bytes += len(batch)
        yield batch


# ----------------------------------------------------------------------------------- compaction


def compact_log(reader: RocksLogReader, partition: LogPartition) -> Iterator[bytes]:
    """A partition's log with only the records that count, in the memory of one block.

    The last batch reaches to the end of the log, so that offsets never come again.
    """
    pending = {(producer_id, int(entry.offset)) for producer_id, entry in reader.pending(partition)}
    end = last = last_ms = -1
    for block in _read_blocks(reader.read_log(partition)):
        batches = read_batch_columns(block)
        records = read_record_columns(batches, decompress)
        kept = _find_kept(reader, partition, batches, records, pending)
        yield from _select(block, batches, kept)
        end, last_ms = int(batches.last_offsets[-1]), int(batches.max_timestamps[-1])
        if kept.counts.any():
            last = int(batches.last_offsets[np.flatnonzero(kept.counts)[-1]])
    if last < end:
        yield _make_empty(end, last_ms)


def _read_blocks(log: Iterator[bytes]) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    size = 0
    for batch in log:
        held.append(batch)
        size += len(batch)
        if size >= BLOCK_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


class _Kept(NamedTuple):
    """Of a block: ``records`` that are kept, how many of each batch, and batches that are open."""

    records: BoolArray
    counts: Int64Array
    are_open: BoolArray


def _find_kept(
    reader: RocksLogReader,
    partition: LogPartition,
    batches: BatchColumns,
    records: RecordColumns,
    pending: Collection[tuple[int, int]],
) -> _Kept:
    """What ``latest`` and ``pending`` hold, the latter by producer id and offset."""
    keys = list(map(compute_latest_key, records.keys()))
    keep = np.zeros(len(keys), dtype=bool)
    is_control = batches.are_control[records.batches]
    is_transactional = batches.are_transactional[records.batches] & ~is_control
    has_key = records.key_lengths >= 0
    plain = np.flatnonzero(~is_transactional & ~is_control & has_key).tolist()
    # Of plain records only the last of a key can stand; of others also one before it.
    last = dict(zip((keys[index] for index in plain), plain, strict=True))
    transactional = np.flatnonzero(is_transactional & has_key).tolist()
    candidates = [*last.values(), *transactional]
    entries = reader.get_many_latest(partition, [keys[index] for index in candidates])
    offsets = records.offsets
    for index, entry in zip(candidates, entries, strict=True):
        keep[index] = entry is not None and entry.offset == offsets[index]
    are_open = np.zeros(len(batches.starts), dtype=bool)
    for index in transactional if pending else ():
        batch = records.batches[index]
        if (int(batches.producer_ids[batch]), int(offsets[index])) in pending:
            keep[index] = are_open[batch] = True
    counts = np.bincount(records.batches[keep], minlength=len(batches.starts))
    return _Kept(keep, counts, are_open)


def _select(block: Sequence[bytes], batches: BatchColumns, kept: _Kept) -> Iterator[bytes]:
    starts = np.cumsum(batches.counts) - batches.counts
    is_changed = kept.counts != batches.counts
    is_changed |= batches.are_transactional & ~kept.are_open
    for index in np.flatnonzero(kept.counts).tolist():
        if not is_changed[index]:
            yield block[index]
            continue
        start = int(starts[index])
        keep = kept.records[start : start + int(batches.counts[index])].tolist()
        yield _rebuild(block[index], keep, is_open=bool(kept.are_open[index]))


def _rebuild(data: bytes, keep: Sequence[bool], *, is_open: bool) -> bytes:
    """A batch of fewer records, of the same offsets, and out of its transaction unless open."""
    batch = decode_batch(data, decompress=decompress)
    records = tuple(compress(batch.records, keep))
    batch = replace(
        batch,
        attributes=batch.attributes & ~_COMPRESSION_MASK,
        max_timestamp=compute_max_timestamp(batch, records),
        count=len(records),
        records=records,
    )
    if batch.is_transactional and not is_open:
        batch = replace(
            batch,
            attributes=batch.attributes & ~_TRANSACTIONAL,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
        )
    return reencode_batch(batch)


def _make_empty(offset: int, time_ms: int) -> bytes:
    """A batch without records, as Kafka's cleaner leaves at the end of a log."""
    no_producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
    return reencode_batch(
        Batch(offset, offset, 0, 0, 0, 0, time_ms, time_ms, *no_producer, 0, records=())
    )


# ----------------------------------------------------------------------------------------- side


def encode_side_file(cluster_id: str, side: Sequence[Pair]) -> bytes:
    """The side records as JSON, keys and values in hex."""
    content = {
        "version": _SIDE_VERSION,
        "cluster_id": cluster_id,
        "records": [[key.hex(), value.hex()] for key, value in side],
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def decode_side_file(content: bytes) -> tuple[str, list[Pair]]:
    """The cluster id and the side records; raises ``CodecError``."""
    try:
        found = json.loads(content)
        if found["version"] != _SIDE_VERSION:
            raise CodecError(f"{SIDE_FILE} has version {found['version']}: use a newer version")
        pairs = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in found["records"]]
        return str(found["cluster_id"]), pairs
    except (ValueError, TypeError, KeyError) as error:
        raise CodecError(f"{SIDE_FILE} cannot be read: {error!r}") from None
