"""A limit on the bytes that all sessions together hold and have not written.

Each session is bounded by the number of its requests, but many clients that flood and do not read
add up to gigabytes. Beyond the limit, the sessions that hold the most are ended.
"""

from __future__ import annotations

from collections.abc import Callable


class Backlog:
    """Counts the bytes of all shares, and ends the largest while there are more than ``most``."""

    def __init__(self, most: int, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._most = most
        self._call_soon = call_soon
        self._shares: set[Share] = set()
        self._is_shedding = False
        self.total = 0

    def open(self, end: Callable[[], None]) -> Share:
        """Open the share of a session, which ``end`` ends."""
        share = Share(self, end)
        self._shares.add(share)
        return share

    def change(self, by: int) -> None:
        """Add these bytes, or subtract them if negative."""
        self.total += by
        if self.total > self._most and not self._is_shedding:
            self._is_shedding = True
            self._call_soon(self._shed)

    def forget(self, share: Share) -> None:
        """Remove a share that was closed."""
        self._shares.discard(share)

    def _shed(self) -> None:
        self._is_shedding = False
        for share in sorted(self._shares, key=lambda share: -share.held):
            if self.total <= self._most:
                return
            share.end()
            share.close()


class Share:
    """The bytes of a ``Backlog`` that one session holds."""

    __slots__ = ("_backlog", "_is_open", "end", "held")

    def __init__(self, backlog: Backlog, end: Callable[[], None]) -> None:
        self._backlog = backlog
        self.end = end
        self.held = 0
        self._is_open = True

    def add(self, size: int) -> None:
        """Add these bytes, or subtract those that gRPC has taken over."""
        if self._is_open:
            self.held += size
            self._backlog.change(size)

    def close(self) -> None:
        """The session is over."""
        self._is_open = False
        self._backlog.change(-self.held)
        self.held = 0
        self._backlog.forget(self)
