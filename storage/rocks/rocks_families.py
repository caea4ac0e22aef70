"""The column families of an open RocksDB store: reads that end with it, and errors translated.

rocksdict keeps RocksDB open while any iterator lives, so iterators are tracked, and dropped when
the store is closed.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from storage.log_store import StoreError
from storage.rocks.rocks_cursors import Scan, Seek, compute_store_error, errors_of

PARTITION: Final = struct.Struct(">H")
"""The log partition, with which the keys of families begin that belong to one."""

_WITHOUT_PARTITION = ("side", "causes", "meta")


class RocksFamilies:
    """The column families of the database of the store in ``folder``, by name.

    ``families`` read, ``handles`` are for write batches. Methods raise ``StoreError``, also once
    ``release`` was called.
    """

    __slots__ = ("_cursors", "_is_closed", "families", "folder", "handles")

    def __init__(self, folder: Path, families: dict[str, Any], handles: dict[str, Any]) -> None:
        self.folder = folder
        self.families = families
        self.handles = handles
        self._cursors: weakref.WeakSet[Scan | Seek] = weakref.WeakSet()
        self._is_closed = False

    def check_open(self) -> None:
        """Raise ``StoreError`` once the families are released."""
        if self._is_closed:
            raise StoreError(f"{self.folder} is closed")

    def get(self, family: str, key: Any) -> Any:
        """The value of a key, or the values of a list of keys; ``None`` for what is not there."""
        self.check_open()
        try:
            return self.families[family].get(key)
        except Exception as error:
            raise compute_store_error(self.folder, error) from error

    def scan(self, family: str, start: bytes, prefix: bytes) -> Scan:
        """The keys and values from ``start`` on while they have the prefix, as they are now."""
        self.check_open()
        with errors_of(self.folder):
            iterator = self.families[family].iter()
            iterator.seek(start)
        about = family
        if family not in _WITHOUT_PARTITION:
            about = f"{family} of log partition {PARTITION.unpack_from(prefix)[0]}"
        scan = Scan(self.folder, iterator, prefix, about)
        self._cursors.add(scan)
        return scan

    def scan_back(self, family: str, end: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values before ``end`` while they have the prefix, the last key first."""
        seek = self.seek(family)
        key = seek.find_at_or_before(end)
        if key == end:
            key = seek.find_before()
        while key is not None and key.startswith(prefix):
            yield key, seek.value()
            key = seek.find_before()

    def seek(self, family: str) -> Seek:
        """A cursor that finds keys near others, in the family as it is now."""
        self.check_open()
        seek = Seek(self.folder, self.families[family].iter())
        self._cursors.add(seek)
        return seek

    def release(self) -> None:
        """Drop all iterators and close the families. Idempotent."""
        self._is_closed = True
        for cursor in list(self._cursors):
            cursor.drop()
        families = list(self.families.values())
        self.families.clear()
        self.handles.clear()
        with ExitStack() as steps:
            for family in families:
                steps.callback(family.close)
