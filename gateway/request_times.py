"""How long the requests of the Kafka wire take, by API."""

from __future__ import annotations

from time import perf_counter
from typing import Final

from coordinator.runtime.loop.stats import Histogram

REPEATS_SAMPLED: Final = 16
"""One of so many requests that are served without being decoded is timed, and stands for all."""


class RequestTimes:
    """From when a request is taken from its connection until its response, waits included.

    Heartbeats that are parked are not timed: they wait for a change as long as their client allows.
    Times are those of ``perf_counter``: the clock of the event loop stands still in an iteration.
    """

    __slots__ = ("by_key", "left")

    def __init__(self) -> None:
        self.by_key: dict[int, Histogram] = {}
        self.left = REPEATS_SAMPLED
        """Requests that are served without being decoded until the next one is timed."""

    def add(self, key: int, began_s: float, count: int = 1) -> None:
        """Note that a request of the API with this key is answered."""
        times = self.by_key.get(key)
        if times is None:
            times = self.by_key[key] = Histogram()
        times.add(perf_counter() - began_s, count)

    def begin_repeat(self) -> float:
        """Time this request, for those before it too; when it begins."""
        self.left = REPEATS_SAMPLED
        return perf_counter()

    def add_repeat(self, key: int, began_s: float) -> None:
        """Note that a request that stands for others is answered."""
        self.add(key, began_s, REPEATS_SAMPLED)
