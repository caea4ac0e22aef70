"""Deadlines of classic groups as data: sessions of members, and the two phases of a rebalance.

Each member has a session timeout of its own. A session is renewed by a heartbeat far more often
than it ends: a later time is only noted, and the queue is put right when the earlier one comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from model.commands import INTERNAL, ClassicDeadline, ExpireClassicDeadline
from model.ids import GroupId, MemberId

FAR_MS: Final = 60_000
"""What passes later is looked at once in as long. So what is cancelled is forgotten by then, though
clients may ask for timeouts of days, and come and go a thousand times a second.
"""

_NAMES: Final = tuple(each.name for each in ClassicDeadline)

Key: TypeAlias = tuple[GroupId, str, MemberId]


class ClassicDeadlines:
    """All of them. Times are milliseconds on the clock of ``Liveness``."""

    def __init__(self) -> None:
        self._at_ms: dict[Key, int] = {}
        self._queued_ms: dict[Key, int] = {}
        self._queue: list[tuple[int, Key]] = []

    def get(self, group_id: GroupId, deadline: ClassicDeadline, member_id: MemberId) -> int | None:
        """When it passes; ``None`` where it is not armed."""
        return self._at_ms.get((group_id, deadline.name, member_id))

    def all(self) -> Mapping[Key, int]:
        """When each that is armed passes."""
        return self._at_ms

    def arm(
        self,
        group_id: GroupId,
        deadline: ClassicDeadline,
        member_id: MemberId,
        at_ms: int,
        now_ms: int,
    ) -> None:
        """Let it pass then, whatever was before."""
        key = (group_id, deadline.name, member_id)
        self._at_ms[key] = at_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or at_ms < queued_ms:
            self._enqueue(key, min(at_ms, now_ms + FAR_MS))

    def cancel(self, group_id: GroupId, deadline: ClassicDeadline, member_id: MemberId) -> None:
        """Let it not pass; what is left of it in the queue does nothing."""
        self._at_ms.pop((group_id, deadline.name, member_id), None)

    def is_armed(self, group_id: GroupId, deadline: ClassicDeadline, member_id: MemberId) -> bool:
        """Whether it will pass, unless it is cancelled."""
        return (group_id, deadline.name, member_id) in self._at_ms

    def cancel_member(self, group_id: GroupId, member_id: MemberId) -> None:
        """No deadline of the member passes."""
        for name in _NAMES:
            self._at_ms.pop((group_id, name, member_id), None)

    def arm_sessions(
        self, group_id: GroupId, sessions: Iterable[tuple[MemberId, int]], now_ms: int
    ) -> None:
        """``arm`` the session of each of these members, with its timeout in ms from now."""
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
        """Commands for what has passed, the earliest first. Each comes once.

        ``most`` deadlines are looked at; ``next_ms`` is in the past if there are more.
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
