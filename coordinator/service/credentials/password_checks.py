"""Checks passwords on a few threads: a flood of wrong ones keeps nobody waiting for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from coordinator.service.credentials.fair_line import FairLine
from coordinator.service.credentials.presented import UserPassword
from coordinator.service.credentials.remembered import Remembered
from coordinator.service.credentials.verifiers import PasswordVerifier
from security.identity import Identity

THREADS: Final = 2
REMEMBERED_S: Final = 300.0


class PasswordChecks:
    """Each check costs milliseconds; a right password is remembered until it is changed."""

    __slots__ = ("_find_version", "_line", "_pool", "_remembered", "_verifier")

    def __init__(
        self, verifier: PasswordVerifier, find_version: Callable[[str], object], key: bytes
    ) -> None:
        """``find_version``: equal as long as the user's password is the same."""
        self._verifier = verifier
        self._find_version = find_version
        self._remembered = Remembered(key, REMEMBERED_S)
        self._line = FairLine(THREADS)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="muster-passwords")

    def find(self, presented: UserPassword, now_s: float) -> Identity | None:
        """The identity of a password that was checked lately."""
        user, password = presented
        version = self._find_version(user)
        return self._remembered.find((user, password.reveal()), version, now_s)

    async def check(
        self, presented: UserPassword, host: str, connection: str, now_s: float
    ) -> Identity:
        """The identity of the user. Raises ``NotAuthenticated``."""
        user, password = presented
        version = self._find_version(user)
        await self._line.enter(host, connection)
        checking = asyncio.get_running_loop().run_in_executor(
            self._pool, self._verifier.verify, user, password.reveal()
        )
        checking.add_done_callback(self._on_checked)
        # A call that is cancelled leaves its check running: its place is free when that has ended.
        identity = await asyncio.shield(checking)
        self._remembered.note((user, password.reveal()), version, identity, now_s)
        return identity

    def stop(self) -> None:
        """Check nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _on_checked(self, checking: asyncio.Future[Identity]) -> None:
        if not checking.cancelled():
            checking.exception()  # Without this asyncio logs that of a call that was cancelled.
        self._line.leave()
