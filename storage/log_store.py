"""The seam between the coordinator and whatever keeps its log: ``LogStore``.

A store holds, for each partition of the ``__consumer_offsets`` log, its record batches in offset
order (``log``), the last committed record of every key (``latest``, the log compacted) and the
offsets of open transactions (``pending``), and beside them what Kafka's records cannot hold
(``side``). What trimming left of an old part of the log is noted in ``kept``
(``storage.log.trim``). ``storage.log.fold`` is the rule that makes ``latest`` and ``pending`` of a
log. One writer; all that one ``write`` takes lands together or not at all.

Calls come from one thread, but ``sync``, which may run in another while that thread goes on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

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


class StoreError(Exception):
    """The store cannot do what was asked; the message is one line for people."""


class StoreLocked(StoreError):
    """Another process, or another store object of this one, has the folder open."""


class StoreCorrupt(StoreError):
    """Files are missing or damaged, or the folder holds something else than a store."""


class FormatTooNew(StoreError):
    """A newer version wrote the store."""


class WatermarkViolation(StoreError):
    """The log ends before what had been acknowledged as durable."""


class StoreStalled(StoreError):
    """The store is behind with its background work: nothing was written, try again later."""


class StoreFailed(StoreError):
    """A write or an fsync failed; what the disk holds is unknown until the store is reopened."""


class LatestEntry(NamedTuple):
    """The last record of a key: ``timestamp`` in wall ms, ``value`` as the log has it."""

    key: bytes
    offset: LogOffset
    timestamp: int
    value: bytes


@value
class PartitionAppend:
    """One batch for one partition, and what it does to ``latest`` and ``pending``.

    ``batch`` is one RecordBatch v2 that takes the ``records`` offsets from ``base_offset`` on; it
    may be transactional or a control batch. ``latest`` maps record keys, as ``compute_latest_key``
    gives them, to ``pack_latest`` or to ``None``, which deletes; of several records with one key
    only the last is in it. ``pending`` does the same for (producer id, record key).
    ``may_leave_gap`` allows a base offset above the next one: so are compacted logs.
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
    """Batches of one partition that go, those that come in their place, and what is ``kept``.

    ``removed`` are base offsets. Each of ``batches`` is a RecordBatch v2 within the offsets of
    batches that go, or has the base offset of one that it replaces. ``kept`` maps keys of
    ``storage.log.trim`` to values or to ``None``, which deletes.
    """

    partition: LogPartition
    removed: Sequence[LogOffset]
    batches: Sequence[bytes]
    kept: Mapping[bytes, bytes | None]


