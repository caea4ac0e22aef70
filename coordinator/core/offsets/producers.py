"""Producer state of a log partition, and the fencing of transactional producers.

It follows Kafka's ``ProducerStateManager`` and ``ProducerAppendInfo``. A producer epoch below the
highest known one is refused, even if no transaction is open. So is a marker with a coordinator
epoch below that of the producer's last marker. Under transaction version 2 (KIP-890) a marker has a
greater epoch than the offsets of its transaction, so that a late marker cannot end the next
transaction. A producer without an open transaction expires after a day.

Kafka verifies with the transaction coordinator that offsets belong to a transaction (KIP-890).
Muster has no transaction coordinator to ask, and anybody may send offsets with another's producer
id to a group of their own. So only markers raise the epoch for all groups; offsets raise it for
their own group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.transactions import ExpireProducers, WriteTxnMarkers
from model.errors import InvalidProducerEpoch, InvalidRequest, TransactionCoordinatorFenced
from model.ids import GroupId, ProducerId
from model.log.side_records import (
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerStateKey,
    ProducerStateValue,
    SideRecord,
)
from model.responses.response import Done

EPOCH_IN_TRANSACTIONS = 2
"""The transaction version from which on each transaction has its own producer epoch (KIP-890)."""

LAST_EPOCH: Final = 32_767
"""The highest producer epoch; a transaction at it ends with a marker of the same epoch."""

PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""Kafka's ``producer.id.expiration.ms``."""

UNKNOWN: Final = ProducerStateValue(-1, -1, 0)


def check_producer(
    shard: Shard, producer_id: ProducerId, producer_epoch: int, group_id: GroupId
) -> None:
    """Raise ``InvalidProducerEpoch`` if a newer producer with the same transactional id fenced it.

    Epochs from other groups are ignored: anybody may have sent them to a group of their own.
    """
    _check_ids(producer_id, producer_epoch)
    known = shard.producers.get(producer_id, UNKNOWN).producer_epoch
    group = shard.producer_groups.get(producer_id, {}).get(group_id)
    transaction = shard.open_transactions.get(producer_id)
    if group is not None:
        known = max(known, group.producer_epoch)
        if producer_epoch <= group.timed_out_epoch:
            raise InvalidProducerEpoch(
                f"The transaction of producer {producer_id} at epoch {group.timed_out_epoch} was "
                "aborted because it timed out."
            )
    elif transaction is not None:
        # Imported pending offsets come without producer state.
        waiting = transaction.find_epoch(group_id)
        known = known if waiting is None else max(known, waiting)
    _check_epoch(producer_id, known, producer_epoch)


def _check_ids(producer_id: ProducerId, producer_epoch: int) -> None:
    if producer_id < 0 or producer_epoch < 0:
        raise InvalidRequest(
            f"Invalid producer id {producer_id} or producer epoch {producer_epoch}."
        )


def _check_epoch(producer_id: ProducerId, known: int, producer_epoch: int) -> None:
    if producer_epoch < known:
        raise InvalidProducerEpoch(
            f"Epoch {producer_epoch} of producer {producer_id} is smaller than the last seen epoch "
            f"{known}."
        )


def check_marker(shard: Shard, marker: WriteTxnMarkers) -> None:
    """Raise an error unless the marker may end the producer's transaction, or repeats a marker.

    A marker ends the pending offsets in all groups. It is accepted even if its epoch is too old for
    some of them, but not all: those may come from others that use the producer's id.
    """
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    _check_ids(producer_id, epoch)
    state = shard.producers.get(producer_id, UNKNOWN)
    _check_epoch(producer_id, state.producer_epoch, epoch)
    transaction = shard.open_transactions.get(producer_id)
    if transaction is not None:
        _check_open_epoch(marker, transaction.producer_epoch)
    if marker.coordinator_epoch < state.coordinator_epoch:
        raise TransactionCoordinatorFenced(
            f"Invalid coordinator epoch for producer {producer_id}: {marker.coordinator_epoch} "
            f"(zombie), {state.coordinator_epoch} (current)."
        )
    if marker.committed and transaction is None:
        _check_not_timed_out(shard, marker)


def _check_open_epoch(marker: WriteTxnMarkers, waiting: int) -> None:
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    _check_epoch(producer_id, waiting, epoch)
    if marker.transaction_version >= EPOCH_IN_TRANSACTIONS and epoch == waiting < LAST_EPOCH:
        raise InvalidProducerEpoch(
            f"Producer {producer_id} has an open transaction at epoch {epoch}: its marker must "
            "have a greater epoch."
        )


