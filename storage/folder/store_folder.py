"""The data folder of a store: its files and its lock."""

from __future__ import annotations

import base64
import fcntl
import os
import secrets
from pathlib import Path

from storage.folder.watermark import Watermark, WatermarkHeader, create_watermark, open_watermark
from storage.log_store import StoreCorrupt, StoreFailed, StoreLocked

ROCKSDB_NAME = "rocksdb"
WATERMARK_NAME = "watermark"
LOCK_NAME = "lock"
STORE_NAME = "store"
"""Name of the store's folder within the data folder of a server."""

_OURS = {ROCKSDB_NAME, WATERMARK_NAME, LOCK_NAME, "watermark.new"}
HARMLESS = {"lost+found"}


def find_store(path: Path) -> Path | None:
    """Find the store at a path, which may be a server's data folder; ``None`` if there is none."""
    for folder in (path / STORE_NAME, path):
        if (folder / WATERMARK_NAME).is_file() or (folder / ROCKSDB_NAME).is_dir():
            return folder
    return None


class FolderLock:
    """The exclusive lock on a store folder, across processes and within this one.

    Creates the folder if needed. Raises ``StoreLocked``, whose message names the owning process,
    and ``StoreCorrupt`` for a folder that holds something other than a store.
    """

    def __init__(self, folder: Path) -> None:
        self._file = -1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _check_ours(folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(folder / LOCK_NAME, flags, 0o644)
            self._lock(folder)
        except OSError as error:
            self.release()
            raise StoreFailed(f"{folder} cannot be opened: {error}") from error
        except StoreLocked:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lock(self, folder: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            raise StoreLocked(
                f"{folder} is in use by process {owner or 'unknown'}: stop it or use another folder"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, b"%d\n" % os.getpid(), 0)


def _check_ours(folder: Path) -> None:
    names = {entry.name for entry in folder.iterdir()} - HARMLESS
    if names and not names & {ROCKSDB_NAME, WATERMARK_NAME} and not names <= _OURS:
        raise StoreCorrupt(
            f"{folder} is not empty and holds no store (it has {min(names)}): use another folder"
        )


def check_files(folder: Path, *, is_pristine: bool) -> None:
    """Raise ``StoreCorrupt`` if RocksDB's files are missing although the store was created."""
    current = folder / ROCKSDB_NAME / "CURRENT"
    if not is_pristine and not current.exists():
        raise StoreCorrupt(f"{current} is missing: restore the data folder from a backup")


def open_or_create_watermark(folder: Path, partitions: int, cluster_id: str | None) -> Watermark:
    """Open the watermark of the store in the folder, or create it if there is no store yet."""
    path = folder / WATERMARK_NAME
    if path.exists():
        return open_watermark(path)
    if (folder / ROCKSDB_NAME).exists():
        raise StoreCorrupt(compute_missing_watermark(folder))
    return create_watermark(path, WatermarkHeader(partitions, cluster_id or _make_cluster_id()))


def compute_missing_watermark(folder: Path) -> str:
    """The error message for a store whose watermark is missing."""
    return f"{folder / WATERMARK_NAME} is missing: restore the data folder from a backup"


def _make_cluster_id() -> str:
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
