"""What waits to be written to the audit log: bounded in lines a second, and in bytes.

Refusals that repeat within a second are one line, with their number. Each kind of line has its own
allowance, so that a flood of refusals keeps no change out of the log. What is left out is counted
by kind, and told by a line of its own as soon as lines can be written again.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final, NamedTuple

from cli.serve.audit.audit_lines import encode_line

WINDOW_S: Final = 1.0
WAITING_BYTES_MAX: Final = 2 * 1024 * 1024
"""Bytes of one kind of line that wait, as long as nothing can be written."""
LEFT_OUT: Final = "left_out"
"""The event of the line that says how many others were left out."""


class Line(NamedTuple):
    """A line that waits; ``kind`` is its event, or the command of a change."""

    kind: str
    text: bytes


class Repeated(NamedTuple):
    """An event that may repeat within a second: the names of its fields and their values."""

    event: str
    names: tuple[str, ...]
    values: tuple[object, ...]


class Gathering:
    """Lines to be written. ``now_s`` is wall time in seconds; it may be set back."""

    def __init__(self, rate_max: int) -> None:
        self._rate_max = rate_max
        self._second = 0
        self._allowed: Counter[str] = Counter()
        self._held: dict[Repeated, list[float]] = {}
        """The time of the first, and how often."""
        self._waiting: deque[Line] = deque()
        self._waiting_bytes: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()
        self._tell_at_s = 0.0
        self.left_out: Counter[str] = Counter()
        """Lines that were left out since the start, by kind."""

    def hold(self, now_s: float, event: Repeated) -> bool:
        """Take an event that may repeat; whether it is the first of those that are held."""
        held = self._held.get(event)
        if held is not None:
            held[1] += 1
            return False
        if not self._allows(event.event, now_s):
            return False
        self._held[event] = [now_s, 1]
        return len(self._held) == 1

    def add(self, now_s: float, kind: str, text: bytes) -> None:
        """Take a line."""
        if self._allows(kind, now_s):
            self._wait(kind, text)

    def take(self, now_s: float, *, is_end: bool = False) -> list[Line]:
        """The lines that are due, or all at the end, without those that ``written`` has removed."""
        self._release(now_s, is_end)
        is_told = self._waiting_bytes[LEFT_OUT] or _is_within(now_s, self._tell_at_s - WINDOW_S)
        if self._untold and (is_end or not is_told):
            counts = {"counts": dict(sorted(self._untold.items()))}
            self._wait(LEFT_OUT, encode_line(now_s, LEFT_OUT, counts))
            self._untold.clear()
            self._tell_at_s = now_s + WINDOW_S
        return list(self._waiting)

    def written(self, count: int) -> None:
        """The first lines of those taken are written."""
        for _ in range(count):
            kind, text = self._waiting.popleft()
            self._waiting_bytes[kind] -= len(text)

    def compute_wait_s(self, now_s: float) -> float | None:
        """How long until there is something to take; ``None`` if not before another event."""
        if self._waiting:
            return 0.0
        if self._untold:
            return min(max(self._tell_at_s - now_s, 0.0), WINDOW_S)
        for first_s, _ in self._held.values():
            return min(max(first_s + WINDOW_S - now_s, 0.0), WINDOW_S)
        return None

    def drop_waiting(self) -> None:
        """Give up on what waits; it is counted."""
        for kind, _ in self._waiting:
            if kind != LEFT_OUT:
                self.left_out[kind] += 1
        self._waiting.clear()
        self._waiting_bytes.clear()

    def _release(self, now_s: float, is_end: bool) -> None:
        """Make lines of the events whose second is over; they were allowed when they were held."""
        while self._held:
            event = next(iter(self._held))
            first_s, count = self._held[event]
            if not is_end and _is_within(now_s, first_s):
                return
            del self._held[event]
            fields: dict[str, object] = dict(zip(event.names, event.values, strict=True))
            if count > 1:
                fields["count"] = int(count)
            self._wait(event.event, encode_line(first_s, event.event, fields))

    def _allows(self, kind: str, now_s: float) -> bool:
        second = int(now_s)
        if second != self._second:
            self._second = second
            self._allowed.clear()
        if self._allowed[kind] >= self._rate_max:
            self._leave_out(kind)
            return False
        self._allowed[kind] += 1
        return True

    def _wait(self, kind: str, text: bytes) -> None:
        if self._waiting_bytes[kind] + len(text) > WAITING_BYTES_MAX:
            self._leave_out(kind)
            return
        self._waiting_bytes[kind] += len(text)
        self._waiting.append(Line(kind, text))

    def _leave_out(self, kind: str) -> None:
        self.left_out[kind] += 1
        self._untold[kind] += 1


def _is_within(now_s: float, begin_s: float) -> bool:
    """Whether the second that began then is not over; it is if the clock was set back."""
    return begin_s <= now_s < begin_s + WINDOW_S
