"""An operator ends a transaction that its own coordinator has left open."""

from __future__ import annotations

from coordinator.core.offsets.producers import UNKNOWN
from coordinator.core.offsets.transactions import handle_write_txn_markers
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.transactions import EndTransaction, WriteTxnMarkers
from model.errors import InvalidProducerEpoch, UnknownProducerId
from model.now import Now


def handle_end_transaction(shard: Shard, command: EndTransaction, now: Now) -> Outcome:
    """Write the marker that the transaction coordinator would have written.

    The transaction must be open: a marker without one would be a mistake of the operator.
    """
    producer_id = command.producer_id
    transaction = shard.open_transactions.get(producer_id)
    if transaction is None:
        raise UnknownProducerId("That producer has no transaction open there.")
    if command.producer_epoch != transaction.producer_epoch:
        raise InvalidProducerEpoch(
            f"The producer has the epoch {transaction.producer_epoch} now: look again."
        )
    coordinator_epoch = max(shard.producers.get(producer_id, UNKNOWN).coordinator_epoch, 0)
    marker = WriteTxnMarkers(
        command.caller,
        command.partition,
        producer_id,
        command.producer_epoch,
        coordinator_epoch,
        command.committed,
    )
    return handle_write_txn_markers(shard, marker, now)
