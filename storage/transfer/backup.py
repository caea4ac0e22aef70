"""Backup and restore of a store.

A backup is a folder with ``store``, a consistent snapshot that can be read like any store, and
``backup.json``: the cluster id, the log end offset of every partition, and the size and CRC-32C of
every file. The folder appears under its name atomically. Credentials of users are left out unless
they are asked for.

RocksDB's background threads flush the memtables first; then a snapshot hard-links the files in a
few milliseconds. So a server keeps running, and everything acknowledged before the call is in the
backup.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import crc32c

from model.ids import LogOffset, LogPartition
from storage.folder.replacement import (
    StoreUnfinished,
    finish_replacement,
    is_before_store,
    replacing,
)
from storage.folder.store_folder import LOCK_NAME, ROCKSDB_NAME, WATERMARK_NAME
from storage.folder.unfinished import UNFINISHED_PREFIX, make_folder
from storage.folder.watermark import WatermarkHeader, create_watermark, open_watermark, sync_folder
from storage.log_store import FormatTooNew, StoreCorrupt, StoreError, StoreFailed
from storage.rocks.rocks_reader import open_store_reader
from storage.rocks.rocks_snapshot import RocksSnapshot
from storage.rocks.rocks_store import RocksLogStore
from storage.side_codec import CREDENTIAL_KINDS
from storage.transfer.credentials import leave_out_credentials

MANIFEST = "backup.json"
STORE_NAME = "store"
SNAPSHOT_NAME = "checkpoint"
"""Folder of the snapshot within the store's folder, while a backup is made."""

_VERSION = 1
_FLUSH_TIMEOUT_S = 60.0
_FLUSH_POLL_S = 0.01
_CHUNK_BYTES = 1 << 20
_HARMLESS = {"lost+found"}
_UNFINISHED = {f"{STORE_NAME}.building"}
"""Left by a restore or import that was killed; the next one removes it."""


class BackupRefused(StoreError):
    """The target cannot be used, or another backup is running."""


class NoBackup(StoreError):
    """The folder is not a backup."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The expected size and checksum of a file."""

    bytes: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of ``backup.json``; paths of ``files`` are relative to the backup's folder.

    ``users_left_out`` is the number of users whose credentials the store had, and it has not.
    """

    cluster_id: str
    made_at_ms: int
    next_offsets: tuple[int, ...]
    files: Mapping[str, FileFacts]
    users_left_out: int = 0

    @property
    def bytes(self) -> int:
        """The total size of all files."""
        return sum(facts.bytes for facts in self.files.values())


# ---------------------------------------------------------------------------------------- making


def make_backup(
    store: RocksLogStore,
    folder: Path,
    target: Path,
    made_at_ms: int,
    *,
    with_credentials: bool = False,
) -> Backup:
    """Back up an open store, whose folder is ``folder``, to a new folder ``target``.

    May run in a worker thread while the store is written to, one backup at a time. Raises
    ``BackupRefused`` and other ``StoreError``s; ``target`` does not exist then.
    """
    snapshot = folder / SNAPSHOT_NAME
    check_free(target)
    home = folder.resolve()
    if home in (target.parent, *target.parent.parents):
        raise BackupRefused(f"{target} is inside the store's folder: use another folder")
    durable = [store.durable_offset(LogPartition(p)) for p in range(store.partitions)]
    with _disk_errors(target):
        remove_snapshot(folder)
        parts = store.begin_snapshot()
        _flush(parts)
        try:
            parts.make(snapshot)
            with _making(target) as unfinished:
                left_out = 0
                rocksdb = unfinished / STORE_NAME / ROCKSDB_NAME
                _copy_files(snapshot, rocksdb)
                if not with_credentials and _may_have_credentials(store):
                    left_out = leave_out_credentials(rocksdb)
                _add_watermark(unfinished / STORE_NAME, store.partitions, store.cluster_id)
                backup = _describe(unfinished, durable, made_at_ms, left_out)
                _write_manifest(unfinished, backup)
        finally:
            remove_snapshot(folder)
    return backup


def _may_have_credentials(store: RocksLogStore) -> bool:
    """Whether an earlier snapshot may have any: the secret beside them is never deleted."""
    return any(True for kind in CREDENTIAL_KINDS for _ in store.side(kind))


def check_free(target: Path) -> None:
    """Raise ``BackupRefused`` unless a folder can be created at exactly this path.

    Links are refused: a server writes with its own rights, and a user who can create a link must
    not redirect the write.
    """
    try:
        os.fsencode(target)
        parent = target.parent.resolve(strict=True)
        if not parent.is_dir():
            raise BackupRefused(f"{target.parent} is not a folder: make it first")
        if parent != target.parent:
            raise BackupRefused(f"{target.parent} resolves to {parent}: use that path")
        if target.is_symlink():
            raise BackupRefused(f"{target} is a link: use another name")
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise BackupRefused(f"{target} already exists and is not empty: use another name")
    except (FileNotFoundError, NotADirectoryError):
        raise BackupRefused(f"{target.parent} is not a folder: make it first") from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BackupRefused(f"cannot make a folder at {str(target)[:300]!a}: {reason}") from None


def remove_snapshot(folder: Path) -> None:
    """Remove the snapshot that an interrupted backup left in a store's folder."""
    shutil.rmtree(folder / SNAPSHOT_NAME, ignore_errors=True)


