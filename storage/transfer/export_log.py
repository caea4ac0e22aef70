"""Export of a store as segment files that a Kafka broker can load.

An export of the whole history has the batches as stored, except that the leader epoch, which the
CRC does not cover, is reset to 0. An imported log has the leader epochs of its source cluster, but
in a new cluster leader epochs begin at 0: the leader would drop a higher epoch from its cache, and
followers would ask for it forever.

An export of the current state is the log compacted as by Kafka's cleaner: the live records, at
their own offsets, in batches with gaps. Records of completed transactions are written as
non-transactional, so no markers are needed. Open transactions stay open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from model.ids import LogPartition
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns, read_batch_columns
from storage.columnar.record_columns import RecordColumns, read_record_columns
from storage.log.compacted import Kept, make_empty_batch, select_kept
from storage.log.compression import decompress
from storage.log_store import compute_latest_key, read_batch_range
from storage.rocks.rocks_reader import RocksLogReader
from storage.segments.segment_writer import create_segments
from storage.transfer.credentials import has_credentials
from storage.transfer.import_side import Pair

SIDE_FILE = "muster-side.json"
"""File of the side records, beside the segments; a broker ignores it."""

BLOCK_BYTES = 4 << 20

_SIDE_VERSION = 1
_SPAN_MAX = (1 << 31) - 1
_LEADER_EPOCH = slice(12, 16)
_FIRST_EPOCH = bytes(4)


@dataclass(slots=True)
class ExportCount:
    """What was exported; ``side_records`` is how many the store has, exported or not."""

    partitions: int = 0
    batches: int = 0
    bytes: int = 0
    side_records: int = 0
    open_producers: set[int] = field(default_factory=set)


def export_segments(
    reader: RocksLogReader,
    target: Path,
    *,
    is_whole: bool,
    with_side: bool,
    with_credentials: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> ExportCount:
    """Export to a new folder ``target``; partitions without batches have no folder in it.

    ``is_whole`` exports the whole history, else the compacted log. The side file has credentials
    only ``with_credentials``. ``tell`` is called with the number of partitions done. Raises
    ``SegmentError``, ``StoreError`` and ``CodecError``; the target does not exist then.
    """
    count = ExportCount()
    side = list(reader.side())
    count.side_records = len(side)
    with create_segments(target) as writer:
        for number in range(reader.partitions):
            tell(number)
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
        if not with_credentials:
            side = [pair for pair in side if not has_credentials(pair[0])]
        if with_side:
            writer.write_file(SIDE_FILE, encode_side_file(reader.cluster_id, side))
    return count


def _count(batches: Iterator[bytes], count: ExportCount) -> Iterator[bytes]:
    for batch in batches:
        count.batches += 1
        count.bytes += len(batch)
        if batch[_LEADER_EPOCH] != _FIRST_EPOCH:
            batch = batch[: _LEADER_EPOCH.start] + _FIRST_EPOCH + batch[_LEADER_EPOCH.stop :]
        yield batch


# ----------------------------------------------------------------------------------- compaction


def compact_log(reader: RocksLogReader, partition: LogPartition) -> Iterator[bytes]:
    """Iterate over a partition's log, compacted, in the memory of one block.

    The last batch extends to the end of the log, so that no offset is assigned twice.
    """
    pending = {(producer_id, int(entry.offset)) for producer_id, entry in reader.pending(partition)}
    end = last = last_ms = -1
    for block in _read_blocks(reader.read_log(partition)):
        batches = read_batch_columns(block)
        records = read_record_columns(batches, decompress)
        kept = _find_kept(reader, partition, batches, records, pending)
        yield from select_kept(block, batches, kept)
        end, last_ms = int(batches.last_offsets[-1]), int(batches.max_timestamps[-1])
        if kept.counts.any():
            last = int(batches.last_offsets[np.flatnonzero(kept.counts)[-1]])
    if last < end:
        yield make_empty_batch(end, last_ms)


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


def _find_kept(
    reader: RocksLogReader,
    partition: LogPartition,
    batches: BatchColumns,
    records: RecordColumns,
    pending: Collection[tuple[int, int]],
) -> Kept:
    """Find the records of a block that ``latest`` or ``pending`` (producer id, offset) holds."""
    keys = list(map(compute_latest_key, records.keys()))
    keep = np.zeros(len(keys), dtype=bool)
    is_control = batches.are_control[records.batches]
    is_transactional = batches.are_transactional[records.batches] & ~is_control
    has_key = records.key_lengths >= 0
    plain = np.flatnonzero(~is_transactional & ~is_control & has_key).tolist()
    # Of plain records only the last of a key can be live; of transactional ones also others.
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
    return Kept(keep, counts, are_open)


# ----------------------------------------------------------------------------------------- side


def encode_side_file(cluster_id: str, side: Sequence[Pair]) -> bytes:
    """Encode side records as JSON, with keys and values in hex."""
    content = {
        "version": _SIDE_VERSION,
        "cluster_id": cluster_id,
        "records": [[key.hex(), value.hex()] for key, value in side],
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def decode_side_file(content: bytes) -> tuple[str, list[Pair]]:
    """Decode the cluster id and the side records; raises ``CodecError``."""
    try:
        found = json.loads(content)
        if found["version"] != _SIDE_VERSION:
            raise CodecError(f"{SIDE_FILE} has version {found['version']}: use a newer version")
        pairs = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in found["records"]]
        return str(found["cluster_id"]), pairs
    except (ValueError, TypeError, KeyError) as error:
        raise CodecError(f"{SIDE_FILE} cannot be read: {error!r}") from None
