"""Opens the store of the server, with room for it on its disk."""

from __future__ import annotations

from pathlib import Path

import structlog

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.serve.disk_reserve import DiskSpace
from cli.settings import Resolved
from storage.log_store import FormatTooNew, LogStore, StoreError, StoreLocked
from storage.rocks.rocks_opening import open_store

log = structlog.get_logger("muster.serve")


def open_server_store(resolved: Resolved, path: Path) -> LogStore:
    """The store, made if it is not there. Raises ``CommandError``."""
    partitions = resolved.integer("offsets.topic.num.partitions")
    try:
        store = open_store(path, partitions=partitions)
    except (StoreLocked, FormatTooNew) as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error
    except StoreError as error:
        raise CommandError(str(error)) from error
    if store.partitions != partitions:
        log.warning(
            "setting_ignored",
            setting="offsets.topic.num.partitions",
            value=partitions,
            cause=f"the data folder was created with {store.partitions}, which cannot change",
        )
    return store


def prepare_disk(resolved: Resolved, folder: DataFolder) -> DiskSpace:
    """The disk of a data folder, with its reserve. Raises ``CommandError``."""
    reserve_bytes = resolved.integer("log.reserve.bytes")
    min_free_bytes = resolved.integer("log.min.free.bytes")
    try:
        space = DiskSpace(folder.reserve, reserve_bytes, min_free_bytes)
        space.prepare()
    except OSError as error:
        raise CommandError(f"{folder.reserve} cannot be used: {error}") from error
    return space
