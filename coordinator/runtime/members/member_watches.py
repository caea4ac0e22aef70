"""Watches: which session waits for a pending change of which member.

A member has at most one watch, over all connections of all front ends, and none once the member
sends something over another connection. A connection that the client has replaced may look alive
for minutes; a change sent over it would be lost, and the coordinator sends each step only once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from operator import attrgetter
from typing import Protocol

import structlog

from coordinator.runtime.loop.slices import Paced, Slices
from model.commands.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.ids import GroupId, MemberId

log = structlog.get_logger()

_BY_SPEAKER = attrgetter("speaker")

SLICE = 100
"""How many members are notified per event-loop iteration; each notification submits a heartbeat."""

BUSY_RETRY_MS = 2


def ignore_drop() -> None:
    """The ``on_dropped`` of a watch whose owner need not know."""


class ChangeSource(Protocol):
    """What a watch asks before it notifies."""

    def has_pending_change(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether a heartbeat of the member would return a change."""

    def members_in_transit(self, group_id: GroupId) -> list[MemberId]:
        """The members that others wait for."""


class RegisteredWatch:
    """One watch: active, cancelled, called, or dropped."""

    __slots__ = ("_watches", "group_id", "member_id", "on_change", "on_dropped", "speaker")

    def __init__(
        self,
        watches: Watches,
        group_id: GroupId,
        member_id: MemberId,
        on_change: Callable[[], None],
        speaker: int,
        on_dropped: Callable[[], None],
    ) -> None:
        self._watches = watches
        self.group_id = group_id
        self.member_id = member_id
        self.on_change = on_change
        self.speaker = speaker
        self.on_dropped = on_dropped

    def cancel(self) -> None:
        self._watches.remove(self)


class Watches:
    """All watches, by group and member; ``changes`` is asked before one is called.

    Members that must revoke partitions are notified first, because others wait for them: a member
    that joins a group of a thousand gets its partitions before the last member learns of the new
    epoch. The others are notified session by session, so that one message on a shared stream covers
    many members. While ``is_busy``, nobody is notified: requests of members come first.
    ``unsettled`` has the groups whose latest change is not durable yet.
    """

    def __init__(
        self,
        slices: Slices,
        changes: ChangeSource,
        unsettled: Container[GroupId],
        *,
        is_busy: Callable[[], bool],
    ) -> None:
        self._slices = slices
        self._changes = changes
        self._unsettled = unsettled
        self._is_busy = is_busy
        self._by_group: dict[GroupId, dict[MemberId, RegisteredWatch]] = {}
        self._to_look_at: deque[GroupId] = deque()
        self._is_changed: dict[GroupId, bool] = {}
        """For each queued group, whether it changed again after its members were first checked."""
        self._left: deque[MemberId] = deque()
        """The unchecked members of the first queued group."""
        self._is_telling = False

    def __len__(self) -> int:
        return sum(map(len, self._by_group.values()))

    def add(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_change: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ignore_drop,
    ) -> RegisteredWatch:
        """Register a watch, replacing the member's older one, whose ``on_dropped`` is called.

        If a change is pending, ``on_change`` is called at once.
        """
        self.drop(group_id, member_id)
        watch = RegisteredWatch(self, group_id, member_id, on_change, speaker, on_dropped)
        self._by_group.setdefault(group_id, {})[member_id] = watch
        # A change that is not durable yet is checked once it is.
        if group_id not in self._unsettled and self._changes.has_pending_change(
            group_id, member_id
        ):
            watch.cancel()
            on_change()
        return watch

    def hear(self, command: object) -> None:
        """Drop the watch of the member that sent an accepted command.

        A front end cancels its own watch before it submits for a member. What others do to a member
        (an administrator removes it, its session expires) keeps the watch, which reports it.
        """
        match command:
            case ConsumerGroupHeartbeat() | ClassicHeartbeat():
                if not command.by_server:
                    self.drop(command.group_id, command.member_id)
            case ConsumerGroupLeave() | SyncGroup():
                self.drop(command.group_id, command.member_id)
            case JoinGroup():
                if command.member_id is not None:
                    self.drop(command.group_id, command.member_id)

    def drop(self, group_id: GroupId, member_id: MemberId) -> None:
        """Remove the member's watch, if any, and call its ``on_dropped``."""
        watch = self._by_group.get(group_id, {}).get(member_id)
        if watch is None:
            return
        self.remove(watch)
        try:
            watch.on_dropped()
        except Exception:
            # This call handles another client's request, which must not fail.
            log.exception("dropping_failed", group_id=group_id, member_id=member_id)

    def remove(self, watch: RegisteredWatch) -> None:
        """Remove a watch, unless a newer one has replaced it."""
        members = self._by_group.get(watch.group_id)
        if members is not None and members.get(watch.member_id) is watch:
            del members[watch.member_id]
            if not members:
                del self._by_group[watch.group_id]

    def look_at(self, group_ids: Iterable[GroupId]) -> None:
        """Note durable changes of these groups; members with a pending change are notified."""
        for group_id in group_ids:
            if group_id in self._is_changed:
                # Checking very many members takes longer than until the next change.
                self._is_changed[group_id] = True
            elif group_id in self._by_group:
                self._add(group_id)
        self._request_telling()

    def _add(self, group_id: GroupId) -> None:
        self._to_look_at.append(group_id)
        self._is_changed[group_id] = False
        if len(self._to_look_at) == 1:
            self._begin(group_id)

    def _begin(self, group_id: GroupId) -> None:
        self._is_changed[group_id] = False
        everybody = self._by_group.get(group_id, {})
        if len(everybody) <= SLICE:
            self._left = deque(everybody)
            return
        first = self._changes.members_in_transit(group_id)
        others = sorted(everybody.values(), key=_BY_SPEAKER)
        self._left = deque((*first, *(watch.member_id for watch in others)))

    def _request_telling(self) -> None:
        if self._to_look_at and not self._is_telling:
            self._is_telling = True
            self._slices.go_on(self._tell_all())

    def _tell_all(self) -> Paced[None]:
        try:
            while self._to_look_at:
                if self._is_busy():
                    # The store may stall for long; do not ask in every iteration.
                    yield BUSY_RETRY_MS
                    continue
                self._tell_slice()
                if self._to_look_at:
                    yield None
        finally:
            self._is_telling = False

    def _tell_slice(self) -> None:
        left = SLICE
        while self._to_look_at and left:
            group_id = self._to_look_at[0]
            while self._left and left:
                left -= 1
                self._tell(group_id, self._left.popleft())
            if not self._left:
                self._end(group_id)

    def _end(self, group_id: GroupId) -> None:
        """Move to the next group; requeue this one if it changed again meanwhile."""
        self._to_look_at.popleft()
        if self._to_look_at:
            self._begin(self._to_look_at[0])
        if self._is_changed.pop(group_id):
            self._add(group_id)

    def _tell(self, group_id: GroupId, member_id: MemberId) -> None:
        watch = self._by_group.get(group_id, {}).get(member_id)
        if watch is not None and self._changes.has_pending_change(group_id, member_id):
            self.remove(watch)
            try:
                watch.on_change()
            except Exception:
                # The other members must still be notified.
                log.exception("telling_failed", group_id=group_id, member_id=member_id)
