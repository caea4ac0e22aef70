"""A model of what Kafka's log cleaner does to one partition of a compacted topic.

Facts of Kafka's ``Cleaner`` (``buildOffsetMap``, ``cleanInto``, ``shouldDiscardBatch``) and
``CleanedTransactionMetadata``:

- What is cleaned ends below the first record of an open transaction.
- Of each key the last record stays. What an aborted transaction wrote goes and supersedes nothing.
- A tombstone stays until the delete horizon of its batch, which the first cleaning that meets it
  sets, in the place of the base timestamp. So does a marker, from when nothing is left of the
  data of its transaction.
- A batch of which nothing is left goes, but for a producer's last, whose header stays.
- A batch keeps its base offset and its last offset; one that loses nothing keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from storage.codec.batch_encoding import reencode_batch
from storage.codec.batches import (
    Batch,
    BatchRecord,
    compute_max_timestamp,
    decode_batch,
    decode_marker,
)
from storage.log.compression import decompress

_COMPRESSION_MASK = 0x07
_DELETE_HORIZON = 0x40


@dataclass
class _Transactions:
    """What is known of transactions at one place of the log."""

    aborted: set[int]
    """Offsets."""
    with_data: set[int] = field(default_factory=set)
    """Producers of whose open transaction something is left."""


def clean(log: Sequence[bytes], end: int, now_ms: int, retention_ms: int) -> list[bytes]:
    """The log after one cleaning of what is below ``end``, at a wall time."""
    batches = [(data, decode_batch(data, decompress=decompress)) for data in log]
    aborted, unstable = _find_aborted([batch for _, batch in batches])
    end = min(end, unstable)
    dirty = [batch for _, batch in batches if batch.last_offset < end]
    last = {
        record.key: record.offset
        for batch in dirty
        if not batch.is_control
        for record in batch.records
        if record.offset not in aborted
    }
    last_of_producer = {
        batch.producer_id: batch.last_offset for batch in dirty if not batch.is_control
    }
    transactions = _Transactions(aborted)
    cleaned: list[bytes] = []
    for data, batch in batches:
        if batch.last_offset >= end:
            cleaned.append(data)
            continue
        is_last = last_of_producer.get(batch.producer_id) == batch.last_offset
        must_stay = batch.producer_id >= 0 and is_last
        kept = list(_select(batch, last, transactions, now_ms))
        cleaned += _rebuild(data, batch, kept, must_stay, transactions, now_ms + retention_ms)
    return cleaned


def _find_aborted(batches: Sequence[Batch]) -> tuple[set[int], int]:
    """Offsets of what transactions aborted, and the first offset of an open one."""
    aborted: set[int] = set()
    waiting: dict[int, list[int]] = {}
    begun: dict[int, int] = {}
    for batch in batches:
        if batch.is_control:
            for marker in map(decode_marker, batch.records):
                offsets = waiting.pop(batch.producer_id, [])
                begun.pop(batch.producer_id, None)
                if marker is not None and not marker.committed:
                    aborted.update(offsets)
        elif batch.is_transactional:
            begun.setdefault(batch.producer_id, batch.base_offset)
            offsets = waiting.setdefault(batch.producer_id, [])
            offsets += [record.offset for record in batch.records]
    return aborted, min(begun.values(), default=1 << 62)


def _select(
    batch: Batch, last: dict[bytes | None, int], transactions: _Transactions, now_ms: int
) -> Iterator[BatchRecord]:
    horizon = batch.delete_horizon_ms
    is_past = horizon is not None and horizon <= now_ms
    if batch.is_control:
        if batch.producer_id in transactions.with_data or not is_past:
            yield from batch.records
        return
    for record in batch.records:
        is_value = record.value is not None or not is_past
        is_aborted = record.offset in transactions.aborted
        if record.key is not None and last.get(record.key) == record.offset and is_value:
            assert not is_aborted
            yield record


def _rebuild(
    data: bytes,
    batch: Batch,
    kept: Sequence[BatchRecord],
    must_stay: bool,
    transactions: _Transactions,
    horizon_ms: int,
) -> Iterator[bytes]:
    has_data = batch.producer_id in transactions.with_data
    if batch.is_control:
        transactions.with_data.discard(batch.producer_id)
        sets_horizon = bool(kept) and not has_data
    else:
        if batch.is_transactional and kept:
            transactions.with_data.add(batch.producer_id)
        sets_horizon = any(record.value is None for record in kept)
    sets_horizon = sets_horizon and batch.delete_horizon_ms is None
    if not kept and not must_stay:
        return
    if len(kept) == len(batch.records) and not sets_horizon:
        yield data
        return
    attributes, base_ms = batch.attributes & ~_COMPRESSION_MASK, batch.base_timestamp
    if sets_horizon:
        attributes, base_ms = attributes | _DELETE_HORIZON, horizon_ms
    yield reencode_batch(
        replace(
            batch,
            attributes=attributes,
            base_timestamp=base_ms,
            max_timestamp=compute_max_timestamp(batch, kept),
            count=len(kept),
            records=tuple(kept),
        )
    )
