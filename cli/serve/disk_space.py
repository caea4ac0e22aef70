"""Room on the disk of the data folder, and a file that keeps some of it back.

The reserve is there for the moment in which the disk is full after all, of the writes of others
say: it is given up then, and what was accepted, the work of the store in the background and the
next start have its place. It is taken again when there is room.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from threading import Thread

import structlog

log = structlog.get_logger("muster.disk")


class DiskRoom:
    """Looks after the reserve whenever it is asked for the room that is left.

    ``reserve_bytes`` is the size of the reserve, 0 for none; ``min_free_bytes`` is what must be
    free beside it before it is taken again.
    """

    def __init__(self, reserve: Path, reserve_bytes: int, min_free_bytes: int) -> None:
        self._reserve = reserve
        self._reserve_bytes = reserve_bytes
        self._min_free_bytes = min_free_bytes
        self._held_bytes = reserve.stat().st_size if reserve.exists() else 0
        self._taking: Thread | None = None

    def prepare(self) -> None:
        """Before the store is opened: make way where the disk is full, else take the reserve.

        Raises ``OSError`` where the disk cannot be asked.
        """
        if self._held_bytes > self._reserve_bytes:
            self._give_up()
        if self._read_free_bytes() < self._reserve_bytes:
            self._give_up()
        elif self._is_takeable(self._compute_room()):
            self._take()

    def free_bytes(self) -> int:
        """What may be used up: the free bytes, less what the reserve lacks."""
        room = self._compute_room()
        if self._held_bytes and self._read_free_bytes() < self._reserve_bytes:
            self._give_up()
        elif self._is_takeable(room) and (self._taking is None or not self._taking.is_alive()):
            # A file system may have to write all of it.
            self._taking = Thread(target=self._take, name="muster-reserve", daemon=True)
            self._taking.start()
        return room

    def _read_free_bytes(self) -> int:
        return shutil.disk_usage(self._reserve.parent).free

    def _compute_room(self) -> int:
        missing = max(self._reserve_bytes - self._held_bytes, 0)
        return max(self._read_free_bytes() - missing, 0)

    def _is_takeable(self, room: int) -> bool:
        is_missing = self._held_bytes < self._reserve_bytes
        return is_missing and room >= max(self._min_free_bytes, 1)

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
