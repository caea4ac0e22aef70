"""Snapshots of an open RocksDB as separate files, which RocksDB calls checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storage.log_store import StoreError
from storage.rocks.rocks_cursors import errors_of

_UNWRITTEN = "rocksdb.num-immutable-mem-table"


class RocksSnapshot:
    """Makes a snapshot of an open store; obtained from ``RocksLogStore.begin_snapshot``.

    Methods raise ``StoreError``, also after the store is closed.
    """

    def __init__(
        self, folder: Path, families: Mapping[str, Any], create: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._families = families
        self._create = create

    def begin_flush(self) -> None:
        """Start flushing the memtables in RocksDB's background threads; see ``is_flushed``."""
        with errors_of(self._folder):
            for family in self._open_families():
                family.flush(False)

    def is_flushed(self) -> bool:
        """Whether the flush that ``begin_flush`` started is complete."""
        with errors_of(self._folder):
            return not any(f.property_int_value(_UNWRITTEN) for f in self._open_families())

    def make(self, path: Path) -> None:
        """Write a snapshot to a new folder on the same disk, mostly by hard links.

        The call blocks the whole process, because rocksdict holds the GIL. Call ``begin_flush``
        first, so that little is left to flush.
        """
        with errors_of(self._folder):
            self._create(str(path))

    def _open_families(self) -> list[Any]:
        families = list(self._families.values())
        if not families:
            raise StoreError(f"{self._folder} is closed")
        return families