def _flush(parts: RocksSnapshot) -> None:
    """Flush the memtables, so that the snapshot is quick; after a timeout, go on without."""
    parts.begin_flush()
    deadline = time.monotonic() + _FLUSH_TIMEOUT_S
    while not parts.is_flushed() and time.monotonic() < deadline:
        time.sleep(_FLUSH_POLL_S)


@contextmanager
def _making(target: Path) -> Iterator[Path]:
    """Create a private folder beside the target and rename it to the target at the end, durably."""
    with make_folder(target.parent, UNFINISHED_PREFIX) as unfinished:
        yield unfinished
        sync_folder(unfinished)
        unfinished.rename(target)
        sync_folder(target.parent)


def _copy_files(snapshot: Path, rocksdb: Path) -> None:
    rocksdb.mkdir(parents=True)
    for file in snapshot.iterdir():
        _link_or_copy(file, rocksdb / file.name)
    sync_folder(rocksdb)


def _add_watermark(store: Path, partitions: int, cluster_id: str) -> None:
    """Add a watermark at the end of the log to the backup's store."""
    path = store / WATERMARK_NAME
    create_watermark(path, WatermarkHeader(partitions, cluster_id)).close()
    reader = open_store_reader(store)
    try:
        numbers = map(LogPartition, range(partitions))
        ends = {partition: reader.next_offset(partition) for partition in numbers}
        sequence = reader.sequence
    finally:
        reader.close()
    watermark = open_watermark(path)
    watermark.mark(ends, sequence)
    watermark.close()
    sync_folder(store)


def _describe(
    unfinished: Path, durable: list[LogOffset], made_at_ms: int, users_left_out: int
) -> Backup:
    watermark = open_watermark(unfinished / STORE_NAME / WATERMARK_NAME)
    header, ends = watermark.header, tuple(watermark.offsets)
    watermark.close()
    for partition, (end, mark) in enumerate(zip(ends, durable, strict=True)):
        if end < mark:
            raise StoreCorrupt(
                f"the snapshot of log partition {partition} ends at offset {end}, but records up "
                f"to {mark} were acknowledged"
            )
    files = {
        file.relative_to(unfinished).as_posix(): read_facts(file)
        for file in sorted(unfinished.rglob("*"))
        if file.is_file()
    }
    return Backup(header.cluster_id, made_at_ms, ends, files, users_left_out)


