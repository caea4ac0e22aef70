"""Every batch that is written in a test or a simulation, decoded and compared with its meaning.

A commit that is repeated, and a target that is made beforehand, do not go through the codecs that
say what a record is: a wrong byte of theirs has a right CRC, is acknowledged, and is in nobody's
way until somebody reads the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias, assert_never

from coordinator.core.offsets.offset_expiry import NO_TIMESTAMP
from coordinator.runtime.commit.entries import Entry
from coordinator.runtime.commit.partition_encoder import BATCH_BYTES_MAX, WrittenChange
from coordinator.runtime.commit.writer import CommitEntry, Writer
from model.ids import ZERO_TOPIC_ID, LogPartition
from model.log.commit_records import OffsetCommits
from model.log.records import OffsetCommitKey, OffsetCommitValue, Record
from model.log.transaction_records import TransactionalOffsets, TransactionMarker, TransactionRecord
from storage.codec.batches import Batch, decode_batch
from storage.codec.errors import CodecError
from storage.codec.record_codec import decode_key, decode_value
from storage.log.fold import PartitionFold
from storage.log_store import (
    LatestEntry,
    LogStore,
    PartitionAppend,
    StoreError,
    compute_latest_key,
    unpack_latest,
)
from tests.support.log_entries import decode_append

Meant: TypeAlias = Record | tuple[int, int, Record] | TransactionMarker
"""A record, one of a producer id and epoch, or a marker."""

_encode = Writer._encode
_found: list[BaseException] = []


def check_writers() -> None:
    """From now on, in this process; what was found before is forgotten.

    What is found is kept for ``raise_found``: a writer that fails ends the process.
    """
    Writer._encode = _encode_checked  # type: ignore[method-assign]
    _found.clear()


def raise_found() -> None:
    """Raises what was found first: ``AssertionError``, or ``CodecError`` where a batch is none."""
    found = _found.copy()
    _found.clear()
    if found:
        raise found[0]


def _encode_checked(
    self: Writer, wall_ms: int
) -> tuple[list[PartitionAppend], list[WrittenChange]]:
    appends, changed = _encode(self, wall_ms)
    try:
        check_appends(self.gathering.entries, appends)
        # A test may have broken the store: what is in it nobody can tell.
        with suppress(StoreError):
            check_states(self._store, appends)
    except (AssertionError, CodecError) as failure:
        _found.append(failure)
    return appends, changed


def check_appends(
    gathered: Iterable[Entry | CommitEntry], appends: Iterable[PartitionAppend]
) -> None:
    """Raises ``AssertionError`` unless the batches are what was gathered, in its order."""
    meant: dict[LogPartition, list[Meant]] = {}
    for entry in gathered:
        found = _of_entry(entry) if isinstance(entry, Entry) else _of_commits(_commits_of(entry))
        meant.setdefault(entry[0], []).extend(found)
    written: dict[LogPartition, list[Meant]] = {}
    for append in appends:
        written.setdefault(append.partition, []).extend(_of_append(append))
    for partition in meant.keys() | written.keys():
        wanted, given = meant.get(partition, []), written.get(partition, [])
        differ = (pair for pair in zip(wanted, given, strict=False) if pair[0] != pair[1])
        assert wanted == given, (
            f"partition {partition}: {len(given)} records written and {len(wanted)} meant; "
            f"the first that differ: {next(differ, None)}"
        )


def _of_entry(entry: Entry) -> Iterator[Meant]:
    yield from map(_as_the_log_can_say, entry.records)
    for commits in entry.commits:
        yield from _of_commits(commits)
    if entry.transaction is not None:
        yield from _of_transaction(entry.transaction)


def _as_the_log_can_say(record: Record) -> Record:
    """An offset with an expiry of its own is of version 1, which has no epoch and no topic id."""
    key, value = record
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != NO_TIMESTAMP:
        return Record(key, replace(value, leader_epoch=-1, topic_id=ZERO_TOPIC_ID))
    return record


def _of_commits(commits: OffsetCommits) -> Iterator[Record]:
    group, topic, time_ms, topic_id = (
        commits.group,
        commits.topic,
        commits.commit_timestamp,
        commits.topic_id,
    )
    for partition, offset, epoch, metadata in commits.offsets.rows():
        value = OffsetCommitValue(offset, epoch, metadata, time_ms, topic_id=topic_id)
        yield Record(OffsetCommitKey(group, topic, partition), value)


def _commits_of(entry: CommitEntry) -> OffsetCommits:
    _, offsets, timestamp, encoder, _ = entry
    key = decode_key(encoder.encode_key(0))
    _, value = decode_value(1, encoder.encode_value(0, 0, 0))
    assert isinstance(key, OffsetCommitKey)
    assert isinstance(value, OffsetCommitValue)
    return OffsetCommits(key.group, key.topic, value.topic_id, timestamp, offsets)


def _of_transaction(transaction: TransactionRecord) -> Iterator[Meant]:
    match transaction:
        case TransactionalOffsets(producer_id, epoch, records):
            yield from ((producer_id, epoch, _as_the_log_can_say(each)) for each in records)
        case TransactionMarker():
            yield transaction
        case _:
            assert_never(transaction)


def _of_append(append: PartitionAppend) -> Iterator[Meant]:
    check_frame(append)
    for _, entry in decode_append(append):
        if isinstance(entry, Record):
            yield entry
        else:
            yield from _of_transaction(entry)


def check_frame(append: PartitionAppend) -> None:
    """A record at every offset, and not more bytes than Kafka takes in one batch."""
    batch = decode_batch(append.batch)
    offsets = [record.offset for record in batch.records]
    end = append.base_offset + append.records
    assert offsets == list(range(append.base_offset, end))
    assert batch.last_offset == end - 1
    assert batch.size == len(append.batch)
    assert batch.size <= BATCH_BYTES_MAX or len(offsets) == 1, f"a batch of {batch.size} bytes"
    assert batch.max_timestamp == max(record.timestamp for record in batch.records)


# ------------------------------------------------------------------------------ latest, pending


def check_states(store: LogStore, appends: Iterable[PartitionAppend]) -> None:
    """Raises ``AssertionError`` unless what is said of ``latest`` and ``pending`` is what the
    batches come to, after what the store has before the write."""
    by_partition: dict[LogPartition, list[PartitionAppend]] = {}
    for append in appends:
        by_partition.setdefault(append.partition, []).append(append)
    for partition, one_after_another in by_partition.items():
        _check_state(store, partition, one_after_another)


def _check_state(
    store: LogStore, partition: LogPartition, appends: Sequence[PartitionAppend]
) -> None:
    batches = [decode_batch(append.batch) for append in appends]
    said_pending: dict[tuple[int, bytes], LatestEntry | None] = {}
    if any(map(_ends_waiting, batches)):
        said_pending = {(number, entry.key): entry for number, entry in store.pending(partition)}
    keys = {key for append in appends for key in append.latest} | {
        compute_latest_key(record.key or b"") for batch in batches for record in batch.records
    }
    keys.update(key for _, key in said_pending)
    names = list(keys)
    before = zip(names, store.get_many_latest(partition, names), strict=True)
    said: dict[bytes, LatestEntry | None] = dict(before)
    fold = _make_fold(said, said_pending)
    for append, batch in zip(appends, batches, strict=True):
        fold.apply_batch(batch)
        for key, packed in append.latest.items():
            said[key] = None if packed is None else unpack_latest(key, packed)
        for (producer_id, key), packed in append.pending.items():
            entry = None if packed is None else unpack_latest(key, packed)
            said_pending[producer_id, key] = entry
    standing = {key: entry for key, entry in said.items() if entry is not None}
    assert standing == {key: fold.latest[key] for key in names if key in fold.latest}
    waiting = {place: entry for place, entry in said_pending.items() if entry is not None}
    assert waiting == {
        (producer_id, key): entry
        for producer_id, entries in fold.pending.items()
        for key, entry in entries.items()
    }


def _ends_waiting(batch: Batch) -> bool:
    """Whether it may do something to what waits already: a marker, or a tombstone."""
    return batch.is_transactional or any(record.value is None for record in batch.records)


def _make_fold(
    latest: Mapping[bytes, LatestEntry | None],
    pending: Mapping[tuple[int, bytes], LatestEntry | None],
) -> PartitionFold:
    """One that has come to this already."""
    fold = PartitionFold()
    fold.latest = {key: entry for key, entry in latest.items() if entry is not None}
    for (producer_id, key), entry in pending.items():
        if entry is not None:
            fold.pending.setdefault(producer_id, {})[key] = entry
            fold._waiting.setdefault(key, set()).add(producer_id)
    return fold
