"""Heartbeats of classic members of consumer groups: parked until there is a step to take.

Nothing tells a classic client when to send its next heartbeat: it has an interval of its own, 3 s
by default. So that interval is learned from when its heartbeats come, and each is held back for
as long, less a gap: the next one may come when the last one is answered. A client that has one
under way when it wants to send the next may leave that out (librdkafka), so a park is never longer
than what was seen.

A member that is assigned nothing yet, for others still hold what it is to get, would hear that it
is free with its first heartbeat after that interval, and have nothing to do until then. So its
SyncGroup is parked too.

In a group that is a classic one everything is answered at once, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from coordinator.runtime.api import Answer
from gateway.api import RequestContext
from gateway.heartbeats.parking import SHORTEST_PARK_MS, Parked, Parking
from model.commands import ClassicHeartbeat, SyncGroup
from model.responses import ClassicHeartbeatResponse, SyncGroupResponse

LONGEST_PARK_MS: Final = 10_000
"""Well below what clients give a request: 30 s."""
SYNC_PARK_MS: Final = 1_000
"""A member of the other protocol gives up what it has to in less, unless it is busy."""
GAPS_IN_AN_INTERVAL: Final = 16
"""How late a heartbeat may have come, of those that the interval was learned from."""


class ParkedClassic(Parked):
    """A request of a classic member that is held back; at the end ``command`` is asked."""

    __slots__ = ("_answer", "_context", "_heartbeat")

    def __init__(
        self,
        heartbeats: Parking,
        context: RequestContext,
        command: ClassicHeartbeat,
        answer: Callable[[Answer], None],
    ) -> None:
        super().__init__(heartbeats, context.door, command)
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
        self._door.fail(self._context, error)


class ClassicHeartbeats:
    """Submits heartbeats of the API Heartbeat (12), and parks those that may be."""

    def __init__(self, heartbeats: Parking) -> None:
        self._heartbeats = heartbeats

    def submit(
        self,
        context: RequestContext,
        command: ClassicHeartbeat,
        answer: Callable[[Answer], None],
    ) -> None:
        """Submit a heartbeat; ``answer`` is called with what is to be said, perhaps much later."""
        pace = context.door.heartbeats.classic
        pace.hear(command, self._heartbeats.clock.time())

        def on_answer(found: Answer) -> None:
            gap_ms = self._heartbeats.compute_gap_ms(context.door.heartbeats)
            park_ms = self._compute_park_ms(pace.interval_ms, gap_ms, found)
            if park_ms < SHORTEST_PARK_MS or not context.door.is_latest(context):
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
        """``answer`` the member what was found, or a little later that it has to join again.

        A member that has joined again for that, and still has nothing, is not held back once more.
        """
        now = self._heartbeats.clock.time()
        pace = context.door.heartbeats.classic

        def finish(heard: Answer) -> None:
            pace.begin(command, self._heartbeats.clock.time())
            answer(found if isinstance(heard, ClassicHeartbeatResponse) else heard)

        is_parked = (
            found.awaits_partitions
            and self._may_park()
            and context.door.is_latest(context)
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
        parked = ParkedClassic(self._heartbeats, context, heartbeat, answer)
        context.on_abandoned(parked.drop)
        parked.start(park_ms)

    def _may_park(self) -> bool:
        return self._heartbeats.settings.gateway_park_ms > 0 and not self._heartbeats.is_draining

    def _compute_park_ms(self, interval_ms: float, gap_ms: int, answer: Answer) -> int:
        """How long the answer is held back, 0 for not at all; ``gap_ms`` is for its way."""
        if not isinstance(answer, ClassicHeartbeatResponse) or not self._may_park():
            return 0
        longest_ms = min(int(interval_ms), answer.park_max_ms, LONGEST_PARK_MS)
        return max(0, longest_ms - max(gap_ms, longest_ms // GAPS_IN_AN_INTERVAL))
