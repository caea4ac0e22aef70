"""``EndOffsets``: what the services need to know of where partitions end, for the lag of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from coordinator.runtime.loop.slices import Steps
from coordinator.service.ends.end_offset_times import EndOffsetTimes
from coordinator.service.ends.end_reports import ReportedEnd
from coordinator.service.wire.answer_slices import SLICE, run_steps
from model.ids import TopicName
from muster.v1 import types_pb2


class EndOffsets(Protocol):
    """Finds end offsets, wherever the records are."""

    async def find_end_offsets(
        self, partitions: Sequence[tuple[TopicName, int]]
    ) -> Mapping[tuple[TopicName, int], int]:
        """The offset after the last record of each partition, open transactions included.

        What is not known, or not in time, is left out; what clients report is a ``ReportedEnd``.
        Never raises because of what is asked.
        """

    async def find_offsets_at(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> Mapping[tuple[TopicName, int], int]:
        """The first offset of each partition at or after a time (ms), -1 if all are older.

        -1 asks for the end and -2 for the beginning, as Kafka's ListOffsets. Answers are not kept.
        What is not known, or not in time, is left out, as is a topic that never had records here.
        """


async def add_end_offsets(
    end_offsets: EndOffsets | None,
    times: EndOffsetTimes,
    topics: Sequence[types_pb2.CommittedTopic],
    monotonic_ms: Callable[[], int],
) -> None:
    """Set the end offsets of the partitions that the caller may see, where they are known.

    And how old the first record is that is not committed, where that is known.
    """
    if end_offsets is None:
        return
    places = await run_steps(_collect(topics))
    found = await end_offsets.find_end_offsets(places)
    await run_steps(_set_all(topics, found, times, monotonic_ms()))


def _collect(topics: Iterable[types_pb2.CommittedTopic]) -> Steps[list[tuple[TopicName, int]]]:
    """The partitions, each once."""
    places: dict[tuple[TopicName, int], None] = {}
    left = SLICE
    for topic in topics:
        for row in topic.partitions if topic.topic_name else ():
            places[TopicName(topic.topic_name), row.partition] = None
            left -= 1
            if left <= 0:
                left = SLICE
                yield
    return list(places)


def _set_all(
    topics: Iterable[types_pb2.CommittedTopic],
    found: Mapping[tuple[TopicName, int], int],
    times: EndOffsetTimes,
    now_ms: int,
) -> Steps[None]:
    left = SLICE
    for topic in topics:
        for row in topic.partitions:
            place = TopicName(topic.topic_name), row.partition
            end = found.get(place)
            if end is not None:
                row.end_offset = end
                row.is_end_reported = isinstance(end, ReportedEnd)
                # A topic made again under the name has other records.
                seen = topic.topic_id or topic.topic_name, row.partition
                times.add(seen, end, now_ms)
                if row.HasField("offset"):
                    lag_ms = times.compute_lag_ms(seen, row.offset, end, now_ms)
                    if lag_ms is not None:
                        row.lag_ms = lag_ms
            left -= 1
            if left <= 0:
                left = SLICE
                yield
