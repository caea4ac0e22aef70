"""The figures of a report as plain data: no Spark, no HTML. Times are wall ms, durations ms.

Each list has the top of its kind; the rest is counted beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

UNKNOWN_CAUSE = "not_in_the_records"


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The log as a whole. ``groups`` counts, by type, the groups that exist at its end."""

    path: str
    start_ms: int | None
    end_ms: int | None
    records: int
    commits: int
    groups: Mapping[str, int]
    problems: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RebalanceSeries:
    """Rebalances per window of ``window_ms`` since ``start_ms``, by cause."""

    start_ms: int
    window_ms: int
    by_cause: Mapping[str, Sequence[int]]

    @property
    def total(self) -> int:
        """The number of rebalances."""
        return sum(sum(counts) for counts in self.by_cause.values())


@dataclass(frozen=True, slots=True)
class Convergence:
    """How long rebalances took, from the first epoch until the last member is stable at the target.

    ``counts[i]`` of them took from ``edges_ms[i]`` to before ``edges_ms[i + 1]``. ``p50_ms`` and
    ``p99_ms`` are per window, null if nothing converged in it. ``never`` counts rebalances that did
    not end although the group had members throughout, and those cut short when the group became
    empty; ``untimed`` those of classic groups, whose records do not tell when they began.
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
class Member:
    """A member, by the client id that its records have, if they have one."""

    member_id: str
    client_id: str = ""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.client_id or self.member_id


@dataclass(frozen=True, slots=True)
class OneRebalance:
    """A rebalance of a group; ``duration_ms`` is null if it never converged or is not timed.

    ``moved`` names the first partitions that got an owner by it, ``partitions_moved`` counts all.
    """

    at_ms: int | None
    from_epoch: int | None
    to_epoch: int | None
    cause: str
    member: Member | None
    members_moved: int
    partitions_moved: int
    moved: Sequence[str]
    duration_ms: int | None
    is_timed: bool


@dataclass(frozen=True, slots=True)
class GroupDetails:
    """The last rebalances of a group, the last one first, and the number of those before."""

    group_id: str
    protocol: str
    rebalances: Sequence[OneRebalance]
    earlier: int


@dataclass(frozen=True, slots=True)
class BusyGroup:
    """The rebalances of one group."""

    group_id: str
    protocol: str
    rebalances: int
    never: int
    p50_ms: int | None
    longest_ms: int | None
    total_ms: int
    partitions_moved: int
    causes: Mapping[str, int]
    worst_member: Member | None
    """The member that caused most of them, if records name one."""
    worst_member_causes: int
    per_window: Sequence[int]
    """The windows of ``RebalanceSeries``, merged if they are too many for a cell."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The first of a list, and the totals of the rest."""

    groups: Sequence[BusyGroup]
    other_groups: int
    other_rebalances: int


@dataclass(frozen=True, slots=True)
class Stay:
    """An interval in which a member owns a partition; ``to_ms`` is null while it lasts."""

    member: int
    """Its index in ``Lanes.members``."""
    epoch: int
    from_ms: int
    to_ms: int | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A partition, and its owners one after another."""

    topic: str
    partition: int
    stays: Sequence[Stay]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Who owned which partitions of one group from ``start_ms`` to ``end_ms``."""

    group_id: str
    start_ms: int
    end_ms: int
    members: Sequence[Member]
    lanes: Sequence[Lane]
    rebalances_ms: Sequence[int]
    other_lanes: int
    earlier_stays: int
    """The number of stays omitted because they ended before ``start_ms``."""


@dataclass(frozen=True, slots=True)
class LaggingGroup:
    """A group's lag at the end of the log, and its maximum."""

    group_id: str
    lag: int
    lag_s: float | None
    most_lag: int
    partitions: int
    statuses: Mapping[str, int]
    per_window: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class LagFigures:
    """Lag in messages: per window for the groups with the most, a total at the end for the rest."""

    start_ms: int
    window_ms: int
    groups: Sequence[LaggingGroup]
    other_groups: int
    other_lag: int
    statuses: Mapping[str, int]
    """Partitions by their status in their last window."""
    unknown_partitions: int
    """Partitions whose lag is unknown, because they have no end offset."""


@dataclass(frozen=True, slots=True)
class ExpiringGroup:
    """A group with expiring offsets, and the reason."""

    group_id: str
    offsets: int
    topics: int
    first_ms: int
    last_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class ExpiryFigures:
    """Offsets that may expire, by expiry time: in windows from the end of the log.

    ``overdue`` offsets are past the given retention time, but still in the log.
    """

    end_ms: int
    retention_ms: int
    window_ms: int
    counts: Sequence[int]
    overdue: int
    within_day: int
    offsets: int
    """All offsets at the end of the log."""
    groups: Sequence[ExpiringGroup]
    other_groups: int
    other_offsets: int


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """Whether a classic group can be migrated, what is in the way, and whom to change first."""

    group_id: str
    verdict: str
    members: int
    reasons: Sequence[str]
    clients_to_change: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReadinessFigures:
    """Classic groups by verdict, and the first of those that are not ready."""

    counts: Mapping[str, int]
    groups: Sequence[JudgedGroup]
    other_groups: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of an invariant, or what could not be read there."""

    what: str
    group_id: str
    log_partition: int
    offset: int
    detail: str


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """What an audit found: ``counts`` by rule, the first ``findings``, and open transactions."""

    counts: Mapping[str, int]
    findings: Sequence[Finding]
    open_offsets: int
    open_producers: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page shows."""

    facts: LogFacts
    series: RebalanceSeries
    convergence: Convergence
    busiest: Ranking
    slowest: Ranking
    lanes: Sequence[Lanes]
    lag: LagFigures | None
    expiry: ExpiryFigures | None
    details: Sequence[GroupDetails] = ()
    readiness: ReadinessFigures | None = None
    audit: AuditFigures | None = None
    """``None`` if the log was not audited."""
    unknown_groups: Sequence[str] = field(default=())
    """Requested groups that never had an owner of a partition."""
