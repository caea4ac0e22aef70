"""What a report shows, as plain data: no Spark, no HTML. Times are wall ms, durations ms.

Each list is the top of its kind; what is left out is counted beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

UNKNOWN_CAUSE = "not_in_the_records"


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The log as a whole. ``groups`` counts by type the groups that are there in the end."""

    path: str
    start_ms: int | None
    end_ms: int | None
    records: int
    commits: int
    groups: Mapping[str, int]
    problems: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RebalanceSeries:
    """Rebalances in windows of ``window_ms`` from ``start_ms`` on: by cause, how many in each."""

    start_ms: int
    window_ms: int
    by_cause: Mapping[str, Sequence[int]]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(sum(counts) for counts in self.by_cause.values())


@dataclass(frozen=True, slots=True)
class Convergence:
    """How long rebalances took, from the first epoch to the last member stable at the target.

    ``counts[i]`` of them took from ``edges_ms[i]`` to before ``edges_ms[i + 1]``. ``p50_ms`` and
    ``p99_ms`` are a window each, null where nothing converged in it. ``never`` had members all the
    time and did not come to an end, or was overtaken when the group became empty; ``untimed`` are
    those of classic groups, of which no record says when they began.
    """

    edges_ms: Sequence[float]
    counts: Sequence[int]
    percentiles_ms: Mapping[str, int]
    start_ms: int
    window_ms: int
    p50_ms: Sequence[int | None]
    p99_ms: Sequence[int | None]
    never: int
    untimed: int


@dataclass(frozen=True, slots=True)
class BusyGroup:
    """A group's rebalances as a whole."""

    group_id: str
    protocol: str
    rebalances: int
    never: int
    p50_ms: int | None
    longest_ms: int | None
    total_ms: int
    partitions_moved: int
    causes: Mapping[str, int]
    worst_member: str | None
    """The member behind most of them, where records name one."""
    worst_member_causes: int
    per_window: Sequence[int]
    """As many windows as ``RebalanceSeries`` has, joined where they are too many for a cell."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The first of a list, and what the others come to."""

    groups: Sequence[BusyGroup]
    other_groups: int
    other_rebalances: int


@dataclass(frozen=True, slots=True)
class Stay:
    """A partition with a member for a time; ``to_ms`` is null while it lasts."""

    member: int
    """Its number in ``Lanes.members``."""
    epoch: int
    from_ms: int
    to_ms: int | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A partition of a topic, and who had it one after another."""

    topic: str
    partition: int
    stays: Sequence[Stay]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Who owned what in one group from ``start_ms`` to ``end_ms``."""

    group_id: str
    start_ms: int
    end_ms: int
    members: Sequence[str]
    lanes: Sequence[Lane]
    rebalances_ms: Sequence[int]
    other_lanes: int
    earlier_stays: int
    """Stays that ended before ``start_ms`` and are left out."""


@dataclass(frozen=True, slots=True)
class LaggingGroup:
    """A group at the end of the log, and at its worst."""

    group_id: str
    lag: int
    lag_s: float | None
    most_lag: int
    partitions: int
    statuses: Mapping[str, int]
    per_window: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class LagFigures:
    """Lag in messages: of the groups that have most of it by windows, of all others in the end."""

    start_ms: int
    window_ms: int
    groups: Sequence[LaggingGroup]
    other_groups: int
    other_lag: int
    statuses: Mapping[str, int]
    """Partitions by their status in the last window that they have."""
    unknown_partitions: int
    """Without an end offset, so that nobody knows their lag."""


@dataclass(frozen=True, slots=True)
class ExpiringGroup:
    """A group whose offsets go, and why they may."""

    group_id: str
    offsets: int
    topics: int
    first_ms: int
    last_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class ExpiryFigures:
    """Offsets that nothing protects, by when they expire: windows from the end of the log on.

    ``overdue`` should be gone by the retention time that was given; the log still has them.
    """

    end_ms: int
    retention_ms: int
    window_ms: int
    counts: Sequence[int]
    overdue: int
    within_day: int
    offsets: int
    """All offsets that are there in the end."""
    groups: Sequence[ExpiringGroup]
    other_groups: int
    other_offsets: int


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page shows."""

    facts: LogFacts
    series: RebalanceSeries
    convergence: Convergence
    busiest: Ranking
    slowest: Ranking
    lanes: Sequence[Lanes]
    lag: LagFigures | None
    expiry: ExpiryFigures | None
    unknown_groups: Sequence[str] = field(default=())
    """Groups that were asked for and that nobody owned anything in."""
