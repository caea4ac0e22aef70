"""Free space on the disk of the data folder, and a file that reserves some of it.

The server deletes the reserve when the disk is full in spite of `log.min.free.bytes`, for example
through other processes. The space then serves commands that were accepted, the background work
of the store and the next start. The reserve is created again when there is enough space.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from threading import Thread

import structlog

log = structlog.get_logger("muster.disk")


class DiskSpace:
    """Maintains the reserve; checks it each time the free space is read.

    ``reserve_bytes`` is the size of the reserve, 0 for none; ``min_free_bytes`` must be free
    beside it before it is created again.
    """

    def __init__(self, reserve: Path, reserve_bytes: int, min_free_bytes: int) -> None:
        self._reserve = reserve
        self._reserve_bytes = reserve_bytes
        self._min_free_bytes = min_free_bytes
        self._held_bytes = reserve.stat().st_size if reserve.exists() else 0
        self._taking: Thread | None = None

    def prepare(self) -> None:
        """Delete the reserve if the disk is full, else create it. Call before opening the store.

        Raises ``OSError`` if the free space cannot be read.
        """
        if self._held_bytes > self._reserve_bytes:
            self._give_up()
        if self._read_free_bytes() < self._reserve_bytes:
            self._give_up()
        elif self._is_takeable(self._compute_usable_bytes()):
            self._take()

    def free_bytes(self) -> int:
        """Usable space: the free bytes, less what the reserve lacks."""
        usable = self._compute_usable_bytes()
        if self._held_bytes and self._read_free_bytes() < self._reserve_bytes:
            self._give_up()
        elif self._is_takeable(usable) and (self._taking is None or not self._taking.is_alive()):
            # In a thread: some file systems have to write all of it.
            self._taking = Thread(target=self._take, name="muster-reserve", daemon=True)
            self._taking.start()
        return usable

    def _read_free_bytes(self) -> int:
        return shutil.disk_usage(self._reserve.parent).free

    def _compute_usable_bytes(self) -> int:
        missing = max(self._reserve_bytes - self._held_bytes, 0)
        return max(self._read_free_bytes() - missing, 0)

    def _is_takeable(self, usable: int) -> bool:
        is_missing = self._held_bytes < self._reserve_bytes
        return is_missing and usable >= max(self._min_free_bytes, 1)

    def _give_up(self) -> None:
        if self._held_bytes:
            self._reserve.unlink(missing_ok=True)
            self._held_bytes = 0
            log.warning("reserve_given_up", path=str(self._reserve))

    def _take(self) -> None:
        try:
            file = os.open(self._reserve, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.posix_fallocate(file, 0, self._reserve_bytes)
            finally:
                os.close(file)
        except OSError as error:
            self._reserve.unlink(missing_ok=True)
            log.warning("reserve_not_taken", path=str(self._reserve), cause=str(error))
        else:
            self._held_bytes = self._reserve_bytes
            log.info("reserve_taken", path=str(self._reserve), size=self._reserve_bytes)
