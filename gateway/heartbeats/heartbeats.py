"""Heartbeats of consumer groups on the wire: parked until there is news, cheap while there is none.

A heartbeat whose answer would say nothing new is held back (``gateway.heartbeats.parking``) or,
where its bytes are those of the last one, answered from what was kept (``gateway.pace.steady``).
This module decides which, and what interval each answer tells (``gateway.pace.pacing``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from coordinator.runtime.api import Answer, Coordinator, MemberTicket
from coordinator.runtime.authorizer import AllowAll, Authorizer
from gateway.api import Door, RequestContext
from gateway.heartbeats.classic_heartbeats import ClassicHeartbeats
from gateway.heartbeats.parking import (
    SHORTEST_PARK_MS,
    ParkedHeartbeat,
    ParkedSteady,
    ParkEnds,
    make_asked_again,
    reopen,
    repeats_owned,
)
from gateway.pace.pacing import (
    Pace,
    compute_gap_ms,
    compute_longest_park_ms,
    compute_pace,
    compute_park_ms,
    compute_probe_ms,
    compute_rest_ms,
    compute_told_ms,
)
from gateway.pace.round_trip import RecentDelay
from gateway.pace.steady import (
    HEARTBEAT_KEY,
    ConnectionHeartbeats,
    Member,
    MemberKey,
    Steady,
    compute_rights,
    make_start,
)
from gateway.settings import GatewaySettings
from gateway.wire_clock import Clock
from model.commands import ConsumerGroupHeartbeat
from model.errors import GroupError
from model.responses import ConsumerGroupHeartbeatResponse

_CORRELATION_AT: Final = 8
_RAW_AT: Final = 12
"""Where in a frame the client id begins, which is what is kept of a heartbeat."""
_LATENCY_DECAY: Final = 0.8
_PROBE_EVERY: Final = 8
"""Of so many answers without news one shows how long the way is, where the gap is a long one."""

EncodeBody: TypeAlias = Callable[[ConsumerGroupHeartbeatResponse, int], tuple[bytes, int]]
"""(response, interval told) -> the body, and where in it the interval stands."""


class Heartbeats:
    """Heartbeats of all connections of a server: who is parked, and at what pace.

    ``encode`` makes the body of an answer; it is given so that this module knows no schema.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        authorizer: Authorizer,
        settings: GatewaySettings,
        clock: Clock,
        encode: EncodeBody,
    ) -> None:
        self.coordinator = coordinator
        self.clock = clock
        self.settings = settings
        self._authorizer = authorizer
        self._encode = encode
        self._delay = RecentDelay()
        self.ends = ParkEnds(clock, settings.gateway_wake_slice, self._delay)
        self._checks_rights = not isinstance(authorizer, AllowAll)
        self._latency_ms = 0.0
        self.is_draining = False
        self.members = 0
        self._speakers: dict[MemberKey, ConnectionHeartbeats] = {}
        """The connection that each member was last heard by, which alone knows it."""
        self.classic = ClassicHeartbeats(self)
        self.pace = self._compute_pace()

    # ---------------------------------------------------------------------------- the pace

    def _compute_pace(self) -> Pace:
        interval_ms = self.coordinator.settings.group_consumer_heartbeat_interval_ms
        return compute_pace(self.settings, self.members, interval_ms)

    def _count_members(self, change: int) -> None:
        self.members += change
        self.pace = self._compute_pace()

    def _member_of(self, connection: ConnectionHeartbeats, key: MemberKey) -> Member:
        """The member as this connection knows it; made when first heard from.

        Whichever connection knew it until now forgets it, and what it keeps of it: should the
        member be heard there again, then as for the first time.
        """
        member = connection.members.get(key)
        if member is None:
            if len(connection.members) >= self.settings.gateway_steady_cache_entries:
                self.forget_all(connection)
            older = self._speakers.get(key)
            if older is not None:
                connection.round_trip.inherit(older.round_trip, older.parked is not None)
                self.forget(older, key)
            member = Member(key)
            # The key of the member, and not another one that is equal: there are very many.
            connection.members[member.key] = member
            self._speakers[member.key] = connection
            self._count_members(1)
        return member

    def forget(self, connection: ConnectionHeartbeats, key: MemberKey) -> None:
        """The member has left, is none, or is heard by another connection now."""
        if connection.forget(key):
            del self._speakers[key]
            self._count_members(-1)

    def forget_all(self, connection: ConnectionHeartbeats) -> None:
        """The connection is gone, or has too many members to remember."""
        self._count_members(-len(connection.members))
        for key in connection.members:
            del self._speakers[key]
        connection.members.clear()
        connection.steady.clear()

    def compute_gap_ms(self, connection: ConnectionHeartbeats) -> int:
        """How long before its interval ends a client of the connection is to be answered.

        Nothing is learned where several members speak: it would be how busy their process is.
        """
        least_ms = self.settings.gateway_park_gap_ms
        if len(connection.members) > 1:
            return least_ms
        delay_ms = self._delay.compute_ms(self.clock.time())
        return compute_gap_ms(least_ms, connection.round_trip.allowance_ms, delay_ms)

    def _hear(self, connection: ConnectionHeartbeats, member: Member, now: float) -> None:
        """A heartbeat came: learn how long it took since the last one was answered."""
        if member.answered_at and len(connection.members) <= 1:
            took_ms = (now - member.answered_at) * 1_000
            held_ms = (member.answered_at - member.heard_at) * 1_000
            connection.round_trip.learn(took_ms, member.told_ms, held_ms)
        member.heard_at = now
        member.answered_at = 0.0

    def _compute_rest_ms(self, connection: ConnectionHeartbeats, member: Member) -> int:
        """The interval of a member at rest.

        Nothing is parked of a connection with several members (a proxy, a load generator), nor
        where parking is off, so nothing would be gained there by more heartbeats than Kafka's.
        """
        if len(connection.members) > 1 or self.settings.gateway_park_ms == 0:
            return member.heartbeat_interval_ms
        least_ms, gap_ms = self.settings.gateway_park_gap_ms, self.compute_gap_ms(connection)
        return compute_rest_ms(self.pace, least_ms, gap_ms, member.heartbeat_interval_ms)

    def _tell(
        self, connection: ConnectionHeartbeats, member: Member, is_news: bool, is_settled: bool
    ) -> int:
        """The interval to tell a member that is answered now; it is noted as told.

        A member that waits for partitions is to come back soon, but no sooner than answers take:
        it would give them up (a slow disk, a long way), and ask again.
        """
        now = self.clock.time()
        gap_ms = self.compute_gap_ms(connection)
        told_ms = rest_ms = self._compute_rest_ms(connection, member)
        if self.settings.gateway_park_ms:
            first_ms = step_ms = self.pace.return_ms
            if not is_settled:
                first_ms, step_ms = self.pace.wait_ms, self.pace.wait_step_ms
            first_ms = max(first_ms, round(2 * self._latency_ms), gap_ms)
            previous_ms = 0 if is_news else member.told_ms
            told_ms = compute_told_ms(previous_ms, first_ms, max(step_ms, gap_ms), rest_ms)
            member.answers = 0 if is_news else member.answers + 1
            if member.answers % _PROBE_EVERY == _PROBE_EVERY - 1 and member.heard_at:
                held_ms = (now - member.heard_at) * 1_000
                least_ms = self.settings.gateway_park_gap_ms
                told_ms = compute_probe_ms(held_ms, least_ms, gap_ms) or told_ms
        member.told_ms = told_ms
        member.answered_at = now
        return told_ms

    def stop_parking(self) -> None:
        """The server is stopping: no heartbeat is parked any more."""
        self.is_draining = True

    def _compute_park_ms(self, connection: ConnectionHeartbeats, member: Member, now: float) -> int:
        """How long a heartbeat without news is parked, 0 for not at all; it is counted.

        Not at all where others use its connection, or where it comes too often to be a client's.
        """
        if len(connection.members) > 1 or self.is_draining:
            return 0
        if now >= member.quiet_until:
            member.quiet_until = now + member.told_ms / 1_000
            member.quiet = 0
        member.quiet += 1
        if member.quiet > self.settings.gateway_burst_heartbeats:
            return 0
        gap_ms = self.compute_gap_ms(connection)
        least_ms = self.settings.gateway_park_gap_ms
        longest_ms = compute_longest_park_ms(self.pace, least_ms, gap_ms)
        park_ms = compute_park_ms(member.told_ms, gap_ms, longest_ms)
        return park_ms if park_ms >= SHORTEST_PARK_MS else 0

    # ------------------------------------------------------------------------- first time

    def submit(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit a heartbeat and answer it, now or after parking it.

        The first one that a connection has of a member, or has again after another one had it, is
        answered in full: a client whose connection broke may have missed an answer, and does not
        always ask for what it said (librdkafka 2.16, which gives an answer up soon after the
        interval that it was told).
        """
        known = context.door.heartbeats.members
        if (command.group_id, command.member_id) not in known and self.settings.gateway_park_ms:
            command = replace(command, wants_assignment=True)
        member = self._member_of(context.door.heartbeats, (command.group_id, command.member_id))
        ticket = None
        if command.member_epoch > 0:
            ticket = self.coordinator.ticket(command.group_id, command.member_id)
        submitted = self.clock.time()
        self._hear(context.door.heartbeats, member, submitted)

        def on_answer(answer: Answer) -> None:
            now = self._note_latency(submitted)
            if isinstance(answer, GroupError):
                self._refuse(context, member, answer)
            else:
                assert isinstance(answer, ConsumerGroupHeartbeatResponse)
                self._answer(context, command, member, ticket, answer, now)

        context.submit(command, on_answer)

    def ask_again(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Answer a heartbeat that was parked with what the coordinator says now."""
        member = self._member_of(context.door.heartbeats, (command.group_id, command.member_id))
        submitted = self.clock.time()

        def on_answer(answer: Answer) -> None:
            self._note_latency(submitted)
            if isinstance(answer, GroupError):
                self._refuse(context, member, answer)
            else:
                assert isinstance(answer, ConsumerGroupHeartbeatResponse)
                self.reply(context, member, answer)

        context.submit(command, on_answer)

    def _note_latency(self, submitted: float) -> float:
        """Note how long an answer took that is there now; the time."""
        now = self.clock.time()
        took_ms = (now - submitted) * 1_000
        self._latency_ms = max(self._latency_ms * _LATENCY_DECAY, took_ms)
        self._delay.note(took_ms, now)
        return now

    def _refuse(self, context: RequestContext, member: Member, error: GroupError) -> None:
        if self._knows(context, member):
            self.forget(context.door.heartbeats, member.key)
        context.reply_failed(error.code, error.message)

    @staticmethod
    def _knows(context: RequestContext, member: Member) -> bool:
        """Whether the connection still is the one that the member was last heard by."""
        return context.door.heartbeats.members.get(member.key) is member

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
            not answer.news
            and answer.parkable
            and command.member_epoch > 0
            and repeats_owned(command, answer)
        )
        # One that another connection has overtaken meanwhile is answered, and that is all.
        if is_quiet and self._knows(context, member):
            member.heartbeat_interval_ms = answer.heartbeat_interval_ms
            steady = None
            if ticket is not None and ticket.is_valid() and context.raw:
                steady = self._keep(context, command, member, ticket, answer)
            park_ms = self._compute_park_ms(context.door.heartbeats, member, now)
            if park_ms and context.door.is_latest(context):
                asked = make_asked_again(command, answer)
                parked = ParkedHeartbeat(self, context, asked, member, answer, steady)
                context.on_abandoned(parked.drop)
                parked.start(park_ms)
                return
        self.reply(context, member, answer)

    def reply(
        self, context: RequestContext, member: Member, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Answer a heartbeat, with the interval that its member is told now."""
        if answer.news:
            member.quiet_until = 0.0
        member.heartbeat_interval_ms = answer.heartbeat_interval_ms
        told_ms = self._tell(context.door.heartbeats, member, answer.news, answer.settled)
        body, _ = self._encode(answer, told_ms)
        context.reply_encoded(body)

    def _keep(
        self,
        context: RequestContext,
        command: ConsumerGroupHeartbeat,
        member: Member,
        ticket: MemberTicket,
        answer: ConsumerGroupHeartbeatResponse,
    ) -> Steady:
        connection = context.door.heartbeats
        connection.steady.pop(member.steady_bytes, None)
        rights = compute_rights(command) if self._checks_rights else None
        body, interval_at = self._encode(answer, 0)
        may_be_parked = len(connection.members) <= 1
        steady = Steady(
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
        member.steady_bytes = context.raw
        connection.steady[context.raw] = steady
        context.door.repeats[HEARTBEAT_KEY] = self
        return steady

    # ----------------------------------------------------------------------- again the same

    def _is_at_rest(self, connection: ConnectionHeartbeats, steady: Steady) -> bool:
        """Whether a kept answer can be sent as it is: a member that is not parked, nor told more.

        It has the interval at rest, and its connection has other members.
        """
        member = steady.member
        return (
            steady.told_ms == member.told_ms == member.heartbeat_interval_ms
            and len(connection.members) > 1
        )

    def _allows(self, steady: Steady) -> bool:
        """Whether the sender of a kept heartbeat still has the rights that it needs."""
        caller = steady.caller
        return steady.rights is None or all(
            self._authorizer.authorize(caller.principal, caller.client_host, *right)
            for right in steady.rights
        )

    def tell_steady(self, connection: ConnectionHeartbeats, steady: Steady) -> None:
        """Put the interval to be told now into a kept answer."""
        told_ms = self._tell(connection, steady.member, False, steady.is_settled)
        if told_ms != steady.told_ms:
            steady.tell(told_ms)

    def serve(self, door: Door, frame: bytes, now: float) -> bytes | None:
        """Answer a heartbeat that repeats one whose answer is kept, or park it (``Repeats``).

        This is the hot path of servers that have much to do.
        """
        connection = door.heartbeats
        steady = connection.steady.get(frame[_RAW_AT:])
        if (
            steady is None
            or not frame.startswith(steady.start)
            or not steady.ticket.touch(int(now * 1_000))
            or not (steady.rights is None or self._allows(steady))
        ):
            return None
        correlation = frame[_CORRELATION_AT:_RAW_AT]
        park_ms = 0
        if not self._is_at_rest(connection, steady):
            park_ms = self._compute_steady_park_ms(connection, steady, now)
        if door.unanswered:
            if park_ms:
                self.tell_steady(connection, steady)
            reopen(door, steady, correlation).reply_encoded(steady.tail[1:])
            return b""
        if park_ms:
            ParkedSteady(self, door, steady, correlation).start(park_ms)
            return b""
        return steady.head + correlation + steady.tail

    def _compute_steady_park_ms(
        self, connection: ConnectionHeartbeats, steady: Steady, now: float
    ) -> int:
        """How long a heartbeat of kept bytes is parked; at 0 its answer is ready to be sent."""
        member = steady.member
        self._hear(connection, member, now)
        park_ms = self._compute_park_ms(connection, member, now)
        if not park_ms:
            member.answered_at = now
            rest_ms = self._compute_rest_ms(connection, member)
            if member.told_ms != rest_ms or steady.told_ms != rest_ms:
                self.tell_steady(connection, steady)
        return park_ms
