"""What the batches given to a store say: records, offsets of transactions, and markers."""

from __future__ import annotations

from collections.abc import Iterator

from model.ids import LogPartition, ProducerId
from model.log.records import Record
from model.log.transaction_records import TransactionalOffsets, TransactionMarker, TransactionRecord
from storage.codec.batches import Batch, decode_batch, decode_marker
from storage.codec.record_codec import decode_key, decode_value
from storage.log_store import PartitionAppend

LogEntry = tuple[LogPartition, Record | TransactionRecord]


def decode_append(append: PartitionAppend) -> Iterator[LogEntry]:
    """What a batch says."""
    batch = decode_batch(append.batch)
    if batch.is_transactional:
        for transaction in _decode_transaction(batch):
            yield append.partition, transaction
    else:
        for record in _decode_records(batch):
            yield append.partition, record


def _decode_transaction(batch: Batch) -> Iterator[TransactionRecord]:
    """What a batch of a transaction says."""
    producer_id = ProducerId(batch.producer_id)
    if batch.is_control:
        for record in batch.records:
            marker = decode_marker(record)
            assert marker is not None
            committed, coordinator_epoch = marker
            yield TransactionMarker(producer_id, batch.producer_epoch, coordinator_epoch, committed)
    else:
        records = tuple(_decode_records(batch))
        yield TransactionalOffsets(producer_id, batch.producer_epoch, records)


def _decode_records(batch: Batch) -> Iterator[Record]:
    for record in batch.records:
        assert record.key is not None
        key = decode_key(record.key)
        if record.value is None:
            yield Record(key, None)
        else:
            kind = int.from_bytes(record.key[:2], "big")
            yield Record(key, decode_value(kind, record.value)[1])
