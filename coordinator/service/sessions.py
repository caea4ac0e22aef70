"""Which session speaks for which member, over all streams of the process."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from model.ids import GroupId, MemberId

MemberKey: TypeAlias = tuple[GroupId, MemberId]


class Superseded(Protocol):
    """A session, as the registry sees it."""

    def supersede(self, key: MemberKey) -> None:
        """A newer session speaks for the member now."""

    def stop(self) -> None:
        """Tell the client that the server stops, and end."""


class SessionRegistry:
    """The sessions that are open, and the newest session of each member."""

    __slots__ = ("_owners", "_sessions")

    def __init__(self) -> None:
        self._owners: dict[MemberKey, Superseded] = {}
        self._sessions: set[Superseded] = set()

    def open(self, session: Superseded) -> None:
        self._sessions.add(session)

    def close(self, session: Superseded) -> None:
        self._sessions.discard(session)

    def enter(self, key: MemberKey, session: Superseded) -> None:
        """The session speaks for the member; an older one is told that it no longer does."""
        older = self._owners.get(key)
        self._owners[key] = session
        if older is not None and older is not session:
            older.supersede(key)

    def leave(self, key: MemberKey, session: Superseded) -> None:
        if self._owners.get(key) is session:
            del self._owners[key]

    def stop(self) -> None:
        """Ends every session as soon as its client has got what it is owed."""
        for session in tuple(self._sessions):
            session.stop()
