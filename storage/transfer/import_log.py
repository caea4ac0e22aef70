"""Atomic import of Kafka's ``__consumer_offsets`` segments into a store.

An empty store takes over the partitions and batches of the log byte for byte, loaded in blocks. If
the store holds groups, the log is appended instead, each group to the partition that it hashes to
there (``storage.transfer.rehash``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import encode_marker
from storage.columnar.batch_columns import BatchColumns, read_batch_columns
from storage.columnar.block_fold import BlockFold
from storage.columnar.record_columns import read_record_columns, slice_bytes
from storage.columnar.segment_blocks import read_segment_blocks
from storage.folder.replacement import replacing
from storage.log.compression import decompress
from storage.rocks.rocks_load import RocksLoad
from storage.rocks.rocks_opening import MAX_PARTITIONS, open_store
from storage.rocks.rocks_store import RocksLogStore
from storage.segments.errors import TornTail
from storage.segments.folder import SegmentFolder
from storage.transfer.import_refused import ImportRefused
from storage.transfer.import_side import SideImport, compute_side, move_side
from storage.transfer.imported import Imported, pack_imported
from storage.transfer.partition_placement import check_placement
from storage.transfer.rehash import Rehash

T = TypeVar("T")

KAFKA_PARTITIONS = 50
"""Kafka's default for ``offsets.topic.num.partitions``."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Import options. ``partitions`` is the partition count of the imported topic, if known.

    ``aborts_open`` aborts open transactions, ``cuts_torn_tail`` skips an incomplete last batch.
    ``tell`` is called after each block with the bytes that were read so far.
    """

    partitions: int | None = None
    aborts_open: bool = False
    cuts_torn_tail: bool = False
    side: SideImport = field(default_factory=SideImport)
    tell: Callable[[int], None] = lambda read: None


@dataclass(slots=True)
class ImportCount:
    """What was imported.

    ``open_producers`` are the producer ids of open transactions. ``log_end`` is the highest.
    """

    partitions: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    is_rehashed: bool = False
    highest_producer_id: int = -1
    log_end: int = 0
    open_producers: set[int] = field(default_factory=set)
    aborted_producers: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def add(self, batches: BatchColumns) -> None:
        """Add a block to the counts."""
        if len(batches.starts):
            self.batches += len(batches.starts)
            self.records += int(batches.counts.sum())
            self.bytes += int(batches.sizes.sum())
            self.log_end = max(self.log_end, int(batches.last_offsets[-1]) + 1)
            highest = int(batches.producer_ids.max())
            self.highest_producer_id = max(self.highest_producer_id, highest)


def import_segments(
    source: SegmentFolder,
    store: Path,
    options: ImportOptions,
    inspect: Callable[[RocksLogStore], T],
) -> tuple[ImportCount, T]:
    """Import into the store of a folder, which is created if there is none.

    ``inspect`` receives the finished store before it is put in place. Raises ``ImportRefused``,
    ``SegmentError``, ``CodecError`` and ``StoreError``; the old store is unchanged then.
    """
    count = ImportCount(notes=list(source.notes))
    least = source.partition_count
    are_all_there = len(source.partitions) == least
    partitions = compute_partitions(source.path, least, are_all_there, options.partitions)

    def fill(target: RocksLogStore) -> None:
        if count.is_rehashed:
            _append(source, target, options, count, partitions)
        else:
            _load(source, target, options, count)

    return count, fill_store(store, partitions, options.side, count, fill, inspect)


def fill_store(
    store: Path,
    partitions: int,
    given: SideImport,
    count: ImportCount,
    fill: Callable[[RocksLogStore], None],
    inspect: Callable[[RocksLogStore], T],
) -> T:
    """Replace the store of a folder by one that also holds the import, atomically.

    ``fill`` adds the log to the new store. ``count.is_rehashed`` is set before it is called: if
    true, the new store is a copy of the old one, else it is empty. ``inspect`` receives the
    finished store. Raises what they raise, ``ImportRefused`` and ``StoreError``.
    """
    with replacing(store) as replacement:
        old_side: Sequence[tuple[bytes, bytes]] = ()
        cluster_id = given.cluster_id
        target: RocksLogStore | None = None
        if replacement.copy_old():
            target = open_store(replacement.building, partitions=partitions)
            old_side, cluster_id = list(target.side()), target.cluster_id
            if not _has_log(target):
                target.close()
                replacement.discard()
                target = None
        count.is_rehashed = target is not None
        if target is None:
            target = open_store(replacement.building, partitions=partitions, cluster_id=cluster_id)
        try:
            numbers = range(target.partitions)
            before = [target.next_offset(LogPartition(number)) for number in numbers]
            fill(target)
            if count.is_rehashed:
                filled = [
                    partition
                    for partition in map(LogPartition, numbers)
                    if target.next_offset(partition) > before[partition]
                ]
                moved = move_side(given.records, target.partitions, filled, count.log_end)
                given = replace(given, records=moved)
            target.write([], compute_side(old_side, given, count.highest_producer_id))
            count.partitions = target.partitions
            return inspect(target)
        finally:
            target.close()


def compute_partitions(path: Path, least: int, are_all_there: bool, given: int | None) -> int:
    """Determine the partition count of the topic: a broker may hold only some of its partitions.

    ``least`` is one more than the highest partition at the path, ``given`` the count that the user
    passed. Raises ``ImportRefused`` if the count is impossible.
    """
    if least > MAX_PARTITIONS:
        raise ImportRefused(
            f"{path} has partition {least - 1}: a store has at most {MAX_PARTITIONS} partitions"
        )
    if given is not None:
        if given < least:
            raise ImportRefused(
                f"{path} has partition {least - 1}: --partitions must be at least {least}"
            )
        return given
    if are_all_there or least > KAFKA_PARTITIONS:
        return least
    return KAFKA_PARTITIONS


def _has_log(store: RocksLogStore) -> bool:
    return any(store.next_offset(LogPartition(p)) for p in range(store.partitions))


# ------------------------------------------------------------------------------------- loading


def _load(
    source: SegmentFolder, target: RocksLogStore, options: ImportOptions, count: ImportCount
) -> None:
    load = target.begin_load()
    for partition in source.partitions:
        _load_partition(source, load, partition, options, count)
    target.end_load(load)
    check_placement(target)


def _load_partition(
    source: SegmentFolder,
    load: RocksLoad,
    partition: LogPartition,
    options: ImportOptions,
    count: ImportCount,
) -> None:
    folded = BlockFold()
    next_offset, last_ms, records = 0, 0, 0
    try:
        for block in read_segment_blocks(source.segments[partition]):
            _load_block(load, partition, block, folded)
            records += int(block.counts.sum())
            next_offset = int(block.last_offsets[-1]) + 1
            last_ms = max(last_ms, int(block.max_timestamps.max()))
            count.add(block)
            options.tell(count.bytes)
    except TornTail as error:
        if not options.cuts_torn_tail:
            raise
        count.notes.append(f"left out: {error}")
    if options.aborts_open and folded.open_producers:
        aborts = compute_aborts(folded.open_producers, next_offset, last_ms)
        count.aborted_producers.update(folded.open_producers)
        block = read_batch_columns(aborts)
        _load_block(load, partition, block, folded)
        count.add(block)
        next_offset += len(aborts)
        records += len(aborts)
    load.put_kept(partition, pack_imported(Imported(LogOffset(next_offset), next_offset - records)))
    count.open_producers.update(folded.open_producers)
    pending = folded.pending()
    if pending:
        load.put_pending(partition, pending)


def _load_block(
    load: RocksLoad, partition: LogPartition, block: BatchColumns, folded: BlockFold
) -> None:
    changes = folded.apply(block, read_record_columns(block, decompress))
    batches = slice_bytes(block.data, block.starts, block.sizes)
    next_offset = int(block.last_offsets[-1]) + 1
    load.put_batches(partition, block.base_offsets, batches, next_offset)
    load.change_latest(partition, changes)


def compute_aborts(producers: dict[int, int], offset: int, time_ms: int) -> list[bytes]:
    """Encode an abort marker for each producer id and epoch, at offsets from ``offset`` on."""
    return [
        encode_marker(
            offset + index,
            time_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=False,
            coordinator_epoch=0,
        )
        for index, (producer_id, epoch) in enumerate(sorted(producers.items()))
    ]


# ----------------------------------------------------------------------------------- appending


def _append(
    source: SegmentFolder,
    target: RocksLogStore,
    options: ImportOptions,
    count: ImportCount,
    partitions: int,
) -> None:
    rehash = Rehash(target, aborts_open=options.aborts_open)
    for partition in source.partitions:
        try:
            for block in read_segment_blocks(source.segments[partition]):
                rehash.apply(partition, slice_bytes(block.data, block.starts, block.sizes))
                count.add(block)
                options.tell(count.bytes)
        except TornTail as error:
            if not options.cuts_torn_tail:
                raise
            count.notes.append(f"left out: {error}")
        count.aborted_producers.update(rehash.end_partition())
    rehash.finish()
