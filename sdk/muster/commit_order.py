"""Commits of one member: those of a partition go one after another, in the order of the calls.

A commit is tried again by itself. If a later one of the same partition went beside it, the older
offset could come last, after the newer one was acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager

from muster.partitions import TopicPartition


class CommitOrder:
    """Whose turn it is. ``next_sequence`` numbers the requests, each time that one is made."""

    __slots__ = ("_last", "_sequence")

    def __init__(self) -> None:
        self._last: dict[TopicPartition, asyncio.Future[None]] = {}
        self._sequence = 0

    def next_sequence(self) -> int:
        """More than all before."""
        self._sequence += 1
        return self._sequence

    @asynccontextmanager
    async def turn(self, partitions: Iterable[TopicPartition]) -> AsyncIterator[None]:
        """Begins when all commits of these partitions that were called before have ended."""
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
        """Whoever was cancelled while it waited lets nobody pass those that it waited for."""
        if before:
            earliest = before.pop()
            earliest.add_done_callback(lambda _: self._end(ours, keys, before))
            return
        ours.set_result(None)
        for key in keys:
            if self._last.get(key) is ours:
                del self._last[key]
