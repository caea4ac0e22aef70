"""Heartbeats of classic members of consumer groups: parked until there is a step to take.

Nothing tells a classic client when to send its next heartbeat: it has an interval of its own, 3 s
by default. So that interval is learned from when its heartbeats come, and each is held back for
as long, less a gap: the next one may come when the last one is answered. A client that has one
under way when it wants to send the next may leave that out (librdkafka), so a park is never longer
than what was seen.

In a group that is a classic one each heartbeat is answered at once, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from coordinator.runtime.api import Answer
from gateway.parking import SHORTEST_PARK_MS, Parked
from model.commands import ClassicHeartbeat, SyncGroup
from model.responses import ClassicHeartbeatResponse

if TYPE_CHECKING:
    from gateway.api import RequestContext
    from gateway.heartbeats import Heartbeats

LONGEST_PARK_MS: Final = 10_000
"""Well below what clients give a request: 30 s."""
GAPS_IN_AN_INTERVAL: Final = 16
"""How late a heartbeat may have come, of those that the interval was learned from."""


class ParkedClassic(Parked):
    """A heartbeat of a classic member whose answer is held back; it is asked again at the end."""

    __slots__ = ("_answer", "_asked", "_request")

    def __init__(
        self,
        heartbeats: Heartbeats,
        context: RequestContext,
        command: ClassicHeartbeat,
        answer: Callable[[Answer], None],
    ) -> None:
        super().__init__(heartbeats, context.door, command, None, context, b"")
        self._request = context
        self._asked = command
        self._answer = answer

    def _ask_again(self) -> None:
        self._request.keep()
        self._request.submit(self._asked, self._answer)


class ClassicHeartbeats:
    """Submits heartbeats of the API Heartbeat (12), and parks those that may be."""

    def __init__(self, heartbeats: Heartbeats) -> None:
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
            park_ms = self._compute_park_ms(pace.interval_ms, found)
            if park_ms < SHORTEST_PARK_MS or not context.door.is_latest(context):
                answer(found)
                return
            parked = ParkedClassic(self._heartbeats, context, command, answer)
            context.on_abandoned(parked.drop)
            pace.is_parked = True
            parked.start(park_ms)

        context.submit(command, on_answer)

    def note_sync(self, context: RequestContext, command: SyncGroup) -> None:
        """The member is told its assignment now."""
        context.door.heartbeats.classic.begin(command, self._heartbeats.clock.time())

    def _compute_park_ms(self, interval_ms: float, answer: Answer) -> int:
        """How long the answer is held back, 0 for not at all."""
        heartbeats = self._heartbeats
        settings = heartbeats.settings
        if (
            not isinstance(answer, ClassicHeartbeatResponse)
            or settings.gateway_park_ms == 0
            or heartbeats.is_draining
        ):
            return 0
        longest_ms = min(int(interval_ms), answer.park_max_ms, LONGEST_PARK_MS)
        gap_ms = max(settings.gateway_park_gap_ms, longest_ms // GAPS_IN_AN_INTERVAL)
        return max(0, longest_ms - gap_ms)
