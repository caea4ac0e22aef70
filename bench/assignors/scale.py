"""Measures how the cost of an assignment grows; a table to stdout, a plot to scale.svg.

    python -m bench.assignors.scale [--quick]

The groups have ten partitions per member in a hundred topics, and all members subscribe to all of
them; "one joins" adds one member. Times are CPU time of this process, the minimum of some calls,
because the machine may be busy. Besides the assignors it measures what the coordinator does around
them when one more member joins: building the problem from a group, comparing the old target with
the new (one pass of numpy), and, only for the few members whose target changes, building records
from the result and handling a heartbeat that revokes partitions. Both axes of the plot are
logarithmic: costs proportional to the partitions are as steep as the grey lines. `slope` in the
table is that of the line through the first and the last point.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import log10
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.log_plot import Curve, draw
from coordinator.core.consumer.heartbeat import handle_reconcile_member
from coordinator.core.replay.group_records import replay
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    TargetProblem,
    compute_install,
    compute_target_problem,
)
from coordinator.core.target.target_install import handle_install_target
from model.caller import INTERNAL
from model.commands.consumer import ReconcileMember
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, TopicId, TopicName
from model.log.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    Record,
)
from model.now import Now
from model.topics import Topic, compute_image_of
from muster.assignors.problem import NOBODY, Problem, Racks, Subscriptions, Weights
from muster.assignors.registry import ASSIGNORS

TOPICS = 100
PER_MEMBER = 10
RACKS = 3
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST_WEIGHTED = 300_000
MOST_OF_CORE = 300_000
RUNS = 5
PLOT = Path(__file__).with_name("scale.svg")
GROUP = GroupId("g")

T = TypeVar("T")


@dataclass
class Line:
    """One line of the plot: CPU milliseconds by number of partitions."""

    name: str
    points: dict[int, float] = field(default_factory=dict)

    @property
    def slope(self) -> float:
        """The exponent with which the cost grows with the number of partitions."""
        points = list(self.points.items())
        (size, cost), (last_size, last_cost) = points[0], points[-1]
        return (log10(last_cost) - log10(cost)) / (log10(last_size) - log10(size))


def main() -> int:
    parser = argparse.ArgumentParser(description="How the cost of an assignment grows.")
    parser.add_argument("--quick", action="store_true", help="only small groups, and no plot")
    quick: bool = parser.parse_args().quick
    sizes = SIZES[:3] if quick else SIZES
    lines = [line for line in measure(sizes) if len(line.points) > 1]
    print_table(lines, sizes)
    if not quick:
        PLOT.write_text(
            draw(
                [Curve(line.name, line.points) for line in lines],
                title="CPU time of an assignment by partitions, ten a member",
                label="partitions",
                unit="ms",
            ),
            encoding="utf-8",
        )
    return 0


def measure(sizes: Iterable[int]) -> list[Line]:
    lines: dict[str, Line] = {}

    def note(name: str, size: int, call: Callable[[], object]) -> None:
        lines.setdefault(name, Line(name)).points[size] = time_call(call)

    for size in sizes:
        for name in ("uniform", "range", "rack", "weighted"):
            if name == "weighted" and size > MOST_WEIGHTED:
                continue
            assign = ASSIGNORS[name].assign
            problem = make_problem(size, name)
            joining = make_joining(problem, np.asarray(assign(problem)))
            note(f"{name}, full", size, lambda p=problem, a=assign: a(p))  # type: ignore[misc]
            note(f"{name}, one joins", size, lambda p=joining, a=assign: a(p))  # type: ignore[misc]
        if size <= MOST_OF_CORE:
            measure_core(size, note)
    return list(lines.values())


def make_problem(partitions: int, assignor: str) -> Problem:
    members = partitions // PER_MEMBER
    chance = np.random.default_rng(partitions)
    problem = Problem(
        np.arange(TOPICS + 1) * (partitions // TOPICS),
        members,
        np.full(partitions, NOBODY, dtype=np.int32),
        Subscriptions.all(members, TOPICS),
    )
    if assignor == "rack":
        first = chance.integers(0, RACKS, partitions)
        replica = np.stack((first, (first + chance.integers(1, RACKS, partitions)) % RACKS), axis=1)
        racks = Racks(np.arange(members) % RACKS, np.arange(partitions + 1) * 2, replica.ravel())
        return replace(problem, racks=racks)
    if assignor == "weighted":
        return replace(problem, weights=Weights(chance.exponential(1, partitions)))
    return problem


def make_joining(problem: Problem, target: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Problem:
    racks = problem.racks
    if racks is not None:
        racks = Racks(np.append(racks.of_member, 0), racks.replica_start, racks.replica)
    members = problem.members + 1
    return replace(
        problem,
        members=members,
        owner=target,
        subscriptions=Subscriptions.all(members, TOPICS),
        racks=racks,
    )


def measure_core(size: int, note: Callable[[str, int, Callable[[], object]], None]) -> None:
    """Measure the work around an assignor when one member joins and few targets change."""
    shard, names = make_shard(size)
    group = shard.consumer_groups[GROUP]
    install(shard, compute_target_problem(shard, group))
    for member in list(group.members()):
        for record in beat(shard, member).records:
            replay(shard, record)
    add_member(shard, MemberId("one more"), names)
    replay(shard, Record(ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(3)))
    problem = compute_target_problem(shard, group)
    answer = np.asarray(ASSIGNORS["uniform"].assign(problem.problem))
    command = compute_install(problem, answer)
    note("group to problem", size, lambda: compute_target_problem(shard, group))
    note("old target and new compared", size, lambda: compute_install(problem, answer))
    note("answer to records", size, lambda: handle_install_target(shard, command, Now(1, 1)))
    install(shard, problem)
    gives = next(
        member for member in group.members() if set(member.assigned) - set(member.target or ())
    )
    note("heartbeat to records and answer", size, lambda: beat(shard, gives))


def beat(shard: Shard, member: Member) -> Outcome:
    """Handle a heartbeat of a member that has not reached the target yet."""
    epoch = member.member_epoch
    held = tuple(member.assigned)
    return handle_reconcile_member(
        shard,
        ReconcileMember(INTERNAL, GROUP, member.member_id, None, False, False, held, epoch, epoch),
        Now(1, 1),
    )


def install(shard: Shard, problem: TargetProblem) -> None:
    answer = np.asarray(ASSIGNORS["uniform"].assign(problem.problem))
    command = compute_install(problem, answer)
    for record in handle_install_target(shard, command, Now(1, 1)).records:
        replay(shard, record)


def make_shard(partitions: int) -> tuple[Shard, tuple[TopicName, ...]]:
    """A group of members without a target."""
    topics = tuple(
        Topic(TopicName(f"t{n:03}"), TopicId(uuid.UUID(int=n + 1).bytes), partitions // TOPICS)
        for n in range(TOPICS)
    )
    shard = Shard(LogPartition(0), CoordinatorSettings(), compute_image_of(topics))
    names = tuple(topic.name for topic in topics)
    for number in range(partitions // PER_MEMBER):
        add_member(shard, MemberId(str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))), names)
    replay(shard, Record(ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(2)))
    return shard, names


def add_member(shard: Shard, member_id: MemberId, names: tuple[TopicName, ...]) -> None:
    value = ConsumerGroupMemberMetadataValue(
        None, None, "client", "/127.0.0.1", names, None, 60_000, None
    )
    replay(shard, Record(ConsumerGroupMemberMetadataKey(GROUP, member_id), value))


def time_call(call: Callable[[], T]) -> float:
    """The minimum CPU milliseconds of a call."""
    call()
    least = float("inf")
    for _ in range(RUNS):
        began = time.process_time()
        call()
        least = min(least, time.process_time() - began)
    return max(least * 1000, 1e-3)


def print_table(lines: list[Line], sizes: Iterable[int]) -> None:
    sizes = list(sizes)
    print(
        "| CPU ms by number of partitions |", " | ".join(f"{size:,}" for size in sizes), "| slope |"
    )
    print("| --- |", " | ".join("--:" for _ in sizes), "| --: |")
    for line in lines:
        cells = (f"{line.points[n]:.2f}" if n in line.points else "–" for n in sizes)
        print(f"| {line.name} |", " | ".join(cells), f"| {line.slope:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
