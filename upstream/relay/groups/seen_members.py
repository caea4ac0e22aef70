"""Who came through a relay: members by group, until a session without a sign of life is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

MEMBERS_MAX: Final = 200_000
_UNKNOWN_TIMEOUT_MS: Final = 60_000
"""Of a member whose JoinGroup was not seen, such as one that joined before a restart."""
_SWEPT_GROUPS: Final = 500


@dataclass(frozen=True, slots=True)
class SeenMember:
    """A classic member as its requests show it. ``last_heard_s`` is the loop's time."""

    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None
    last_heard_s: float
    is_joining: bool = False
    """Its JoinGroup waits in the broker, or did last: nothing else is heard until it ends."""
    led_generation: int = -1
    """The generation that it made the assignment of; -1: not that of its last JoinGroup."""

    @property
    def forgotten_s(self) -> float:
        """When it is forgotten if nothing more is heard."""
        timeout_ms = self.session_timeout_ms
        if self.is_joining:
            timeout_ms = max(timeout_ms, self.rebalance_timeout_ms)
        return self.last_heard_s + timeout_ms / 1_000


class SeenMembers:
    """The members of all groups. The number of them is bounded: more are not noted."""

    def __init__(self, members_max: int = MEMBERS_MAX) -> None:
        self._groups: dict[str, dict[str, SeenMember]] = {}
        self._members_max = members_max
        self._count = 0
        self._sweep: deque[str] = deque()

    def find(self, group_id: str, now: float) -> Mapping[str, SeenMember]:
        """The members of a group by id."""
        self._forget_silent(group_id, now)
        return dict(self._groups.get(group_id, {}))

    def note_join(self, group_id: str, member_id: str, member: SeenMember) -> bool:
        """A member asks to join; whether it is new.

        What it says of one that is known counts only when the cluster has taken it (``note``).
        """
        known = self._groups.get(group_id, {}).get(member_id)
        if known is None:
            return self.note(group_id, member_id, member)
        heard_s = member.last_heard_s
        self._groups[group_id][member_id] = replace(known, last_heard_s=heard_s, is_joining=True)
        return False

    def note(self, group_id: str, member_id: str, member: SeenMember) -> bool:
        """Note a member; whether there was room."""
        members = self._groups.get(group_id, {})
        if member_id not in members:
            if self._count >= self._members_max:
                return False
            self._count += 1
            self._groups[group_id] = members
        members[member_id] = member
        return True

    def hear(self, group_id: str, member_id: str, client_id: str, now: float) -> None:
        """Note a sign of life of a member of which nothing else was said."""
        known = self._groups.get(group_id, {}).get(member_id)
        if known is None:
            timeout_ms = _UNKNOWN_TIMEOUT_MS
            self.note(group_id, member_id, SeenMember(client_id, timeout_ms, timeout_ms, None, now))
        else:
            self._groups[group_id][member_id] = replace(known, last_heard_s=now, is_joining=False)

    def note_leader(self, group_id: str, member_id: str, generation: int) -> None:
        """A member sends the assignment of a generation, as its leader alone does."""
        known = self._groups.get(group_id, {}).get(member_id)
        if known is not None:
            self._groups[group_id][member_id] = replace(known, led_generation=generation)

    def forget(self, group_id: str, member_id: str) -> None:
        """The member is none any more."""
        members = self._groups.get(group_id)
        if members is not None and members.pop(member_id, None) is not None:
            self._count -= 1
            if not members:
                del self._groups[group_id]

    def sweep(self, now: float) -> None:
        """Forget silent members of some groups; the next call goes on with others."""
        if not self._sweep:
            self._sweep.extend(self._groups)
        for _ in range(min(_SWEPT_GROUPS, len(self._sweep))):
            self._forget_silent(self._sweep.popleft(), now)

    def _forget_silent(self, group_id: str, now: float) -> None:
        members = self._groups.get(group_id, {})
        for member_id in [key for key, member in members.items() if member.forgotten_s < now]:
            self.forget(group_id, member_id)
