"""Bulk loading of a log into a store without other users, in bounded memory, for imports.

Batches arrive in key order and are written to SST files that RocksDB ingests. ``latest`` is written
block by block and compacted by RocksDB. The WAL is disabled: the store is complete when
``RocksLogStore.end_load`` returns, and unusable before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from model.ids import LogPartition
from storage.log_store import pack_pending_key
from storage.rocks.rocks_cursors import errors_of

SST_BYTES = 64 << 20

_LOG_KEY = np.dtype([("partition", ">u2"), ("base_offset", ">u8")])


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """The parts of the open store: ``families`` and ``handles`` are its column families by name.

    ``write`` writes a batch without the WAL, ``make_sst`` makes an SST writer for ``log``, and
    ``ingest`` adds SST files to a family by moving or copying them.
    """

    families: Mapping[str, Any]
    handles: Mapping[str, Any]
    make_batch: Callable[[], Any]
    write: Callable[[Any], None]
    make_sst: Callable[[], Any]
    ingest: Callable[[str, list[str], bool], None]


class RocksLoad:
    """A bulk load in progress, from ``RocksLogStore.begin_load`` to ``end_load``.

    ``ends`` are the log end offsets of the loaded partitions. Methods raise ``StoreError``.
    """

    def __init__(self, folder: Path, target: LoadTarget) -> None:
        self.ends: dict[LogPartition, int] = {}
        self._folder = folder
        self._target = target
        self._writer: Any = None
        self._file = folder / "loading.sst"

    def put_batches(
        self,
        partition: LogPartition,
        base_offsets: npt.NDArray[np.int64],
        batches: Sequence[bytes],
        next_offset: int,
    ) -> None:
        """Add batches to ``log``, in order of partition and offset.

        ``next_offset`` is the log end offset of the partition after them.
        """
        keys = np.empty(len(batches), dtype=_LOG_KEY)
        keys["partition"] = partition
        keys["base_offset"] = base_offsets
        packed, size = keys.tobytes(), _LOG_KEY.itemsize
        with errors_of(self._folder):
            if self._writer is None:
                self._writer = self._target.make_sst()
                self._writer.open(str(self._file))
            writer = self._writer
            for at, batch in zip(range(0, len(packed), size), batches, strict=True):
                writer[packed[at : at + size]] = batch
            if writer.file_size() >= SST_BYTES:
                self._ingest()
        self.ends[partition] = next_offset

    def take_files(self, family: str, files: Sequence[Path], *, is_moved: bool) -> None:
        """Ingest SST files whose keys do not overlap other files or batches.

        The caller sets ``ends``. ``is_moved`` allows RocksDB to move the files away.
        """
        if files:
            with errors_of(self._folder):
                self._target.ingest(family, [str(file) for file in files], is_moved)

    def change_latest(self, partition: LogPartition, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply changes to ``latest``: ``pack_latest`` entries by record key; ``None`` deletes."""
        prefix = partition.to_bytes(2, "big")
        family, batch = self._target.handles["latest"], self._target.make_batch()
        put, delete = batch.put, batch.delete
        for key, packed in changes.items():
            if packed is None:
                delete(prefix + key, family)
            else:
                put(prefix + key, packed, family)
        with errors_of(self._folder):
            self._target.write(batch)

    def put_pending(
        self, partition: LogPartition, entries: Mapping[tuple[int, bytes], bytes]
    ) -> None:
        """Add ``pending`` entries (``pack_latest``) by producer id and record key."""
        prefix = partition.to_bytes(2, "big")
        family, batch = self._target.handles["pending"], self._target.make_batch()
        for (producer_id, key), packed in entries.items():
            batch.put(prefix + pack_pending_key(producer_id, key), packed, family)
        with errors_of(self._folder):
            self._target.write(batch)

    def put_kept(self, partition: LogPartition, kept: Mapping[bytes, bytes | None]) -> None:
        """Add entries to ``kept``; a value of ``None`` is ignored."""
        prefix = partition.to_bytes(2, "big")
        family, batch = self._target.handles["kept"], self._target.make_batch()
        for key, packed in kept.items():
            if packed is not None:
                batch.put(prefix + key, packed, family)
        with errors_of(self._folder):
            self._target.write(batch)

    def finish(self) -> None:
        """Write all loaded data to RocksDB's files, durably."""
        with errors_of(self._folder):
            if self._writer is not None:
                self._ingest()
            for name in ("latest", "pending", "kept"):
                self._target.families[name].flush(True)

    def _ingest(self) -> None:
        self._writer.finish()
        self._writer = None
        self._target.ingest("log", [str(self._file)], True)
