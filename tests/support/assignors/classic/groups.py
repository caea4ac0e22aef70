"""Classic groups for tests: from the rounds that Kafka computed, and figures of results."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.assignors.classic import GroupAssignment, Member
from tests.support.assignors.cases import VECTORS

_START = 60

Held = Mapping[str, Mapping[str, Collection[int]]]


@dataclass(frozen=True)
class ClassicRound:
    """One line of the vectors: a client-side assignor's input and its result."""

    line: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.assignor} {self.line['case']}-{self.line['round']}"

    @property
    def assignor(self) -> str:
        assignor: str = self.line["assignor"]
        return assignor.removeprefix("client-")

    @property
    def partition_counts(self) -> dict[str, int]:
        return {topic["name"]: topic["partitions"] for topic in self.line["topics"]}

    @property
    def replica_racks(self) -> dict[str, list[list[str]]]:
        return {topic["name"]: topic["racks"] for topic in self.line["topics"] if "racks" in topic}

    def members(self) -> list[Member]:
        return [
            Member(
                member["memberId"],
                member["topics"],
                member["instanceId"],
                member["rack"],
                member["owned"],
                member["generation"],
            )
            for member in self.line["members"]
        ]

    def kafkas(self) -> GroupAssignment:
        return strip(self.line["output"])


def read_classic_rounds(file: str, assignor: str) -> Iterator[ClassicRound]:
    with gzip.open(VECTORS / file, "rt", encoding="utf-8") as lines:
        for line in lines:
            if f'"client-{assignor}"' in line[:_START]:  # reading all of them takes seconds
                yield ClassicRound(json.loads(line))


def strip(assignment: Held) -> GroupAssignment:
    """The assignment with partitions sorted, without empty members and topics."""
    ordered = {
        member: {topic: sorted(ps) for topic, ps in topics.items() if ps}
        for member, topics in assignment.items()
    }
    return {member: topics for member, topics in ordered.items() if topics}


def pairs(topics: Mapping[str, Collection[int]]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partitions in topics.items() for partition in partitions}


def count_partitions(assignment: Held) -> dict[str, int]:
    return {member: sum(map(len, topics.values())) for member, topics in assignment.items()}


def find_holders(
    members: Sequence[Member], counts: Mapping[str, int], assignment: Held
) -> dict[tuple[str, int], list[str]]:
    """The owners of each partition; checks that all members are present and legal."""
    subscribed = {member.member_id: set(member.topics) for member in members}
    assert set(assignment) == set(subscribed)
    holders: dict[tuple[str, int], list[str]] = {}
    for member, topics in assignment.items():
        assert topics.keys() <= subscribed[member]
        for topic, partitions in topics.items():
            assert len(set(partitions)) == len(partitions)
            for partition in partitions:
                assert 0 <= partition < counts[topic]
                holders.setdefault((topic, partition), []).append(member)
    return holders


def legal_partitions(members: Sequence[Member], counts: Mapping[str, int]) -> set[tuple[str, int]]:
    """Partitions that have a subscriber."""
    subscribed = {topic for member in members for topic in member.topics}
    return {(topic, p) for topic in subscribed for p in range(counts.get(topic, 0))}


def compute_balance_score(loads: Sequence[int]) -> int:
    """KIP-54: the sum of the load differences of all pairs of members."""
    ascending, last = sorted(loads), len(loads) - 1
    return sum(load * (2 * rank - last) for rank, load in enumerate(ascending))


def compute_figures(
    members: Sequence[Member], counts: Mapping[str, int], assignment: Held
) -> tuple[int, int, int]:
    """(legal partitions without an owner, balance score, partitions taken from live owners).

    Lower is better, in this order. Checks that each partition has at most one owner.
    """
    holders = find_holders(members, counts, assignment)
    assert all(len(who) == 1 for who in holders.values())
    legal = legal_partitions(members, counts)
    taken = {
        (topic, partition)
        for member in members
        for topic, partition in pairs(member.owned)
        if topic in member.topics
        and 0 <= partition < counts.get(topic, 0)
        and holders.get((topic, partition)) != [member.member_id]
    }
    return (
        len(legal - holders.keys()),
        compute_balance_score(list(count_partitions(assignment).values())),
        len(taken),
    )


def own(members: Sequence[Member], assignment: Held, generation: int) -> list[Member]:
    """The same members, owning what they were assigned in that generation."""
    return [
        Member(
            member.member_id,
            member.topics,
            member.instance_id,
            member.rack,
            dict(assignment.get(member.member_id, {})),
            generation,
        )
        for member in members
    ]
