"""ConsumerGroupHeartbeat on the wire: submits, parks, or answers from the cached heartbeat.

A heartbeat whose response would carry no change is parked (``gateway.heartbeats.parking``). If its
bytes equal those of the member's last one, it is served without decoding
(``gateway.pace.cached_heartbeat``).
``gateway.heartbeats.member_paces`` chooses the heartbeat interval of each response.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from coordinator.runtime.api import Answer, Coordinator, MemberTicket
from coordinator.runtime.authorizer import AllowAll, Authorizer
from gateway.api import ClientConnection, RequestContext
from gateway.heartbeats.classic_heartbeats import ClassicHeartbeats
from gateway.heartbeats.member_paces import MemberPaces
from gateway.heartbeats.parking import (
    ParkedCachedHeartbeat,
    ParkedHeartbeat,
    ParkEnds,
    make_asked_again,
    reopen,
    repeats_owned,
)
from gateway.pace.cached_heartbeat import (
    HEARTBEAT_KEY,
    CachedHeartbeat,
    ConnectionHeartbeats,
    Member,
    compute_rights,
    make_start,
)
from gateway.settings import GatewaySettings
from gateway.wire_clock import Clock
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import GroupError
from model.responses.consumer import ConsumerGroupHeartbeatResponse

_CORRELATION_AT: Final = 8
_RAW_AT: Final = 12
"""Where the client id begins in a frame; the cached bytes start there."""

EncodeBody: TypeAlias = Callable[[ConsumerGroupHeartbeatResponse, int], tuple[bytes, int]]
"""(response, interval to send) -> the body, and the position of the interval in it."""


class Heartbeats(MemberPaces):
    """Handles the heartbeats of all connections of one listener.

    ``encode`` encodes a response body; it is passed in to keep this module free of the schema.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        authorizer: Authorizer,
        settings: GatewaySettings,
        clock: Clock,
        encode: EncodeBody,
    ) -> None:
        super().__init__(coordinator, settings, clock)
        self._authorizer = authorizer
        self._encode = encode
        self.ends = ParkEnds(clock, settings.gateway_wake_slice, self._delay)
        self._checks_rights = not isinstance(authorizer, AllowAll)
        self.classic = ClassicHeartbeats(self)

    # ------------------------------------------------------------------- decoded heartbeats

    def submit(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit a heartbeat and answer it, now or after parking it.

        A member's first heartbeat on a connection gets its full assignment: a client whose old
        connection broke may have missed a response and does not always ask for its content again
        (librdkafka 2.16, which gives a response up soon after the last interval has passed).
        """
        known = context.client.heartbeats.members
        if (command.group_id, command.member_id) not in known and self.settings.gateway_park_ms:
            command = replace(command, wants_assignment=True)
        member = self._member_of(context.client.heartbeats, (command.group_id, command.member_id))
        ticket = None
        if command.member_epoch > 0:
            ticket = self.coordinator.ticket(command.group_id, command.member_id)
        submitted = self.clock.time()
        self._hear(context.client.heartbeats, member, submitted)

        def on_answer(answer: Answer) -> None:
            now = self._note_latency(submitted)
            if isinstance(answer, GroupError):
                self._refuse(context, member, answer)
            else:
                assert isinstance(answer, ConsumerGroupHeartbeatResponse)
                self._answer(context, command, member, ticket, answer, now)

        context.submit(command, on_answer)

    def ask_again(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit ``command`` for a heartbeat whose park has ended, and send that answer."""
        member = self._member_of(context.client.heartbeats, (command.group_id, command.member_id))
        submitted = self.clock.time()

        def on_answer(answer: Answer) -> None:
            self._note_latency(submitted)
            if isinstance(answer, GroupError):
                self._refuse(context, member, answer)
            else:
                assert isinstance(answer, ConsumerGroupHeartbeatResponse)
                self.reply(context, member, answer)

        context.submit(command, on_answer)

    def _refuse(self, context: RequestContext, member: Member, error: GroupError) -> None:
        if self._knows(context, member):
            self.forget(context.client.heartbeats, member.key)
        context.reply_failed(error.code, error.message)

    @staticmethod
    def _knows(context: RequestContext, member: Member) -> bool:
        """Whether the member has not moved to another connection since."""
        return context.client.heartbeats.members.get(member.key) is member

    def _answer(
        self,
        context: RequestContext,
        command: ConsumerGroupHeartbeat,
        member: Member,
        ticket: MemberTicket | None,
        answer: ConsumerGroupHeartbeatResponse,
        now: float,
    ) -> None:
        is_quiet = (
            not answer.has_changes
            and answer.parkable
            and command.member_epoch > 0
            and repeats_owned(command, answer)
        )
        # If the member has moved to another connection, answer this heartbeat and learn nothing.
        if is_quiet and self._knows(context, member):
            member.heartbeat_interval_ms = answer.heartbeat_interval_ms
            cached = None
            if ticket is not None and ticket.is_valid() and context.raw:
                cached = self._keep(context, command, member, ticket, answer)
            park_ms = self._compute_park_ms(context.client.heartbeats, member, now)
            if park_ms and context.client.is_latest(context):
                asked = make_asked_again(command, answer)
                parked = ParkedHeartbeat(self, context, asked, member, answer, cached)
                context.on_abandoned(parked.drop)
                parked.start(park_ms)
                return
        self.reply(context, member, answer)

    def reply(
        self, context: RequestContext, member: Member, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Answer a heartbeat, with the interval that is due now."""
        if answer.has_changes:
            member.quiet_until = 0.0
        member.heartbeat_interval_ms = answer.heartbeat_interval_ms
        interval_ms = self._choose_interval(
            context.client.heartbeats, member, answer.has_changes, answer.settled
        )
        body, _ = self._encode(answer, interval_ms)
        context.reply_encoded(body)

    def _keep(
        self,
        context: RequestContext,
        command: ConsumerGroupHeartbeat,
        member: Member,
        ticket: MemberTicket,
        answer: ConsumerGroupHeartbeatResponse,
    ) -> CachedHeartbeat:
        connection = context.client.heartbeats
        connection.cached.pop(member.cached_bytes, None)
        rights = compute_rights(command) if self._checks_rights else None
        body, interval_at = self._encode(answer, 0)
        may_be_parked = len(connection.members) <= 1
        cached = CachedHeartbeat(
            context.version,
            make_start(len(context.raw), context.version),
            ticket,
            command.caller,
            command=make_asked_again(command, answer) if may_be_parked else None,
            member=member,
            rights=rights,
            is_settled=answer.settled,
            body=body,
            interval_at=interval_at,
        )
        member.cached_bytes = context.raw
        connection.cached[context.raw] = cached
        context.client.repeats[HEARTBEAT_KEY] = self
        return cached

    # ------------------------------------------------------------------ repeated heartbeats

    def _is_at_rest(self, connection: ConnectionHeartbeats, cached: CachedHeartbeat) -> bool:
        """Whether the cached response can be sent unchanged.

        True for a member at its resting interval whose connection has other members: it is neither
        parked nor due another interval.
        """
        member = cached.member
        return (
            cached.sent_interval_ms == member.sent_interval_ms == member.heartbeat_interval_ms
            and len(connection.members) > 1
        )

    def _allows(self, cached: CachedHeartbeat) -> bool:
        """Whether the caller of a cached heartbeat is still authorized."""
        caller = cached.caller
        return cached.rights is None or all(
            self._authorizer.authorize(caller.principal, caller.client_host, *right)
            for right in cached.rights
        )

    def update_cached(self, connection: ConnectionHeartbeats, cached: CachedHeartbeat) -> None:
        """Set the interval that is due now in a cached response."""
        interval_ms = self._choose_interval(connection, cached.member, False, cached.is_settled)
        if interval_ms != cached.sent_interval_ms:
            cached.set_interval(interval_ms)

    def serve(self, client: ClientConnection, frame: bytes, now: float) -> bytes | None:
        """Answer or park a heartbeat that repeats a cached one (``gateway.api.Repeats``).

        This is the hot path of a loaded server.
        """
        connection = client.heartbeats
        cached = connection.cached.get(frame[_RAW_AT:])
        if (
            cached is None
            or not frame.startswith(cached.start)
            or not cached.ticket.touch(int(now * 1_000))
            or not (cached.rights is None or self._allows(cached))
        ):
            return None
        correlation = frame[_CORRELATION_AT:_RAW_AT]
        park_ms = 0
        if not self._is_at_rest(connection, cached):
            park_ms = self._compute_cached_park_ms(connection, cached, now)
        if client.unanswered:
            if park_ms:
                self.update_cached(connection, cached)
            reopen(client, cached, correlation).reply_encoded(cached.tail[1:])
            return b""
        if park_ms:
            ParkedCachedHeartbeat(self, client, cached, correlation).start(park_ms)
            return b""
        return cached.head + correlation + cached.tail

    def _compute_cached_park_ms(
        self, connection: ConnectionHeartbeats, cached: CachedHeartbeat, now: float
    ) -> int:
        """How long to park a repeated heartbeat; at 0 its cached response is ready to be sent."""
        member = cached.member
        self._hear(connection, member, now)
        park_ms = self._compute_park_ms(connection, member, now)
        if not park_ms:
            member.answered_at = now
            rest_ms = self._compute_rest_ms(connection, member)
            if member.sent_interval_ms != rest_ms or cached.sent_interval_ms != rest_ms:
                self.update_cached(connection, cached)
        return park_ms
