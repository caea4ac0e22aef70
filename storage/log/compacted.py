"""Log compaction: batches reduced to the records that are still live, with offset gaps.

Records of completed transactions are written as non-transactional ones, so no markers are needed.
Records of open transactions stay transactional.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from storage.codec.batch_encoding import reencode_batch
from storage.codec.batches import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Batch,
    compute_max_timestamp,
    decode_batch,
)
from storage.columnar.batch_columns import BatchColumns, BoolArray, Int64Array
from storage.log.compression import decompress

_COMPRESSION_MASK = 0x07
_TRANSACTIONAL = 0x10


class Kept(NamedTuple):
    """What to keep of a block.

    ``records`` masks the records to keep, ``counts`` is how many each batch keeps, and ``are_open``
    masks the batches of open transactions.
    """

    records: BoolArray
    counts: Int64Array
    are_open: BoolArray


def select_kept(block: Sequence[bytes], batches: BatchColumns, kept: Kept) -> Iterator[bytes]:
    """Reduce the batches of a block to the kept records, at their offsets; skip empty batches."""
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
    """Re-encode a batch with the kept records; transactional only if its transaction is open."""
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


def make_empty_batch(offset: int, time_ms: int) -> bytes:
    """Encode a batch without records, as Kafka's cleaner leaves it at the end of a log."""
    no_producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
    return reencode_batch(
        Batch(offset, offset, 0, 0, 0, 0, time_ms, time_ms, *no_producer, 0, records=())
    )
