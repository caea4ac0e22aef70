"""What a log partition knows of each transactional producer, and who is fenced by it.

Facts of Kafka's ``ProducerStateManager`` and ``ProducerAppendInfo``: an epoch of a producer that is
below the highest known one is refused, also when its transactions have ended; so is a marker of
a coordinator that is older than the last one to end a transaction of that producer. Under
transaction version 2 (KIP-890) a marker has an epoch that the transaction's own offsets do not have
yet, so that one that comes late cannot end the transaction after it. A producer that has no open
transaction is forgotten after a day.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from coordinator.core.outcome import Outcome
from coordinator.core.shard import Shard
from model.commands import ExpireProducers, WriteTxnMarkers
from model.errors import InvalidProducerEpoch, InvalidRequest, TransactionCoordinatorFenced
from model.ids import ProducerId
from model.records import ProducerStateKey, ProducerStateValue, SideRecord
from model.responses import Done

EPOCH_IN_TRANSACTIONS = 2
"""The transaction version from which on each transaction has a producer epoch of its own."""

LAST_EPOCH: Final = 32_767
"""It cannot be raised: the transaction that uses it up ends with it."""

PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""Kafka's ``producer.id.expiration.ms``."""

UNKNOWN: Final = ProducerStateValue(-1, -1, 0)


def find_state(shard: Shard, producer_id: ProducerId) -> ProducerStateValue:
    """What is known of a producer, by what it has said and by what waits for it."""
    state = shard.producers.get(producer_id, UNKNOWN)
    transaction = shard.open_transactions.get(producer_id)
    if transaction is None or transaction.producer_epoch <= state.producer_epoch:
        return state
    # What was imported waits for a producer that has said nothing here.
    return replace(state, producer_epoch=transaction.producer_epoch)


def check_producer(shard: Shard, producer_id: ProducerId, producer_epoch: int) -> None:
    """A producer that a newer one of its transactional id has fenced has no say."""
    if producer_id < 0 or producer_epoch < 0:
        raise InvalidRequest(f"Producer {producer_id} has no transactions.")
    known = find_state(shard, producer_id).producer_epoch
    if producer_epoch < known:
        raise InvalidProducerEpoch(
            f"Producer {producer_id} has epoch {known}, the request {producer_epoch}."
        )


def check_marker(shard: Shard, marker: WriteTxnMarkers) -> None:
    """Whether this marker may end the producer's transaction, or may be said again."""
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    check_producer(shard, producer_id, epoch)
    known = find_state(shard, producer_id)
    if (
        marker.transaction_version >= EPOCH_IN_TRANSACTIONS
        and epoch == known.producer_epoch < LAST_EPOCH
        and shard.open_transactions.get(producer_id) is not None
    ):
        raise InvalidProducerEpoch(
            f"Producer {producer_id} has a transaction open at epoch {epoch}, which a marker of "
            "the same epoch does not end."
        )
    if marker.coordinator_epoch < known.coordinator_epoch:
        raise TransactionCoordinatorFenced(
            f"A transaction coordinator of epoch {known.coordinator_epoch} has ended transactions "
            f"of producer {producer_id}, the request is of {marker.coordinator_epoch}."
        )


def compute_state_after_offsets(
    shard: Shard, producer_id: ProducerId, producer_epoch: int, wall_ms: int
) -> tuple[SideRecord, ...]:
    """A new epoch of a producer is remembered, and since when it has a transaction open.

    More offsets of the transaction say nothing new: they do not put its end off.
    """
    known = shard.producers.get(producer_id, UNKNOWN)
    transaction = shard.open_transactions.get(producer_id)
    since_ms = wall_ms if transaction is None else transaction.since_ms
    if known.producer_epoch >= producer_epoch and known.transaction_since_ms == since_ms:
        return ()
    state = ProducerStateValue(producer_epoch, known.coordinator_epoch, wall_ms, since_ms)
    return (SideRecord(ProducerStateKey(shard.partition, producer_id), state),)


def compute_state_after_marker(
    shard: Shard, marker: WriteTxnMarkers, wall_ms: int
) -> tuple[SideRecord, ...]:
    """Both epochs of the marker are remembered."""
    state = ProducerStateValue(marker.producer_epoch, marker.coordinator_epoch, wall_ms)
    return (SideRecord(ProducerStateKey(shard.partition, marker.producer_id), state),)


def compute_state_after_abort(
    shard: Shard, producer_id: ProducerId, wall_ms: int
) -> ProducerStateValue:
    """The producer is fenced, as by a coordinator that aborts what has timed out.

    So what was under way is refused, be it of the producer or the marker of this transaction.
    """
    known = find_state(shard, producer_id)
    epoch = min(known.producer_epoch + 1, LAST_EPOCH)
    return ProducerStateValue(epoch, known.coordinator_epoch, wall_ms)


def find_expired_producers(shard: Shard, now_ms: int) -> tuple[ProducerId, ...]:
    """Those that have been silent for long and wait for nothing. ``now_ms`` is wall time."""
    return tuple(
        producer_id
        for producer_id, state in shard.producers.items()
        if now_ms - state.last_timestamp >= PRODUCER_EXPIRATION_MS
        and shard.open_transactions.get(producer_id) is None
    )


def handle_expire_producers(shard: Shard, command: ExpireProducers) -> Outcome:
    """Forget them, but for those that have begun a transaction since."""
    side = tuple(
        SideRecord(ProducerStateKey(shard.partition, producer_id), None)
        for producer_id in command.producer_ids
        if shard.open_transactions.get(producer_id) is None
    )
    return Outcome(response=Done(), side=side)


def replay_producer_state(shard: Shard, record: SideRecord) -> None:
    """Side records of kind 6."""
    assert isinstance(record.key, ProducerStateKey), f"no producer: {record}"
    if record.value is None:
        shard.producers.pop(record.key.producer_id, None)
    else:
        assert isinstance(record.value, ProducerStateValue)
        shard.producers[record.key.producer_id] = record.value