class LogStore(Protocol):
    """An append-only log of record batches per partition, its compaction, and side records.

    Every method raises ``StoreError``, or ``ValueError`` where the caller broke the contract.
    """

    @property
    def partitions(self) -> int:
        """The number of log partitions, fixed when the store was made."""
        ...

    @property
    def cluster_id(self) -> str:
        """Made with the store, 22 characters as Kafka's cluster ids."""
        ...

    def next_offset(self, partition: LogPartition) -> LogOffset:
        """The offset that the next record written to the partition gets."""
        ...

    def write(
        self, appends: Sequence[PartitionAppend], side: Sequence[tuple[bytes, bytes | None]] = ()
    ) -> None:
        """Writes all of it atomically, not yet durably; a side value of ``None`` deletes.

        Several appends may go to one partition, in offset order. Raises ``ValueError`` where a
        base offset is not the next one, or not above it where an append may leave a gap,
        ``StoreStalled`` where nothing was written and ``StoreFailed`` where it is unknown what was.
        """
        ...

    def sync(self) -> None:
        """Blocks until all that was written before the call is durable.

        Meant for a worker thread: it lets other threads run. Raises ``StoreFailed``; it is never
        retried.
        """
        ...

    def mark_durable(self, offsets: Mapping[LogPartition, LogOffset]) -> None:
        """Moves the watermark: the next offsets up to which the log is durable.

        Called between ``sync`` and the answers. Raises ``ValueError`` for an offset that no
        finished ``sync`` covers.
        """
        ...

    def sync_watermark(self) -> None:
        """Makes the watermark durable, once a second; ``close`` does it too."""
        ...

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """The next offset up to which the partition was marked as durable."""
        ...

    def rewrite(self, rewrite: PartitionRewrite) -> None:
        """Replaces batches atomically, not yet durably; ``latest`` and ``pending`` are as before.

        What goes and comes must lie below the durable offset, and before the last batch of the
        partition. Raises ``ValueError`` where it does not, else as ``write``.
        """
        ...

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """What ``rewrite`` was given to keep, in the order of the keys."""
        ...

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """All that is kept under keys with the prefix, in the order of the keys."""
        ...

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        """Record batches in offset order, from the one that holds ``start`` on."""
        ...

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        """The entries whose record key begins with the prefix, in the order of the keys."""
        ...

    def get_latest(self, partition: LogPartition, key: bytes) -> LatestEntry | None:
        """The entry of a record key; a legacy offset key finds its type-1 twin."""
        ...

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        """``get_latest`` for many keys, in their order."""
        ...

    def pending(
        self, partition: LogPartition, producer_id: int | None = None
    ) -> Iterator[tuple[int, LatestEntry]]:
        """Producer ids and the entries of their open transactions, in the order of both.

        With a ``producer_id`` those of this producer alone.
        """
        ...

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        """The groups that have committed offsets, each once, without reading each offset."""
        ...

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Side records whose key begins with the prefix, in the order of the keys."""
        ...

    def close(self) -> None:
        """Makes everything durable and lets go of the files. Closing twice does nothing."""
        ...


def pack_latest(offset: int, timestamp: int, value: bytes) -> bytes:
    """What ``latest`` holds for a key: offset, timestamp (wall ms) and value of its record."""
    return _LATEST_HEAD.pack(offset, timestamp) + value


def pack_latest_rows(first: int, timestamp: int, values: NDArray[np.uint8]) -> list[bytes]:
    """``pack_latest`` of values of one size at consecutive offsets."""
    count, size = values.shape
    packed = np.empty((count, _LATEST_HEAD.size + size), np.uint8)
    packed[:, :8] = np.arange(first, first + count, dtype=">i8").view(np.uint8).reshape(-1, 8)
    packed[:, 8:16] = np.frombuffer(_LATEST_HEAD.pack(0, timestamp)[8:], np.uint8)
    packed[:, 16:] = values
    data, width = packed.tobytes(), packed.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]


def unpack_latest(key: bytes, packed: bytes) -> LatestEntry:
    """The entry of a record key; raises ``StoreCorrupt`` where the bytes are too short."""
    if len(packed) < _LATEST_HEAD.size:
        raise StoreCorrupt(f"the entry of record key {key.hex()} has only {len(packed)} bytes")
    offset, timestamp = _LATEST_HEAD.unpack_from(packed)
    return LatestEntry(key, LogOffset(offset), timestamp, packed[_LATEST_HEAD.size :])


def pack_pending_key(producer_id: int, key: bytes) -> bytes:
    """What ``pending`` keeps a record of an open transaction under, after the partition."""
    return _PRODUCER_ID.pack(producer_id) + key


def unpack_pending(pending_key: bytes, packed: bytes) -> tuple[int, LatestEntry]:
    """The producer id and the entry; raises ``StoreCorrupt`` where the bytes are too short."""
    if len(pending_key) < _PRODUCER_ID.size:
        raise StoreCorrupt(f"the pending key {pending_key.hex()} has no producer id")
    (producer_id,) = _PRODUCER_ID.unpack_from(pending_key)
    return producer_id, unpack_latest(pending_key[_PRODUCER_ID.size :], packed)


def compute_latest_key(key: bytes) -> bytes:
    """The key under which ``latest`` keeps a record: legacy offset keys become type 1.

    Both types lay group, topic and partition out alike, and the later of the two wins.
    """
    return _OFFSET_TYPE + key[2:] if key[:2] == _LEGACY_OFFSET_TYPE else key


def check_append(append: PartitionAppend, next_offset: int) -> None:
    """Raises ``ValueError`` unless the append continues its partition and is what it says."""
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
            f"a batch of {count} offsets from {base_offset} was said to have {append.records} "
            f"from {append.base_offset}"
        )
    for key in append.latest:
        if key[:2] == _LEGACY_OFFSET_TYPE:
            raise ValueError(f"legacy offset key {key.hex()}: use compute_latest_key")
    for producer_id, key in append.pending:
        if producer_id < 0:
            raise ValueError(f"producer {producer_id} has no transactions")
        if key[:2] != _OFFSET_TYPE:
            raise ValueError(f"record key {key.hex()} is not that of an offset, it cannot pend")


def check_rewrite(rewrite: PartitionRewrite, durable: int, log_end: int) -> None:
    """Raises ``ValueError`` unless the rewrite is within what may be rewritten."""
    ends = [offset + 1 for offset in rewrite.removed]
    ends += [sum(read_batch_range(batch)) for batch in rewrite.batches]
    end = max(ends, default=0)
    if end > durable or (ends and end >= log_end):
        raise ValueError(
            f"partition {rewrite.partition} is durable up to {durable} and ends at {log_end}: "
            f"it cannot be rewritten up to {end}"
        )


def read_batch_range(batch: bytes) -> tuple[int, int]:
    """The base offset of a RecordBatch v2 and how many offsets it takes."""
    if len(batch) < _BATCH_RANGE.size:
        raise ValueError(f"a record batch does not have {len(batch)} bytes")
    base_offset, last_delta = _BATCH_RANGE.unpack_from(batch)
    return base_offset, last_delta + 1


def compute_watermark_violation(
    log_ends: Sequence[int], durable: Sequence[int], sequences: tuple[int, int]
) -> WatermarkViolation | None:
    """The error where the log ends below what was marked as durable.

    ``sequences`` are the store's own count of writes now and at the mark, which also counts what
    is not in the log.
    """
    losses = [
        f"log partition {partition} ends at offset {end}, {mark - end} records below {mark}"
        for partition, (end, mark) in enumerate(zip(log_ends, durable, strict=True))
        if end < mark
    ]
    if not losses and sequences[0] < sequences[1]:
        losses = [f"the store ends at write {sequences[0]} of {sequences[1]}, within side records"]
    if not losses:
        return None
    more = f" (and {len(losses) - 3} more partitions)" if len(losses) > 3 else ""
    return WatermarkViolation(
        f"acknowledged records are lost: {'; '.join(losses[:3])}{more}; "
        "restore the data folder from a backup"
    )


def compute_prefix_end(prefix: bytes) -> bytes | None:
    """The first key after all keys with the prefix, or ``None`` where there is none."""
    stripped = prefix.rstrip(b"\xff")
    if not stripped:
        return None
    return stripped[:-1] + bytes((stripped[-1] + 1,))


def scan_offset_group_ids(seek: Callable[[bytes], bytes | None]) -> Iterator[GroupId]:
    """Distinct groups of type-1 keys; ``seek`` finds the first record key at or after its own."""
    position: bytes | None = _OFFSET_TYPE
    while position is not None:
        key = seek(position)
        if key is None or key[:2] != _OFFSET_TYPE:
            return
        end = 4 + int.from_bytes(key[2:4], "big")
        if len(key) < end + 2:
            raise StoreCorrupt(f"offset key {key.hex()} ends within its group id")
        yield GroupId(key[4:end].decode("utf-8", "replace"))
        position = compute_prefix_end(key[:end])
