"""SST files written outside a store, possibly by many processes: the contents of a bulk.

Keys are ascending, and the key ranges of writers do not overlap, so RocksDB can ingest the files
as they are.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

from model.ids import LogPartition
from storage.log_store import StoreError, pack_pending_key
from storage.rocks.rocks_load import SST_BYTES
from storage.rocks.rocks_options import make_sst_writer

LOG, LATEST, PENDING = "log", "latest", "pending"
FAMILIES = (LOG, LATEST, PENDING)

SUFFIX = ".sst"

_LOG_KEY = struct.Struct(">HQ")
_PARTITION = struct.Struct(">H")


def pack_log_key(partition: int, base_offset: int) -> bytes:
    """The key of a batch in ``log``."""
    return _LOG_KEY.pack(partition, base_offset)


def pack_entry_key(partition: LogPartition | int, key: bytes) -> bytes:
    """The key of a record in ``latest``."""
    return _PARTITION.pack(partition) + key


def pack_waiting_key(partition: LogPartition | int, producer_id: int, key: bytes) -> bytes:
    """The key of a record in ``pending``."""
    return _PARTITION.pack(partition) + pack_pending_key(producer_id, key)


class SortedFileWriter:
    """Writes the SST files of one column family, rolling at ``SST_BYTES``.

    ``name`` is the prefix of the file names, unique within the folder. Methods raise
    ``StoreError``.
    """

    def __init__(self, folder: Path, family: str, name: str) -> None:
        self._folder = folder
        self._family = family
        self._name = name
        self._writer: Any = None
        self._names: list[str] = []

    def put(self, key: bytes, value: bytes) -> None:
        """Add a key, above the keys before it, and its value."""
        try:
            if self._writer is None:
                self._names.append(f"{self._name}-{len(self._names):04}{SUFFIX}")
                self._writer = make_sst_writer(self._family)
                self._writer.open(str(self._folder / self._names[-1]))
            self._writer[key] = value
            if self._writer.file_size() >= SST_BYTES:
                self._end_file()
        except Exception as error:
            raise StoreError(f"{self._folder}: {self._name} cannot be written: {error}") from error

    def close(self) -> list[str]:
        """Finish the last file; returns the names of all files, which are durable."""
        try:
            self._end_file()
        except Exception as error:
            raise StoreError(f"{self._folder}: {self._name} cannot be written: {error}") from error
        return self._names

    def _end_file(self) -> None:
        if self._writer is None:
            return
        self._writer.finish()
        self._writer = None
        handle = os.open(self._folder / self._names[-1], os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
