"""Atomic replacement of one store by another.

The new store is built in a folder beside the old one and renamed when it is complete. A folder
cannot be renamed over a non-empty one, so the swap takes two renames. After a crash, the names of
the folders tell what remains to be done:

- ``NAME.building``: incomplete; garbage unless a process is working on it. It is created durably
  first. If there was no store before, it prevents others from creating one there meanwhile;
- ``NAME.ready``: complete. The replacement is committed, and any process may finish it;
- ``NAME.replaced``: the old store, to be removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from storage.folder.store_folder import (
    HARMLESS,
    LOCK_NAME,
    ROCKSDB_NAME,
    WATERMARK_NAME,
    FolderLock,
    compute_missing_watermark,
)
from storage.folder.watermark import sync_folder
from storage.log_store import StoreCorrupt, StoreError, StoreFailed, StoreLocked

_IMMUTABLE = {".sst", ".blob"}
"""Suffixes of files that RocksDB never modifies."""
_BEFORE_A_STORE = {LOCK_NAME, f"{WATERMARK_NAME}.new"} | HARMLESS
"""Files that may be in the folder of a store before the store is created."""
_STATES = ("building", "ready", "replaced")


class StoreUnfinished(StoreError):
    """An import or restore of a folder's first store was killed, so the folder has no store."""


class Replacement:
    """A replacement in progress (``replacing``): ``building`` is the empty new store folder."""

    def __init__(self, store: Path, building: Path) -> None:
        self.building = building
        self._store = store

    def copy_old(self) -> bool:
        """Copy the existing store to ``building``, durably; returns False if there is none.

        Immutable files are hard-linked if the file system supports it. Raises ``StoreCorrupt`` if
        the store has no watermark: it cannot be opened, but may be the only copy of its data.
        """
        if not (self._store / WATERMARK_NAME).exists():
            if not is_before_store(self._store):
                raise StoreCorrupt(compute_missing_watermark(self._store))
            return False
        with _disk_errors(self._store):
            (self.building / ROCKSDB_NAME).mkdir(parents=True)
            _copy(self._store / WATERMARK_NAME, self.building / WATERMARK_NAME)
            for file in (self._store / ROCKSDB_NAME).iterdir():
                if file.name != "LOCK" and file.is_file():
                    _copy(file, self.building / ROCKSDB_NAME / file.name)
            sync_folder(self.building / ROCKSDB_NAME)
        return True

    def discard(self) -> None:
        """Remove ``building``, to start over."""
        shutil.rmtree(self.building, ignore_errors=True)


@contextmanager
def replacing(store: Path) -> Iterator[Replacement]:
    """Replace the store at the end of the block by the one that the block built in ``building``.

    The block must close the new store. The old store stays locked meanwhile. After an error or a
    kill it is unchanged; if an I/O error in the last step cannot be rolled back, the error says
    that the replacement will be completed on the next open. If ``store`` is a symbolic link, its
    target is replaced. Raises ``StoreError``, such as ``StoreLocked``.
    """
    store = store.resolve()
    building = _compute_path(store, "building")
    lock = _lock_and_begin(store, building)
    try:
        if store.is_mount():
            raise StoreFailed(f"{store} is a mount point and cannot be replaced: mount its parent")
        yield Replacement(store, building)
        with _disk_errors(store), _parent_locked(store):
            _put_in_place(store, building)
    except BaseException:
        # ``building`` marks a store in the making, so it is removed last.
        if store.exists() and {entry.name for entry in store.iterdir()} <= {LOCK_NAME}:
            shutil.rmtree(store, ignore_errors=True)
        shutil.rmtree(building, ignore_errors=True)
        raise
    finally:
        lock.release()


def lock_store(store: Path) -> FolderLock:
    """Lock a store before opening it; creates the folder if needed.

    First finishes a replacement, as ``finish_replacement`` does, under the same lock of the parent
    folder: between the two renames no folder has the store's name, and no other process may create
    one then. Raises ``StoreError``, such as ``StoreUnfinished``.
    """
    store = store.resolve()
    with _disk_errors(store, "opened"):
        store.parent.mkdir(parents=True, exist_ok=True)
        with _parent_locked(store):
            _finish_for_others(store)
            return FolderLock(store)


