"""Putting another store in the place of one: whole, or as if nothing had been done.

What takes a store's place is built in a folder beside it and renamed when it is complete. The old
one cannot be renamed over, so there are two steps, and a name that tells what is left to do:

- ``NAME.building``: not complete, worthless once nobody works on it. It is there, durably, before
  anything else: where no store was it tells that one was to come, and none is opened or made there;
- ``NAME.ready``: complete. From here on the replacement has happened, whoever finishes it;
- ``NAME.replaced``: the old one, to be removed.
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
"""Files that RocksDB never writes to again."""
_BEFORE_A_STORE = {LOCK_NAME, f"{WATERMARK_NAME}.new"} | HARMLESS
"""What may be in the folder of a store that was not made yet."""
_STATES = ("building", "ready", "replaced")


class StoreUnfinished(StoreError):
    """The first store of a folder was being put there by what was killed: there is none."""


class Replacement:
    """What ``replacing`` gives: ``building`` is the folder for the new store, empty."""

    def __init__(self, store: Path, building: Path) -> None:
        self.building = building
        self._store = store

    def copy_old(self) -> bool:
        """Copies the store that is there into ``building``, durably; whether there is one.

        Tables are shared by hard links where the file system can. Raises ``StoreCorrupt`` where
        there is what only a store has, and no watermark: it is no store that can be opened, but
        what it holds may be all that is left.
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
        """Removes what is in ``building``, to begin again."""
        shutil.rmtree(self.building, ignore_errors=True)


@contextmanager
def replacing(store: Path) -> Iterator[Replacement]:
    """The new store, complete and closed in ``building``, takes the old one's place at the end.

    Nobody else can open the store meanwhile. An error, or a kill, leaves it as it was; where an
    error of the disk in the last step cannot be undone, the message says that it will be done.
    A symbolic link stays one: what it leads to is replaced. Raises ``StoreError``, such as
    ``StoreLocked``.
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
        # The sign that a store was to come goes last.
        if store.exists() and {entry.name for entry in store.iterdir()} <= {LOCK_NAME}:
            shutil.rmtree(store, ignore_errors=True)
        shutil.rmtree(building, ignore_errors=True)
        raise
    finally:
        lock.release()


def lock_store(store: Path) -> FolderLock:
    """The lock on a store, for whoever opens it; makes the folder where there is none.

    Does first what ``finish_replacement`` does. Both are one step: between two names of a store
    there is a moment without any, in which nobody may make another one. Raises ``StoreError``,
    such as ``StoreUnfinished``.
    """
    store = store.resolve()
    with _disk_errors(store, "opened"):
        store.parent.mkdir(parents=True, exist_ok=True)
        with _parent_locked(store):
            _finish_for_others(store)
            return FolderLock(store)


def finish_replacement(store: Path) -> None:
    """Does what a process that was killed within ``replacing`` had left to do.

    Called before a store is looked at; where nothing is left to do it does nothing. Raises
    ``StoreFailed``, ``StoreLocked`` where the old store is open, and ``StoreUnfinished``.
    """
    store = store.resolve()
    if not store.parent.exists():
        return
    with _disk_errors(store), _parent_locked(store):
        _finish_for_others(store)


def is_before_store(store: Path) -> bool:
    """Whether a store has still to be made in a folder, which is there or not."""
    return not store.exists() or (
        store.is_dir() and {entry.name for entry in store.iterdir()} <= _BEFORE_A_STORE
    )


def _lock_and_begin(store: Path, building: Path) -> FolderLock:
    """As ``lock_store``; ``building`` is there and empty, also where a killed process left one."""
    with _disk_errors(store, "opened"):
        store.parent.mkdir(parents=True, exist_ok=True)
        with _parent_locked(store):
            with suppress(StoreUnfinished):
                _finish_for_others(store)
            lock = FolderLock(store) if store.exists() else None
            try:
                # Before there is a folder for the store: a server would make an empty one in it.
                _make_empty(building)
                sync_folder(store.parent)
                return lock or FolderLock(store)
            except BaseException:
                shutil.rmtree(building, ignore_errors=True)
                if lock is not None:
                    lock.release()
                raise


def _make_empty(folder: Path) -> None:
    """Never takes away the folder itself: see ``StoreUnfinished``."""
    if not folder.is_dir():
        _remove(folder)
        folder.mkdir()
    for entry in folder.iterdir():
        _remove(entry)


def _put_in_place(store: Path, building: Path) -> None:
    """All or nothing, also where a step fails."""
    ready, replaced = _compute_path(store, "ready"), _compute_path(store, "replaced")
    # First: from `ready` on each start would fail for it.
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
                f"{store} cannot be replaced now: {error}; what is to take its place is complete "
                "and will be put in place when the store is next opened"
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
                f"{store} was being restored or imported by a command that was cut off: run it "
                f"again, or remove {building} to begin with an empty store"
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
        # Nothing has taken its place.
        replaced.rename(store)
        sync_folder(store.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _remove(path: Path) -> None:
    """Whatever is there. Raises ``OSError`` where it stays."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _compute_path(store: Path, state: str) -> Path:
    return store.with_name(f"{store.name}.{state}")


def _copy(file: Path, target: Path) -> None:
    """By a link to what is on the disk already, or by a copy that is synced."""
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
    """Between processes that finish the same replacement."""
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