def _link_or_copy(file: Path, target: Path) -> None:
    """Hard-link a file of a snapshot, which is immutable, or copy it; durably."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
    _sync(target)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -------------------------------------------------------------------------------------- manifest


def read_facts(path: Path) -> FileFacts:
    """Compute the size and checksum of a file."""
    size = crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            size += len(chunk)
            crc = crc32c.crc32c(chunk, crc)
    return FileFacts(size, crc)


def _write_manifest(folder: Path, backup: Backup) -> None:
    content = {
        "version": _VERSION,
        "cluster_id": backup.cluster_id,
        "made_at_ms": backup.made_at_ms,
        "next_offsets": list(backup.next_offsets),
        "users_left_out": backup.users_left_out,
        "files": {
            name: {"bytes": facts.bytes, "crc32c": facts.crc32c}
            for name, facts in backup.files.items()
        },
    }
    path = folder / MANIFEST
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    _sync(path)


def read_backup(folder: Path) -> Backup:
    """Read ``backup.json``; raises ``NoBackup``, ``FormatTooNew`` and ``StoreCorrupt``."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] > _VERSION:
            raise FormatTooNew(f"{folder} has version {content['version']}: use a newer version")
        files = {
            _check_name(name): FileFacts(int(facts["bytes"]), int(facts["crc32c"]))
            for name, facts in content["files"].items()
        }
        return Backup(
            str(content["cluster_id"]),
            int(content["made_at_ms"]),
            tuple(map(int, content["next_offsets"])),
            files,
            # Written since there are users.
            int(content.get("users_left_out", 0)),
        )
    except (FileNotFoundError, NotADirectoryError):
        raise NoBackup(f"{folder} is not a backup: it has no {MANIFEST}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreCorrupt(f"{path} cannot be read: {error!r}") from None


def _check_name(name: str) -> str:
    """Raise ``ValueError`` unless the name is that of a store file, within the backup."""
    first, *rest = name.split("/")
    if first != STORE_NAME or rest[:-1] not in ([], [ROCKSDB_NAME]) or rest[-1:] in ([], [".."]):
        raise ValueError(f"{name!r} is not a file of a store")
    return name


def check_files(folder: Path, backup: Backup) -> None:
    """Raise ``StoreCorrupt`` unless every file of a backup has its recorded size and checksum."""
    for name, facts in backup.files.items():
        path = folder / name
        try:
            found = read_facts(path)
        except OSError as error:
            raise StoreCorrupt(f"{path} cannot be read: {error.strerror}") from None
        if found != facts:
            raise StoreCorrupt(
                f"{path} is damaged: it has {found.bytes} bytes with CRC {found.crc32c:08x}, not "
                f"{facts.bytes} with {facts.crc32c:08x}"
            )


# ------------------------------------------------------------------------------------- restoring


def restore_backup(folder: Path, backup: Backup, data: Path) -> None:
    """Copy the store of a verified backup to an empty data folder, atomically.

    If it is killed, no store can be opened or created in the folder (``StoreUnfinished``) until the
    restore is run again. Raises ``BackupRefused`` if the folder is not empty.
    """
    check_empty(data)
    is_new = not data.exists()
    with _disk_errors(data):
        data.mkdir(parents=True, exist_ok=True)
        try:
            with replacing(data / STORE_NAME) as replacement:
                _copy_store(folder, backup, replacement.building)
        except BaseException:
            if is_new and not any(data.iterdir()):
                data.rmdir()
            raise


def is_restored(backup: Backup, data: Path) -> bool:
    """Whether the folder holds exactly the store of a backup, byte for byte.

    That is so if a restore was killed after it was committed; a pending last step is finished here.
    It is false once a server has opened the store, which changes its files. Raises ``StoreError``.
    """
    with suppress(StoreUnfinished):
        finish_replacement(data / STORE_NAME)
    with _disk_errors(data):
        if not data.is_dir() or {entry.name for entry in data.iterdir()} - _HARMLESS != {
            STORE_NAME
        }:
            return False
        found = {
            file.relative_to(data).as_posix()
            for file in (data / STORE_NAME).rglob("*")
            if file.is_file()
        }
        return found - {f"{STORE_NAME}/{LOCK_NAME}"} == set(backup.files) and all(
            read_facts(data / name) == facts for name, facts in backup.files.items()
        )


def check_empty(data: Path) -> None:
    """Raise ``BackupRefused`` unless the data folder is empty, so that a store can go there."""
    if data.exists() and not data.is_dir():
        raise BackupRefused(f"{data} is not a folder")
    names = {entry.name for entry in data.iterdir()} - _HARMLESS if data.exists() else set()
    names -= _UNFINISHED
    if (data / STORE_NAME).is_dir() and is_before_store(data / STORE_NAME):
        names -= {STORE_NAME}
    if names:
        raise BackupRefused(f"{data} is not empty (it has {min(names)}): restore into a new folder")


def _copy_store(folder: Path, backup: Backup, building: Path) -> None:
    (building / ROCKSDB_NAME).mkdir()
    for name, facts in backup.files.items():
        copy = building / Path(name).relative_to(STORE_NAME)
        shutil.copyfile(folder / name, copy)
        _sync(copy)
        if read_facts(copy) != facts:
            raise StoreCorrupt(f"{folder / name} changed while it was copied")
    sync_folder(building / ROCKSDB_NAME)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error}") from error
