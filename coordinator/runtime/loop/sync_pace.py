"""Whether a sync of the log is waited for on the loop, or by a thread.

To hand a sync to a thread and back is two changes of the interpreter's lock, and the thread waits
for it as long as the loop has work: on a good disk that is more than the sync itself takes. So
where syncs are brief the loop waits for them, once for all that came meanwhile; on any other disk
it goes on working, and one sync that takes long is reason enough not to wait for the next.
"""

from __future__ import annotations

BRIEF_US = 600
LONG_US = 5_000
WINDOW = 64
"""So many syncs are looked at together."""
REST_MAX = 1_024
"""Windows for which nobody waits after syncs that took long, again and again."""


class SyncPace:
    """Judges by how long syncs took lately. ``waits`` says who does it."""

    __slots__ = ("_brief", "_next_rest", "_rest", "_seen", "waits")

    def __init__(self) -> None:
        self.waits = False
        self._seen = 0
        self._brief = 0
        self._rest = 0
        self._next_rest = 1

    def note(self, took_us: int) -> None:
        """A sync took so long."""
        self._seen += 1
        self._brief += took_us <= BRIEF_US
        if self.waits and took_us > LONG_US:
            self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, REST_MAX)
            self._begin(waits=False)
        elif self._seen == WINDOW:
            self._end_window(is_brief=4 * self._brief >= 3 * WINDOW)

    def _end_window(self, *, is_brief: bool) -> None:
        if self.waits:
            self._next_rest = max(self._next_rest // 2, 1)
        else:
            self._rest = max(self._rest - 1, 0)
        self._begin(waits=is_brief and not self._rest)

    def _begin(self, *, waits: bool) -> None:
        self.waits = waits
        self._seen = self._brief = 0
