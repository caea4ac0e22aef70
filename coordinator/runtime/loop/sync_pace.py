"""Decides whether the event loop or a thread waits for a sync of the log.

Handing a sync to a thread and back switches the interpreter lock twice, and the thread waits for
the lock as long as the loop has work: on a fast disk that takes longer than the sync. If syncs are
fast, the loop therefore waits for them, once for everything gathered meanwhile. On any other disk
the loop goes on working, and one slow sync suffices to stop waiting.
"""

from __future__ import annotations

BRIEF_US = 600
LONG_US = 5_000
WINDOW = 64
"""How many syncs are judged together."""
BRIEF_OF_LOOP = 48
"""How many of a window must be brief for the loop to go on waiting."""
BRIEF_OF_THREAD = 16
"""How many of a thread's must be for the loop to begin: the thread's time includes its wait for the
interpreter lock, so under load most of them are longer than the disk takes."""
REST_MAX = 1_024
"""The most windows without waiting, after repeated slow syncs."""


class SyncPace:
    """Judges by the duration of recent syncs. ``waits`` says whether the loop waits."""

    __slots__ = ("_brief", "_next_rest", "_rest", "_seen", "waits")

    def __init__(self) -> None:
        self.waits = False
        self._seen = 0
        self._brief = 0
        self._rest = 0
        self._next_rest = 1

    def note(self, took_us: int) -> None:
        """Note a sync's duration."""
        self._seen += 1
        self._brief += took_us <= BRIEF_US
        if self.waits and took_us > LONG_US:
            self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, REST_MAX)
            self._begin(waits=False)
        elif self._seen == WINDOW:
            needed = BRIEF_OF_LOOP if self.waits else BRIEF_OF_THREAD
            self._end_window(is_brief=self._brief >= needed)

    def _end_window(self, *, is_brief: bool) -> None:
        if self.waits:
            self._next_rest = max(self._next_rest // 2, 1)
        else:
            self._rest = max(self._rest - 1, 0)
        self._begin(waits=is_brief and not self._rest)

    def _begin(self, *, waits: bool) -> None:
        self.waits = waits
        self._seen = self._brief = 0
