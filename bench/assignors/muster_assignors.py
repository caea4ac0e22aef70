"""Times Muster's assignors at the sizes of KafkaAssignors.java; prints JSON to stdout.

    python -m bench.assignors.muster_assignors [--seconds 2]

The groups are those of Kafka's own JMH benchmark: "full" assigns to members that own nothing,
"one joins" is the same group with a last member that owns nothing yet. In "buckets" members and
topics are split into five parts, and a member subscribes to the topics of its part; in
"overlapping" each member subscribes to a random fifth of the topics. `median_ms` is the assignor on
a prepared problem, as for Kafka; `prepared_ms` includes building the problem from arrays.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from muster.assignors.problem import (
    NOBODY,
    HeterogeneousSubscriptions,
    Members,
    Problem,
    Subscriptions,
)
from muster.assignors.registry import ASSIGNORS, Assignor

BUCKETS = 5
FEWEST_RUNS = 30


@dataclass(frozen=True)
class Shape:
    """A row of the table: the assignor, and its group."""

    assignor: str
    subscriptions: str  # "homogeneous", "buckets" or "overlapping"
    members: int
    topics: int
    partitions: int


SHAPES = (
    Shape("uniform", "homogeneous", 10_000, 100, 100_000),
    Shape("range", "homogeneous", 10_000, 100, 100_000),
    Shape("range", "homogeneous", 1_000, 100, 100_000),
    Shape("uniform", "buckets", 1_000, 100, 10_000),
    Shape("uniform", "overlapping", 1_000, 100, 10_000),
    Shape("range", "buckets", 1_000, 100, 10_000),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Times our assignors; JSON to stdout.")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure a row")
    seconds: float = parser.parse_args().seconds
    rows = [row for shape in SHAPES for row in measure(shape, seconds)]
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    json.dump({"of": "muster", "versions": versions, "rows": rows}, sys.stdout, indent=1)
    print()
    return 0


def measure(shape: Shape, seconds: float) -> Iterable[dict[str, object]]:
    """Two rows: a full assignment, and one more member joining an assigned group."""
    assignor = ASSIGNORS[shape.assignor]
    topics_of = choose_topics(shape)
    for case, problem in (
        ("full", make_problem(shape, topics_of)),
        ("one joins", make_joining(shape, topics_of, assignor)),
    ):
        times = time_calls(partial(assignor.assign, problem), seconds)
        prepared = time_calls(partial(_prepare_and_assign, assignor, problem), seconds)
        target = assignor.assign(problem)
        had_owner = problem.owner != NOBODY
        yield {
            **asdict(shape),
            "case": case,
            "median_ms": round(statistics.median(times), 3),
            "min_ms": round(min(times), 3),
            "p90_ms": round(statistics.quantiles(times, n=10)[-1], 3),
            "prepared_ms": round(statistics.median(prepared), 3),
            "runs": len(times),
            "assigned": int((target != NOBODY).sum()),
            "moved": int((had_owner & (target != problem.owner)).sum()),
        }


def choose_topics(shape: Shape) -> list[list[int]]:
    """The topics of each member."""
    everything = list(range(shape.topics))
    part = shape.topics // BUCKETS
    match shape.subscriptions:
        case "homogeneous":
            return [everything] * shape.members
        case "buckets":
            bucket = -(-shape.members // BUCKETS)
            return [everything[m // bucket * part :][:part] for m in range(shape.members)]
        case "overlapping":
            chance = random.Random(shape.members)
            return [sorted(chance.sample(everything, part)) for _ in range(shape.members)]
    raise ValueError(f"no such subscriptions: {shape.subscriptions}")


def make_problem(
    shape: Shape, topics_of: Sequence[Sequence[int]], owner: Members | None = None
) -> Problem:
    members = len(topics_of)
    if owner is None:
        owner = np.full(shape.partitions, NOBODY, dtype=np.int32)
    topic_start = np.arange(shape.topics + 1) * (shape.partitions // shape.topics)
    if shape.subscriptions == "homogeneous":
        subscriptions = Subscriptions.all(members, shape.topics)
    else:
        member_start = np.array([0, *accumulate(map(len, topics_of))])
        subscriptions = Subscriptions.csr(member_start, np.concatenate(topics_of), shape.topics)
    return Problem(topic_start, members, owner, subscriptions)


def make_joining(shape: Shape, topics_of: Sequence[Sequence[int]], assignor: Assignor) -> Problem:
    before = assignor.assign(make_problem(shape, topics_of[:-1]))
    return make_problem(shape, topics_of, before)


def _prepare_and_assign(assignor: Assignor, problem: Problem) -> Members:
    """Build and check the problem again, as a caller does for every assignment."""
    subscriptions = problem.subscriptions
    if isinstance(subscriptions, HeterogeneousSubscriptions):
        subscriptions = Subscriptions.csr(
            subscriptions.member_start, subscriptions.topic, subscriptions.topics
        )
    again = Problem(problem.topic_start, problem.members, problem.owner, subscriptions)
    return assignor.assign(again)


def time_calls(call: Callable[[], object], seconds: float) -> list[float]:
    """Milliseconds of each call, after some warm-up calls."""
    for _ in range(FEWEST_RUNS):
        call()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < FEWEST_RUNS or time.perf_counter() < until:
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1000)
    return times


if __name__ == "__main__":
    sys.exit(main())
