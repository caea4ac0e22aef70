"""Detection and description of damage to RocksDB, for the error of a store that cannot open."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from storage.log_store import StoreCorrupt, StoreError, read_batch_range
from storage.rocks.rocks_cursors import errors_of

_LOG_KEY = struct.Struct(">HQ")
_NAMED_MAX = 3


def compute_damage(folder: Path, what: str) -> StoreCorrupt:
    """The error of a store in which something is missing or contradicts itself."""
    return StoreCorrupt(f"{folder} is damaged, restore the data folder from a backup: {what}")


def check_blobs(path: Path, log: Any) -> None:
    """Raise ``StoreCorrupt`` if blob files, which hold the batches, are missing or truncated.

    RocksDB itself notices only when such a batch is read.
    """
    sizes = [file.stat().st_size for file in path.glob("*.blob")]
    with errors_of(path):
        count: int = log.property_int_value("rocksdb.num-blob-files") or 0
        size: int = log.property_int_value("rocksdb.total-blob-file-size") or 0
    if len(sizes) < count or sum(sizes) < size:
        raise StoreCorrupt(
            f"{path} is damaged, restore the data folder from a backup: {len(sizes)} *.blob files "
            f"of {sum(sizes)} bytes found, expected {count} of {size} bytes"
        )


def describe_readable(path: Path, reopen: Callable[[], Any], durable: Sequence[int]) -> str:
    """Describe how far each log partition can be read, as a suffix of the error message.

    ``reopen`` opens the database up to the damage, and ``durable`` are the offsets of the
    watermark. Empty if the damage is not in the WAL.
    """
    try:
        with errors_of(path):
            db = reopen()
        try:
            ends = _read_ends(path, db, len(durable))
        finally:
            db.close()
    except StoreError:
        return ""
    pairs = [(number, end, durable[number]) for number, end in enumerate(ends)]
    lost = [pair for pair in pairs if pair[1] < pair[2]] or [pair for pair in pairs if pair[1]]
    named = "; ".join(
        f"log partition {number} can be read up to offset {end} and was acknowledged up to {mark}"
        for number, end, mark in lost[:_NAMED_MAX]
    )
    more = f" (and {len(lost) - _NAMED_MAX} more partitions)" if len(lost) > _NAMED_MAX else ""
    return f"; {named}{more}" if named else ""


def _read_ends(path: Path, db: Any, partitions: int) -> list[int]:
    """Read the log end offset of each partition; 0 for those without batches."""
    ends = []
    log = db.get_column_family("log")
    iterator = log.iter()
    find: Callable[[bytes], None] = iterator.seek_for_prev
    with errors_of(path):
        for partition in range(partitions):
            find(_LOG_KEY.pack(partition, (1 << 64) - 1))
            iterator.status()
            is_found = iterator.valid() and iterator.key()[:2] == partition.to_bytes(2, "big")
            ends.append(sum(read_batch_range(iterator.value())) if is_found else 0)
    del iterator, find
    log.close()
    return ends
