"""Bounds the memory that all connections hold, and closes the worst offenders above it.

The connection that holds the most bytes for the longest goes: partial requests, or responses that
its client does not read. The connection whose bytes happen to cross the limit is not to blame.
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.connected import Connected
from gateway.wire_clock import Clock


class HeldBytes:
    """Bytes held by ``connections``: ``requests`` up to ``requests_max``, ``answers`` up to
    ``answers_max``.

    ``requests`` are received and not answered or still waiting; ``answers`` are encoded and not
    sent. Large responses are counted when written, all others when the sweep measures them.
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
        """Above the limit, close the connections whose requests weigh most until it holds."""
        limit = self._requests_max
        if self.requests <= limit:
            return
        for connection in self._sort([c.weigh_request(now) for c in self._connections]):
            if self.requests <= limit:
                return
            connection.refuse("queued-bytes", f"queued.max.request.bytes={limit} is reached")

    def check_answers(self) -> None:
        """Above the limit, schedule the closing of the connections with most unread responses."""
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
        """The connections of non-zero weight, heaviest first."""
        pairs = sorted(zip(weights, self._connections, strict=True), key=lambda pair: -pair[0])
        return [connection for weight, connection in pairs if weight > 0]
