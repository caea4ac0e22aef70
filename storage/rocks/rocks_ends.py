"""The log end offset of a partition, as a start finds it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final

from model.ids import LogOffset, LogPartition
from storage.log_store import read_batch_range
from storage.rocks.rocks_damage import compute_damage
from storage.rocks.rocks_families import PARTITION, RocksFamilies

_LOG_KEY: Final = struct.Struct(">HQ")
_LAST: Final = b"\xff" * (_LOG_KEY.size - PARTITION.size)


def read_end(
    families: RocksFamilies,
    partition: LogPartition,
    marked: LogOffset,
    read_marked: Callable[[], Iterable[bytes]],
) -> int:
    """Read the log end offset of a partition; ``read_marked`` reads its log from ``marked`` on.

    Raises ``StoreCorrupt`` for a gap above the watermark: in a crash the disk may have kept a later
    write and lost an earlier one.
    """
    prefix = PARTITION.pack(partition)
    key = families.seek("log").find_at_or_before(prefix + _LAST)
    if key is None or not key.startswith(prefix):
        return 0
    end = _read_batch_end(families, key)
    if end > marked:
        expected = int(marked)
        for batch in read_marked():
            base_offset, count = read_batch_range(batch)
            if base_offset > expected:
                raise _compute_damage(families, partition, f"no batch at offset {expected}")
            expected = base_offset + count
    return end


def _read_batch_end(families: RocksFamilies, key: bytes) -> int:
    partition, base_offset = _LOG_KEY.unpack(key)
    batch_base, count = read_batch_range(families.get("log", key))
    if batch_base != base_offset or count < 1:
        raise _compute_damage(families, partition, f"a wrong batch at offset {base_offset}")
    return batch_base + count


def _compute_damage(families: RocksFamilies, partition: int, what: str) -> Exception:
    return compute_damage(families.folder, f"log partition {partition} has {what}")
