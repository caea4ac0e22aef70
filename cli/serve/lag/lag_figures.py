"""The lag of partitions and groups, as it was at one look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cli.serve.lag.commit_windows import CommitWindow
from cli.serve.lag.group_status import Rule, Status, compute_group_status, status_of
from coordinator.service.ends.end_reports import ReportedEnd
from model.ids import TopicName

Place: TypeAlias = tuple[TopicName, int]
"""A partition of a topic."""


class Committed(NamedTuple):
    """A committed offset; ``at_ms`` (wall) is ``None`` where the time is not told."""

    topic: TopicName
    partition: int
    offset: int
    at_ms: int | None


class Ends(NamedTuple):
    """The first offset of a partition, and the one after its last; ``None`` if unknown."""

    start: int | None
    end: int | None


UNKNOWN_ENDS = Ends(None, None)


class PartitionLag(NamedTuple):
    """A partition that a group has committed to. What is ``None`` is not known.

    ``lag`` counts the records that are still there. ``ahead`` is how far the committed offset is
    beyond the end, which happens to topics that lost records, or were made again. ``lag_ms`` is the
    age of the first record that is not committed.
    """

    topic: TopicName
    partition: int
    committed: int
    committed_ms: int | None
    end: int | None
    lag: int | None
    ahead: int | None
    lag_ms: int | None
    rule: Rule | None
    window: CommitWindow

    @property
    def status(self) -> Status | None:
        """By Burrow's rules."""
        return None if self.rule is None else status_of(self.rule)


@dataclass(frozen=True, slots=True)
class Sums:
    """Over some partitions: the lag of those whose lag is known, and how many others there are."""

    committed: int
    lag: int | None
    lag_ms: int | None
    ahead: int | None
    unknown: int
    committed_ms: int | None


@dataclass(frozen=True, slots=True)
class GroupLag:
    """The partitions of a group, by topic and number."""

    rows: tuple[PartitionLag, ...]
    sums: Sums
    topics: Mapping[TopicName, Sums]
    status: Status


@dataclass(frozen=True, slots=True)
class LagFigures:
    """One look at all groups, which began and ended at these monotonic seconds.

    ``omitted`` groups are beyond the limit of partitions; the offsets of ``failed`` ones could not
    be read.
    """

    groups: Mapping[str, GroupLag]
    ends: Mapping[Place, Ends]
    began_s: float
    ended_s: float
    omitted: int
    failed: int


def compute_lag(committed: int, ends: Ends) -> tuple[int | None, int | None]:
    """The lag, and how far the offset is ahead of the end.

    What is below the start is no longer there to be read. An end that was reported may be older
    than the offset, which is then not ahead of it.
    """
    if ends.end is None:
        return None, None
    first = committed if ends.start is None else max(committed, ends.start)
    ahead = 0 if isinstance(ends.end, ReportedEnd) else max(committed - ends.end, 0)
    return max(ends.end - first, 0), ahead


class Summing:
    """Adds partitions up, of a group or of a topic, one by one."""

    __slots__ = (
        "_ahead",
        "_committed",
        "_committed_ms",
        "_lag",
        "_lag_ms",
        "_rows",
        "_status",
        "_with_lag",
    )

    def __init__(self) -> None:
        self._rows = self._with_lag = self._committed = self._lag = self._ahead = 0
        self._lag_ms: int | None = None
        self._committed_ms: int | None = None
        self._status = Status.NOTFOUND

    def add(self, row: PartitionLag) -> None:
        """Add a partition."""
        self._rows += 1
        self._committed += row.committed
        if row.lag is not None:
            self._with_lag += 1
            self._lag += row.lag
            self._ahead += row.ahead or 0
        if row.lag_ms is not None and (self._lag_ms is None or row.lag_ms > self._lag_ms):
            self._lag_ms = row.lag_ms
        latest = self._committed_ms
        if row.committed_ms is not None and (latest is None or row.committed_ms > latest):
            self._committed_ms = row.committed_ms
        if row.rule is not None:
            self._status = max(self._status, status_of(row.rule))

    def add_all(self, other: Summing) -> None:
        """Add what another has added."""
        self._rows += other._rows
        self._committed += other._committed
        self._with_lag += other._with_lag
        self._lag += other._lag
        self._ahead += other._ahead
        self._lag_ms = _find_larger(self._lag_ms, other._lag_ms)
        self._committed_ms = _find_larger(self._committed_ms, other._committed_ms)
        self._status = max(self._status, other._status)

    def compute_sums(self) -> Sums:
        """The sums of what was added; of times the longest, and the last."""
        is_known = self._with_lag > 0
        return Sums(
            self._committed,
            self._lag if is_known else None,
            self._lag_ms,
            self._ahead if is_known else None,
            self._rows - self._with_lag,
            self._committed_ms,
        )

    def compute_status(self) -> Status:
        """The status of a group of these partitions."""
        return compute_group_status(self._status)


def _find_larger(one: int | None, other: int | None) -> int | None:
    return one if other is None or (one is not None and one >= other) else other
