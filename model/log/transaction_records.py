"""What a transaction writes into the log: offsets in batches of their own, and its marker.

Kafka's group coordinator has one half of a transaction: offsets wait until the transaction
coordinator says how the transaction ended. Who produced them is said by the batch, not by the
records, so that both are more than a ``Record``.
"""

from __future__ import annotations

from typing import TypeAlias

from model.ids import ProducerId
from model.log.records import Record
from model.value import value


@value
class TransactionalOffsets:
    """Records of type 1 that become visible when their producer's transaction is committed.

    ``producer_epoch`` is that of the producer when it asked.
    """

    producer_id: ProducerId
    producer_epoch: int
    records: tuple[Record, ...]


@value
class TransactionMarker:
    """A producer's transaction is over, says a transaction coordinator of this epoch."""

    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int
    committed: bool


TransactionRecord: TypeAlias = TransactionalOffsets | TransactionMarker


def count_records(record: TransactionRecord) -> int:
    """How many records of the log it is."""
    return len(record.records) if isinstance(record, TransactionalOffsets) else 1
