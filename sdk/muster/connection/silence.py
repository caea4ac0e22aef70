"""Whether the server of a stream has fallen silent, though it promised a sign of life."""

from __future__ import annotations

from typing import Final

_SILENCE_MIN_S: Final = 1.0
_SILENCE_DEFAULT_S: Final = 15.0
_SECOND_LOOK_S: Final = 0.1
"""How long received messages may lie unread after the event loop was blocked."""


class SilenceWatch:
    """Times are in seconds of ``read_clock``. ``is_silent``: the stream was given up for it."""

    __slots__ = ("_doubted_since", "is_silent", "limit_s")

    def __init__(self) -> None:
        self.limit_s = _SILENCE_DEFAULT_S
        self.is_silent = False
        self._doubted_since: float | None = None

    def expect(self, heartbeat_interval_ms: int) -> None:
        """The server promises a message at least this often."""
        self.limit_s = max(_SILENCE_MIN_S, 3 * heartbeat_interval_ms / 1000)

    def check(self, received_at: float, now: float) -> float | None:
        """When to check again, given the time of the last message; ``None`` if it is silent."""
        silent_at = received_at + self.limit_s
        if silent_at > now:
            return silent_at
        if self._doubted_since != received_at:
            # A blocked event loop has not read what arrived meanwhile: give it the time.
            self._doubted_since = received_at
            return now + _SECOND_LOOK_S
        self.is_silent = True
        return None
