"""The runtime's counters, read by the metrics. Plain numbers, so that counting costs nothing.

Times in histograms are those of ``perf_counter``, here and wherever one is filled, although time is
an argument elsewhere: most are far below a millisecond, which is the unit of the runtime's clock.
Nothing is decided by them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from coordinator.core.replay.invariants import INVARIANTS
from coordinator.runtime.loop.refused_joins import RefusedJoins
from model.past.causes import CauseKind


class Histogram:
    """Counts values in buckets with fixed upper bounds, in seconds."""

    BOUNDS_S = (
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
        5.0, 10.0,
    )  # fmt: skip

    LONG_BOUNDS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
    """For what waits for clients."""

    __slots__ = ("bounds_s", "counts", "sum_s")

    def __init__(self, bounds_s: tuple[float, ...] = BOUNDS_S) -> None:
        self.bounds_s = bounds_s
        self.counts = [0] * (len(bounds_s) + 1)
        self.sum_s = 0.0

    def add(self, value_s: float, count: int = 1) -> None:
        """Count one value, or one that stands for ``count``."""
        self.counts[bisect_left(self.bounds_s, value_s)] += count
        self.sum_s += value_s * count


class Histograms(dict[str, Histogram]):
    """Histograms by name, each made when its first value comes."""

    def __missing__(self, name: str) -> Histogram:
        made = self[name] = Histogram()
        return made


@dataclass(slots=True)
class Stats:
    """Counts since the process started."""

    # More than 15 attributes: one attribute is one count.

    commands: dict[str, int] = field(default_factory=dict)
    """Commands handled, by the name of the command."""
    errors: dict[str, int] = field(default_factory=dict)
    """Error responses, by the name of Kafka's error code."""
    records_written: int = 0
    bytes_written: int = 0
    flushes: int = 0
    flush_seconds: Histogram = field(default_factory=Histogram)
    assignor_seconds: Histogram = field(default_factory=Histogram)
    assignor_failures_by_reason: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("raised", "junk", "late", "missing"), 0)
    )
    """Targets that an assignor failed to compute: it raised, returned an invalid assignment,
    exceeded the time limit, or does not exist."""
    rebalance_causes: Counter[str] = field(
        default_factory=lambda: Counter({kind.value: 0 for kind in CauseKind})
    )
    """New group epochs of consumer groups, by their first cause."""
    classic_rebalance_causes: Counter[str] = field(default_factory=Counter)
    """Rebalances of classic groups that have begun, by cause."""
    rebalance_seconds: dict[str, Histogram] = field(
        default_factory=lambda: {
            kind: Histogram(Histogram.LONG_BOUNDS_S) for kind in ("consumer", "classic")
        }
    )
    """From the first cause of a rebalance until all members have what they get, by group type."""
    translated_requests: dict[str, int] = field(default_factory=dict)
    """Requests of the classic protocol on consumer groups, by the name of the command."""
    queue_seconds: dict[str, Histogram] = field(
        default_factory=lambda: {queue: Histogram() for queue in ("commands", "batch")}
    )
    """Time that commands of members, and records, wait for their turn."""
    write_seconds: Histogram = field(default_factory=Histogram)
    targets_installed: int = 0
    members_expired: dict[str, int] = field(default_factory=dict)
    """Members removed by a deadline, by the name of the deadline."""
    offsets_committed: int = 0
    offsets_expired: int = 0
    groups_expired: int = 0
    transactions_timed_out: int = 0
    history_bytes: int = 0
    history_age_ms: int = 0
    """The age of the oldest batch of the history at the last check."""
    history_trimmed_bytes: int = 0
    ledger_entries: int = 0
    """Entries written to the ledger of rebalances, also again."""
    history_partitions_left: int = 0
    """Log partitions that are no longer trimmed because they cannot be read."""
    checkpoints: int = 0
    unsettled_keys: int = 0
    """Changed keys that the next checkpoint has to write."""
    load_seconds: float = 0.0
    records_loaded: int = 0
    stalled_ms: int = 0
    writes_refused: int = 0
    invariant_checks: int = 0
    """Commands whose records were checked before they were replayed."""
    invariant_violations: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(INVARIANTS, 0)
    )
    log_partitions_stopped: int = 0
    refused_joins: RefusedJoins = field(default_factory=RefusedJoins)

    @property
    def assignor_failures(self) -> int:
        """Failures for any reason."""
        return sum(self.assignor_failures_by_reason.values())

    def count_error(self, name: str) -> None:
        self.errors[name] = self.errors.get(name, 0) + 1
