"""What is gathered for one write: what a command comes to, and who waits for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from coordinator.core.state.conversion import RecordBlock
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.prepared_target import PreparedTarget
from coordinator.runtime.api import Answer, Release, Reply
from coordinator.runtime.commit.partition_encoder import PartitionEncoder
from model.ids import LogPartition, ProducerId
from model.log.commit_records import OffsetCommits
from model.log.records import Record, RecordKey
from model.log.side_records import SideRecord
from model.log.transaction_records import TransactionRecord

Waited: TypeAlias = Mapping[RecordKey, Collection[ProducerId]]


NOTHING_WAITED: Waited = {}


class Entry(NamedTuple):
    """Records of one outcome, replayed already, and who waits for them.

    ``waited``: for which producers' markers offsets waited that their tombstones took.
    ``blocks`` are all records in the bytes of the log, where these are made before. ``waiting`` is
    how many offsets wait for the marker.
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


CommitEntry: TypeAlias = tuple[LogPartition, OffsetCommits, Release]
"""What was committed by a ticket, and what to call when it is durable."""


def find_lone_commit(entry: Entry | CommitEntry) -> OffsetCommits | None:
    """The offsets of an entry that is one commit to one topic, and nothing else."""
    if not isinstance(entry, Entry):
        return entry[1]
    if len(entry.commits) != 1 or entry.records or entry.blocks or entry.transaction is not None:
        return None
    return entry.commits[0]


def make_entry(
    partition: LogPartition, outcome: Outcome, reply: Reply | None, waited: Waited = NOTHING_WAITED
) -> Entry:
    """What a command comes to; ``None`` for ``reply`` where its answer is still to come."""
    return Entry(
        partition,
        outcome.records,
        outcome.side,
        reply,
        outcome.response,
        prepared=outcome.prepared,
        waited=waited,
        blocks=() if outcome.converted is None else outcome.converted.blocks,
    )


def encode_entry(encoder: PartitionEncoder, entry: Entry | CommitEntry) -> None:
    """Give all records of an entry to the encoder of its partition."""
    if not isinstance(entry, Entry):
        encoder.add_commits(entry[1])
        return
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
        encoder.add_commits(commits)
    if entry.transaction is not None:
        encoder.add_transaction(entry.transaction)
