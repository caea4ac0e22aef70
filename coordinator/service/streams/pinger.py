"""One timer for all sessions, which sends a Ping to those that were silent.

With one timer an idle server wakes once per interval, not once per stream: on an idle machine the
wake-ups are most of the cost. A session gets a Ping if the server has sent it nothing for half an
interval, so the server is never silent for longer than one and a half.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from coordinator.runtime.loop.slices import Slices, Steps

_SLICE: Final = 100
"""The number of sessions that one event-loop iteration checks."""


class Pingable(Protocol):
    """A session, as the pinger sees it."""

    def ping_if_silent(self, since: float) -> None:
        """Send a Ping if nothing was sent since this loop time."""


class Pinger:
    """Its timer runs only while there are sessions."""

    __slots__ = ("_due", "_interval_s", "_loop", "_sessions", "_slices", "_timer")

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._loop = loop = asyncio.get_running_loop()
        self._slices = Slices(
            loop.call_soon,
            lambda ms, callback: loop.call_later(ms / 1_000, callback),
            lambda: loop.time() * 1_000,
        )
        self._sessions: dict[Pingable, None] = {}
        self._due: deque[Pingable] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, session: Pingable) -> None:
        self._sessions[session] = None
        if self._timer is None:
            self._timer = self._loop.call_later(self._interval_s, self._on_beat)

    def remove(self, session: Pingable) -> None:
        self._sessions.pop(session, None)
        if not self._sessions and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_beat(self) -> None:
        self._timer = self._loop.call_later(self._interval_s, self._on_beat)
        self._due = deque(self._sessions)
        if not self._slices.is_busy:
            self._slices.run(self._ping_all())

    def _ping_all(self) -> Steps[None]:
        while self._due:
            since = self._loop.time() - self._interval_s / 2
            for _ in range(min(_SLICE, len(self._due))):
                session = self._due.popleft()
                if session in self._sessions:
                    session.ping_if_silent(since)
            if self._due:
                yield
