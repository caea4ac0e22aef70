"""``LogStore`` in memory, with a simulated disk that can lose unsynced writes.

For the simulator and tests: the same contract and checks as the store on RocksDB, and
deterministic. ``crash`` returns the store that a restart finds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, takewhile
from typing import Self

from model.ids import GroupId, LogOffset, LogPartition
from storage.log.latest_overlay import LatestOverlay, merge_latest
from storage.log.latest_replay import replay_latest
from storage.log_store import (
    Change,
    LatestEntry,
    PartitionAppend,
    PartitionRewrite,
    StoreError,
    check_append,
    check_rewrite,
    compute_watermark_violation,
    decode_offset_group,
    pack_pending_key,
    read_batch_range,
    scan_offset_groups,
    unpack_latest,
    unpack_pending,
)
from tests.support.sorted_map import SortedMap

_LOG_START = LogOffset(0)


@dataclass(slots=True)
class _Write:
    appends: tuple[PartitionAppend, ...]
    side: tuple[Change, ...]
    causes: tuple[Change, ...] = ()
    rewrite: PartitionRewrite | None = None
    settled: tuple[tuple[LogPartition, bytes, bytes], ...] = ()
    """Entries of ``latest`` that a checkpoint writes."""
    positions: tuple[int, ...] = ()
    """Up to where ``latest`` is true, in the last write of a checkpoint."""


@dataclass(slots=True)
class _Content:
    """The content of the disk, or of memory; ``sequence`` counts writes."""

    log: list[list[PartitionAppend]]
    latest: list[SortedMap]
    pending: list[SortedMap]
    kept: list[SortedMap]
    positions: list[int]
    side: SortedMap = field(default_factory=SortedMap)
    causes: SortedMap = field(default_factory=SortedMap)
    sequence: int = 0

    @classmethod
    def empty(cls, partitions: int) -> Self:
        return cls(
            [[] for _ in range(partitions)],
            [SortedMap() for _ in range(partitions)],
            [SortedMap() for _ in range(partitions)],
            [SortedMap() for _ in range(partitions)],
            [0] * partitions,
        )

    def apply(self, write: _Write) -> None:
        for append in write.appends:
            self.log[append.partition].append(append)
            for key, packed in append.latest.items():
                if append.pending or packed is None:
                    self.latest[append.partition].put(key, packed)
            pending = self.pending[append.partition]
            for (producer_id, key), packed in append.pending.items():
                pending.put(pack_pending_key(producer_id, key), packed)
        for key, value in write.side:
            self.side.put(key, value)
        for key, value in write.causes:
            self.causes.put(key, value)
        for partition, key, packed in write.settled:
            self.latest[partition].put(key, packed)
        if write.positions:
            self.positions = list(write.positions)
        if write.rewrite is not None:
            self._apply_rewrite(write.rewrite)
        self.sequence += 1

    def _apply_rewrite(self, rewrite: PartitionRewrite) -> None:
        partition = rewrite.partition
        removed = set(rewrite.removed)
        log = {
            append.base_offset: append
            for append in self.log[partition]
            if append.base_offset not in removed
        }
        for batch in rewrite.batches:
            base_offset, count = read_batch_range(batch)
            offset = LogOffset(base_offset)
            log[offset] = PartitionAppend(partition, offset, batch, count, {})
        self.log[partition] = [log[offset] for offset in sorted(log)]
        for key, value in rewrite.kept.items():
            self.kept[partition].put(key, value)

    def end(self, partition: int) -> int:
        log = self.log[partition]
        return log[-1].base_offset + log[-1].records if log else 0

    def copy(self) -> _Content:
        return _Content(
            [log.copy() for log in self.log],
            [latest.copy() for latest in self.latest],
            [pending.copy() for pending in self.pending],
            [kept.copy() for kept in self.kept],
            self.positions.copy(),
            self.side.copy(),
            self.causes.copy(),
            self.sequence,
        )


class MemoryLogStore:
    """A ``LogStore`` without files, with the given ``partitions`` and ``cluster_id``."""

    def __init__(self, partitions: int, cluster_id: str = "memory-cluster-0000000") -> None:
        if partitions < 1:
            raise ValueError(f"a store has at least one partition, not {partitions}")
        self.partitions = partitions
        self.cluster_id = cluster_id
        self._durable = _Content.empty(partitions)
        self._volatile = _Content.empty(partitions)
        self._unsynced: list[_Write] = []
        self._synced = ([0] * partitions, 0)
        self._marked = [0] * partitions
        self._marked_sequence = 0
        self._overlay = LatestOverlay()
        self._is_closed = False

    def next_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        if not 0 <= partition < self.partitions:
            raise ValueError(f"there is no log partition {partition} of {self.partitions}")
        return LogOffset(self._volatile.end(partition))

    def write(
        self,
        appends: Sequence[PartitionAppend],
        side: Sequence[Change] = (),
        causes: Sequence[Change] = (),
    ) -> None:
        """See ``LogStore``. Lost by a crash until ``sync``."""
        self._check_open()
        ends: dict[LogPartition, int] = {}
        for append in appends:
            check_append(append, ends.get(append.partition) or self.next_offset(append.partition))
            ends[append.partition] = append.base_offset + append.records
        self._write(_Write(tuple(appends), tuple(side), tuple(causes)))
        for append in appends:
            if append.pending:
                self._overlay.forget(append.partition, append.latest)
            else:
                self._overlay.note(append.partition, append.latest)

    def _write(self, write: _Write) -> None:
        self._volatile.apply(write)
        self._unsynced.append(write)

    def sync(self) -> None:
        """See ``LogStore``."""
        self._check_open()
        for write in self._unsynced:
            self._durable.apply(write)
        self._unsynced.clear()
        ends = [self._durable.end(partition) for partition in range(self.partitions)]
        self._synced = (ends, self._durable.sequence)

    def mark_durable(self, offsets: Mapping[LogPartition, LogOffset]) -> None:
        """See ``LogStore``."""
        self._check_open()
        ends, sequence = self._synced
        for partition, offset in offsets.items():
            if not self._marked[partition] <= offset <= ends[partition]:
                raise ValueError(
                    f"partition {partition} is durable up to {ends[partition]} and marked up to "
                    f"{self._marked[partition]}: {offset} is not between them"
                )
        for partition, offset in offsets.items():
            self._marked[partition] = offset
        self._marked_sequence = sequence

    def sync_watermark(self) -> None:
        """See ``LogStore``. A mark is as good as on disk: a crash here kills only the process."""
        self._check_open()

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        return LogOffset(self._marked[partition])

    def rewrite(self, rewrite: PartitionRewrite) -> None:
        """See ``LogStore``. Lost by a crash until ``sync``."""
        self._check_open()
        partition = rewrite.partition
        settled = min(self._marked[partition], self._volatile.positions[partition])
        check_rewrite(rewrite, settled, self._volatile.end(partition))
        self._write(_Write((), (), rewrite=rewrite))

    @property
    def unsettled_keys(self) -> int:
        """See ``LogStore``."""
        return self._overlay.count

    def checkpoint_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        return LogOffset(self._volatile.positions[partition])

    def write_checkpoint(self, keys_max: int) -> Iterator[bool]:
        """See ``LogStore``. Each step is a write of its own to a crash."""
        self._check_open()
        positions = tuple(map(self._volatile.end, range(self.partitions)))
        if self._overlay.is_frozen or positions == tuple(self._volatile.positions):
            return
        self._overlay.freeze()
        try:
            for part in self._overlay.frozen_slices(keys_max):
                settled = tuple((part.partition, *item) for item in part.find().items())
                self._write(_Write((), (), settled=settled))
                yield True
            self._write(_Write((), (), positions=positions))
        except BaseException:
            self._overlay.thaw()
            raise
        self._overlay.drop_frozen()

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``LogStore``."""
        self._check_open()
        return [self._volatile.kept[partition].get(key) for key in keys]

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        self._check_open()
        return iter(self._volatile.kept[partition].scan(key_prefix))

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        """See ``LogStore``."""
        self._check_open()
        log = self._volatile.log[partition]
        index = bisect_left(log, start + 1, key=lambda append: append.base_offset + append.records)
        return (append.batch for append in log[index:])

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        """See ``LogStore``."""
        self._check_open()
        stored = self._volatile.latest[partition].scan(key_prefix)
        found = merge_latest(self._overlay.find(partition, key_prefix), stored)
        return (unpack_latest(key, packed) for key, packed in found)

    def get_latest(self, partition: LogPartition, key: bytes) -> LatestEntry | None:
        """See ``LogStore``."""
        return self.get_many_latest(partition, [key])[0]

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        """See ``LogStore``."""
        self._check_open()
        latest = self._volatile.latest[partition]
        return self._overlay.get_many(
            partition, keys, lambda missing: [latest.get(key) for key in missing]
        )

    def has_latest(self, partition: LogPartition, key_prefix: bytes) -> bool:
        """See ``LogStore``."""
        return next(self.latest(partition, key_prefix), None) is not None

    def pending(
        self, partition: LogPartition, producer_id: int | None = None
    ) -> Iterator[tuple[int, LatestEntry]]:
        """See ``LogStore``."""
        self._check_open()
        prefix = b"" if producer_id is None else pack_pending_key(producer_id, b"")
        found = self._volatile.pending[partition].scan(prefix)
        return (unpack_pending(key, packed) for key, packed in found)

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        """See ``LogStore``."""
        self._check_open()
        keys = self._volatile.latest[partition].keys().copy()

        def seek(key: bytes) -> bytes | None:
            index = bisect_left(keys, key)
            return keys[index] if index < len(keys) else None

        noted = self._overlay.find_offset_groups(partition)
        groups = groupby(merge(noted, scan_offset_groups(seek)))
        return (decode_offset_group(group) for group, _ in groups)

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        self._check_open()
        return iter(self._volatile.side.scan(prefix))

    def causes(self, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        self._check_open()
        return iter([pair for pair in self._volatile.causes.scan(b"") if pair[0] >= start])

    def causes_before(self, end: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        self._check_open()
        found = [pair for pair in self._volatile.causes.scan(b"") if pair[0] < end]
        return takewhile(lambda pair: pair[0].startswith(prefix), reversed(found))

    def close(self) -> None:
        """See ``LogStore``."""
        if not self._is_closed:
            for _ in self.write_checkpoint(1 << 30):
                pass
            self.sync()
            self._is_closed = True

    def crash(self, survivors: int = 0) -> MemoryLogStore:
        """End this store and return the one that a restart finds.

        Everything synced survives, and of the later writes the first ``survivors``, each whole.
        Raises ``WatermarkViolation`` if that is less than what was marked durable, which only a bug
        of the caller or of this class can cause.
        """
        found = MemoryLogStore(self.partitions, self.cluster_id)
        found._durable = self._durable
        for write in self._unsynced[: max(survivors, 0)]:
            found._durable.apply(write)
        found._volatile = found._durable.copy()
        ends = [found._durable.end(partition) for partition in range(self.partitions)]
        found._synced = (ends, found._durable.sequence)
        found._marked, found._marked_sequence = self._marked, self._marked_sequence
        self._is_closed = True
        violation = compute_watermark_violation(
            ends, found._marked, (found._durable.sequence, found._marked_sequence)
        )
        if violation is not None:
            raise violation
        found._replay()
        return found

    def _replay(self) -> None:
        """Note what the log has after the last checkpoint, as a start does."""
        for number, position in enumerate(self._volatile.positions):
            partition = LogPartition(number)
            assert position <= self._volatile.end(partition), "a checkpoint is ahead of its log"
            for changes in replay_latest(self.read_log(partition, LogOffset(position))):
                self._overlay.note(partition, changes)

    @property
    def unsynced_writes(self) -> int:
        """How many writes a crash may lose: the upper bound of ``crash``'s argument."""
        return len(self._unsynced)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the store is closed")
