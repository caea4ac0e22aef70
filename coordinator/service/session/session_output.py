"""What one session sends: its outbox, and the requests whose answers are still in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from coordinator.service.streams.backlog import Share
from coordinator.service.streams.outbox import Outbox
from muster.v1 import group_pb2


class SessionOutput:
    """Updates to send and answers in flight. ``wake`` is called when there may be a message."""

    __slots__ = ("_in_flight", "_loop", "_outbox", "_sent_at", "_wake", "is_ending", "is_open")

    def __init__(self, wake: Callable[[], None], share: Share | None = None) -> None:
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(share)
        self._in_flight = 0
        self._sent_at = self._loop.time()
        self.is_open = True
        self.is_ending = False

    @property
    def is_idle(self) -> bool:
        """Whether no answer is in flight and the outbox is empty."""
        return not self._in_flight and not self._outbox

    @property
    def pending(self) -> int:
        """The number of answers in flight and of updates in the outbox."""
        return self._in_flight + len(self._outbox)

    def begin_request(self) -> None:
        """Count a request whose answer is now in flight."""
        self._in_flight += 1

    def end_request(self) -> None:
        """Count a request as answered."""
        self._in_flight -= 1

    def send(self, update: group_pb2.MemberUpdate) -> None:
        """Send an update with the next message; drop it if the stream is closed."""
        if self.is_open:
            self._outbox.add(update)
            self._wake()

    def ping_if_silent(self, since: float) -> None:
        """Send a Ping if nothing was sent since that loop time."""
        if self._sent_at <= since:
            self._outbox.add_ping()
            self._wake()

    def note_renewed(self, sequence: int) -> None:
        """Report this sequence as the latest that renewed the members' sessions."""
        self._outbox.renewed_sequence = sequence

    def next_message(self) -> group_pb2.SessionResponse | None:
        """The next message to write, or ``None`` if there is none."""
        message = self._outbox.next_message()
        if message is not None:
            self._sent_at = self._loop.time()
        return message

    def wake(self) -> None:
        """Make the stream check again whether it may read, write or end."""
        self._wake()

    def end(self) -> None:
        """The client has closed its side; responses that are still due are sent."""
        self.is_ending = True
        self._wake()

    def close(self) -> None:
        """Drop everything that was not sent."""
        self.is_open = False
        self._outbox.clear()
