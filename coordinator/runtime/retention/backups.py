"""Backups of a running server's store: one at a time, in a thread."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from coordinator.runtime.clock import Clock, SystemClock
from storage.rocks.rocks_store import RocksLogStore
from storage.transfer.backup import Backup, BackupRefused, make_backup


class Backups(Protocol):
    """Who makes backups."""

    async def create(self, folder: Path) -> Backup:
        """A backup of all that was acknowledged by now; raises ``StoreError``."""


class StoreBackups:
    """Backups of the store that lives in ``store_folder``."""

    def __init__(
        self, store: RocksLogStore, store_folder: Path, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._store_folder = store_folder
        self._clock = clock or SystemClock()
        self._making: asyncio.Future[Backup] | None = None

    async def create(self, folder: Path) -> Backup:
        """See ``Backups``. It is finished even if nobody waits for it any more."""
        if self._making is not None and not self._making.done():
            raise BackupRefused("a backup is being made: wait until it is done")
        work = asyncio.to_thread(
            make_backup, self._store, self._store_folder, folder, self._clock.wall_ms()
        )
        self._making = asyncio.ensure_future(work)
        return await asyncio.shield(self._making)

    async def wait(self) -> None:
        """Until no backup is being made: the store must stay open for so long."""
        if self._making is not None:
            await asyncio.wait((self._making,))
