"""The disk of the simulated server: a ``MemoryLogStore`` that says what it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from model.ids import GroupId, LogOffset, LogPartition
from model.log.records import Record
from model.log.side_records import SideRecord
from model.log.transaction_records import TransactionRecord
from storage.log_store import (
    Change,
    LatestEntry,
    PartitionAppend,
    PartitionRewrite,
    StoreStalled,
)
from storage.side_codec import decode_side
from tests.support.log_entries import LogEntry, decode_append
from tests.support.memory import MemoryLogStore

_LOG_START = LogOffset(0)
CHECKPOINT_KEYS = 5
"""So few keys in a step of a checkpoint that a crash may fall between two."""


@dataclass(frozen=True, slots=True)
class Write:
    """One atomic write, decoded from the bytes that the store was given.

    ``records`` count from now on; what waits for a marker, and markers, are ``transactions``.
    """

    records: tuple[Record, ...]
    side: tuple[SideRecord, ...]
    transactions: tuple[TransactionRecord, ...] = ()
    entries: tuple[LogEntry, ...] = ()
    """All of both, in the order of the log of each partition."""


class SimDisk:
    """A ``LogStore``. A sync covers what was written before it began, and nothing later.

    ``writes`` are all that the log has; the first ``durable`` of them are synced. ``on_write`` and
    ``on_sync`` are called after the fact. ``is_stalled`` decides whether a write is refused.
    """

    def __init__(
        self,
        store: MemoryLogStore,
        *,
        on_write: Callable[[Write], None],
        on_sync: Callable[[Sequence[Write]], None],
        is_stalled: Callable[[], bool],
    ) -> None:
        self.store = store
        self.partitions = store.partitions
        self.cluster_id = store.cluster_id
        self.writes: list[Write] = []
        self.durable = 0
        self.on_write = on_write
        self.on_sync = on_sync
        self.is_stalled = is_stalled
        self._sync_covers: int | None = None

    def write(
        self,
        appends: Sequence[PartitionAppend],
        side: Sequence[Change] = (),
        causes: Sequence[Change] = (),
    ) -> None:
        if self.is_stalled():
            raise StoreStalled("the simulated store stalls")
        self.store.write(appends, side, causes)
        entries = tuple(entry for append in appends for entry in decode_append(append))
        write = Write(
            tuple(entry for _, entry in entries if isinstance(entry, Record)),
            tuple(decode_side(key, value) for key, value in side),
            tuple(entry for _, entry in entries if not isinstance(entry, Record)),
            entries,
        )
        self.writes.append(write)
        self.on_write(write)

    def rewrite(self, rewrite: PartitionRewrite) -> None:
        if self.is_stalled():
            raise StoreStalled("the simulated store stalls")
        self.store.rewrite(rewrite)
        # It brings no records; to a crash it is a write like any other.
        self.writes.append(Write((), ()))

    def write_checkpoint(self, keys_max: int) -> Iterator[bool]:
        """See ``LogStore``. To a crash each step is a write like any other."""
        steps = self.store.write_checkpoint(min(keys_max, CHECKPOINT_KEYS))
        while True:
            if self.is_stalled():
                yield False
                continue
            before = self.store.unsynced_writes
            is_over = next(steps, None) is None
            self.writes += [Write((), ())] * (self.store.unsynced_writes - before)
            if is_over:
                return
            yield True

    def begin_sync(self) -> None:
        """From here on what is written is left to the sync after this one."""
        self._sync_covers = len(self.writes)

    def sync(self) -> None:
        covers = len(self.writes) if self._sync_covers is None else self._sync_covers
        covered = covers - self.durable
        unsynced = self.store._unsynced
        later = unsynced[covered:]
        del unsynced[covered:]
        self.store.sync()
        unsynced += later
        synced = self.writes[self.durable : covers]
        self.durable = covers
        self._sync_covers = None
        self.on_sync(synced)

    def crash(self, survivors: int) -> int:
        """Power is gone; of the writes that are not synced the first ``survivors`` stay.

        How many writes are lost.
        """
        kept = self.durable + survivors
        lost = len(self.writes) - kept
        self.store = self.store.crash(survivors)
        survived = self.writes[self.durable : kept]
        del self.writes[kept:]
        self.durable = kept
        self._sync_covers = None
        self.on_sync(survived)
        return lost

    @property
    def unsynced(self) -> int:
        """How many writes a crash may lose."""
        return len(self.writes) - self.durable

    # ------------------------------------------------------------------------- handed through

    def next_offset(self, partition: LogPartition) -> LogOffset:
        return self.store.next_offset(partition)

    def mark_durable(self, offsets: Mapping[LogPartition, LogOffset]) -> None:
        self.store.mark_durable(offsets)

    def sync_watermark(self) -> None:
        self.store.sync_watermark()

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        return self.store.durable_offset(partition)

    @property
    def unsettled_keys(self) -> int:
        return self.store.unsettled_keys

    def checkpoint_offset(self, partition: LogPartition) -> LogOffset:
        return self.store.checkpoint_offset(partition)

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.store.get_kept(partition, keys)

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        return self.store.kept(partition, key_prefix)

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        return self.store.read_log(partition, start)

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        return self.store.latest(partition, key_prefix)

    def get_latest(self, partition: LogPartition, key: bytes) -> LatestEntry | None:
        return self.store.get_latest(partition, key)

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        return self.store.get_many_latest(partition, keys)

    def has_latest(self, partition: LogPartition, key_prefix: bytes) -> bool:
        return self.store.has_latest(partition, key_prefix)

    def pending(
        self, partition: LogPartition, producer_id: int | None = None
    ) -> Iterator[tuple[int, LatestEntry]]:
        return self.store.pending(partition, producer_id)

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        return self.store.offset_group_ids(partition)

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return self.store.side(prefix)

    def causes(self, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return self.store.causes(start)

    def causes_before(self, end: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.store.causes_before(end, prefix)

    def close(self) -> None:
        self.store.close()
