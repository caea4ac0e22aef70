"""Where the partitions of the server's own topics end, for the lag of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.topics.topic_catalogue import (
    LATEST_TIMESTAMP,
    OffsetQuery,
    PartitionKey,
    TopicCatalogue,
)
from model.errors import ErrorCode
from model.ids import TopicName

QUERIES_SLICE: Final = 100
"""Partitions looked up in one event-loop iteration."""


class LocalEndOffsets:
    """``coordinator.service.calls.end_offsets.EndOffsets`` of a catalogue that has the records."""

    def __init__(self, topics: TopicCatalogue) -> None:
        self._topics = topics

    async def find_end_offsets(
        self, partitions: Sequence[tuple[TopicName, int]]
    ) -> Mapping[tuple[TopicName, int], int]:
        """Look the partitions up, a slice in each iteration; those that fail are left out."""
        return await self._find(partitions, LATEST_TIMESTAMP)

    async def find_offsets_at(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> Mapping[tuple[TopicName, int], int]:
        """The records of a topic without any may be elsewhere, so its ends tell nothing."""
        ends = await self._find(partitions, LATEST_TIMESTAMP)
        written = {name for (name, _), end in ends.items() if end > 0}
        asked = [place for place in partitions if place[0] in written]
        if timestamp_ms == LATEST_TIMESTAMP:
            return {place: ends[place] for place in asked if place in ends}
        return await self._find(asked, timestamp_ms)

    async def _find(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> dict[tuple[TopicName, int], int]:
        found: dict[tuple[TopicName, int], int] = {}
        for begin in range(0, len(partitions), QUERIES_SLICE):
            await self._find_some(partitions[begin : begin + QUERIES_SLICE], timestamp_ms, found)
            await asyncio.sleep(0)
        return found

    async def _find_some(
        self,
        partitions: Sequence[tuple[TopicName, int]],
        timestamp_ms: int,
        found: dict[tuple[TopicName, int], int],
    ) -> None:
        by_name = self._topics.image.by_name
        known = [
            (name, partition) for name, partition in partitions if by_name.get(name) is not None
        ]
        steps = self._topics.find_offsets(
            [
                OffsetQuery(PartitionKey(by_name[name].topic_id, partition), timestamp_ms)
                for name, partition in known
            ]
        )
        while True:
            # A task of its own, as the call's: it ends when the client cancels.
            try:
                next(steps)
            except StopIteration as end:
                results = end.value
                break
            await asyncio.sleep(0)
        for place, result in zip(known, results, strict=True):
            if result.error == ErrorCode.NONE and (result.offset >= 0 or timestamp_ms >= 0):
                found[place] = result.offset
