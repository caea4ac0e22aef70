"""What a connection keeps of its members, so that a repeated heartbeat costs almost nothing.

The bytes of a repeated heartbeat are the same but for the correlation id. After the first one its
bytes, a ``MemberTicket`` and the answer are kept (``Steady``); the next one with these bytes
touches the ticket and gets the kept answer without being decoded. The ticket is taken before the
heartbeat is submitted and must still live when it is answered: only then nothing happened in
between that the answer does not show.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from typing import Final, TypeAlias

from coordinator.runtime.api import MemberTicket
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.pace.classic_pace import ClassicMemberPace
from gateway.pace.round_trip import RoundTrip
from gateway.pending import HeldBack
from model.commands import Caller, ConsumerGroupHeartbeat

MemberKey: TypeAlias = tuple[str, str]
"""Group id and member id."""

Rights: TypeAlias = tuple[tuple[Operation, ResourceType, str], ...]

HEARTBEAT_KEY: Final = 68
_START: Final = struct.Struct(">ihh")
_pack_int32: Final = struct.Struct(">i").pack


class Member:
    """A member as one connection knows it: its pace, and whether it behaves like one member.

    ``told_ms`` is the interval last told, 0 before any; ``heard_at`` and ``answered_at`` are when
    its last heartbeat came and was answered, the latter 0 once the next one has come; ``answers``
    counts those without news. ``heartbeat_interval_ms`` is Kafka's, as the coordinator last
    answered it. ``quiet`` counts the heartbeats without news in the interval
    that ends at ``quiet_until``; more than a few are no client's but a load generator's, and are
    answered at once. ``steady_bytes`` is the heartbeat whose answer is kept.
    """

    __slots__ = (
        "answered_at",
        "answers",
        "heard_at",
        "heartbeat_interval_ms",
        "key",
        "quiet",
        "quiet_until",
        "steady_bytes",
        "told_ms",
    )

    def __init__(self, key: MemberKey) -> None:
        group_id, member_id = key
        self.key = sys.intern(group_id), member_id
        self.told_ms = 0
        self.heard_at = 0.0
        self.answered_at = 0.0
        self.answers = 0
        self.heartbeat_interval_ms = 0
        self.quiet = 0
        self.quiet_until = 0.0
        self.steady_bytes = b""


class Steady:
    """The kept answer to a heartbeat of certain bytes.

    ``head`` and ``tail`` go around the correlation id. ``rights`` are what the sender must still
    be allowed to do, ``None`` where everybody may everything. ``is_settled``: the member is where
    the target wants it. ``command`` is what is asked at the end of its park, ``None`` where the
    connection has several members, for none of them is parked. ``start`` is what a frame with
    this heartbeat has before its correlation id.
    """

    __slots__ = (
        "_interval_at",
        "caller",
        "command",
        "head",
        "is_settled",
        "member",
        "rights",
        "start",
        "tail",
        "ticket",
        "told_ms",
        "version",
    )

    def __init__(
        self,
        version: int,
        start: bytes,
        ticket: MemberTicket,
        caller: Caller,
        *,
        command: ConsumerGroupHeartbeat | None,
        member: Member,
        rights: Rights | None,
        is_settled: bool,
        body: bytes,
        interval_at: int,
    ) -> None:
        """``interval_at`` is where in ``body`` the interval stands."""
        self.version = version
        self.start = start
        self.ticket = ticket
        self.caller = caller
        self.command = command
        self.member = member
        self.rights = rights
        self.is_settled = is_settled
        # The header of the response ends with an empty tag section.
        self.tail = b"\x00" + body
        self.head = _make_head(len(self.tail))
        self._interval_at = interval_at + 1
        self.told_ms = 0

    def make_frame(self, correlation: bytes) -> bytes:
        """The answer to the heartbeat of this correlation id."""
        return self.head + correlation + self.tail

    def tell(self, told_ms: int) -> None:
        """Put an interval into the kept answer."""
        at = self._interval_at
        self.tail = self.tail[:at] + _pack_int32(told_ms) + self.tail[at + 4 :]
        self.told_ms = told_ms


class ConnectionHeartbeats:
    """What one connection knows of the members that speak through it.

    ``steady`` is by the bytes of the request from its client id on, ``parked`` the heartbeat that
    is held back, ``classic`` when those of a classic member come, ``round_trip`` how long the way
    to the client and back takes.
    """

    __slots__ = ("_classic", "members", "parked", "round_trip", "steady")

    def __init__(self) -> None:
        self._classic: ClassicMemberPace | None = None
        self.steady: dict[bytes, Steady] = {}
        self.members: dict[MemberKey, Member] = {}
        self.parked: HeldBack | None = None
        self.round_trip = RoundTrip()

    @property
    def classic(self) -> ClassicMemberPace:
        """Made for the connections that need it: there are very many that do not."""
        if self._classic is None:
            self._classic = ClassicMemberPace()
        return self._classic

    def forget(self, key: MemberKey) -> bool:
        """The member has left, or is none; whether it was known."""
        member = self.members.pop(key, None)
        if member is None:
            return False
        self.steady.pop(member.steady_bytes, None)
        if len(self.members) == 1:
            # The one that is left may be parked, and what was kept does not serve for that.
            self.steady.clear()
        return True


@lru_cache(maxsize=1024)
def _make_head(tail_size: int) -> bytes:
    """The length that a frame begins with; one object for all frames of that length."""
    return _pack_int32(tail_size + 4)


@lru_cache(maxsize=1024)
def make_start(raw_size: int, version: int) -> bytes:
    """Length, API and version of a frame; one object for all frames that begin so."""
    correlation_size = 4
    return _START.pack(raw_size + _START.size - 4 + correlation_size, HEARTBEAT_KEY, version)


def compute_rights(command: ConsumerGroupHeartbeat) -> Rights:
    """What the sender of a heartbeat must be allowed to do."""
    group = (Operation.READ, ResourceType.GROUP, command.group_id)
    names = command.subscribed_topic_names
    if not isinstance(names, tuple):
        return (group,)
    return (group, *((Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names))
