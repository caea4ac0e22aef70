"""Import of a bulk; gives the same store as ``storage.transfer.import_log`` from the same log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from model.ids import LogOffset, LogPartition
from storage.folder.store_folder import find_store
from storage.log.compacted import make_empty_batch
from storage.rocks.rocks_load import RocksLoad
from storage.rocks.rocks_reader import open_store_reader
from storage.rocks.rocks_store import RocksLogStore
from storage.transfer.bulk import Bulk, BulkPartition
from storage.transfer.import_log import ImportCount, compute_aborts, fill_store
from storage.transfer.import_refused import ImportRefused
from storage.transfer.import_side import SideImport
from storage.transfer.imported import Imported, pack_imported
from storage.transfer.partition_placement import check_placement
from storage.transfer.sorted_files import FAMILIES

T = TypeVar("T")

_HAS_GROUPS = (
    "{} holds groups, but sorted files can only be imported into an empty store: use another data "
    "folder, or muster log import"
)


def check_is_empty(store: Path) -> None:
    """Raise ``ImportRefused`` if the store holds groups; called before a bulk is made for it."""
    folder = find_store(store)
    if folder is None:
        return
    reader = open_store_reader(folder)
    try:
        if any(reader.durable_offset(LogPartition(p)) for p in range(reader.partitions)):
            raise ImportRefused(_HAS_GROUPS.format(store))
    finally:
        reader.close()


def import_bulk(
    bulk: Bulk,
    folder: Path,
    store: Path,
    side: SideImport,
    inspect: Callable[[RocksLogStore], T],
    *,
    is_moved: bool = False,
) -> tuple[ImportCount, T]:
    """Create the store of a folder from a bulk; ``is_moved`` allows moving the bulk's files.

    ``inspect`` receives the finished store before it is put in place. Raises ``ImportRefused``, for
    example if the store holds groups, and ``StoreError``; the old store is unchanged then.
    """
    count = ImportCount(
        batches=bulk.batches,
        records=bulk.records,
        bytes=bulk.bytes,
        highest_producer_id=bulk.highest_producer_id,
        notes=list(bulk.notes),
    )

    def fill(target: RocksLogStore) -> None:
        if count.is_rehashed:
            raise ImportRefused(_HAS_GROUPS.format(store))
        load = target.begin_load()
        for family in FAMILIES:
            files = [folder / name for name in bulk.files[family]]
            load.take_files(family, files, is_moved=is_moved)
        for part in bulk.partitions:
            _end_partition(load, part, count)
        target.end_load(load)
        check_placement(target)

    return count, fill_store(store, bulk.partition_count, side, count, fill, inspect)


def _end_partition(load: RocksLoad, part: BulkPartition, count: ImportCount) -> None:
    partition, next_offset, records = LogPartition(part.partition), part.next_offset, part.records
    if part.last_offset + 1 < next_offset:
        # An empty batch at the end, so that no offset is assigned twice.
        end = make_empty_batch(next_offset - 1, part.last_ms)
        load.put_batches(partition, np.array([next_offset - 1]), [end], next_offset)
    load.ends[partition] = next_offset
    if part.open_producers and part.aborts_open:
        aborts = compute_aborts(dict(part.open_producers), next_offset, part.highest_ms)
        offsets = np.arange(next_offset, next_offset + len(aborts))
        next_offset += len(aborts)
        records += len(aborts)
        count.aborted_producers.update(part.open_producers)
        count.batches += len(aborts)
        count.records += len(aborts)
        count.bytes += sum(map(len, aborts))
        load.put_batches(partition, offsets, aborts, next_offset)
    else:
        count.open_producers.update(part.open_producers)
    imported = Imported(LogOffset(next_offset), next_offset - records)
    load.put_kept(partition, pack_imported(imported))
