"""Tells systemd how the server stands, for units with `Type=notify` or `notify-reload`.

Each message is one datagram of lines to the socket that NOTIFY_SOCKET names (sd_notify(3)). Without
that variable nothing is sent. With `WatchdogSec` in the unit the event loop reports twice within
that time; systemd ends and restarts a server whose loop stands still for longer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import MutableMapping
from typing import Final

import structlog

log = structlog.get_logger("muster.serve")

_AGAIN_S: Final = 0.1
"""When a message is sent again that found the queue of the socket full."""
_TRIES: Final = 50
_REPORTS_IN_TIME: Final = 2
_MICROSECONDS: Final = 1_000_000


class ServiceManager:
    """The service manager that started this process, if one did."""

    def __init__(self, environment: MutableMapping[str, str], pid: int) -> None:
        """Takes its variables out of ``environment``: child processes are not to report."""
        address = environment.pop("NOTIFY_SOCKET", "")
        # `@` stands for the abstract namespace of Linux.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._report_s = _compute_report_s(environment, pid)
        self._timer: asyncio.TimerHandle | None = None
        self._is_serving = False
        self._is_told_of_failure = False

    def tell_loading(self) -> None:
        """The listeners are open; groups are still being loaded."""
        self._send("STATUS=loading groups")

    def tell_ready(self) -> None:
        """All groups are served; from now on systemd expects the watchdog's reports."""
        self._is_serving = True
        self._send("READY=1\nSTATUS=serving")
        self._report()

    def tell_reloading(self) -> None:
        """Certificates are being read again. Before the server is ready this is not told."""
        if not self._is_serving:
            return
        # systemd compares the time with that of its own signal.
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=reading certificates")

    def tell_reloaded(self) -> None:
        """They have been read."""
        if self._is_serving:
            self._send("READY=1\nSTATUS=serving")

    def tell_stopping(self) -> None:
        """The server drains and stops."""
        self._is_serving = False
        if self._timer is not None:
            self._timer.cancel()
        self._send("STOPPING=1\nSTATUS=stopping")

    def _report(self) -> None:
        if self._report_s is None or not self._address:
            return
        self._send("WATCHDOG=1")
        self._timer = asyncio.get_running_loop().call_later(self._report_s, self._report)

    def _send(self, message: str, tries: int = _TRIES) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sending:
                sending.sendto(message.encode(), self._address)
        except BlockingIOError:
            if tries > 1:
                loop = asyncio.get_running_loop()
                loop.call_later(_AGAIN_S, self._send, message, tries - 1)
        except OSError as error:
            if not self._is_told_of_failure:
                self._is_told_of_failure = True
                log.warning("service_manager_unreachable", cause=str(error))


def _compute_report_s(environment: MutableMapping[str, str], pid: int) -> float | None:
    """The time between two reports to the watchdog; ``None`` if it waits for none of this process.

    It is half the time after which systemd acts, as sd_watchdog_enabled(3) recommends.
    """
    limit, meant = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
    if not limit.isdecimal() or not int(limit) or meant not in ("", str(pid)):
        return None
    return int(limit) / _MICROSECONDS / _REPORTS_IN_TIME


def find_service_manager() -> ServiceManager:
    """That of this process."""
    return ServiceManager(os.environ, os.getpid())
