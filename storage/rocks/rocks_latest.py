"""``latest`` of the store on RocksDB: the column family, and an overlay of what changed since.

The position of a partition is the log offset up to which the family is true. A checkpoint writes
the overlay in slices, and last the positions at which it began: a crash at any point leaves a
family that is true up to the old positions, except for what is from above them, which a replay of
the log from there notes again. Key ``checkpoint`` of ``meta`` holds the positions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from model.ids import GroupId, LogPartition
from storage.codec.errors import CodecError
from storage.columnar.block_fold import Changes
from storage.folder.watermark import FORMAT_VERSION
from storage.log.latest_overlay import Entries, LatestOverlay, merge_latest
from storage.log.latest_replay import replay_latest
from storage.log.latest_rows import LatestRows
from storage.log_store import (
    LatestEntry,
    PartitionAppend,
    StoreStalled,
    decode_offset_group,
    scan_offset_groups,
    unpack_latest,
)
from storage.rocks.rocks_damage import compute_damage
from storage.rocks.rocks_families import PARTITION, RocksFamilies

FORMAT_KEY: Final = b"format"
CHECKPOINTS_FORMAT: Final = 3
"""The first format with checkpoints; older ones wrote ``latest`` with each batch."""
POSITIONS_KEY: Final = b"checkpoint"


def read_format(families: RocksFamilies) -> int:
    """The format of a store by its metadata."""
    packed = families.get("meta", FORMAT_KEY)
    if packed is None:
        raise compute_damage(families.folder, "it does not say which format it has")
    return int(packed)


def put_positions(batch: Any, families: RocksFamilies, positions: Sequence[int]) -> None:
    """Add positions to a RocksDB ``WriteBatch``, with the format that has them."""
    meta = families.handles["meta"]
    batch.put(FORMAT_KEY, str(FORMAT_VERSION).encode(), meta)
    batch.put(POSITIONS_KEY, struct.pack(f">{len(positions)}Q", *positions), meta)


def decode_positions(folder: Path, packed: bytes | None, partitions: int) -> list[int]:
    """Decode the value of ``POSITIONS_KEY``; raises ``StoreCorrupt`` if it is missing."""
    if packed is None or len(packed) != 8 * partitions:
        raise compute_damage(folder, "it does not say up to where its last checkpoint is true")
    return list(struct.unpack(f">{partitions}Q", packed))


def replay_from(
    folder: Path, partition: LogPartition, position: int, end: int, batches: Iterator[bytes]
) -> Iterator[Changes]:
    """What the batches from a position up to the log end change, block by block."""
    if position > end:
        what = f"log partition {partition} ends at offset {end}, its last checkpoint at {position}"
        raise compute_damage(folder, what)
    try:
        yield from replay_latest(batches)
    except CodecError as error:
        raise compute_damage(folder, f"log partition {partition}: {error}") from error


class RocksLatest:
    """Reads and writes ``latest``. ``positions`` are those of the last complete checkpoint."""

    def __init__(self, families: RocksFamilies, positions: Sequence[int]) -> None:
        self.positions = list(positions)
        self._families = families
        self._overlay = LatestOverlay()

    def replay(self, partition: LogPartition, end: int, batches: Iterator[bytes]) -> None:
        """Note what the batches from the position on, up to the log end, have changed."""
        folder, position = self._families.folder, self.positions[partition]
        for changes in replay_from(folder, partition, position, end, batches):
            self._overlay.note(partition, changes)

    # -------------------------------------------------------------------------------- reading

    def scan(self, partition: LogPartition, key_prefix: bytes) -> Iterator[LatestEntry]:
        """The entries whose record key has the prefix, in key order, as they are now."""
        prefix = PARTITION.pack(partition) + key_prefix
        entries = self._overlay.find(partition, key_prefix)
        scan = self._families.scan("latest", prefix, prefix)
        stored = ((key[PARTITION.size :], packed) for key, packed in scan)
        if not entries:
            return (unpack_latest(key, packed) for key, packed in stored)
        return self._merge(entries, stored)

    def _merge(
        self, entries: Entries, stored: Iterator[tuple[bytes, bytes]]
    ) -> Iterator[LatestEntry]:
        for key, packed in merge_latest(entries, stored):
            self._families.check_open()
            yield unpack_latest(key, packed)

    def get_many(self, partition: LogPartition, keys: Sequence[bytes]) -> list[LatestEntry | None]:
        """The entries of record keys, in their order."""
        prefix = PARTITION.pack(partition)

        def read_stored(keys: Sequence[bytes]) -> list[bytes | None]:
            return list(self._families.get("latest", [prefix + key for key in keys]))

        self._families.check_open()
        return self._overlay.get_many(partition, keys, read_stored)

    def has_any(self, partition: LogPartition, key_prefix: bytes) -> bool:
        """Whether there are entries of record keys with this prefix."""
        if self._overlay.has_any(partition, key_prefix):
            return True
        prefix = PARTITION.pack(partition) + key_prefix
        return next(self._families.scan("latest", prefix, prefix), None) is not None

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        """The groups that have committed offsets, in key order."""
        prefix = PARTITION.pack(partition)
        cursor = self._families.seek("latest")

        def seek(key: bytes) -> bytes | None:
            found = cursor.find_at_or_after(prefix + key)
            if found is None or not found.startswith(prefix):
                return None
            return found[PARTITION.size :]

        noted = self._overlay.find_offset_groups(partition)
        for group, _ in groupby(merge(noted, scan_offset_groups(seek))):
            yield decode_offset_group(group)

    # -------------------------------------------------------------------------------- writing

    @property
    def unsettled_keys(self) -> int:
        """How many changed keys the next checkpoint has to write."""
        return self._overlay.count

    @property
    def is_writing(self) -> bool:
        """Whether a checkpoint is in progress."""
        return self._overlay.is_frozen

    def put_append(self, batch: Any, append: PartitionAppend) -> None:
        """Add to a RocksDB ``WriteBatch`` what of an append does not wait for a checkpoint.

        Deletions do not, so that no scan has to pass over what is deleted. Nor does what a marker
        commits: it may lie below the position, where no replay finds it.
        """
        changes: Mapping[bytes, bytes | None] = append.latest
        if not append.pending:
            if isinstance(changes, LatestRows) or None not in changes.values():
                return
            changes = {key: None for key, packed in changes.items() if packed is None}
        self._put(batch, append.partition, changes)

    def note_append(self, append: PartitionAppend) -> None:
        """Note what of an append that was written waits for a checkpoint."""
        if append.pending:
            self._overlay.forget(append.partition, append.latest)
        else:
            self._overlay.note(append.partition, append.latest)

    def write_checkpoint(
        self,
        ends: Sequence[int],
        keys_max: int,
        make_batch: Callable[[], Any],
        write: Callable[[Any], None],
    ) -> Iterator[bool]:
        """Write everything noted, at most ``keys_max`` keys in a step; ``ends`` are the log ends.

        Yields after each step, ``False`` if the store stalls and the step is tried again. Other
        errors, and closing the iterator, abandon the checkpoint.
        """
        positions = list(ends)
        if positions == self.positions or self._overlay.is_frozen:
            return
        self._overlay.freeze()
        try:
            for part in self._overlay.frozen_slices(keys_max):
                while True:
                    batch = make_batch()
                    self._put(batch, part.partition, part.find())
                    is_written = _try_write(write, batch)
                    yield is_written
                    if is_written:
                        break
            while not _try_write(write, self._make_position_batch(make_batch, positions)):
                yield False
        except BaseException:
            self._overlay.thaw()
            raise
        self._overlay.drop_frozen()
        self.positions = positions

    def _make_position_batch(self, make_batch: Callable[[], Any], positions: list[int]) -> Any:
        batch = make_batch()
        put_positions(batch, self._families, positions)
        return batch

    def _put(
        self, batch: Any, partition: LogPartition, changes: Mapping[bytes, bytes | None]
    ) -> None:
        prefix, family = PARTITION.pack(partition), self._families.handles["latest"]
        put, delete = batch.put, batch.delete
        for key, packed in changes.items():
            if packed is None:
                delete(prefix + key, family)
            else:
                put(prefix + key, packed, family)


def _try_write(write: Callable[[Any], None], batch: Any) -> bool:
    try:
        write(batch)
    except StoreStalled:
        return False
    return True
