"""``LogStore``, the interface between the coordinator and the storage engine of its log.

For each partition of the ``__consumer_offsets`` log, a store holds the record batches in offset
order (``log``), the last committed record of every key (``latest``, i.e. the compacted log) and the
offsets committed in open transactions (``pending``). A write stores its batches; its changes to
``latest`` are in memory until a *checkpoint* stores each changed key once, with the log offsets up
to which ``latest`` is then true. A start replays the log from there. ``storage.log.fold`` defines
how ``latest`` and ``pending`` follow from the log. ``side`` holds state that has no Kafka record
type, ``causes`` the ledger (``storage.causes_codec``, ``storage.offset_changes_codec``). ``kept``
indexes the records that trimming left below the history start (``storage.log.trim``).

A store has a single writer. Each ``write`` is atomic. All calls come from one thread, except
``sync``, which may run in another thread concurrently.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.ids import GroupId, LogOffset, LogPartition
from model.value import value

_LATEST_HEAD = struct.Struct(">qq")
_PRODUCER_ID = struct.Struct(">q")
_BATCH_RANGE = struct.Struct(">q15xi")
_LEGACY_OFFSET_TYPE = b"\x00\x00"
_OFFSET_TYPE = b"\x00\x01"
_LOG_START = LogOffset(0)

Change: TypeAlias = tuple[bytes, bytes | None]
"""A key and its new value; ``None`` deletes it."""


class StoreError(Exception):
    """Base class of store errors; the message is one line for the operator."""


class StoreLocked(StoreError):
    """The folder is open in another process, or in another store object of this process."""


class StoreCorrupt(StoreError):
    """Files are missing or damaged, or the folder holds something other than a store."""


class FormatTooNew(StoreError):
    """The store was written by a newer version."""


class WatermarkViolation(StoreError):
    """The log ends below an offset that was acknowledged as durable."""


class StoreStalled(StoreError):
    """Background flushes or compactions have fallen behind. Nothing was written; retry later."""


class StoreFailed(StoreError):
    """A write or an fsync failed. The state on disk is unknown until the store is reopened."""


class LatestEntry(NamedTuple):
    """The last record of a key: ``timestamp`` in wall-clock ms, ``value`` as in the log."""

    key: bytes
    offset: LogOffset
    timestamp: int
    value: bytes


@value
class PartitionAppend:
    """One batch appended to one partition, with its changes to ``latest`` and ``pending``.

    ``batch`` is one RecordBatch v2 that occupies ``records`` offsets from ``base_offset`` on; it
    may be transactional or a control batch. ``latest`` maps record keys (``compute_latest_key``)
    to entries (``pack_latest``), or to ``None`` to delete the entry; only the last record of each
    key counts. ``pending`` does the same for (producer id, record key). ``may_leave_gap`` allows a
    base offset above the next offset, as in a compacted log.
    """

    partition: LogPartition
    base_offset: LogOffset
    batch: bytes
    records: int
    latest: Mapping[bytes, bytes | None]
    pending: Mapping[tuple[int, bytes], bytes | None] = field(default_factory=dict)
    may_leave_gap: bool = False


@value
class PartitionRewrite:
    """Batches to remove from one partition, their replacements, and changes to ``kept``.

    ``removed`` holds base offsets. Each of ``batches`` is a RecordBatch v2 that lies within the
    offsets of removed batches, or replaces the batch that has the same base offset. ``kept`` maps
    keys of ``storage.log.trim`` to values, or to ``None`` to delete the key.
    """

    partition: LogPartition
    removed: Sequence[LogOffset]
    batches: Sequence[bytes]
    kept: Mapping[bytes, bytes | None]


class LogStore(Protocol):
    """An append-only log of record batches per partition, its compacted view, and side records.

    Every method raises ``StoreError`` for storage errors and ``ValueError`` for invalid arguments.
    """

    partitions: int
    """The number of log partitions, fixed when the store is created."""
    cluster_id: str
    """The cluster id, generated with the store: 22 characters, in Kafka's format."""

    def next_offset(self, partition: LogPartition) -> LogOffset:
        """The offset of the next record to be written to the partition (its log end offset)."""
        ...

    def write(
        self,
        appends: Sequence[PartitionAppend],
        side: Sequence[Change] = (),
        causes: Sequence[Change] = (),
    ) -> None:
        """Write all of it atomically, but not durably: ``sync`` makes it durable.

        Several appends may go to one partition, in offset order. Raises ``ValueError`` if a base
        offset is not the next offset (or is below it, for an append that may leave a gap),
        ``StoreStalled`` if nothing was written (also when too much is not settled yet: a checkpoint
        is in progress), and ``StoreFailed`` if it is unknown what was written.
        """
        ...

    def sync(self) -> None:
        """Block until everything written before the call is durable.

        Intended for a worker thread: it releases the GIL. Raises ``StoreFailed``, after which the
        caller must not retry.
        """
        ...

    def mark_durable(self, offsets: Mapping[LogPartition, LogOffset]) -> None:
        """Advance the watermark: ``offsets`` are the log end offsets that are now durable.

        Called after ``sync`` and before responses are sent. Raises ``ValueError`` for an offset
        that no completed ``sync`` covers.
        """
        ...

    def sync_watermark(self) -> None:
        """Make the watermark durable. Called once a second; ``close`` does it too."""
        ...

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """The log end offset up to which the partition is marked as durable."""
        ...

    def rewrite(self, rewrite: PartitionRewrite) -> None:
        """Replace batches atomically, but not durably; ``latest`` and ``pending`` do not change.

        Removed and new batches must end below the durable offset, below ``checkpoint_offset`` and
        before the last batch of the partition, or ``ValueError`` is raised. Other errors are those
        of ``write``.
        """
        ...

    @property
    def unsettled_keys(self) -> int:
        """How many changed keys of ``latest`` the next checkpoint has to write."""
        ...

    def checkpoint_offset(self, partition: LogPartition) -> LogOffset:
        """The log offset up to which the last complete checkpoint of ``latest`` is true."""
        ...

    def write_checkpoint(self, keys_max: int) -> Iterator[bool]:
        """Write the changes to ``latest`` so far, at most ``keys_max`` keys in a step.

        Yields after each step: ``False`` if the store stalled and the step is tried again. The
        checkpoint counts once the iterator is exhausted. Only one may be in progress: a second one
        ends at once. Other errors are those of ``write``.
        """
        ...

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of keys of ``kept``, in the order of ``keys``."""
        ...

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the entries of ``kept`` whose key has the prefix, in key order."""
        ...

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        """Iterate over record batches in offset order, from the batch that contains ``start``."""
        ...

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        """Iterate over the entries whose record key has the prefix, in key order."""
        ...

    def get_latest(self, partition: LogPartition, key: bytes) -> LatestEntry | None:
        """Return the entry of a record key; a type-0 offset key finds the type-1 entry."""
        ...

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        """``get_latest`` for many keys; the result is in the order of ``keys``."""
        ...

    def has_latest(self, partition: LogPartition, key_prefix: bytes) -> bool:
        """Whether ``latest`` has an entry whose record key has the prefix."""
        ...

    def pending(
        self, partition: LogPartition, producer_id: int | None = None
    ) -> Iterator[tuple[int, LatestEntry]]:
        """Iterate over the entries of open transactions, ordered by producer id and record key.

        With a ``producer_id``, only the entries of that producer.
        """
        ...

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        """Iterate over the groups that have committed offsets, by seeking from group to group."""
        ...

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the side records whose key has the prefix, in key order."""
        ...

    def causes(self, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rebalances from a key on, in key order."""
        ...

    def causes_before(self, end: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rebalances before a key while they have the prefix, the last first."""
        ...

    def close(self) -> None:
        """Make everything durable and close the files. Idempotent."""
        ...


def pack_latest(offset: int, timestamp: int, value: bytes) -> bytes:
    """Encode an entry of ``latest``: the record's offset, timestamp (wall-clock ms) and value."""
    return _LATEST_HEAD.pack(offset, timestamp) + value


def pack_latest_rows(first: int, timestamp: int, values: NDArray[np.uint8]) -> list[bytes]:
    """``pack_latest`` for values of equal size at consecutive offsets from ``first``."""
    count, size = values.shape
    packed = np.empty((count, _LATEST_HEAD.size + size), np.uint8)
    packed[:, :8] = np.arange(first, first + count, dtype=">i8").view(np.uint8).reshape(-1, 8)
    packed[:, 8:16] = np.frombuffer(_LATEST_HEAD.pack(0, timestamp)[8:], np.uint8)
    packed[:, 16:] = values
    data, width = packed.tobytes(), packed.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]


