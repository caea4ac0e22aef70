"""Loading a long log into a store that nobody else uses: for importing, in bounded memory.

Batches come in the order of ``log``'s keys and go into SST files that RocksDB takes as they are;
``latest`` is written block by block and merged by RocksDB. Nothing is logged ahead: the store is
whole when ``RocksLogStore.end_load`` has returned, and worthless before.
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
    """The open store's parts: ``families`` and ``handles`` are its column families by name.

    ``write`` writes a batch, not logged ahead; ``make_sst`` makes a writer of files for ``log``,
    and ``ingest`` takes such files into a family, as they are or as copies.
    """

    families: Mapping[str, Any]
    handles: Mapping[str, Any]
    make_batch: Callable[[], Any]
    write: Callable[[Any], None]
    make_sst: Callable[[], Any]
    ingest: Callable[[str, list[str], bool], None]


class RocksLoad:
    """What is being loaded. ``RocksLogStore.begin_load`` makes it, ``end_load`` ends it.

    ``ends`` are the next offsets of the partitions that it has batches of. Methods raise
    ``StoreError``.
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
        """Batches for ``log``; partitions come in their order, batches in that of offsets.

        ``next_offset`` is where the partition goes on after them.
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
        """SST files whose keys no other file and no batch has; ``ends`` is the caller's to set.

        ``is_moved``: the files are not needed where they are any more.
        """
        if files:
            with errors_of(self._folder):
                self._target.ingest(family, [str(file) for file in files], is_moved)

    def change_latest(self, partition: LogPartition, changes: Mapping[bytes, bytes | None]) -> None:
        """``pack_latest`` by record key; ``None`` deletes."""
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
        """``pack_latest`` of open transactions by producer id and record key."""
        prefix = partition.to_bytes(2, "big")
        family, batch = self._target.handles["pending"], self._target.make_batch()
        for (producer_id, key), packed in entries.items():
            batch.put(prefix + pack_pending_key(producer_id, key), packed, family)
        with errors_of(self._folder):
            self._target.write(batch)

    def put_kept(self, partition: LogPartition, kept: Mapping[bytes, bytes | None]) -> None:
        """What ``PartitionRewrite.kept`` would take."""
        prefix = partition.to_bytes(2, "big")
        family, batch = self._target.handles["kept"], self._target.make_batch()
        for key, packed in kept.items():
            if packed is not None:
                batch.put(prefix + key, packed, family)
        with errors_of(self._folder):
            self._target.write(batch)

    def finish(self) -> None:
        """All of it in RocksDB's files, durable."""
        with errors_of(self._folder):
            if self._writer is not None:
                self._ingest()
            for name in ("latest", "pending", "kept"):
                self._target.families[name].flush(True)

    def _ingest(self) -> None:
        self._writer.finish()
        self._writer = None
        self._target.ingest("log", [str(self._file)], True)
