"""One timer for all sessions: which of them have been silent, and get a Ping.

All on one beat, so that an idle server wakes once an interval and not once for each stream: on
a machine at rest the waking is most of the price. A session is pinged when the server has said
nothing for at least half an interval, so never later than after one and a half.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

_SLICE: Final = 100
"""So many sessions are looked at in one turn of the loop."""


class Pingable(Protocol):
    """A session, as the pinger sees it."""

    def ping_if_silent(self, since: float) -> None:
        """Sends a Ping if nothing was sent since then (loop time)."""


class Pinger:
    """Runs only while there are sessions."""

    __slots__ = ("_due", "_interval_s", "_loop", "_sessions", "_timer")

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
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
        self._ping_slice()

    def _ping_slice(self) -> None:
        since = self._loop.time() - self._interval_s / 2
        for _ in range(min(_SLICE, len(self._due))):
            session = self._due.popleft()
            if session in self._sessions:
                session.ping_if_silent(since)
        if self._due:
            self._loop.call_soon(self._ping_slice)
