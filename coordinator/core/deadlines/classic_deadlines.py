"""Deadlines of classic groups, as data: sessions of members, and the two phases of a rebalance.

Each member has its own session timeout. Heartbeats renew sessions far more often than sessions
expire, so a renewal only stores the later time; the queue is corrected when the earlier time comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from model.caller import INTERNAL
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline
from model.ids import GroupId, MemberId

FAR_MS: Final = 60_000
"""A deadline that is further away is re-examined at this interval. So cancelled deadlines leave the
queue within it, even if clients with timeouts of days come and go a thousand times a second.
"""

_NAMES: Final = tuple(each.name for each in ClassicDeadline)

Key: TypeAlias = tuple[GroupId, str, MemberId]


class ClassicDeadlines:
    """All deadlines of classic groups. Times are milliseconds on the clock of ``Liveness``."""

    def __init__(self) -> None:
        self._at_ms: dict[Key, int] = {}
        self._queued_ms: dict[Key, int] = {}
        self._queue: list[tuple[int, Key]] = []

    def get(self, group_id: GroupId, deadline: ClassicDeadline, member_id: MemberId) -> int | None:
        """When the deadline expires; ``None`` if it is not armed."""
        return self._at_ms.get((group_id, deadline.name, member_id))

    def all(self) -> Mapping[Key, int]:
        """The expiry times of all armed deadlines."""
        return self._at_ms

    def arm(
        self,
        group_id: GroupId,
        deadline: ClassicDeadline,
        member_id: MemberId,
        at_ms: int,
        now_ms: int,
    ) -> None:
        """Arm the deadline, or move it."""
        key = (group_id, deadline.name, member_id)
        self._at_ms[key] = at_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or at_ms < queued_ms:
            self._enqueue(key, min(at_ms, now_ms + FAR_MS))

    def cancel(self, group_id: GroupId, deadline: ClassicDeadline, member_id: MemberId) -> None:
        """Cancel the deadline; its entry in the queue is ignored later."""
        self._at_ms.pop((group_id, deadline.name, member_id), None)

    def is_armed(self, group_id: GroupId, deadline: ClassicDeadline, member_id: MemberId) -> bool:
        """Whether the deadline is armed."""
        return (group_id, deadline.name, member_id) in self._at_ms

    def cancel_member(self, group_id: GroupId, member_id: MemberId) -> None:
        """Cancel all deadlines of the member."""
        for name in _NAMES:
            self._at_ms.pop((group_id, name, member_id), None)

    def arm_sessions(
        self, group_id: GroupId, sessions: Iterable[tuple[MemberId, int]], now_ms: int
    ) -> None:
        """``arm`` the session of each member; the timeouts, in ms, count from now."""
        at_ms, queued_ms = self._at_ms, self._queued_ms
        name = ClassicDeadline.SESSION.name
        for member_id, timeout_ms in sessions:
            key = (group_id, name, member_id)
            at_ms[key] = ends_ms = now_ms + timeout_ms
            before_ms = queued_ms.get(key)
            if before_ms is None or ends_ms < before_ms:
                self._enqueue(key, min(ends_ms, now_ms + FAR_MS))

    def next_ms(self) -> int | None:
        """When to call ``due``; it may find nothing due then."""
        return self._queue[0][0] if self._queue else None

    def due(self, now_ms: int, most: int) -> list[ExpireClassicDeadline]:
        """Commands for expired deadlines, the earliest first; each is returned once.

        Examines at most ``most`` deadlines; ``next_ms`` is in the past if there are more.
        """
        found = []
        for _ in range(most):
            if not self._queue or self._queue[0][0] > now_ms:
                break
            queued_ms, key = heapq.heappop(self._queue)
            if self._queued_ms.get(key) != queued_ms:
                continue
            del self._queued_ms[key]
            at_ms = self._at_ms.get(key)
            if at_ms is None:
                continue
            if at_ms > now_ms:
                self._enqueue(key, min(at_ms, now_ms + FAR_MS))
                continue
            del self._at_ms[key]
            group_id, name, member_id = key
            deadline = ClassicDeadline[name]
            found.append(ExpireClassicDeadline(INTERNAL, group_id, deadline, member_id))
        return found

    def _enqueue(self, key: Key, look_at_ms: int) -> None:
        self._queued_ms[key] = look_at_ms
        heapq.heappush(self._queue, (look_at_ms, key))
