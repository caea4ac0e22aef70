"""Where partitions end as clients report it; pure.

Of topics whose records are elsewhere, only their users know the ends. A report is true of the
moment in which it was made, so it is believed for a while and never written: after a restart the
next reports come within that time, and one that was kept longer would say of an end that has moved
on that it is known.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from model.ids import TopicId

_Place: TypeAlias = tuple[TopicId, int]

DROPPED_AT_ONCE: Final = 2
"""The most old reports that one new report removes: so all are gone before there is no room."""


class ReportedEnd(int):
    """An end as a client reported it: it may have moved on since, as an end that is known has not.

    So a committed offset above it is no sign of a topic that lost records.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReportLimits:
    """``partitions_max``: partitions with a report. ``max_age_ms``: how long one is believed."""

    partitions_max: int
    max_age_ms: int


class Verdict(Enum):
    """What became of a report.

    ``LOWER``: it is below one that is still believed, so it was late, or its reporter does not see
    all records yet. It does not keep the higher one alive: a mistake ends by itself.
    """

    TAKEN = "taken"
    LOWER = "lower"
    NO_ROOM = "no room"


class _Report(NamedTuple):
    end: ReportedEnd
    at_ms: int


class EndReports:
    """The reports that are believed. Times are of one monotonic clock.

    They are of topics by id: one that is made again under the name has none. If there is no room,
    those that are there stay, so that nobody takes the place of others.
    """

    __slots__ = ("_limits", "_reports")

    def __init__(self, limits: ReportLimits) -> None:
        self._limits = limits
        # In the order of their times; a plain dict takes long to find its first entry.
        self._reports: OrderedDict[_Place, _Report] = OrderedDict()

    def __len__(self) -> int:
        """How many are kept, with those that are too old and not removed yet."""
        return len(self._reports)

    @property
    def max_age_ms(self) -> int:
        """How long a report is believed."""
        return self._limits.max_age_ms

    def take(self, topic_id: TopicId, partition: int, end: int, now_ms: int) -> Verdict:
        """Keep a report of now, if it is to be believed and there is room."""
        place = topic_id, partition
        self._drop_old(now_ms)
        before = self._reports.get(place)
        if before is None and len(self._reports) >= self._limits.partitions_max:
            return Verdict.NO_ROOM
        if before is not None and end < before.end and not self._is_old(before, now_ms):
            return Verdict.LOWER
        self._reports[place] = _Report(ReportedEnd(end), now_ms)
        self._reports.move_to_end(place)
        return Verdict.TAKEN

    def find(self, topic_id: TopicId, partition: int, now_ms: int) -> ReportedEnd | None:
        """Where the partition ends; ``None`` without a report that is new enough."""
        report = self._reports.get((topic_id, partition))
        return None if report is None or self._is_old(report, now_ms) else report.end

    def _is_old(self, report: _Report, now_ms: int) -> bool:
        return now_ms - report.at_ms > self._limits.max_age_ms

    def _drop_old(self, now_ms: int) -> None:
        for _ in range(DROPPED_AT_ONCE):
            oldest = next(iter(self._reports.values()), None)
            if oldest is None or not self._is_old(oldest, now_ms):
                return
            self._reports.popitem(last=False)
