"""Which session owns which member, over all streams of the process.

It is the session with the member's highest ``join_id``. The message that is handled last is not
always the one that was sent last: a client gives up a silent connection and continues on another
one, and what the first still held arrives later, after a TCP retransmission. The owned partitions
of such a late Join would be taken for an acknowledgement, and a late commit would overwrite a later
one. So the highest ``join_id`` is remembered even after its stream has ended. A restart forgets it,
but it also ends all connections that could deliver something late.

Two programs may use one member id. Their ``incarnation`` tells them apart; it is 0 for clients that
send none. While a member may hold a lease, only its own incarnation can join with its id
(``SessionMembers``). The same holds for the principal whose client it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple, Protocol, TypeAlias

from model.caller import ANONYMOUS
from model.ids import GroupId, MemberId

MemberKey: TypeAlias = tuple[GroupId, MemberId]

PAST_MAX: Final = 65_536
"""How many members without a stream are remembered; the oldest are forgotten first."""


class Superseded(Protocol):
    """The members of one session; its ``number`` is unique in the process."""

    number: int

    def supersede(self, key: MemberKey) -> None:
        """A newer session has resumed the member."""


class Stoppable(Protocol):
    """An open session."""

    def stop(self) -> None:
        """The server stops: tell the client, and end."""


class LatestJoin(NamedTuple):
    """The highest Join of a member, its session, and the client's incarnation and principal."""

    join_id: int
    session: int
    incarnation: int
    principal: str


class SessionRegistry:
    """The open sessions, and the newest session of each member."""

    __slots__ = ("_latest", "_owners", "_past", "_sessions")

    def __init__(self) -> None:
        self._owners: dict[MemberKey, Superseded] = {}
        self._latest: dict[MemberKey, LatestJoin] = {}
        """Of members that are on a stream."""
        self._past: OrderedDict[MemberKey, LatestJoin] = OrderedDict()
        """Of members that are on no stream, in the order in which they left theirs."""
        self._sessions: set[Stoppable] = set()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, session: Stoppable) -> None:
        self._sessions.add(session)

    def close(self, session: Stoppable) -> None:
        self._sessions.discard(session)

    def knows(self, key: MemberKey, incarnation: int) -> bool:
        """Whether the member's highest Join came from this incarnation."""
        latest = self._find(key)
        return latest is not None and latest.incarnation == incarnation

    def knows_another(self, key: MemberKey, incarnation: int) -> bool:
        """Whether it came from another incarnation, other than 0."""
        latest = self._find(key)
        return latest is not None and latest.incarnation not in (0, incarnation)

    def knows_another_principal(self, key: MemberKey, principal: str) -> bool:
        """Whether it came from the client of another principal."""
        latest = self._find(key)
        return latest is not None and latest.principal != principal

    def enter(
        self,
        key: MemberKey,
        session: Superseded,
        join_id: int,
        incarnation: int = 0,
        principal: str = ANONYMOUS,
    ) -> bool:
        """Make the session the owner of the member, and supersede the older one.

        Does nothing and returns ``False`` if a Join on another stream has overtaken this one.
        Messages on one stream arrive in order.
        """
        latest = self._find(key)
        if latest is not None:
            if latest.session != session.number and join_id < latest.join_id:
                return False
            join_id = max(join_id, latest.join_id)
        older = self._owners.get(key)
        self._owners[key] = session
        self._latest[key] = LatestJoin(join_id, session.number, incarnation, principal)
        self._past.pop(key, None)
        if older is not None and older is not session:
            older.supersede(key)
        return True

    def speaks(self, key: MemberKey, session: Superseded) -> bool:
        """Whether the member's highest Join came on this session."""
        latest = self._find(key)
        return latest is not None and latest.session == session.number

    def leave(self, key: MemberKey, session: Superseded) -> None:
        """The session no longer owns the member; its highest Join is remembered."""
        if self._owners.get(key) is session:
            del self._owners[key]
            self._past[key] = self._latest.pop(key)
            if len(self._past) > PAST_MAX:
                self._past.popitem(last=False)

    def stop(self) -> None:
        """Stop every session; answers that are owed are still sent."""
        for session in tuple(self._sessions):
            session.stop()

    def _find(self, key: MemberKey) -> LatestJoin | None:
        return self._latest.get(key) or self._past.get(key)
