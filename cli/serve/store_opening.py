"""Opens the store of the server."""

from __future__ import annotations

from pathlib import Path

import structlog

from cli.errors import CommandError, ExitCode
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
