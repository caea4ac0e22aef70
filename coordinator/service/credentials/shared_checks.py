"""Checks of credentials that take a while: a few at a time, in a fair order, and remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from coordinator.service.credentials.fair_line import FairLine, WaitingCounts
from coordinator.service.credentials.presented import UserPassword
from coordinator.service.credentials.remembered import Remembered
from security.identity import Identity


class _Running(NamedTuple):
    """A check, and the version of the password that it was begun with."""

    version: object
    task: asyncio.Task[Identity]


class SharedChecks:
    """What was right is remembered until it is changed, or for too long.

    Calls at once with one password share its check: a client that begins with many, or goes on
    when its password is not remembered any more, waits for one.
    """

    __slots__ = (
        "_find_version",
        "_line",
        "_remembered",
        "_running",
        "_waiting",
    )

    def __init__(
        self, find_version: Callable[[str], object], key: bytes, *, places: int, kept_s: float
    ) -> None:
        """``find_version``: equal as long as the user's password is the same.

        ``places`` are checked at a time; ``key``: random bytes, of this process alone.
        """
        self._find_version = find_version
        self._remembered = Remembered(key, kept_s)
        self._running: dict[bytes, _Running] = {}
        self._waiting = WaitingCounts()
        self._line = FairLine(places)

    async def _verify(self, user: str, password: str) -> Identity:
        """Who the user is. Raises what ``check`` raises."""
        raise NotImplementedError

    def find(self, presented: UserPassword, now_s: float) -> Identity | None:
        """The identity of a password that was checked lately."""
        user, password = presented
        version = self._find_version(user)
        return self._remembered.find((user, password.reveal()), version, now_s)

    async def check(
        self, presented: UserPassword, host: str, connection: str, now_s: float
    ) -> Identity:
        """The identity of the user.

        Raises ``NotAuthenticated``, ``LineTooLong``; ``CannotVerify`` if somebody else is asked.
        """
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
            identity = await self._verify(user, password.reveal())
        finally:
            self._line.leave()
        self._remembered.note((user, password.reveal()), version, identity, now_s)
        return identity

    def stop(self) -> None:
        """Check nothing more."""

    def _on_checked(self, digest: bytes, task: asyncio.Task[Identity]) -> None:
        if not task.cancelled():
            task.exception()  # Without this asyncio logs that of calls that were cancelled.
        running = self._running.get(digest)
        if running is not None and running.task is task:
            del self._running[digest]


async def _hold(counted: ExitStack, checking: Coroutine[Any, Any, Identity]) -> Identity:
    with counted:
        return await checking
