"""A bulk: a log that many processes have folded, as sorted files and a description of them.

``bulk.json`` comes last, so a folder that has it is whole. ``storage.transfer.import_bulk`` makes a
store of one.
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
    """A folder is no bulk, or not a whole one."""


class NewerBulk(BulkError):
    """A newer version wrote the bulk."""


@dataclass(frozen=True, slots=True)
class BulkPartition:
    """A partition of the log.

    ``next_offset`` is where it goes on, ``records`` how many ``log`` has, ``last_offset`` the last
    that a batch of ``log`` reaches to, -1 for none. ``last_ms`` is the time (wall) of the last
    batch that there was, ``highest_ms`` the highest of all. ``open_producers`` are those of
    transactions that no marker has ended, and their epochs; if ``aborts_open`` the import is to
    end them.
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
    """What a folder has. ``partition_count`` is how many the topic has.

    ``is_compacted``: ``log`` has only the records that count. ``batches``, ``records``, ``bytes``
    and ``highest_producer_id`` are of the log that was read.
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
    """Whether a folder says that it holds one."""
    return (folder / BULK_FILE).is_file()


def write_bulk(folder: Path, bulk: Bulk) -> None:
    """Says what the folder has, last of all, durably; raises ``OSError``."""
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
    """What a folder has; raises ``BulkError`` where it is not whole, also for missing files."""
    file = folder / BULK_FILE
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        version = int(content.pop("version"))
        if version > VERSION:
            raise NewerBulk(f"{file} has version {version}, this reads {VERSION}: use a newer one")
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
