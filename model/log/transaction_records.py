"""Log entries of transactions: batches of pending offsets, and end markers.

The group coordinator keeps the offsets pending until the transaction coordinator ends the
transaction. The batch, not the record, has the producer id and epoch, so both kinds are more than a
``Record``.
"""

from __future__ import annotations

from typing import TypeAlias

from model.ids import ProducerId
from model.log.records import Record
from model.value import value


@value
class TransactionalOffsets:
    """Records of type 1 that become visible when their producer's transaction commits.

    ``producer_epoch`` is that of the TxnOffsetCommit.
    """

    producer_id: ProducerId
    producer_epoch: int
    records: tuple[Record, ...]


@value
class TransactionMarker:
    """The end of a producer's transaction, from a coordinator with ``coordinator_epoch``."""

    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int
    committed: bool


TransactionRecord: TypeAlias = TransactionalOffsets | TransactionMarker


def count_records(record: TransactionRecord) -> int:
    """How many log records the entry takes."""
    return len(record.records) if isinstance(record, TransactionalOffsets) else 1
