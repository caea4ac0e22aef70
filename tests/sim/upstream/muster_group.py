"""A group that is here, as small as it can be: members, sessions, rebalances, commits.

The server assigns, so JoinGroup answers with the member's partitions. ``kept`` is what the log has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from model.errors import ErrorCode

PARTITIONS = 6
SESSION_MS = 10_000
REBALANCE_MS = 15_000
OnJoinedHere = Callable[[ErrorCode, str, int, tuple[int, ...]], None]


def divide(names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Who gets which partitions."""
    ordered = sorted(names)
    return {
        name: tuple(range(place, PARTITIONS, len(ordered))) for place, name in enumerate(ordered)
    }


@dataclass
class MusterGroup:
    """The group; ``waiting`` are JoinGroups of a rebalance, which is one if ``is_moving``."""

    heard_ms: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    assigned: dict[str, tuple[int, ...]] = field(default_factory=dict)
    is_moving: bool = False
    waiting: dict[str, OnJoinedHere] = field(default_factory=dict)
    rebalance_ends_ms: int = 0
    names: int = 0

    def adopt(self, members: Iterable[str], generation: int, now_ms: int) -> None:
        """The members come from the cluster and have to join again."""
        self.heard_ms = dict.fromkeys(members, now_ms)
        self.generation = generation
        self.assigned.clear()
        self.begin_rebalance(now_ms)

    def clear(self) -> None:
        """The group is the cluster's."""
        self.heard_ms.clear()
        self.assigned.clear()
        waiting, self.waiting = self.waiting, {}
        self.is_moving = False
        for reply in waiting.values():
            reply(ErrorCode.NOT_COORDINATOR, "", -1, ())

    def restart(self, now_ms: int) -> None:
        """The process starts anew: sessions begin, and whoever waited asks again."""
        self.waiting.clear()
        self.heard_ms = dict.fromkeys(self.heard_ms, now_ms)
        self.rebalance_ends_ms = now_ms + REBALANCE_MS

    def begin_rebalance(self, now_ms: int) -> None:
        """All have to join again."""
        self.is_moving = bool(self.heard_ms)
        self.rebalance_ends_ms = now_ms + REBALANCE_MS

    def heartbeat(self, member_id: str, generation: int, now_ms: int) -> ErrorCode:
        """Heartbeat."""
        if member_id not in self.heard_ms:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.heard_ms[member_id] = now_ms
        return ErrorCode.REBALANCE_IN_PROGRESS if self.is_moving else ErrorCode.NONE

    def join(self, member_id: str, now_ms: int, reply: OnJoinedHere) -> None:
        """JoinGroup; with an empty id a new member."""
        if member_id and member_id not in self.heard_ms:
            return reply(ErrorCode.UNKNOWN_MEMBER_ID, "", -1, ())
        if not member_id:
            self.names += 1
            member_id = f"here-{self.names}"
        self.heard_ms[member_id] = now_ms
        if not self.is_moving:
            self.begin_rebalance(now_ms)
        self.waiting[member_id] = reply
        self.settle()
        return None

    def check_commit(self, member_id: str, generation: int) -> ErrorCode:
        """Fencing."""
        if member_id not in self.heard_ms:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def pass_time(self, now_ms: int) -> None:
        """Sessions end, and so does a rebalance."""
        for member_id, heard_ms in list(self.heard_ms.items()):
            if member_id not in self.waiting and now_ms - heard_ms >= SESSION_MS:
                self._remove(member_id, now_ms)
        if self.is_moving and now_ms >= self.rebalance_ends_ms:
            for member_id in [name for name in self.heard_ms if name not in self.waiting]:
                del self.heard_ms[member_id]
                self.assigned.pop(member_id, None)
            self.settle()

    def _remove(self, member_id: str, now_ms: int) -> None:
        del self.heard_ms[member_id]
        self.assigned.pop(member_id, None)
        if self.is_moving:
            self.settle()
        else:
            self.begin_rebalance(now_ms)

    def settle(self) -> None:
        """All have joined: a generation begins."""
        if not self.is_moving or self.heard_ms.keys() != self.waiting.keys():
            return
        self.is_moving = False
        self.generation += 1
        self.assigned = divide(self.heard_ms)
        waiting, self.waiting = self.waiting, {}
        for member_id, reply in waiting.items():
            reply(ErrorCode.NONE, member_id, self.generation, self.assigned[member_id])