def _check_not_timed_out(shard: Shard, marker: WriteTxnMarkers) -> None:
    """Refuse to commit a transaction that was aborted here by timeout: its offsets are gone.

    A marker with the next epoch may belong to that transaction too: not every coordinator sends the
    transaction version. Among the error codes that end the coordinator's retries,
    INVALID_PRODUCER_EPOCH leaves the transaction uncommitted, so that the producer's next one
    fails.
    """
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    for group_id, group in shard.producer_groups.get(producer_id, {}).items():
        if group.timed_out_epoch > -1 and epoch <= group.timed_out_epoch + 1:
            raise InvalidProducerEpoch(
                f"The transaction of producer {producer_id} at epoch {group.timed_out_epoch} in "
                f"group {group_id} was aborted because it timed out."
            )


def compute_state_after_offsets(
    shard: Shard, producer_id: ProducerId, producer_epoch: int, group_id: GroupId, wall_ms: int
) -> tuple[SideRecord, ...]:
    """The side records of the producer's new epoch in the group, and of the transaction's start.

    Further offsets of a transaction add no record: they do not extend its timeout.
    """
    side = []
    known = shard.producers.get(producer_id, UNKNOWN)
    transaction = shard.open_transactions.get(producer_id)
    since_ms = wall_ms if transaction is None else transaction.since_ms
    if known.transaction_since_ms != since_ms:
        state = replace(known, last_timestamp=wall_ms, transaction_since_ms=since_ms)
        side.append(SideRecord(ProducerStateKey(shard.partition, producer_id), state))
    group = shard.producer_groups.get(producer_id, {}).get(group_id)
    said = ProducerGroupValue(producer_epoch)
    if group != said and (group is not None or producer_epoch > known.producer_epoch):
        side.append(SideRecord(ProducerGroupKey(shard.partition, producer_id, group_id), said))
    return tuple(side)


def compute_state_after_marker(
    shard: Shard, marker: WriteTxnMarkers, wall_ms: int
) -> tuple[SideRecord, ...]:
    """The side records of a marker: its producer and coordinator epochs.

    They come from the transaction coordinator, so they replace the epochs seen in groups.
    """
    state = ProducerStateValue(marker.producer_epoch, marker.coordinator_epoch, wall_ms)
    return (
        SideRecord(ProducerStateKey(shard.partition, marker.producer_id), state),
        *_compute_groups_forgotten(shard, marker.producer_id),
    )


def _compute_groups_forgotten(shard: Shard, producer_id: ProducerId) -> Iterator[SideRecord]:
    for group_id in shard.producer_groups.get(producer_id, ()):
        yield SideRecord(ProducerGroupKey(shard.partition, producer_id, group_id), None)


def compute_state_after_abort(
    shard: Shard, producer_id: ProducerId, epochs: Mapping[GroupId, int], wall_ms: int
) -> tuple[SideRecord, ...]:
    """The side records of an abort by timeout, which fences the producer in these groups.

    ``epochs`` are those of the pending offsets. As after an abort by the transaction coordinator,
    requests in flight are refused: offsets of the producer, and the marker that would commit this
    transaction. Other groups are not affected: the offsets may not have been the producer's own.
    """
    known = shard.producers.get(producer_id, UNKNOWN)
    state = replace(known, last_timestamp=wall_ms, transaction_since_ms=-1)
    fences = (
        SideRecord(
            ProducerGroupKey(shard.partition, producer_id, group_id),
            ProducerGroupValue(compute_next_epoch(epoch), epoch),
        )
        for group_id, epoch in epochs.items()
    )
    return SideRecord(ProducerStateKey(shard.partition, producer_id), state), *fences


def compute_next_epoch(epoch: int) -> int:
    """The epoch of a marker that fences this epoch."""
    return min(epoch + 1, LAST_EPOCH)


def find_expired_producers(shard: Shard, now_ms: int) -> tuple[ProducerId, ...]:
    """Producers without an open transaction that have been idle for a day (``now_ms``: wall)."""
    return tuple(
        producer_id
        for producer_id in dict.fromkeys((*shard.producers, *shard.producer_groups))
        if now_ms - shard.producers.get(producer_id, UNKNOWN).last_timestamp
        >= PRODUCER_EXPIRATION_MS
        and shard.open_transactions.get(producer_id) is None
    )


def handle_expire_producers(shard: Shard, command: ExpireProducers) -> Outcome:
    """Remove the producers, except those that have begun a transaction since."""
    side: list[SideRecord] = []
    for producer_id in command.producer_ids:
        if shard.open_transactions.get(producer_id) is None:
            side.append(SideRecord(ProducerStateKey(shard.partition, producer_id), None))
            side += _compute_groups_forgotten(shard, producer_id)
    return Outcome(response=Done(), side=tuple(side))
