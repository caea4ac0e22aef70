"""Backups: a store as it was at one moment, in a folder of its own that says what must be in it.

A backup has ``store``, which can be read as any store, and ``backup.json``: the cluster id, the
next offset of every partition, and the size and CRC-32C of every file. It is there whole under
its name, or not at all.

What a store has in memory is written to files first, by RocksDB's own threads; then a checkpoint
links them in some milliseconds. So a server goes on meanwhile, and all that was acknowledged
before the call is in the backup.
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
from storage.rocks.rocks_checkpoint import RocksCheckpoint
from storage.rocks.rocks_reader import open_store_reader
from storage.rocks.rocks_store import RocksLogStore

MANIFEST = "backup.json"
STORE_NAME = "store"
CHECKPOINT_NAME = "checkpoint"
"""In the folder of a store, while a backup is made of it."""

_VERSION = 1
_FLUSH_TIMEOUT_S = 60.0
_FLUSH_POLL_S = 0.01
_CHUNK_BYTES = 1 << 20
_HARMLESS = {"lost+found"}
_UNFINISHED = {f"{STORE_NAME}.building"}
"""What a restore or an import that was killed has left; the next one clears it."""


class BackupRefused(StoreError):
    """There is something in the way, or a backup is being made."""


class NoBackup(StoreError):
    """A folder holds no backup."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file must be."""

    bytes: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class Backup:
    """What ``backup.json`` says. ``files`` are named from the backup's folder on."""

    cluster_id: str
    made_at_ms: int
    next_offsets: tuple[int, ...]
    files: Mapping[str, FileFacts]

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(facts.bytes for facts in self.files.values())


# ---------------------------------------------------------------------------------------- making


def make_backup(store: RocksLogStore, folder: Path, target: Path, made_at_ms: int) -> Backup:
    """A backup of an open store, which lives in ``folder``, under a name that is not taken.

    May run in a worker thread while the store is written to; one at a time. Raises
    ``BackupRefused`` and other ``StoreError``s, and leaves nothing then.
    """
    checkpoint = folder / CHECKPOINT_NAME
    check_free(target)
    home = folder.resolve()
    if home in (target.parent, *target.parent.parents):
        raise BackupRefused(f"{target} is within the store: use another folder")
    durable = [store.durable_offset(LogPartition(p)) for p in range(store.partitions)]
    with _disk_errors(target):
        remove_checkpoint(folder)
        parts = store.begin_checkpoint()
        _flush(parts)
        try:
            parts.make(checkpoint)
            with _making(target) as unfinished:
                _fill(checkpoint, unfinished, store.partitions, store.cluster_id)
                backup = _describe(unfinished, durable, made_at_ms)
                _write_manifest(unfinished, backup)
        finally:
            remove_checkpoint(folder)
    return backup


def check_free(target: Path) -> None:
    """Raises ``BackupRefused`` unless a folder can be made there, under this very name.

    A server writes with rights of its own: whoever may make a link must not choose where.
    """
    try:
        os.fsencode(target)
        parent = target.parent.resolve(strict=True)
        if not parent.is_dir():
            raise BackupRefused(f"{target.parent} is no folder: make it first")
        if parent != target.parent:
            raise BackupRefused(f"a link leads to {parent}: name that folder itself")
        if target.is_symlink():
            raise BackupRefused(f"{target} is a link: use another name")
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise BackupRefused(f"{target} is there already and not empty: use another name")
    except (FileNotFoundError, NotADirectoryError):
        raise BackupRefused(f"{target.parent} is no folder: make it first") from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BackupRefused(f"no folder can be made at {str(target)[:300]!a}: {reason}") from None


def remove_checkpoint(folder: Path) -> None:
    """What a backup that was cut off has left in the folder of a store."""
    shutil.rmtree(folder / CHECKPOINT_NAME, ignore_errors=True)


