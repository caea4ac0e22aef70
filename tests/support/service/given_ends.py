"""End offsets as a test gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model.ids import TopicName


class GivenEnds:
    """``coordinator.service.ends.end_offsets.EndOffsets`` of a table; ``asked`` remembers."""

    def __init__(self, **ends: dict[int, int]) -> None:
        self.ends = ends
        self.asked: list[tuple[TopicName, int]] = []

    async def find_end_offsets(
        self, partitions: Sequence[tuple[TopicName, int]]
    ) -> Mapping[tuple[TopicName, int], int]:
        """Those in the table."""
        self.asked += partitions
        return {
            (name, partition): self.ends[name][partition]
            for name, partition in partitions
            if partition in self.ends.get(name, {})
        }

    async def find_offsets_at(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> Mapping[tuple[TopicName, int], int]:
        """The ends of the table; logs begin at a tenth of them, and a record is made every ms."""
        ends = await self.find_end_offsets(partitions)
        if timestamp_ms == -1:
            return ends
        if timestamp_ms == -2:
            return {place: end // 10 for place, end in ends.items()}
        return {
            place: -1 if timestamp_ms >= end else max(timestamp_ms, end // 10)
            for place, end in ends.items()
        }
