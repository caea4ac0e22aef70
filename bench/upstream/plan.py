"""The amount of measurement in front of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench import plan
from bench.plan import Plan


@dataclass(frozen=True, slots=True)
class UpstreamPlan:
    """Sizes and times; those of `stand` are the plain rows'."""

    stand: Plan
    warm_up_s: float
    """For each kind of request, of the cluster and of Muster in front of it."""
    few_members: int
    many_members: int
    """That commit, in one group."""
    ask_s: float
    records: int
    """Batches of 1 MiB that each of the connections sends or reads."""
    crowd_members: int
    crowd_partitions: int
    moved_members: int


FULL = UpstreamPlan(
    stand=replace(plan.FULL, name="upstream"),
    warm_up_s=4,
    few_members=32,
    many_members=1000,
    ask_s=2,
    records=50,
    crowd_members=500,
    crowd_partitions=1000,
    moved_members=100,
)
QUICK = UpstreamPlan(
    stand=replace(plan.QUICK, name="upstream, quick", rate_s=1, muster_changes=1),
    warm_up_s=1,
    few_members=8,
    many_members=50,
    ask_s=0.5,
    records=10,
    crowd_members=30,
    crowd_partitions=60,
    moved_members=10,
)
