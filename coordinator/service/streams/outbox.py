"""The updates of one session that are not written yet, packed into messages of bounded size."""

from __future__ import annotations

from collections import deque
from typing import Final

from coordinator.service.streams.backlog import Share
from muster.v1 import group_pb2

_MESSAGE_UPDATES_MAX: Final = 1_000
_MESSAGE_BYTES_MAX: Final = 1024 * 1024


class Outbox:
    """Updates in order, and a Ping that may be due. ``share`` counts the waiting bytes.

    It has at most one assignment per member: the next is sent only after an acknowledgement.
    """

    __slots__ = ("_bytes", "_ping_due", "_ping_id", "_share", "_updates", "renewed_sequence")

    def __init__(self, share: Share | None = None) -> None:
        self._share = share
        self._bytes = 0
        self._updates: deque[tuple[int, group_pb2.MemberUpdate]] = deque()
        self._ping_id = 0
        self._ping_due = False
        self.renewed_sequence = 0

    def __len__(self) -> int:
        return len(self._updates)

    def add(self, update: group_pb2.MemberUpdate) -> None:
        size = update.ByteSize()
        self._updates.append((size, update))
        self._count(size)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._share is not None:
            self._share.add(size)

    def add_ping(self) -> None:
        self._ping_id += 1
        self._ping_due = True

    def clear(self) -> None:
        self._updates.clear()
        self._count(-self._bytes)
        self._ping_due = False

    def next_message(self) -> group_pb2.SessionResponse | None:
        """The next message to write, or ``None`` if there is none."""
        if not self._updates and not self._ping_due:
            return None
        message = group_pb2.SessionResponse()
        size = 0
        while self._updates and len(message.updates) < _MESSAGE_UPDATES_MAX:
            if size + self._updates[0][0] > _MESSAGE_BYTES_MAX and message.updates:
                break
            one, update = self._updates.popleft()
            size += one
            message.updates.append(update)
        self._count(-size)
        if self._ping_due:
            self._ping_due = False
            message.ping.ping_id = self._ping_id
        if not self._updates:
            # Not before the last update: the client must first learn which members were fenced
            # when that message came in, and are not renewed.
            message.renewed_sequence = self.renewed_sequence
        return message
