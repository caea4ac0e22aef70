"""What all connections of a server make it hold, and who goes when that is too much.

The one who holds the most for the longest: half-sent requests, or answers that it does not read.
Whoever comes next has done nothing wrong.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.connection import Connection
    from gateway.shared import Shared


class HeldBytes:
    """``requests``: what has come and is not handled. ``answers``: what is made and not sent.

    Of the answers, large ones count when they are written, and all when they are measured.
    ``requests_max`` and ``answers_max`` are what may be held.
    """

    def __init__(self, requests_max: int, answers_max: int) -> None:
        self.requests_max = requests_max
        self.answers_max = answers_max
        self.requests = 0
        self.answers = 0
        self.is_shedding = False


def check_requests(shared: Shared, now: float) -> None:
    """Close who holds the most of a request for the longest, until there is room again."""
    limit = shared.held.requests_max
    if shared.held.requests <= limit:
        return
    for connection in _sort(shared.connections, [c.weigh_request(now) for c in shared.connections]):
        if shared.held.requests <= limit:
            return
        connection.refuse("queued-bytes", f"queued.max.request.bytes={limit} is reached")


def check_answers(shared: Shared) -> None:
    """See to it soon that too many answers that nobody reads are let go of."""
    held = shared.held
    if held.answers > held.answers_max and not held.is_shedding:
        held.is_shedding = True
        shared.node.clock.call_later(0, lambda: _shed_answers(shared))


def _shed_answers(shared: Shared) -> None:
    shared.held.is_shedding = False
    limit = shared.held.answers_max
    now = shared.node.clock.time()
    weights = [connection.measure_answers(now) for connection in shared.connections]
    if shared.held.answers <= limit:
        return
    for connection in _sort(shared.connections, weights):
        if shared.held.answers <= limit:
            return
        connection.cut("unread-answers", f"gateway.response.total.bytes={limit} is reached")


def _sort(connections: Collection[Connection], weights: list[float]) -> list[Connection]:
    """Those that weigh anything, the heaviest first."""
    pairs = sorted(zip(weights, connections, strict=True), key=lambda pair: -pair[0])
    return [connection for weight, connection in pairs if weight > 0]
