"""How long the requests of the Kafka wire take, by API."""

from __future__ import annotations

from typing import Final

from coordinator.runtime.loop.stats import Histogram

REPEATS_SAMPLED: Final = 64
"""One of so many requests that are answered from memory is timed, and stands for all of them."""
COMMITS_SAMPLED: Final = 8
"""The same for commits that are made without being decoded."""


class RequestTimes:
    """From when a request was read until its response is handed over, waits included.

    Heartbeats that are parked are not timed: they wait for a change as long as their client allows.
    """

    __slots__ = ("by_key", "commits_left", "left")

    def __init__(self) -> None:
        self.by_key: dict[int, Histogram] = {}
        self.left = REPEATS_SAMPLED
        """Requests answered from memory until the next one is timed."""
        self.commits_left = COMMITS_SAMPLED

    def add(self, key: int, took_s: float, count: int = 1) -> None:
        """Note a request of the API with this key."""
        times = self.by_key.get(key)
        if times is None:
            times = self.by_key[key] = Histogram()
        times.add(took_s, count)

    def add_repeats(self, key: int, took_s: float) -> None:
        """Note a request that was answered from memory, for those before it too."""
        self.left = REPEATS_SAMPLED
        self.add(key, took_s, REPEATS_SAMPLED)

    def add_commits(self, key: int, took_s: float) -> None:
        """Note a commit that was not decoded, for those before it too."""
        self.commits_left = COMMITS_SAMPLED
        self.add(key, took_s, COMMITS_SAMPLED)
