"""What all sessions have to say and have not written: bounded in bytes.

A session alone is bounded by the number of its requests. Many that flood and do not read come to
gigabytes together: who holds the most is ended then.
"""

from __future__ import annotations

from collections.abc import Callable


class Backlog:
    """Counts bytes of all ``Share``; ends those that hold the most when there are over ``most``."""

    def __init__(self, most: int, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._most = most
        self._call_soon = call_soon
        self._shares: set[Share] = set()
        self._is_shedding = False
        self.total = 0

    def open(self, end: Callable[[], None]) -> Share:
        """The part of one session, which ``end`` would end."""
        share = Share(self, end)
        self._shares.add(share)
        return share

    def change(self, by: int) -> None:
        """So much more is held, or less."""
        self.total += by
        if self.total > self._most and not self._is_shedding:
            self._is_shedding = True
            self._call_soon(self._shed)

    def forget(self, share: Share) -> None:
        """It holds nothing any more."""
        self._shares.discard(share)

    def _shed(self) -> None:
        self._is_shedding = False
        for share in sorted(self._shares, key=lambda share: -share.held):
            if self.total <= self._most:
                return
            share.end()
            share.close()


class Share:
    """What one session holds of a ``Backlog``."""

    __slots__ = ("_backlog", "_is_open", "end", "held")

    def __init__(self, backlog: Backlog, end: Callable[[], None]) -> None:
        self._backlog = backlog
        self.end = end
        self.held = 0
        self._is_open = True

    def add(self, size: int) -> None:
        """So many bytes more, or fewer: those are in the hands of gRPC."""
        if self._is_open:
            self.held += size
            self._backlog.change(size)

    def close(self) -> None:
        """The session is over."""
        self._is_open = False
        self._backlog.change(-self.held)
        self.held = 0
        self._backlog.forget(self)
