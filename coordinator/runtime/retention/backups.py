"""Backups of a running server's store: one at a time, on a thread."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from coordinator.runtime.clock import Clock, SystemClock
from storage.rocks.rocks_store import RocksLogStore
from storage.transfer.backup import Backup, BackupRefused, make_backup


class Backups(Protocol):
    """Makes backups."""

    async def create(self, folder: Path, *, with_credentials: bool = False) -> Backup:
        """Back up everything acknowledged so far, also credentials only if asked.

        Raises ``StoreError``.
        """


class StoreBackups:
    """Backs up the store in ``store_folder``."""

    def __init__(
        self, store: RocksLogStore, store_folder: Path, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._store_folder = store_folder
        self._clock = clock or SystemClock()
        self._making: asyncio.Future[Backup] | None = None

    async def create(self, folder: Path, *, with_credentials: bool = False) -> Backup:
        """See ``Backups``. The backup is finished even if its caller stops waiting."""
        if self._making is not None and not self._making.done():
            raise BackupRefused("a backup is already in progress; retry when it is done")
        work = asyncio.to_thread(
            make_backup,
            self._store,
            self._store_folder,
            folder,
            self._clock.wall_ms(),
            with_credentials=with_credentials,
        )
        self._making = asyncio.ensure_future(work)
        return await asyncio.shield(self._making)

    async def wait(self) -> None:
        """Wait for the backup in progress, if any; the store must stay open until then."""
        if self._making is not None:
            await asyncio.wait((self._making,))