def _flush(parts: RocksCheckpoint) -> None:
    """Makes the checkpoint quick; where the disk is too slow it takes what it takes."""
    parts.begin_flush()
    deadline = time.monotonic() + _FLUSH_TIMEOUT_S
    while not parts.is_flushed() and time.monotonic() < deadline:
        time.sleep(_FLUSH_POLL_S)


@contextmanager
def _making(target: Path) -> Iterator[Path]:
    """A folder beside the target that takes its name at the end, durably; its owner's alone."""
    with make_folder(target.parent, UNFINISHED_PREFIX) as unfinished:
        yield unfinished
        sync_folder(unfinished)
        unfinished.rename(target)
        sync_folder(target.parent)


def _fill(checkpoint: Path, unfinished: Path, partitions: int, cluster_id: str) -> None:
    """The store of a backup, with a watermark at its very end."""
    store = unfinished / STORE_NAME
    rocksdb = store / ROCKSDB_NAME
    rocksdb.mkdir(parents=True)
    for file in checkpoint.iterdir():
        _link_or_copy(file, rocksdb / file.name)
    sync_folder(rocksdb)
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


def _describe(unfinished: Path, durable: list[LogOffset], made_at_ms: int) -> Backup:
    watermark = open_watermark(unfinished / STORE_NAME / WATERMARK_NAME)
    header, ends = watermark.header, tuple(watermark.offsets)
    watermark.close()
    for partition, (end, mark) in enumerate(zip(ends, durable, strict=True)):
        if end < mark:
            raise StoreCorrupt(
                f"the checkpoint ends at offset {end} of log partition {partition}, which was "
                f"acknowledged up to {mark}"
            )
    files = {
        file.relative_to(unfinished).as_posix(): read_facts(file)
        for file in sorted(unfinished.rglob("*"))
        if file.is_file()
    }
    return Backup(header.cluster_id, made_at_ms, ends, files)


def _link_or_copy(file: Path, target: Path) -> None:
    """Files of a checkpoint are never written to again, so another name for them will do."""
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
    """What a file is now."""
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
        "files": {
            name: {"bytes": facts.bytes, "crc32c": facts.crc32c}
            for name, facts in backup.files.items()
        },
    }
    path = folder / MANIFEST
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    _sync(path)


def read_backup(folder: Path) -> Backup:
    """What a backup says of itself. Raises ``NoBackup``, ``FormatTooNew`` and ``StoreCorrupt``."""
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
        )
    except (FileNotFoundError, NotADirectoryError):
        raise NoBackup(f"{folder} is no backup: it has no {MANIFEST}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreCorrupt(f"{path} cannot be read: {error!r}") from None


def _check_name(name: str) -> str:
    """Raises ``ValueError`` unless it is of a file of the store, where stores have files."""
    first, *rest = name.split("/")
    if first != STORE_NAME or rest[:-1] not in ([], [ROCKSDB_NAME]) or rest[-1:] in ([], [".."]):
        raise ValueError(f"{name!r} is no file of a store")
    return name


def check_files(folder: Path, backup: Backup) -> None:
    """Raises ``StoreCorrupt`` unless all files of a backup are there as they were written."""
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
    """Copies the store of a backup, which has been checked, into an empty data folder.

    All of it is there, or nothing; a kill leaves a folder in which no store is opened or made
    (``StoreUnfinished``) until this is done again. Raises ``BackupRefused`` where it is not empty.
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
    """Whether the folder has the store of a backup and nothing else, byte for byte.

    So it is where a restore was killed when all was done, which this finishes where it was not
    quite. A server that has opened the store since has changed its files. Raises ``StoreError``.
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
    """Raises ``BackupRefused`` unless a store can be put there."""
    if data.exists() and not data.is_dir():
        raise BackupRefused(f"{data} is no folder")
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
            raise StoreCorrupt(f"{folder / name} was changed while it was copied")
    sync_folder(building / ROCKSDB_NAME)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error}") from error
