"""The cached heartbeats of a connection, which make a repeated heartbeat almost free.

A repeated heartbeat differs from the last one in its correlation id only. After the first one its
bytes, a ``MemberTicket`` and the response are cached (``CachedHeartbeat``); the next one with the
same bytes touches the ticket and gets the cached response without being decoded. The ticket is
taken before the heartbeat is submitted and must still be valid when it is answered: only then has
nothing happened in between that the response does not reflect.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from typing import Final, TypeAlias

from coordinator.runtime.api import MemberTicket
from gateway.pace.classic_pace import ClassicMemberPace
from gateway.pace.round_trip import RoundTrip
from gateway.pending import HeldBack
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat

MemberKey: TypeAlias = tuple[str, str]
"""Group id and member id."""

HEARTBEAT_KEY: Final = 68
_START: Final = struct.Struct(">ihh")
_pack_int32: Final = struct.Struct(">i").pack


class Member:
    """A member as one connection knows it: its heartbeat intervals and how often it heartbeats.

    ``sent_interval_ms`` is the last interval sent, 0 before any. ``heard_at`` and ``answered_at``
    are when its last heartbeat arrived and was answered; the latter is 0 until it is answered.
    ``answers`` counts the responses since the last change. ``heartbeat_interval_ms`` is Kafka's
    interval, as the coordinator last returned it. ``quiet`` counts the heartbeats without a change
    in the interval that ends at ``quiet_until``; more than a few come from a load generator rather
    than a client, and are answered at once. ``cached_bytes`` is the cached heartbeat's request.
    Its caller was last authorized, for all of its subscription, at ``rights_version``.
    """

    __slots__ = (
        "answered_at",
        "answers",
        "cached_bytes",
        "heard_at",
        "heartbeat_interval_ms",
        "key",
        "quiet",
        "quiet_until",
        "rights_version",
        "sent_interval_ms",
    )

    def __init__(self, key: MemberKey) -> None:
        group_id, member_id = key
        self.key = sys.intern(group_id), member_id
        self.sent_interval_ms = 0
        self.heard_at = 0.0
        self.answered_at = 0.0
        self.answers = 0
        self.heartbeat_interval_ms = 0
        self.quiet = 0
        self.quiet_until = 0.0
        self.cached_bytes = b""
        self.rights_version: int | None = None


class CachedHeartbeat:
    """A cached heartbeat: the response to a heartbeat request of certain bytes.

    ``head`` and ``tail`` go around the correlation id. The caller was authorized at the
    authorizer's ``rights_version``; ``None`` without access control. ``is_settled``: the member has
    reached its target assignment. ``command`` is submitted when its park ends; it is ``None`` if
    the connection has several members, because none of them is parked. ``start`` is the frame's
    bytes before the correlation id.
    """

    __slots__ = (
        "_interval_at",
        "caller",
        "command",
        "head",
        "is_settled",
        "member",
        "rights_version",
        "sent_interval_ms",
        "start",
        "tail",
        "ticket",
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
        rights_version: int | None,
        is_settled: bool,
        body: bytes,
        interval_at: int,
    ) -> None:
        """``interval_at`` is the position of the heartbeat interval in ``body``."""
        self.version = version
        self.start = start
        self.ticket = ticket
        self.caller = caller
        self.command = command
        self.member = member
        self.rights_version = rights_version
        self.is_settled = is_settled
        # The response header ends with an empty tag section.
        self.tail = b"\x00" + body
        self.head = _make_head(len(self.tail))
        self._interval_at = interval_at + 1
        self.sent_interval_ms = 0

    def make_frame(self, correlation: bytes) -> bytes:
        """The response frame for this correlation id."""
        return self.head + correlation + self.tail

    def set_interval(self, interval_ms: int) -> None:
        """Set the heartbeat interval in the cached response."""
        at = self._interval_at
        self.tail = self.tail[:at] + _pack_int32(interval_ms) + self.tail[at + 4 :]
        self.sent_interval_ms = interval_ms


class ConnectionHeartbeats:
    """The members that heartbeat over one connection.

    ``cached`` holds the cached heartbeats, keyed by the request's bytes from the client id on;
    ``parked`` is the parked request, ``classic`` the interval of a classic member, ``round_trip``
    the connection's round-trip estimate.
    """

    __slots__ = ("_classic", "cached", "members", "parked", "round_trip")

    def __init__(self) -> None:
        self._classic: ClassicMemberPace | None = None
        self.cached: dict[bytes, CachedHeartbeat] = {}
        self.members: dict[MemberKey, Member] = {}
        self.parked: HeldBack | None = None
        self.round_trip = RoundTrip()

    @property
    def classic(self) -> ClassicMemberPace:
        """The pace of the classic member; created on first use, as most connections have none."""
        if self._classic is None:
            self._classic = ClassicMemberPace()
        return self._classic

    def forget(self, key: MemberKey) -> bool:
        """Drop a member that has left or that the group does not know; whether it was here."""
        member = self.members.pop(key, None)
        if member is None:
            return False
        self.cached.pop(member.cached_bytes, None)
        if len(self.members) == 1:
            # The remaining member may be parked now, and its cached heartbeat has no ``command``.
            self.cached.clear()
        return True


@lru_cache(maxsize=1024)
def _make_head(tail_size: int) -> bytes:
    """The length prefix of a frame; one object for all frames of that length, to save memory."""
    return _pack_int32(tail_size + 4)


@lru_cache(maxsize=1024)
def make_start(raw_size: int, version: int) -> bytes:
    """The length, API key and version that start a frame; one object per distinct value."""
    correlation_size = 4
    return _START.pack(raw_size + _START.size - 4 + correlation_size, HEARTBEAT_KEY, version)