def unpack_latest(key: bytes, packed: bytes) -> LatestEntry:
    """Decode an entry of ``latest``; raises ``StoreCorrupt`` if the bytes are too short."""
    if len(packed) < _LATEST_HEAD.size:
        raise StoreCorrupt(f"the entry of record key {key.hex()} has only {len(packed)} bytes")
    offset, timestamp = _LATEST_HEAD.unpack_from(packed)
    return LatestEntry(key, LogOffset(offset), timestamp, packed[_LATEST_HEAD.size :])


def pack_pending_key(producer_id: int, key: bytes) -> bytes:
    """Encode the key of a ``pending`` entry, without the partition prefix."""
    return _PRODUCER_ID.pack(producer_id) + key


def unpack_pending(pending_key: bytes, packed: bytes) -> tuple[int, LatestEntry]:
    """Decode a ``pending`` entry; raises ``StoreCorrupt`` if the bytes are too short."""
    if len(pending_key) < _PRODUCER_ID.size:
        raise StoreCorrupt(f"the pending key {pending_key.hex()} has no producer id")
    (producer_id,) = _PRODUCER_ID.unpack_from(pending_key)
    return producer_id, unpack_latest(pending_key[_PRODUCER_ID.size :], packed)


def compute_latest_key(key: bytes) -> bytes:
    """The key of a record in ``latest``: type-0 (legacy) offset keys become type 1.

    Both types encode group, topic and partition identically, and the later record wins.
    """
    return _OFFSET_TYPE + key[2:] if key[:2] == _LEGACY_OFFSET_TYPE else key