def finish_replacement(store: Path) -> None:
    """Finish or undo the replacement of a process that was killed within ``replacing``.

    Call it before reading a store; it does nothing if no replacement is pending. Raises
    ``StoreFailed``, ``StoreLocked`` if the old store is open, and ``StoreUnfinished``.
    """
    store = store.resolve()
    if not store.parent.exists():
        return
    with _disk_errors(store), _parent_locked(store):
        _finish_for_others(store)


def is_before_store(store: Path) -> bool:
    """Whether a folder does not exist, or has no store yet."""
    return not store.exists() or (
        store.is_dir() and {entry.name for entry in store.iterdir()} <= _BEFORE_A_STORE
    )


def _lock_and_begin(store: Path, building: Path) -> FolderLock:
    """``lock_store``, and create ``building`` empty, even if a killed process left one."""
    with _disk_errors(store, "opened"):
        store.parent.mkdir(parents=True, exist_ok=True)
        with _parent_locked(store):
            with suppress(StoreUnfinished):
                _finish_for_others(store)
            lock = FolderLock(store) if store.exists() else None
            try:
                # Before the store folder exists: a server would create an empty store in it.
                _make_empty(building)
                sync_folder(store.parent)
                return lock or FolderLock(store)
            except BaseException:
                shutil.rmtree(building, ignore_errors=True)
                if lock is not None:
                    lock.release()
                raise


def _make_empty(folder: Path) -> None:
    """Empty a folder without ever removing the folder itself: see ``StoreUnfinished``."""
    if not folder.is_dir():
        _remove(folder)
        folder.mkdir()
    for entry in folder.iterdir():
        _remove(entry)


def _put_in_place(store: Path, building: Path) -> None:
    """Swap the stores; a step that fails is rolled back."""
    ready, replaced = _compute_path(store, "ready"), _compute_path(store, "replaced")
    # Before ``ready`` exists: from then on, a leftover that cannot be removed fails every start.
    _remove(replaced)
    sync_folder(building)
    try:
        building.rename(ready)
        sync_folder(store.parent)
        _finish(store)
    except OSError as error:
        try:
            _undo(store, building)
        except OSError:
            raise StoreFailed(
                f"{store} cannot be replaced now: {error}; the new store is complete and will "
                "replace it when the store is next opened"
            ) from error
        raise


def _undo(store: Path, building: Path) -> None:
    ready, replaced = _compute_path(store, "ready"), _compute_path(store, "replaced")
    if not store.exists() and replaced.exists():
        replaced.rename(store)
    if ready.exists():
        ready.rename(building)
    sync_folder(store.parent)


def _finish_for_others(store: Path) -> None:
    ready, building = _compute_path(store, "ready"), _compute_path(store, "building")
    if not any(_compute_path(store, state).exists() for state in _STATES):
        return
    lock: FolderLock | None = None
    if store.exists():
        try:
            lock = FolderLock(store)
        except StoreLocked:
            if ready.exists():
                raise
            return
    try:
        _finish(store)
        if building.exists() and is_before_store(store):
            raise StoreUnfinished(
                f"{store}: a restore or import was interrupted: run it again, or remove {building} "
                "to start with an empty store"
            )
        shutil.rmtree(building, ignore_errors=True)
    finally:
        if lock is not None:
            lock.release()


def _finish(store: Path) -> None:
    ready, replaced = _compute_path(store, "ready"), _compute_path(store, "replaced")
    if ready.exists():
        if store.exists():
            _remove(replaced)
            store.rename(replaced)
        ready.rename(store)
        sync_folder(store.parent)
    elif replaced.exists() and not store.exists():
        # The swap did not complete: put the old store back.
        replaced.rename(store)
        sync_folder(store.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _remove(path: Path) -> None:
    """Remove a file, link or folder, if it exists; raises ``OSError`` on failure."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _compute_path(store: Path, state: str) -> Path:
    return store.with_name(f"{store.name}.{state}")


def _copy(file: Path, target: Path) -> None:
    """Copy a file durably: by a hard link if it is immutable, else by content."""
    if file.suffix in _IMMUTABLE:
        try:
            os.link(file, target)
            return
        except OSError:
            pass
    shutil.copy2(file, target)
    handle = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _parent_locked(store: Path) -> Iterator[None]:
    """Lock the parent folder against processes that finish the same replacement."""
    folder = os.open(store.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def _disk_errors(store: Path, what: str = "replaced") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"{store} cannot be {what}: {error}") from error
