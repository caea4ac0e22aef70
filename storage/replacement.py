"""Putting another store in the place of one: whole, or as if nothing had been done.

What takes a store's place is built in a folder beside it and renamed when it is complete. The old
one cannot be renamed over, so there are two steps, and a name that tells what is left to do:

- ``NAME.building``: not complete, worthless once nobody works on it;
- ``NAME.ready``: complete. From here on the replacement has happened, whoever finishes it;
- ``NAME.replaced``: the old one, to be removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.data_folder import LOCK_NAME, ROCKSDB_NAME, WATERMARK_NAME, FolderLock
from storage.log_store import StoreFailed, StoreLocked
from storage.watermark import sync_folder

_IMMUTABLE = {".sst", ".blob"}
"""Files that RocksDB never writes to again."""


class Replacement:
    """What ``replacing`` gives: ``building`` is the folder for the new store, not made yet."""

    def __init__(self, store: Path, building: Path) -> None:
        self.building = building
        self._store = store

    def copy_old(self) -> bool:
        """Copies the store that is there into ``building``; whether there is one.

        Tables are shared by hard links where the file system can.
        """
        if not (self._store / WATERMARK_NAME).exists():
            return False
        with _disk_errors(self._store):
            (self.building / ROCKSDB_NAME).mkdir(parents=True)
            shutil.copy2(self._store / WATERMARK_NAME, self.building / WATERMARK_NAME)
            for file in (self._store / ROCKSDB_NAME).iterdir():
                if file.name != "LOCK" and file.is_file():
                    _copy(file, self.building / ROCKSDB_NAME / file.name)
        return True

    def discard(self) -> None:
        """Removes what is in ``building``, to begin again."""
        shutil.rmtree(self.building, ignore_errors=True)


@contextmanager
def replacing(store: Path) -> Iterator[Replacement]:
    """The new store, complete and closed in ``building``, takes the old one's place at the end.

    Nobody else can open the store meanwhile. An error, or a kill, leaves it as it was. Raises
    ``StoreError``, such as ``StoreLocked``.
    """
    finish_replacement(store)
    is_new = not store.exists()
    lock = FolderLock(store)
    building = _compute_path(store, "building")
    try:
        shutil.rmtree(building, ignore_errors=True)
        yield Replacement(store, building)
        with _disk_errors(store), _parent_locked(store):
            sync_folder(building)
            building.rename(_compute_path(store, "ready"))
            sync_folder(store.parent)
            _finish(store)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        if is_new and store.exists() and {entry.name for entry in store.iterdir()} <= {LOCK_NAME}:
            shutil.rmtree(store, ignore_errors=True)
        raise
    finally:
        lock.release()


def finish_replacement(store: Path) -> None:
    """Does what a process that was killed within ``replacing`` had left to do.

    Called before a store is opened; where nothing is left to do it does nothing. Raises
    ``StoreFailed``.
    """
    if not store.parent.exists():
        return
    with _disk_errors(store), _parent_locked(store):
        _finish(store)
    if _compute_path(store, "building").exists():
        _remove_abandoned(store)


def _finish(store: Path) -> None:
    ready, replaced = _compute_path(store, "ready"), _compute_path(store, "replaced")
    if ready.exists():
        if store.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            store.rename(replaced)
        ready.rename(store)
        sync_folder(store.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _remove_abandoned(store: Path) -> None:
    try:
        lock = FolderLock(store)
    except StoreLocked:
        return
    shutil.rmtree(_compute_path(store, "building"), ignore_errors=True)
    lock.release()


def _compute_path(store: Path, state: str) -> Path:
    return store.with_name(f"{store.name}.{state}")


def _copy(file: Path, target: Path) -> None:
    if file.suffix in _IMMUTABLE:
        try:
            os.link(file, target)
            return
        except OSError:
            pass
    shutil.copy2(file, target)


@contextmanager
def _parent_locked(store: Path) -> Iterator[None]:
    """Between processes that finish the same replacement."""
    folder = os.open(store.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def _disk_errors(store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"{store} cannot be replaced: {error}") from error
