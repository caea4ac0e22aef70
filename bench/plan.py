"""The amount of measurement: a full run, or a quick look that proves nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes and times; after `limit_s` no further measurement starts."""

    name: str
    limit_s: float
    runs: int
    """Per side, in turns; fewer if the time runs out."""
    rate_s: float
    rate_warm_up_s: float
    tls_s: float
    tls_warm_up_s: float
    join_rounds: int
    memory_members: int
    idle_members: int
    idle_s: float
    idle_runs: int
    crowd_members: int
    crowd_partitions: int
    kafka_changes: int
    """Joins and leaves per run, each of which takes Kafka seconds."""
    muster_changes: int
    size_members: int
    size_partitions: int
    size_compared_members: int
    size_compared_partitions: int
    """The size of the group that Kafka also gets; Kafka keeps files for each partition."""
    size_groups: int
    size_growths: int
    recovery_runs: int
    recovery_records: int
    """Commits; the longer history has ten times as many."""
    recovery_offset_groups: int
    """Groups with 100 offsets each."""
    recovery_members: int
    assignor_warm_up_s: float
    assignor_s: float


FULL = Plan(
    name="full",
    limit_s=1800,
    runs=3,
    rate_s=4,
    rate_warm_up_s=1.5,
    tls_s=3,
    tls_warm_up_s=1,
    join_rounds=3,
    memory_members=50_000,
    idle_members=1000,
    idle_s=10,
    idle_runs=3,
    crowd_members=1000,
    crowd_partitions=2000,
    kafka_changes=1,
    muster_changes=3,
    size_members=10_000,
    size_partitions=100_000,
    size_compared_members=10_000,
    size_compared_partitions=2000,
    size_groups=1000,
    size_growths=1,
    recovery_runs=2,
    recovery_records=7_600_000,
    recovery_offset_groups=10_000,
    recovery_members=100_000,
    assignor_warm_up_s=2,
    assignor_s=0.7,
)

QUICK = Plan(
    name="quick",
    limit_s=320,
    runs=1,
    rate_s=2,
    rate_warm_up_s=0.5,
    tls_s=2,
    tls_warm_up_s=0.5,
    join_rounds=1,
    memory_members=5000,
    idle_members=200,
    idle_s=5,
    idle_runs=1,
    crowd_members=200,
    crowd_partitions=400,
    kafka_changes=1,
    muster_changes=2,
    size_members=300,
    size_partitions=3000,
    size_compared_members=300,
    size_compared_partitions=300,
    size_groups=100,
    size_growths=1,
    recovery_runs=1,
    recovery_records=400_000,
    recovery_offset_groups=1000,
    recovery_members=5000,
    assignor_warm_up_s=0.3,
    assignor_s=0.2,
)
