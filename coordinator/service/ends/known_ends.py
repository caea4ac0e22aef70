"""``EndOffsets`` of those who have the records, and of reports where nobody here has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from coordinator.service.ends.end_offsets import EndOffsets
from coordinator.service.ends.end_reports import EndReports
from coordinator.service.wire.answer_slices import SLICE
from model.ids import TopicName
from model.topics import TopicImage

_Place: TypeAlias = tuple[TopicName, int]

_LATEST: Final = -1


class KnownEnds:
    """For showing lag. What moves offsets asks ``truth`` alone: a report may be wrong.

    ``truth`` is ``None`` where nobody has records, ``reports`` where none are taken.
    """

    def __init__(
        self,
        truth: EndOffsets | None,
        reports: EndReports | None,
        *,
        image: Callable[[], TopicImage],
        now_ms: Callable[[], int],
    ) -> None:
        """``now_ms`` is the clock by which reports are taken, and grow old."""
        self.truth = truth
        self.reports = reports
        self._image = image
        self.now_ms = now_ms

    async def find_end_offsets(self, partitions: Sequence[_Place]) -> Mapping[_Place, int]:
        """A report counts only where the truth is not known."""
        truth = self.truth
        found = {} if truth is None else await truth.find_end_offsets(partitions)
        return await self._add_reported(partitions, found)

    async def find_offsets_at(
        self, partitions: Sequence[_Place], timestamp_ms: int
    ) -> Mapping[_Place, int]:
        """Reports say nothing of other times, or of the beginning."""
        truth = self.truth
        found = {} if truth is None else await truth.find_offsets_at(partitions, timestamp_ms)
        if timestamp_ms != _LATEST:
            return found
        return await self._add_reported(partitions, found)

    async def _add_reported(
        self, partitions: Sequence[_Place], found: Mapping[_Place, int]
    ) -> Mapping[_Place, int]:
        reports = self.reports
        if reports is None or not len(reports) or len(found) == len(partitions):
            return found
        known = dict(found)
        for begin in range(0, len(partitions), SLICE):
            by_name, now_ms = self._image().by_name, self.now_ms()
            for place in partitions[begin : begin + SLICE]:
                topic = None if place in known else by_name.get(place[0])
                if topic is not None:
                    end = reports.find(topic.topic_id, place[1], now_ms)
                    if end is not None:
                        known[place] = end
            await asyncio.sleep(0)
        return known
