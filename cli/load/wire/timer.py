"""A timer finer than the millisecond of event loops."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_CLOCK_MONOTONIC: Final = 1
_TFD_NONBLOCK: Final = os.O_NONBLOCK
_TFD_TIMER_ABSTIME: Final = 1
_ITIMERSPEC: Final = struct.Struct("@llll")
"""Seconds and nanoseconds of the interval, then of the first tick."""


class Alarm:
    """Calls ``on_ring`` at the time that was set last, in ns of ``time.monotonic_ns``.

    On Linux by a timerfd, which is accurate to some 50 µs; elsewhere by the loop, to 1 ms.
    """

    def __init__(self, on_ring: Callable[[], None]) -> None:
        self._on_ring = on_ring
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._libc, self._fd = _open_timer()
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._on_readable)

    def set(self, at_ns: int) -> None:
        """Ring at this time, or at once if it has passed."""
        if self._fd >= 0:
            seconds, ns = divmod(max(at_ns, 1), 1_000_000_000)
            spec = _ITIMERSPEC.pack(0, 0, seconds, ns)
            self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, spec, None)
            return
        if self._handle is not None:
            self._handle.cancel()
        delay_s = max(0, at_ns - time.monotonic_ns()) / 1_000_000_000
        self._handle = self._loop.call_later(delay_s, self._on_ring)

    def close(self) -> None:
        """Ring no more."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._handle is not None:
            self._handle.cancel()

    def _on_readable(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._fd, 8)
        self._on_ring()


def _open_timer() -> tuple[ctypes.CDLL, int]:
    """The C library, and the descriptor of a timer; -1 if the system has none."""
    libc = ctypes.CDLL(None)
    try:
        fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK)
    except AttributeError:
        return libc, -1
    return libc, fd
