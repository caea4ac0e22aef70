"""Checks passwords on a few threads: a flood of wrong ones keeps nobody waiting for long."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final, NamedTuple

from coordinator.service.credentials.fair_line import FairLine, WaitingCounts
from coordinator.service.credentials.presented import UserPassword
from coordinator.service.credentials.remembered import Remembered
from coordinator.service.credentials.verifiers import PasswordVerifier
from security.identity import Identity

THREADS: Final = 2
REMEMBERED_S: Final = 300.0
NICENESS: Final = 10
"""By so much the threads give way to the event loop, which a flood would take processors from."""


class _Running(NamedTuple):
    """A check, and the version of the password that it was begun with."""

    version: object
    task: asyncio.Task[Identity]


class PasswordChecks:
    """Each check costs milliseconds; a right password is remembered until it is changed.

    Calls at once with one password share its check: a client that begins with many, or goes on
    when its password is not remembered any more, waits for one.
    """

    __slots__ = (
        "_find_version",
        "_line",
        "_pool",
        "_remembered",
        "_running",
        "_verifier",
        "_waiting",
    )

    def __init__(
        self, verifier: PasswordVerifier, find_version: Callable[[str], object], key: bytes
    ) -> None:
        """``find_version``: equal as long as the user's password is the same."""
        self._verifier = verifier
        self._find_version = find_version
        self._remembered = Remembered(key, REMEMBERED_S)
        self._running: dict[bytes, _Running] = {}
        self._waiting = WaitingCounts()
        self._line = FairLine(THREADS)
        self._pool = ThreadPoolExecutor(
            THREADS, thread_name_prefix="muster-passwords", initializer=_give_way
        )

    def find(self, presented: UserPassword, now_s: float) -> Identity | None:
        """The identity of a password that was checked lately."""
        user, password = presented
        version = self._find_version(user)
        return self._remembered.find((user, password.reveal()), version, now_s)

    async def check(
        self, presented: UserPassword, host: str, connection: str, now_s: float
    ) -> Identity:
        """The identity of the user. Raises ``NotAuthenticated``, ``LineTooLong``."""
        user, password = presented
        version = self._find_version(user)
        digest = self._remembered.compute_digest((user, password.reveal()))
        running = self._running.get(digest)
        if running is None or running.version != version:
            with ExitStack() as counted:
                counted.enter_context(self._waiting.counted(host, connection))
                checking = self._check(presented, host, connection, now_s, version)
                task = asyncio.create_task(_hold(counted.pop_all(), checking))
            running = self._running[digest] = _Running(version, task)
            task.add_done_callback(partial(self._on_checked, digest))
        # A call that is cancelled leaves its check waiting or running, and counted until its end.
        return await asyncio.shield(running.task)

    async def _check(
        self, presented: UserPassword, host: str, connection: str, now_s: float, version: object
    ) -> Identity:
        user, password = presented
        await self._line.enter(host, connection)
        try:
            identity = await asyncio.get_running_loop().run_in_executor(
                self._pool, self._verifier.verify, user, password.reveal()
            )
        finally:
            self._line.leave()
        self._remembered.note((user, password.reveal()), version, identity, now_s)
        return identity

    def stop(self) -> None:
        """Check nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _on_checked(self, digest: bytes, task: asyncio.Task[Identity]) -> None:
        if not task.cancelled():
            task.exception()  # Without this asyncio logs that of calls that were cancelled.
        running = self._running.get(digest)
        if running is not None and running.task is task:
            del self._running[digest]


async def _hold(counted: ExitStack, checking: Coroutine[Any, Any, Identity]) -> Identity:
    with counted:
        return await checking


def _give_way() -> None:
    """Lower the priority of this thread, where threads have one of their own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.nice(0) + NICENESS)