def check_append(append: PartitionAppend, next_offset: int) -> None:
    """Raise ``ValueError`` unless the append is consistent and starts at ``next_offset``."""
    if append.base_offset != next_offset and not (
        append.may_leave_gap and append.base_offset > next_offset
    ):
        raise ValueError(
            f"partition {append.partition} continues at offset {next_offset}, "
            f"not at {append.base_offset}"
        )
    base_offset, count = read_batch_range(append.batch)
    if base_offset != append.base_offset or count != append.records:
        raise ValueError(
            f"batch has {count} offsets from {base_offset}, but the append declares "
            f"{append.records} from {append.base_offset}"
        )
    # What is no dict has keys that an encoder made.
    for key in append.latest if isinstance(append.latest, dict) else ():
        if key[:2] == _LEGACY_OFFSET_TYPE:
            raise ValueError(f"legacy offset key {key.hex()}: use compute_latest_key")
    for producer_id, key in append.pending:
        if producer_id < 0:
            raise ValueError(f"producer {producer_id} has no transactions")
        if key[:2] != _OFFSET_TYPE:
            raise ValueError(f"record key {key.hex()} is not an offset key and cannot be pending")


def check_rewrite(rewrite: PartitionRewrite, settled: int, log_end: int) -> None:
    """Raise ``ValueError`` unless the rewrite ends below the settled and log end offsets.

    ``settled`` is the offset below which everything is durable and part of a checkpoint.
    """
    ends = [offset + 1 for offset in rewrite.removed]
    ends += [sum(read_batch_range(batch)) for batch in rewrite.batches]
    end = max(ends, default=0)
    if end > settled or (ends and end >= log_end):
        raise ValueError(
            f"partition {rewrite.partition} is settled up to {settled} and ends at {log_end}: "
            f"it cannot be rewritten up to {end}"
        )


def read_batch_range(batch: bytes) -> tuple[int, int]:
    """Return the base offset of a RecordBatch v2 and the number of offsets it occupies."""
    if len(batch) < _BATCH_RANGE.size:
        raise ValueError(f"{len(batch)} bytes are too few for a record batch")
    base_offset, last_delta = _BATCH_RANGE.unpack_from(batch)
    return base_offset, last_delta + 1


def compute_watermark_violation(
    log_ends: Sequence[int], durable: Sequence[int], sequences: tuple[int, int]
) -> WatermarkViolation | None:
    """Return the error if the log ends below the watermark, else ``None``.

    ``sequences`` are the store's write sequence numbers, now and at the watermark. They also count
    side records, which the log end offsets do not.
    """
    losses = [
        f"log partition {partition} ends at offset {end}, {mark - end} records below {mark}"
        for partition, (end, mark) in enumerate(zip(log_ends, durable, strict=True))
        if end < mark
    ]
    if not losses and sequences[0] < sequences[1]:
        losses = [f"the store ends at write {sequences[0]} of {sequences[1]}, in side records"]
    if not losses:
        return None
    more = f" (and {len(losses) - 3} more partitions)" if len(losses) > 3 else ""
    return WatermarkViolation(
        f"acknowledged records are lost: {'; '.join(losses[:3])}{more}; "
        "restore the data folder from a backup"
    )


def compute_prefix_end(prefix: bytes) -> bytes | None:
    """The smallest key above every key with the prefix, or ``None`` if there is none."""
    stripped = prefix.rstrip(b"\xff")
    if not stripped:
        return None
    return stripped[:-1] + bytes((stripped[-1] + 1,))


def scan_offset_groups(seek: Callable[[bytes], bytes | None]) -> Iterator[bytes]:
    """Iterate over the distinct groups of type-1 keys, as the prefix of the keys of each.

    ``seek`` returns the first record key at or after its argument.
    """
    position: bytes | None = _OFFSET_TYPE
    while position is not None:
        key = seek(position)
        if key is None or key[:2] != _OFFSET_TYPE:
            return
        end = 4 + int.from_bytes(key[2:4], "big")
        if len(key) < end + 2:
            raise StoreCorrupt(f"offset key {key.hex()} ends within its group id")
        yield key[:end]
        position = compute_prefix_end(key[:end])


def decode_offset_group(prefix: bytes) -> GroupId:
    """The group of a prefix of offset keys."""
    return GroupId(prefix[4:].decode("utf-8", "replace"))
