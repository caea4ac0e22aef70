"""Rounds computed by Kafka's own assignors, as our problems, and figures about results."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from muster.assignors.problem import (
    NOBODY,
    HeterogeneousSubscriptions,
    Ints,
    Members,
    Problem,
    Subscriptions,
)

VECTORS = Path(__file__).parents[2] / "golden" / "vectors"

Assignment = dict[str, dict[str, list[int]]]


@dataclass(frozen=True)
class Round:
    """One line of the vectors: an assignor's input and its result."""

    line: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.line['case']}-{self.line['round']}"

    @property
    def quality(self) -> Mapping[str, int]:
        quality: Mapping[str, int] = self.line["quality"]
        return quality

    @cached_property
    def members(self) -> list[Mapping[str, Any]]:
        """In Kafka's order: static members by instance id, then the others by member id."""
        return sorted(
            self.line["members"],
            key=lambda m: (m["instanceId"] is None, m["instanceId"] or m["memberId"]),
        )

    @cached_property
    def topic_start(self) -> Ints:
        return np.cumsum([0, *(topic["partitions"] for topic in self.line["topics"])])

    def make_problem(self) -> Problem:
        number = {topic["name"]: i for i, topic in enumerate(self.line["topics"])}
        owner = np.full(self.topic_start[-1], NOBODY, dtype=np.int32)
        for m, member in enumerate(self.members):
            for topic, partitions in member["owned"].items():
                owner[self.topic_start[number[topic]] + np.array(partitions)] = m
        chosen = [[number[topic] for topic in member["topics"]] for member in self.members]
        subscriptions = Subscriptions.of(chosen, len(number))
        return Problem(self.topic_start, len(self.members), owner, subscriptions)

    def name_assignment(self, target: Members) -> Assignment:
        named: Assignment = {}
        for t, topic in enumerate(self.line["topics"]):
            start, end = self.topic_start[t : t + 2]
            for partition, member in enumerate(target[start:end].tolist()):
                if member != NOBODY:
                    member_id = self.members[member]["memberId"]
                    named.setdefault(member_id, {}).setdefault(topic["name"], []).append(partition)
        return named

    def kafkas_target(self) -> Members:
        """Kafka's result in our form."""
        number = {topic["name"]: i for i, topic in enumerate(self.line["topics"])}
        target = np.full(self.topic_start[-1], NOBODY, dtype=np.int32)
        for m, member in enumerate(self.members):
            for topic, partitions in self.line["output"].get(member["memberId"], {}).items():
                target[self.topic_start[number[topic]] + np.array(partitions, np.int64)] = m
        return target

    def expected_assignment(self) -> Assignment:
        output: Assignment = self.line["output"]
        return {
            member: {topic: sorted(partitions) for topic, partitions in topics.items()}
            for member, topics in output.items()
            if topics
        }


def read_rounds(file: str, assignor: str) -> Iterator[Round]:
    with gzip.open(VECTORS / file, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["assignor"] == assignor:
                yield Round(line)


def compute_checksum(assignment: Assignment) -> str:
    lines = sorted(
        f"{member}:{topic}-{partition}\n"
        for member, topics in assignment.items()
        for topic, partitions in topics.items()
        for partition in partitions
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def subscriber_table(problem: Problem) -> list[set[int]]:
    """The subscribers of each topic, directly from the definition."""
    subscriptions = problem.subscriptions
    if not isinstance(subscriptions, HeterogeneousSubscriptions):
        return [set(range(problem.members)) for _ in range(problem.topics)]
    subscribers: list[set[int]] = [set() for _ in range(problem.topics)]
    start = subscriptions.member_start
    for member in range(problem.members):
        for topic in subscriptions.topic[start[member] : start[member + 1]].tolist():
            subscribers[topic].add(member)
    return subscribers


def check_valid(problem: Problem, target: Members) -> None:
    """Check that every partition with subscribers has one of them, and every other has NOBODY."""
    assert target.dtype == np.int32
    assert target.shape == problem.owner.shape
    subscribers = subscriber_table(problem)
    for topic, member in zip(problem.topic_of_partition().tolist(), target.tolist(), strict=True):
        assert member in subscribers[topic] or (member == NOBODY and not subscribers[topic])


def compute_loads(problem: Problem, target: Members) -> Ints:
    """Partitions per member."""
    return np.bincount(target[target != NOBODY], minlength=problem.members)


def compute_spread(problem: Problem, target: Members) -> int:
    """Highest minus lowest partition count of all members."""
    loads = compute_loads(problem, target)
    return int(loads.max() - loads.min())


def count_moves(problem: Problem, target: Members) -> int:
    """Partitions that move from one member to another."""
    return int(((problem.owner != NOBODY) & (target != NOBODY) & (target != problem.owner)).sum())


def is_locally_balanced(problem: Problem, target: Members) -> bool:
    """Check KIP-54's balance: no single partition can go to a member with two or more fewer."""
    loads = compute_loads(problem, target)
    subscribers = subscriber_table(problem)
    return all(
        loads[member] - loads[other] <= 1
        for topic, member in zip(problem.topic_of_partition(), target.tolist(), strict=True)
        if member != NOBODY
        for other in subscribers[topic]
    )


def is_complete(problem: Problem, target: Members) -> bool:
    """Whether every partition that has subscribers has a member."""
    subscribers = subscriber_table(problem)
    return all(
        member != NOBODY or not subscribers[topic]
        for member, topic in zip(target, problem.topic_of_partition(), strict=True)
    )


def make_problem(
    counts: list[int], subscriptions: list[list[int]], owner: list[int] | None = None
) -> Problem:
    """`counts`: partitions per topic; `subscriptions`: topics per member."""
    start = np.cumsum([0, *counts])
    owners = np.full(start[-1], NOBODY) if owner is None else np.array(owner)
    return Problem(
        start,
        len(subscriptions),
        owners.astype(np.int32),
        Subscriptions.of(subscriptions, len(counts)),
    )
