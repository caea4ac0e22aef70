"""Chooses the park and heartbeat interval of each member, and tracks its current connection."""

from __future__ import annotations

from typing import Final

from coordinator.runtime.api import Coordinator
from gateway.heartbeats.parking import (
    SHORTEST_PARK_MS,
)
from gateway.pace.cached_heartbeat import (
    ConnectionHeartbeats,
    Member,
    MemberKey,
)
from gateway.pace.pacing import (
    Pace,
    compute_gap_ms,
    compute_interval_ms,
    compute_longest_park_ms,
    compute_pace,
    compute_park_ms,
    compute_probe_ms,
    compute_rest_ms,
)
from gateway.pace.round_trip import RecentDelay
from gateway.settings import GatewaySettings
from gateway.wire_clock import Clock

_LATENCY_DECAY: Final = 0.8
_PROBE_EVERY: Final = 8
"""One in this many responses without a change probes the round trip, if the gap is long."""


class MemberPaces:
    """The pace of the members of all connections.

    ``Heartbeats`` inherits from it to save a hop, as it needs a pace for every heartbeat.
    """

    def __init__(self, coordinator: Coordinator, settings: GatewaySettings, clock: Clock) -> None:
        self.coordinator = coordinator
        self.settings = settings
        self.clock = clock
        self._delay = RecentDelay()
        self._latency_ms = 0.0
        self.is_draining = False
        self.members = 0
        self._connections: dict[MemberKey, ConnectionHeartbeats] = {}
        """The connection of each member's last heartbeat, the only one that keeps its state."""
        self.pace = self._compute_pace()

    def _compute_pace(self) -> Pace:
        interval_ms = self.coordinator.settings.group_consumer_heartbeat_interval_ms
        return compute_pace(self.settings, self.members, interval_ms)

    def _count_members(self, change: int) -> None:
        self.members += change
        self.pace = self._compute_pace()

    def _member_of(self, connection: ConnectionHeartbeats, key: MemberKey) -> Member:
        """The member's state on this connection, created on its first heartbeat.

        The previous connection, if any, drops the member and its cached heartbeat. If the member
        returns there, it starts as new.
        """
        member = connection.members.get(key)
        if member is None:
            if len(connection.members) >= self.settings.gateway_steady_cache_entries:
                self.forget_all(connection)
            older = self._connections.get(key)
            if older is not None:
                connection.round_trip.inherit(older.round_trip, older.parked is not None)
                self.forget(older, key)
            member = Member(key)
            # Use the member's own key object, not an equal copy: with many members memory counts.
            connection.members[member.key] = member
            self._connections[member.key] = connection
            self._count_members(1)
        return member

    def forget(self, connection: ConnectionHeartbeats, key: MemberKey) -> None:
        """Drop a member that has left, is unknown to its group, or uses another connection now."""
        if connection.forget(key):
            del self._connections[key]
            self._count_members(-1)

    def forget_all(self, connection: ConnectionHeartbeats) -> None:
        """Drop all members of a connection that is gone or has too many."""
        if not connection.members:
            return
        self._count_members(-len(connection.members))
        for key in connection.members:
            del self._connections[key]
        connection.members.clear()
        connection.cached.clear()

    def compute_gap_ms(self, connection: ConnectionHeartbeats) -> int:
        """How long before its interval ends a client of the connection must be answered.

        A connection with several members gets the minimum: its timing would measure how busy the
        client process is.
        """
        least_ms = self.settings.gateway_park_gap_ms
        if len(connection.members) > 1:
            return least_ms
        delay_ms = self._delay.compute_ms(self.clock.time())
        return compute_gap_ms(least_ms, connection.round_trip.allowance_ms, delay_ms)

    def _hear(self, connection: ConnectionHeartbeats, member: Member, now: float) -> None:
        """Note a heartbeat's arrival, and learn from the time since the last response."""
        if member.answered_at and len(connection.members) <= 1:
            took_ms = (now - member.answered_at) * 1_000
            held_ms = (member.answered_at - member.heard_at) * 1_000
            connection.round_trip.learn(took_ms, member.sent_interval_ms, held_ms)
        member.heard_at = now
        member.answered_at = 0.0

    def _compute_rest_ms(self, connection: ConnectionHeartbeats, member: Member) -> int:
        """The resting interval of a member.

        A connection with several members (a proxy, a load generator) is never parked, so it gets
        Kafka's interval, as everyone does if parking is off: more heartbeats would gain nothing.
        """
        if len(connection.members) > 1 or self.settings.gateway_park_ms == 0:
            return member.heartbeat_interval_ms
        least_ms, gap_ms = self.settings.gateway_park_gap_ms, self.compute_gap_ms(connection)
        return compute_rest_ms(self.pace, least_ms, gap_ms, member.heartbeat_interval_ms)

    def _choose_interval(
        self, connection: ConnectionHeartbeats, member: Member, is_change: bool, is_settled: bool
    ) -> int:
        """Choose the interval for a response that is sent now, and note it as sent.

        A member that waits for partitions gets a short interval, but never below what a response
        takes (a slow disk, a long round trip): the client would give it up and ask again.
        """
        now = self.clock.time()
        gap_ms = self.compute_gap_ms(connection)
        interval_ms = rest_ms = self._compute_rest_ms(connection, member)
        if self.settings.gateway_park_ms:
            first_ms = step_ms = self.pace.return_ms
            if not is_settled:
                first_ms, step_ms = self.pace.wait_ms, self.pace.wait_step_ms
            first_ms = max(first_ms, round(2 * self._latency_ms), gap_ms)
            previous_ms = 0 if is_change else member.sent_interval_ms
            interval_ms = compute_interval_ms(previous_ms, first_ms, max(step_ms, gap_ms), rest_ms)
            member.answers = 0 if is_change else member.answers + 1
            if member.answers % _PROBE_EVERY == _PROBE_EVERY - 1 and member.heard_at:
                held_ms = (now - member.heard_at) * 1_000
                least_ms = self.settings.gateway_park_gap_ms
                interval_ms = compute_probe_ms(held_ms, least_ms, gap_ms) or interval_ms
        member.sent_interval_ms = interval_ms
        member.answered_at = now
        return interval_ms

    def stop_parking(self) -> None:
        """Park no more heartbeats: the server is stopping."""
        self.is_draining = True

    def _compute_park_ms(self, connection: ConnectionHeartbeats, member: Member, now: float) -> int:
        """How long to park a heartbeat without a change, 0 to answer it at once; counts it.

        It is answered at once if its connection has several members, if the server drains, or if
        the member heartbeats more often than a client does.
        """
        if len(connection.members) > 1 or self.is_draining:
            return 0
        if now >= member.quiet_until:
            member.quiet_until = now + member.sent_interval_ms / 1_000
            member.quiet = 0
        member.quiet += 1
        if member.quiet > self.settings.gateway_burst_heartbeats:
            return 0
        gap_ms = self.compute_gap_ms(connection)
        least_ms = self.settings.gateway_park_gap_ms
        longest_ms = compute_longest_park_ms(self.pace, least_ms, gap_ms)
        park_ms = compute_park_ms(member.sent_interval_ms, gap_ms, longest_ms)
        return park_ms if park_ms >= SHORTEST_PARK_MS else 0

    def _note_latency(self, submitted: float) -> float:
        """Note how long the coordinator took to answer; return the current time."""
        now = self.clock.time()
        took_ms = (now - submitted) * 1_000
        self._latency_ms = max(self._latency_ms * _LATENCY_DECAY, took_ms)
        self._delay.note(took_ms, now)
        return now
