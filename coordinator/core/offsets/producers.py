"""What a log partition knows of each transactional producer, and who is fenced by it.

Facts of Kafka's ``ProducerStateManager`` and ``ProducerAppendInfo``: an epoch of a producer that is
below the highest known one is refused, also when its transactions have ended; so is a marker of
a coordinator that is older than the last one to end a transaction of that producer. Under
transaction version 2 (KIP-890) a marker has an epoch that the transaction's own offsets do not have
yet, so that one that comes late cannot end the transaction after it. A producer that has no open
transaction is forgotten after a day.

Kafka asks the transaction coordinator whether offsets are of a transaction (KIP-890). Here there is
none to ask, and anybody may send offsets with somebody else's producer id in a group of their own.
So only markers raise an epoch for all groups, and offsets that of their own group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands import ExpireProducers, WriteTxnMarkers
from model.errors import InvalidProducerEpoch, InvalidRequest, TransactionCoordinatorFenced
from model.ids import GroupId, ProducerId
from model.log.side_records import (
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerStateKey,
    ProducerStateValue,
    SideRecord,
)
from model.responses import Done

EPOCH_IN_TRANSACTIONS = 2
"""The transaction version from which on each transaction has a producer epoch of its own."""

LAST_EPOCH: Final = 32_767
"""It cannot be raised: the transaction that uses it up ends with it."""

PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""Kafka's ``producer.id.expiration.ms``."""

UNKNOWN: Final = ProducerStateValue(-1, -1, 0)


def check_producer(
    shard: Shard, producer_id: ProducerId, producer_epoch: int, group_id: GroupId
) -> None:
    """A producer that a newer one of its transactional id has fenced has no say.

    What is said in other groups fences nobody: anybody may have said it in a group of their own.
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
                "aborted: nobody had ended it in time."
            )
    elif transaction is not None:
        # What was imported waits for a producer that has said nothing here.
        waiting = transaction.find_epoch(group_id)
        known = known if waiting is None else max(known, waiting)
    _check_epoch(producer_id, known, producer_epoch)


def _check_ids(producer_id: ProducerId, producer_epoch: int) -> None:
    if producer_id < 0 or producer_epoch < 0:
        raise InvalidRequest(f"Producer {producer_id} has no transactions.")


def _check_epoch(producer_id: ProducerId, known: int, producer_epoch: int) -> None:
    if producer_epoch < known:
        raise InvalidProducerEpoch(
            f"Producer {producer_id} has epoch {known}, the request {producer_epoch}."
        )


def check_marker(shard: Shard, marker: WriteTxnMarkers) -> None:
    """Whether this marker may end the producer's transaction, or may be said again.

    It ends what waits in all groups. That it is too old for some of them, but not for all, is no
    reason to refuse it: those may be of others, who use the producer's id.
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
            f"A transaction coordinator of epoch {state.coordinator_epoch} has ended transactions "
            f"of producer {producer_id}, the request is of {marker.coordinator_epoch}."
        )
    if marker.committed and transaction is None:
        _check_not_timed_out(shard, marker)


def _check_open_epoch(marker: WriteTxnMarkers, waiting: int) -> None:
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    _check_epoch(producer_id, waiting, epoch)
    if marker.transaction_version >= EPOCH_IN_TRANSACTIONS and epoch == waiting < LAST_EPOCH:
        raise InvalidProducerEpoch(
            f"Producer {producer_id} has a transaction open at epoch {epoch}, which a marker of "
            "the same epoch does not end."
        )


def _check_not_timed_out(shard: Shard, marker: WriteTxnMarkers) -> None:
    """A commit of what was aborted here is not done: its offsets are gone.

    By its epoch alone a marker of the next one may be of it: not every coordinator says of which
    transaction version it is. Of the codes that end the coordinator's retries this is the one that
    leaves its transaction undone, so that the producer's next one fails.
    """
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    for group_id, group in shard.producer_groups.get(producer_id, {}).items():
        if group.timed_out_epoch > -1 and epoch <= group.timed_out_epoch + 1:
            raise InvalidProducerEpoch(
                f"The transaction of producer {producer_id} at epoch {group.timed_out_epoch} in "
                f"group {group_id} was aborted: nobody had ended it in time."
            )


def compute_state_after_offsets(
    shard: Shard, producer_id: ProducerId, producer_epoch: int, group_id: GroupId, wall_ms: int
) -> tuple[SideRecord, ...]:
    """A new epoch of a producer in the group is remembered, and since when a transaction is open.

    More offsets of the transaction say nothing new: they do not put its end off.
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
    """Both epochs of the marker are remembered. They are the word of the coordinator, and of what
    was said in groups before nothing counts any more.
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
    """The producer is fenced in these groups, in which something waited at these epochs.

    As by a coordinator that aborts what has timed out: what was under way is refused, be it of the
    producer or the marker that would commit this transaction. In other groups it goes on: nobody
    here knows that the transaction was its own.
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
    """That of a marker by which the epoch is fenced."""
    return min(epoch + 1, LAST_EPOCH)


def find_expired_producers(shard: Shard, now_ms: int) -> tuple[ProducerId, ...]:
    """Those that have been silent for long and wait for nothing. ``now_ms`` is wall time."""
    return tuple(
        producer_id
        for producer_id in dict.fromkeys((*shard.producers, *shard.producer_groups))
        if now_ms - shard.producers.get(producer_id, UNKNOWN).last_timestamp
        >= PRODUCER_EXPIRATION_MS
        and shard.open_transactions.get(producer_id) is None
    )


def handle_expire_producers(shard: Shard, command: ExpireProducers) -> Outcome:
    """Forget them, but for those that have begun a transaction since."""
    side: list[SideRecord] = []
    for producer_id in command.producer_ids:
        if shard.open_transactions.get(producer_id) is None:
            side.append(SideRecord(ProducerStateKey(shard.partition, producer_id), None))
            side += _compute_groups_forgotten(shard, producer_id)
    return Outcome(response=Done(), side=tuple(side))
