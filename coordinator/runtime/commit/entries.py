"""Entries of a write: a command's records, and who waits for them to be durable."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from coordinator.core.state.consumer.prepared_target import PreparedTarget
from coordinator.core.state.conversion import RecordBlock
from coordinator.core.state.outcome import Outcome
from coordinator.runtime.api import Answer, Release, Reply
from coordinator.runtime.commit.partition_encoder import PartitionEncoder, fits_rows
from coordinator.runtime.ledger.noted_changes import NotedChange
from model.ids import LogPartition, ProducerId
from model.log.commit_records import OffsetColumns, OffsetCommits
from model.log.records import Record, RecordKey
from model.log.side_records import SideRecord
from model.log.transaction_records import TransactionRecord
from storage.codec.commit_encoder import CommitEncoder, encode_commit_pairs

Waited: TypeAlias = Mapping[RecordKey, Collection[ProducerId]]


NOTHING_WAITED: Waited = {}


class Entry(NamedTuple):
    """The records of one outcome, already replayed, and the reply that waits for them.

    ``waited`` names, per tombstone, the producers whose pending offsets it removes. ``blocks``
    holds all records already encoded, if they were encoded ahead. ``waiting`` is how many pending
    offsets a marker ends. ``change`` is the change of offsets that the records are.
    """

    partition: LogPartition
    records: tuple[Record, ...]
    side: tuple[SideRecord, ...]
    reply: Reply | None
    answer: Answer | None
    commits: tuple[OffsetCommits, ...] = ()
    transaction: TransactionRecord | None = None
    prepared: PreparedTarget | None = None
    waited: Waited = NOTHING_WAITED
    blocks: tuple[RecordBlock, ...] = ()
    waiting: int = 0
    change: NotedChange | None = None


CommitEntry: TypeAlias = tuple[LogPartition, OffsetColumns, int, CommitEncoder, Release]
"""Offsets committed with a ticket: the log partition, the offsets, the commit timestamp, the
ticket's encoder, and the callback for when they are durable. A plain tuple: one is made per commit.
"""


def make_entry(
    partition: LogPartition,
    outcome: Outcome,
    reply: Reply | None,
    waited: Waited = NOTHING_WAITED,
    change: NotedChange | None = None,
) -> Entry:
    """The entry of an outcome; ``reply`` is ``None`` if the response is not computed yet."""
    return Entry(
        partition,
        outcome.records,
        outcome.side,
        reply,
        outcome.response,
        prepared=outcome.prepared,
        waited=waited,
        blocks=() if outcome.converted is None else outcome.converted.blocks,
        change=change,
    )


def encode_entry(encoder: PartitionEncoder, entry: Entry | CommitEntry) -> None:
    """Encode all records of an entry."""
    if not isinstance(entry, Entry):
        _, offsets, timestamp, made_by, _ = entry
        if fits_rows(offsets, made_by):
            encoder.add_rows(offsets, timestamp, made_by)
        else:
            encoder.add_offsets(made_by.encode_pairs(offsets, timestamp))
        return
    if entry.change is None:
        _encode_records(encoder, entry)
    else:
        encoder.begin_change()
        _encode_records(encoder, entry)
        encoder.end_change(entry.change)


def _encode_records(encoder: PartitionEncoder, entry: Entry) -> None:
    made = {} if entry.prepared is None else entry.prepared.by_record
    waited = entry.waited
    for block in entry.blocks:
        encoder.add_block(block)
    for record in () if entry.blocks else entry.records:
        known = made.get(id(record)) if made else None
        if known is not None and known.encoded is not None:
            encoder.add_encoded(*known.encoded)
        else:
            encoder.add_record(record, waited.get(record.key, ()) if waited else ())
    for commits in entry.commits:
        encoder.add_offsets(encode_commit_pairs(commits))
    if entry.transaction is not None:
        encoder.add_transaction(entry.transaction)
