"""Heartbeats of classic members in consumer groups, parked until the member has to rejoin.

No response sets a classic client's heartbeat interval; it has its own, 3 s by default. So the
interval is learned from the heartbeats' arrival, and each is parked for that long, less a gap: the
next one follows once the last is answered. A client may skip a heartbeat while one is in flight
(librdkafka), so a park is never longer than the learned interval.

A member whose partitions are still owned by others gets an empty assignment. It would learn that
they are free only from its first heartbeat, an interval later. So its SyncGroup is parked too.

In a classic group everything is answered at once, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from coordinator.runtime.api import Answer
from gateway.api import RequestContext
from gateway.heartbeats.parking import SHORTEST_PARK_MS, Parked, Parking
from model.commands.classic import ClassicHeartbeat, SyncGroup
from model.responses.classic import ClassicHeartbeatResponse, SyncGroupResponse

LONGEST_PARK_MS: Final = 10_000
"""Well below the request timeout of clients, 30 s."""
SYNC_PARK_MS: Final = 1_000
"""A member of the consumer protocol revokes its partitions within this time, unless it is busy."""
GAPS_IN_AN_INTERVAL: Final = 16
"""The gap is at least this fraction (1/16) of the interval, which a late heartbeat may inflate."""


class ParkedClassic(Parked):
    """A parked Heartbeat or SyncGroup of a classic member."""

    __slots__ = ("_answer", "_context", "_heartbeat")

    def __init__(
        self,
        heartbeats: Parking,
        context: RequestContext,
        command: ClassicHeartbeat,
        answer: Callable[[Answer], None],
    ) -> None:
        super().__init__(heartbeats, context.client, command)
        self._context = context
        self._heartbeat = command
        self._answer = answer

    def _is_as_found(self) -> bool:
        return False

    def _answer_as_found(self) -> None:
        self._context.keep()
        self._answer(ClassicHeartbeatResponse())

    def _ask_again(self) -> None:
        self._context.keep()
        self._context.submit(self._heartbeat, self._answer)

    def _fail(self, error: Exception) -> None:
        self._client.fail(self._context, error)


class ClassicHeartbeats:
    """Submits the requests of the Heartbeat API (12), and parks those that it may."""

    def __init__(self, heartbeats: Parking) -> None:
        self._heartbeats = heartbeats

    def submit(
        self,
        context: RequestContext,
        command: ClassicHeartbeat,
        answer: Callable[[Answer], None],
    ) -> None:
        """Submit a heartbeat; ``answer`` receives the result, possibly much later."""
        pace = context.client.heartbeats.classic
        pace.hear(command, self._heartbeats.clock.time())

        def on_answer(found: Answer) -> None:
            gap_ms = self._heartbeats.compute_gap_ms(context.client.heartbeats)
            park_ms = self._compute_park_ms(pace.interval_ms, gap_ms, found)
            if park_ms < SHORTEST_PARK_MS or not context.client.is_latest(context):
                answer(found)
                return
            pace.is_parked = True
            self._park(context, replace(command, by_server=True), answer, park_ms)

        context.submit(command, on_answer)

    def answer_sync(
        self,
        context: RequestContext,
        command: SyncGroup,
        found: SyncGroupResponse,
        answer: Callable[[Answer], None],
    ) -> None:
        """Pass ``found`` to ``answer``, or, after parking, the error that makes the member rejoin.

        A member that has rejoined for that and still has no partitions is not parked again.
        """
        now = self._heartbeats.clock.time()
        pace = context.client.heartbeats.classic

        def finish(heard: Answer) -> None:
            pace.begin(command, self._heartbeats.clock.time())
            answer(found if isinstance(heard, ClassicHeartbeatResponse) else heard)

        is_parked = (
            found.awaits_partitions
            and self._may_park()
            and context.client.is_latest(context)
            and pace.may_park_sync(now, SYNC_PARK_MS)
        )
        if not is_parked:
            finish(ClassicHeartbeatResponse())
            return
        heartbeat = ClassicHeartbeat(
            command.caller,
            command.group_id,
            command.member_id,
            command.generation,
            command.instance_id,
            by_server=True,
        )
        self._park(context, heartbeat, finish, SYNC_PARK_MS)

    def _park(
        self,
        context: RequestContext,
        heartbeat: ClassicHeartbeat,
        answer: Callable[[Answer], None],
        park_ms: int,
    ) -> None:
        context.began_s = 0.0
        parked = ParkedClassic(self._heartbeats, context, heartbeat, answer)
        context.on_abandoned(parked.drop)
        parked.start(park_ms)

    def _may_park(self) -> bool:
        return self._heartbeats.settings.gateway_park_ms > 0 and not self._heartbeats.is_draining

    def _compute_park_ms(self, interval_ms: float, gap_ms: int, answer: Answer) -> int:
        """How long to park a heartbeat, 0 to answer at once; ``gap_ms`` covers the round trip."""
        if not isinstance(answer, ClassicHeartbeatResponse) or not self._may_park():
            return 0
        longest_ms = min(int(interval_ms), answer.park_max_ms, LONGEST_PARK_MS)
        return max(0, longest_ms - max(gap_ms, longest_ms // GAPS_IN_AN_INTERVAL))
