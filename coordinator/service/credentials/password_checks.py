"""Checks passwords on a few threads: a flood of wrong ones keeps nobody waiting for long."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from coordinator.service.credentials.shared_checks import SharedChecks
from coordinator.service.credentials.verifiers import PasswordVerifier
from security.identity import Identity

THREADS: Final = 2
REMEMBERED_S: Final = 300.0
NICENESS: Final = 10
"""By so much the threads give way to the event loop, which a flood would take processors from."""


class PasswordChecks(SharedChecks):
    """Each check costs milliseconds; a right password is remembered until it is changed."""

    __slots__ = ("_pool", "_verifier")

    def __init__(
        self, verifier: PasswordVerifier, find_version: Callable[[str], object], key: bytes
    ) -> None:
        """See ``SharedChecks``."""
        super().__init__(find_version, key, places=THREADS, kept_s=REMEMBERED_S)
        self._verifier = verifier
        self._pool = ThreadPoolExecutor(
            THREADS, thread_name_prefix="muster-passwords", initializer=_give_way
        )

    async def _verify(self, user: str, password: str) -> Identity:
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, self._verifier.verify, user, password
        )

    def stop(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _give_way() -> None:
    """Lower the priority of this thread, where threads have one of their own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.nice(0) + NICENESS)
