"""Orders the commits of one member: those of one partition run one after another.

Commits are retried. If a later commit of the same partition ran beside an earlier one, a retry
could overwrite the newer offset after it was acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager

from muster.partitions import TopicPartition


class CommitOrder:
    """Lets commits of one partition through in order of the calls."""

    __slots__ = ("_last", "_sequence")

    def __init__(self) -> None:
        self._last: dict[TopicPartition, asyncio.Future[None]] = {}
        self._sequence = 0

    def next_sequence(self) -> int:
        """The number of the next request; retries get new ones."""
        self._sequence += 1
        return self._sequence

    @asynccontextmanager
    async def turn(self, partitions: Iterable[TopicPartition]) -> AsyncIterator[None]:
        """Enter when all earlier commits of these partitions have ended."""
        ours: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        keys = [TopicPartition(*partition) for partition in partitions]
        before = {self._last[key] for key in keys if key in self._last}
        self._last.update(dict.fromkeys(keys, ours))
        try:
            if before:
                await asyncio.wait(before)
            yield
        finally:
            self._end(ours, keys, {each for each in before if not each.done()})

    def _end(
        self,
        ours: asyncio.Future[None],
        keys: Collection[TopicPartition],
        before: set[asyncio.Future[None]],
    ) -> None:
        """End our turn. If we were cancelled while waiting, later commits wait for earlier ones."""
        if before:
            earliest = before.pop()
            earliest.add_done_callback(lambda _: self._end(ours, keys, before))
            return
        ours.set_result(None)
        for key in keys:
            if self._last.get(key) is ours:
                del self._last[key]
