"""Bulks: a log folded by many processes, as a folder of SST files and their description.

``bulk.json`` is written last, so a folder that has it is complete. ``storage.transfer.import_bulk``
imports a bulk into a store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from storage.segments.errors import SegmentError
from storage.transfer.sorted_files import FAMILIES

BULK_FILE = "bulk.json"
VERSION = 1


class BulkError(SegmentError):
    """The folder is not a bulk, or an incomplete one."""


class NewerBulk(BulkError):
    """The bulk was written by a newer version."""


@dataclass(frozen=True, slots=True)
class BulkPartition:
    """A partition of the log.

    ``next_offset`` is its log end offset, ``records`` the number of records in ``log``, and
    ``last_offset`` the last offset of a batch in ``log``, or -1. ``last_ms`` is the max timestamp
    (wall-clock ms) of the last batch that was read, ``highest_ms`` that of all batches.
    ``open_producers`` are the producer ids of open transactions and their epochs; with
    ``aborts_open`` the import aborts them.
    """

    partition: int
    next_offset: int
    records: int
    last_offset: int
    last_ms: int
    highest_ms: int
    open_producers: Mapping[int, int] = field(default_factory=dict)
    aborts_open: bool = False


@dataclass(frozen=True, slots=True)
class Bulk:
    """The description of a bulk. ``partition_count`` is that of the topic.

    With ``is_compacted``, ``log`` is compacted. ``batches``, ``records``, ``bytes`` and
    ``highest_producer_id`` describe the log that was read.
    """

    partition_count: int
    is_compacted: bool
    partitions: tuple[BulkPartition, ...]
    files: Mapping[str, tuple[str, ...]]
    batches: int
    records: int
    bytes: int
    highest_producer_id: int
    notes: tuple[str, ...] = ()


def is_bulk(folder: Path) -> bool:
    """Whether a folder has a ``bulk.json``."""
    return (folder / BULK_FILE).is_file()


def write_bulk(folder: Path, bulk: Bulk) -> None:
    """Write ``bulk.json`` durably, after all files of the bulk; raises ``OSError``."""
    text = json.dumps({"version": VERSION, **asdict(bulk)}, indent=1) + "\n"
    writing = folder / f"{BULK_FILE}.new"
    with writing.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    writing.replace(folder / BULK_FILE)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_bulk(folder: Path) -> Bulk:
    """Read ``bulk.json``; raises ``BulkError`` if it is malformed or if files are missing."""
    file = folder / BULK_FILE
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        version = int(content.pop("version"))
        if version > VERSION:
            raise NewerBulk(
                f"{file} has version {version}, this version reads up to {VERSION}: "
                "use a newer version"
            )
        files = {family: tuple(content["files"][family]) for family in FAMILIES}
        partitions = tuple(map(_read_partition, content["partitions"]))
        notes = tuple(content["notes"])
        found = {**content, "files": files, "partitions": partitions, "notes": notes}
        bulk = Bulk(**found)
    except OSError as error:
        raise BulkError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BulkError(f"{file} cannot be read: {error!r}") from None
    for name in (name for names in bulk.files.values() for name in names):
        if Path(name).name != name or not (folder / name).is_file():
            raise BulkError(f"{folder / name} is missing: make the bulk again")
    return bulk


def _read_partition(content: dict[str, Any]) -> BulkPartition:
    producers = {int(key): int(epoch) for key, epoch in content["open_producers"].items()}
    return BulkPartition(**{**content, "open_producers": producers})
