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
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.members.member_rights import make_member_rights
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
    make_start,
)
from gateway.settings import GatewaySettings
from gateway.wire_clock import Clock
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat
from model.errors import GroupError
from model.ids import GroupId
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
        self.rights = make_member_rights(coordinator, authorizer)
        self._encode = encode
        self.ends = ParkEnds(clock, settings.gateway_wake_slice, self._delay)
        self.classic = ClassicHeartbeats(self)

    # ------------------------------------------------------------------- decoded heartbeats

    def submit(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit a heartbeat and answer it, now or after parking it.

        The caller is authorized for what the request names; what it leaves out is looked at here.
        A member's first heartbeat on a connection gets its full assignment: a client whose old
        connection broke may have missed a response and does not always ask for its content again
        (librdkafka 2.16, which gives a response up soon after the last interval has passed).
        """
        refusal = self._find_refusal(context, command)
        if refusal is not None:
            self._refuse_member(context, command, refusal)
            return
        known = context.client.heartbeats.members
        if (command.group_id, command.member_id) not in known and self.settings.gateway_park_ms:
            command = replace(command, wants_assignment=True)
        member = self._note_authorized(context, command)
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

    def _find_refusal(
        self, context: RequestContext, command: ConsumerGroupHeartbeat
    ) -> GroupError | None:
        """Why the member is refused what the request leaves out: it goes on with what it has.

        Once for each change of ACLs: a subscription has many names, and heartbeats follow fast.
        """
        if self.rights is None or command.subscribed_topic_names is not UNCHANGED:
            return None
        key = command.group_id, command.member_id
        member = context.client.heartbeats.members.get(key)
        if member is not None and member.rights_version == self.rights.version:
            return None
        return self.rights.find_refusal(command.caller, command.group_id, command.member_id)

    def _note_authorized(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> Member:
        """The member of a heartbeat that is authorized now; its answer may come much later."""
        member = self._member_of(context.client.heartbeats, (command.group_id, command.member_id))
        if self.rights is not None:
            member.rights_version = self.rights.version
        return member

    def _refuse_member(
        self, context: RequestContext, command: ConsumerGroupHeartbeat, refusal: GroupError
    ) -> None:
        """Refuse a heartbeat, and answer no repetition of it from memory."""
        self.forget(context.client.heartbeats, (command.group_id, command.member_id))
        context.reply_failed(refusal.code, refusal.message)

    def ask_again(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit ``command`` for a heartbeat whose park has ended, and send that answer.

        A right that was taken away while it was parked holds here: the answer may have partitions.
        """
        refusal = self._find_refusal(context, command)
        if refusal is not None:
            self._refuse_member(context, command, refusal)
            return
        member = self._note_authorized(context, command)
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
                context.began_s = 0.0
                parked = ParkedHeartbeat(self, context, asked, member, answer, cached)
                context.on_abandoned(parked.drop)
                parked.start(park_ms)
                return
        self.reply(context, member, answer)

    def reply(
        self, context: RequestContext, member: Member, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Answer a heartbeat, with the interval that is due now."""
        if self.rights is not None and answer.assignment:
            refusal = self.rights.find_refused_assignment(context.caller, answer.assignment)
            if refusal is None and member.rights_version != self.rights.version:
                group_id, member_id = GroupId(member.key[0]), answer.member_id
                refusal = self.rights.find_refusal(context.caller, group_id, member_id)
            if refusal is not None:
                self._refuse(context, member, refusal)
                return
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
        body, interval_at = self._encode(answer, 0)
        may_be_parked = len(connection.members) <= 1
        cached = CachedHeartbeat(
            context.version,
            make_start(len(context.raw), context.version),
            ticket,
            command.caller,
            command=make_asked_again(command, answer) if may_be_parked else None,
            member=member,
            rights_version=member.rights_version,
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

    def allows(self, cached: CachedHeartbeat) -> bool:
        """Whether no ACL has changed; the first heartbeat after a change is decoded again."""
        return self.rights is None or cached.rights_version == self.rights.version

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
            or not (cached.rights_version is None or self.allows(cached))
            or not cached.ticket.touch(int(now * 1_000))
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
