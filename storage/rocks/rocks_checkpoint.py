"""Checkpoints of an open RocksDB: what it holds at one moment, as files of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storage.log_store import StoreError
from storage.rocks.rocks_cursors import errors_of

_UNWRITTEN = "rocksdb.num-immutable-mem-table"


class RocksCheckpoint:
    """An open store's parts; ``RocksLogStore.begin_checkpoint`` makes it.

    Methods raise ``StoreError``, also once the store is closed.
    """

    def __init__(
        self, folder: Path, families: Mapping[str, Any], create: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._families = families
        self._create = create

    def begin_flush(self) -> None:
        """Has what is in memory written to files, by RocksDB's threads: see ``is_flushed``."""
        with errors_of(self._folder):
            for family in self._open_families():
                family.flush(False)

    def is_flushed(self) -> bool:
        """Whether RocksDB has written what it was asked to."""
        with errors_of(self._folder):
            return not any(f.property_int_value(_UNWRITTEN) for f in self._open_families())

    def make(self, path: Path) -> None:
        """A RocksDB of all that was written, in a new folder of the same disk, by hard links.

        Nothing else is done by this process meanwhile, so ``begin_flush`` comes first.
        """
        with errors_of(self._folder):
            self._create(str(path))

    def _open_families(self) -> list[Any]:
        families = list(self._families.values())
        if not families:
            raise StoreError(f"{self._folder} is closed")
        return families
