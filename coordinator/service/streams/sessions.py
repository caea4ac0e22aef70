"""Which session speaks for which member, over all streams of the process.

It is the one with the member's highest ``join_id``. What is handled last is not always what was
said last: a client gives up a connection whose other end has fallen silent and goes on over
another one, and what the first still holds arrives later, after TCP's retransmission. There a
Join's claim would be taken for an acknowledgement, and a commit would undo a later one. So the
highest ``join_id`` is remembered after its stream has gone too. A restart forgets it, but with the
process all connections end that could bring something late.

Two programs may use one member id. They are told apart by their ``incarnation``, 0 for clients that
do not say: while a member may hold a lease, nobody but its own incarnation has it
(``Session``).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple, Protocol, TypeAlias

from model.ids import GroupId, MemberId

MemberKey: TypeAlias = tuple[GroupId, MemberId]

PAST_MAX: Final = 65_536
"""So many members that are on no stream are remembered, those that left theirs last."""


class Superseded(Protocol):
    """A session, as the registry sees it; ``number`` is no other session's of the process."""

    number: int

    def supersede(self, key: MemberKey) -> None:
        """A newer session speaks for the member now."""

    def stop(self) -> None:
        """Tell the client that the server stops, and end."""


class LatestJoin(NamedTuple):
    """The highest Join of a member, the session that it came on, and who said it."""

    join_id: int
    session: int
    incarnation: int


class SessionRegistry:
    """The sessions that are open, and the newest session of each member."""

    __slots__ = ("_latest", "_owners", "_past", "_sessions")

    def __init__(self) -> None:
        self._owners: dict[MemberKey, Superseded] = {}
        self._latest: dict[MemberKey, LatestJoin] = {}
        """Of the members that have an owner."""
        self._past: OrderedDict[MemberKey, LatestJoin] = OrderedDict()
        """Of members that are on no stream, the longest gone first."""
        self._sessions: set[Superseded] = set()

    def open(self, session: Superseded) -> None:
        self._sessions.add(session)

    def close(self, session: Superseded) -> None:
        self._sessions.discard(session)

    def knows(self, key: MemberKey, incarnation: int) -> bool:
        """Whether the member's highest Join is of this incarnation."""
        latest = self._find(key)
        return latest is not None and latest.incarnation == incarnation

    def knows_another(self, key: MemberKey, incarnation: int) -> bool:
        """Whether it is of another one that says who it is."""
        latest = self._find(key)
        return latest is not None and latest.incarnation not in (0, incarnation)

    def enter(
        self, key: MemberKey, session: Superseded, join_id: int, incarnation: int = 0
    ) -> bool:
        """The session speaks for the member; an older one is told that it no longer does.

        ``False``, and nothing done, for a Join that another stream has overtaken. On one stream
        nothing overtakes.
        """
        latest = self._find(key)
        if latest is not None:
            if latest.session != session.number and join_id < latest.join_id:
                return False
            join_id = max(join_id, latest.join_id)
        older = self._owners.get(key)
        self._owners[key] = session
        self._latest[key] = LatestJoin(join_id, session.number, incarnation)
        self._past.pop(key, None)
        if older is not None and older is not session:
            older.supersede(key)
        return True

    def speaks(self, key: MemberKey, session: Superseded) -> bool:
        """Whether the member's highest Join came on this session, and none went before it since."""
        latest = self._find(key)
        return latest is not None and latest.session == session.number

    def leave(self, key: MemberKey, session: Superseded) -> None:
        """The session speaks for the member no more; what came last is remembered."""
        if self._owners.get(key) is session:
            del self._owners[key]
            self._past[key] = self._latest.pop(key)
            if len(self._past) > PAST_MAX:
                self._past.popitem(last=False)

    def stop(self) -> None:
        """Ends every session as soon as its client has got what it is owed."""
        for session in tuple(self._sessions):
            session.stop()

    def _find(self, key: MemberKey) -> LatestJoin | None:
        return self._latest.get(key) or self._past.get(key)
