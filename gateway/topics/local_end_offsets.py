"""Where the partitions of the server's own topics end, for the lag of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.topics.local_topics import LocalTopics
from gateway.topics.topic_catalogue import LATEST_TIMESTAMP, OffsetQuery, PartitionKey
from model.errors import ErrorCode
from model.ids import TopicName

QUERIES_SLICE: Final = 100
"""Partitions looked up in one event-loop iteration."""


class LocalEndOffsets:
    """``coordinator.service.ends.end_offsets.EndOffsets`` of topics that have records here."""

    def __init__(self, topics: LocalTopics) -> None:
        self._topics = topics

    async def find_end_offsets(
        self, partitions: Sequence[tuple[TopicName, int]]
    ) -> Mapping[tuple[TopicName, int], int]:
        """Look the partitions up, a slice in each iteration; those that fail are left out."""
        return await self.find_offsets_at(partitions, LATEST_TIMESTAMP)

    async def find_offsets_at(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> Mapping[tuple[TopicName, int], int]:
        """The records of a topic without any may be elsewhere: where it ends is not known."""
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
        by_name, has_records = self._topics.image.by_name, self._topics.has_records
        known = [
            (name, partition)
            for name, partition in partitions
            if (topic := by_name.get(name)) is not None and has_records(topic.topic_id)
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
