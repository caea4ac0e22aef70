"""What all connections of a server make it hold, and who goes when that is too much.

The one who holds the most for the longest: half-sent requests, or answers that it does not read.
Whoever comes next has done nothing wrong.
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.connected import Connected
from gateway.wire_clock import Clock


class HeldBytes:
    """``requests``: what has come and is not handled, or waits. ``answers``: what is made and not
    sent.

    Of the answers, large ones count when they are written, and all when they are measured. Of
    ``connections`` so much may be held: ``requests_max`` and ``answers_max``.
    """

    def __init__(
        self, connections: Collection[Connected], clock: Clock, requests_max: int, answers_max: int
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._requests_max = requests_max
        self._answers_max = answers_max
        self.requests = 0
        self.answers = 0
        self._is_shedding = False

    def check_requests(self, now: float) -> None:
        """Close who holds the most of a request for the longest, until there is room again."""
        limit = self._requests_max
        if self.requests <= limit:
            return
        for connection in self._sort([c.weigh_request(now) for c in self._connections]):
            if self.requests <= limit:
                return
            connection.refuse("queued-bytes", f"queued.max.request.bytes={limit} is reached")

    def check_answers(self) -> None:
        """See to it soon that too many answers that nobody reads are let go of."""
        if self.answers > self._answers_max and not self._is_shedding:
            self._is_shedding = True
            self._clock.call_later(0, self._shed_answers)

    def _shed_answers(self) -> None:
        self._is_shedding = False
        limit = self._answers_max
        now = self._clock.time()
        weights = [connection.measure_answers(now) for connection in self._connections]
        if self.answers <= limit:
            return
        for connection in self._sort(weights):
            if self.answers <= limit:
                return
            connection.cut("unread-answers", f"gateway.response.total.bytes={limit} is reached")

    def _sort(self, weights: list[float]) -> list[Connected]:
        """Those that weigh anything, the heaviest first."""
        pairs = sorted(zip(weights, self._connections, strict=True), key=lambda pair: -pair[0])
        return [connection for weight, connection in pairs if weight > 0]
