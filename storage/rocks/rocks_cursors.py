"""Cursors over rocksdict iterators that do not outlive the store, and translation of errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.log_store import StoreCorrupt, StoreError, StoreFailed, StoreLocked, StoreStalled


class Scan:
    """Iterates over keys and values from the iterator's position while they have a prefix.

    ``about`` names what is read, for error messages. Once the store is closed, it raises
    ``StoreError``. Damage raises ``StoreCorrupt``: on damage, a RocksDB iterator becomes invalid as
    at its end, and only its status tells the two apart.

    The prefix is checked here instead of being set as RocksDB's upper bound, because rocksdict
    0.3.29 frees the bound's memory while the iterator still reads it.
    """

    __slots__ = ("__weakref__", "_about", "_folder", "_iterator", "_prefix")

    def __init__(self, folder: Path, iterator: Any, prefix: bytes, about: str) -> None:
        self._folder = folder
        self._iterator = iterator
        self._prefix = prefix
        self._about = about

    def __iter__(self) -> Scan:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        iterator = self._iterator
        if iterator is None:
            raise StoreError(f"{self._folder} was closed during a read")
        try:
            if iterator.valid():
                key: bytes = iterator.key()
                if key.startswith(self._prefix):
                    item = key, iterator.value()
                    iterator.next()
                    return item
            iterator.status()
        except Exception as error:
            raise compute_store_error(self._folder, error, self._about) from error
        raise StopIteration

    def drop(self) -> None:
        """Release the RocksDB iterator."""
        self._iterator = None


class Seek:
    """Finds the nearest key to a given one, until the store is closed."""

    __slots__ = ("__weakref__", "_folder", "_iterator")

    def __init__(self, folder: Path, iterator: Any) -> None:
        self._folder = folder
        self._iterator = iterator

    def find_at_or_after(self, key: bytes) -> bytes | None:
        """The first key at or after this one."""
        return self._find(lambda iterator: iterator.seek(key))

    def find_at_or_before(self, key: bytes) -> bytes | None:
        """The last key at or before this one."""
        return self._find(lambda iterator: iterator.seek_for_prev(key))

    def find_before(self) -> bytes | None:
        """The last key before the one that was found last."""
        return self._find(lambda iterator: iterator.prev())

    def value(self) -> bytes:
        """The value of the key that was found last."""
        if self._iterator is None:
            raise StoreError(f"{self._folder} was closed during a read")
        found: bytes = self._iterator.value()
        return found

    def _find(self, move: Any) -> bytes | None:
        iterator = self._iterator
        if iterator is None:
            raise StoreError(f"{self._folder} was closed during a read")
        try:
            move(iterator)
            if iterator.valid():
                found: bytes = iterator.key()
                return found
            iterator.status()
        except Exception as error:
            raise compute_store_error(self._folder, error) from error
        return None

    def drop(self) -> None:
        """Release the RocksDB iterator."""
        self._iterator = None


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Convert exceptions of rocksdict to a ``StoreError`` that names the path."""
    try:
        yield
    except (StoreError, ValueError):
        raise
    except Exception as error:
        raise compute_store_error(path, error) from error


_LOCKED = ("IO error: While lock file: ", "IO error: lock hold by current process")
"""Matched in full: the word "lock" alone also occurs in paths and in errors about blocks."""


def compute_store_error(path: Path, error: Exception, about: str = "") -> StoreError:
    """Map RocksDB's status to a ``StoreError``; rocksdict raises it as a plain ``Exception``."""
    text = " ".join(str(error).split()) + (about and f" ({about})")
    if text.startswith("Result incomplete"):
        return StoreStalled(f"{path}: RocksDB has stalled writes for now, try again")
    if text.startswith(_LOCKED):
        return StoreLocked(f"{path} is in use by another process: stop it or use another folder")
    if text.startswith("Corruption") or "No such file" in text or "does not exist" in text:
        return StoreCorrupt(f"{path} is damaged, restore the data folder from a backup: {text}")
    return StoreFailed(f"{path}: {text}")
