"""Watches: who waits for news of which member.

One waits for a member at most, over all connections of all doors, and nobody any more when the
member is heard elsewhere. A connection that its client has replaced may look alive for minutes:
news that it took would not reach the client, and the client hears of each step but once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from operator import attrgetter
from typing import Protocol

import structlog

from coordinator.runtime.loop.slices import Paced, Slices
from model.commands import (
    ClassicHeartbeat,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    JoinGroup,
    SyncGroup,
)
from model.ids import GroupId, MemberId

log = structlog.get_logger()

_BY_SPEAKER = attrgetter("speaker")

SLICE = 100
"""So many members of a group are told in one turn of the loop; each submits a heartbeat."""

BUSY_RETRY_MS = 2


def ignore_drop() -> None:
    """For a watch whose end nobody has to hear of."""


class News(Protocol):
    """What is asked of the groups before anybody is told."""

    def has_news(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether a heartbeat of the member would say something new."""

    def members_in_transit(self, group_id: GroupId) -> list[MemberId]:
        """Those that others wait for."""


class RegisteredWatch:
    """One watch; cancelled, called, or dropped."""

    __slots__ = ("_watches", "group_id", "member_id", "on_dropped", "on_news", "speaker")

    def __init__(
        self,
        watches: Watches,
        group_id: GroupId,
        member_id: MemberId,
        on_news: Callable[[], None],
        speaker: int,
        on_dropped: Callable[[], None],
    ) -> None:
        self._watches = watches
        self.group_id = group_id
        self.member_id = member_id
        self.on_news = on_news
        self.speaker = speaker
        self.on_dropped = on_dropped

    def cancel(self) -> None:
        self._watches.remove(self)


class Watches:
    """All watches, by group and member; ``news`` is asked before one is called.

    Who has to give up partitions is told before all others, for those are waited for: a member that
    joins a thousand has its partitions before the last of them knows of the new epoch. The others
    are told speaker by speaker: a stream of many members hears of those of a slice in one message.
    While ``is_busy`` nobody is told: what members ask by themselves comes first. ``unsettled`` are
    the groups that have changed, and not durably.
    """

    def __init__(
        self,
        slices: Slices,
        news: News,
        unsettled: Container[GroupId],
        *,
        is_busy: Callable[[], bool],
    ) -> None:
        self._slices = slices
        self._news = news
        self._unsettled = unsettled
        self._is_busy = is_busy
        self._by_group: dict[GroupId, dict[MemberId, RegisteredWatch]] = {}
        self._to_look_at: deque[GroupId] = deque()
        self._is_changed: dict[GroupId, bool] = {}
        """Of each of them: whether it changed again since its members began to be looked at."""
        self._left: deque[MemberId] = deque()
        """Of the first of them."""
        self._is_telling = False

    def __len__(self) -> int:
        return sum(map(len, self._by_group.values()))

    def add(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_news: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ignore_drop,
    ) -> RegisteredWatch:
        """Register; an older one of the member is dropped. News that is there is told at once."""
        self.drop(group_id, member_id)
        watch = RegisteredWatch(self, group_id, member_id, on_news, speaker, on_dropped)
        self._by_group.setdefault(group_id, {})[member_id] = watch
        # What is not durable yet is looked at when it is.
        if group_id not in self._unsettled and self._news.has_news(group_id, member_id):
            watch.cancel()
            on_news()
        return watch

    def hear(self, command: object) -> None:
        """A command was accepted: whoever waited for the member that says it does so no more.

        A door that submits for a member cancels its own watch first. What others do to a member
        (an administrator removes it) is news to whoever waits, and so is the end of a session.
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
        """End the member's watch, if there is one, and say so to whoever waits."""
        watch = self._by_group.get(group_id, {}).get(member_id)
        if watch is None:
            return
        self.remove(watch)
        try:
            watch.on_dropped()
        except Exception:
            # It is another client's request that is being handled.
            log.exception("dropping_failed", group_id=group_id, member_id=member_id)

    def remove(self, watch: RegisteredWatch) -> None:
        """Forget a watch, if it is still the one of its member."""
        members = self._by_group.get(watch.group_id)
        if members is not None and members.get(watch.member_id) is watch:
            del members[watch.member_id]
            if not members:
                del self._by_group[watch.group_id]

    def look_at(self, group_ids: Iterable[GroupId]) -> None:
        """These groups changed, durably: tell those members for whom there is news."""
        for group_id in group_ids:
            if group_id in self._is_changed:
                # One look at very many members takes longer than the next change.
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
        first = self._news.members_in_transit(group_id)
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
                    # Maybe for as long as the store takes nothing: no turn is to ask again.
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
        """All of its members were looked at: on to the next group, and to this one after others."""
        self._to_look_at.popleft()
        if self._to_look_at:
            self._begin(self._to_look_at[0])
        if self._is_changed.pop(group_id):
            self._add(group_id)

    def _tell(self, group_id: GroupId, member_id: MemberId) -> None:
        watch = self._by_group.get(group_id, {}).get(member_id)
        if watch is not None and self._news.has_news(group_id, member_id):
            self.remove(watch)
            try:
                watch.on_news()
            except Exception:
                # The others wait for theirs.
                log.exception("telling_failed", group_id=group_id, member_id=member_id)
