"""Replay of committed offsets, transactions and producers.

The offsets themselves are in the store. The state has the groups that have offsets, the pending
offsets of transactions, and the producers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from coordinator.core.state.shard import Shard
from model.ids import GroupId, ProducerId
from model.log.records import LegacyOffsetCommitKey, OffsetCommitKey, RecordValue
from model.log.side_records import (
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerStateKey,
    ProducerStateValue,
    SideRecord,
)
from model.log.transaction_records import TransactionalOffsets, TransactionMarker, TransactionRecord


def replay_offset_commit(
    shard: Shard, key: OffsetCommitKey | LegacyOffsetCommitKey, value: RecordValue | None
) -> None:
    """Replay types 0 and 1: note that the group has offsets.

    A tombstone does not tell whether it was the group's last offset (``replay_no_offsets``).
    """
    if value is not None:
        shard.state.offset_groups.add(key.group)
    elif shard.state.open_transactions:
        shard.state.open_transactions.drop(OffsetCommitKey(key.group, key.topic, key.partition))


def replay_offset_group(shard: Shard, group_id: GroupId) -> None:
    """Replay any number of records of type 1 of a group; its offsets are read from the store."""
    shard.state.offset_groups.add(group_id)


def replay_no_offsets(shard: Shard, group_id: GroupId) -> None:
    """Note that the group has no committed offsets any more.

    Records do not show this, only the store does: an outcome says so (``last_offsets``), or the
    runtime, which looked and found none.
    """
    shard.state.offset_groups.discard(group_id)


# --------------------------------------------------------------------------------- transactions


def replay_transaction(shard: Shard, record: TransactionRecord) -> None:
    """Replay pending offsets, or a marker; ``storage.log.fold`` does the same with encoded records.

    The producer state must be replayed before.
    """
    transactions, producer_id = shard.state.open_transactions, record.producer_id
    state = shard.producers.get(producer_id)
    match record:
        case TransactionalOffsets(_, producer_epoch, records):
            since_ms = 0 if state is None else state.transaction_since_ms
            for key, _ in records:
                assert isinstance(key, OffsetCommitKey), "only offsets are pending"
                transactions.add(producer_id, producer_epoch, key, since_ms)
        case TransactionMarker(committed=committed):
            ended = transactions.end(producer_id)
            if committed:
                shard.state.offset_groups.update(key.group for key in ended)
        case _:
            assert_never(record)


def replay_waiting_offset(
    shard: Shard, producer_id: ProducerId, producer_epoch: int, key: OffsetCommitKey, since_ms: int
) -> None:
    """Replay one pending offset of ``TransactionalOffsets``, as stored."""
    shard.state.open_transactions.add(producer_id, producer_epoch, key, since_ms)


def replay_imported_transaction(
    shard: Shard,
    producer_id: ProducerId,
    epochs_and_times: Mapping[OffsetCommitKey, tuple[int, int]],
) -> None:
    """Replay the pending offsets of an imported log, each with its epoch and wall time (ms)."""
    shard.state.open_transactions.add_imported(producer_id, epochs_and_times)


# ------------------------------------------------------------------------------------ producers


def replay_producer_state(shard: Shard, record: SideRecord) -> None:
    """Replay the side records of producers (kinds 6 and 9)."""
    match record.key, record.value:
        case ProducerStateKey(_, producer_id), ProducerStateValue() as state:
            shard.state.producers[producer_id] = state
        case ProducerStateKey(_, producer_id), None:
            shard.state.producers.pop(producer_id, None)
        case ProducerGroupKey(_, producer_id, group_id), ProducerGroupValue() as group:
            shard.state.producer_groups.setdefault(producer_id, {})[group_id] = group
        case ProducerGroupKey(_, producer_id, group_id), None:
            groups = shard.state.producer_groups.get(producer_id, {})
            groups.pop(group_id, None)
            if not groups:
                shard.state.producer_groups.pop(producer_id, None)
        case _:
            raise AssertionError(f"unexpected side record: {record}")
