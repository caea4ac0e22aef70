"""Random groups led by Muster's classic assignors and by Kafka's own, from the same bytes."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest

from muster.assignors.classic import (
    GroupAssignment,
    JoinedMember,
    Member,
    compute_assignment,
    compute_assignment_bytes,
    encode_member_metadata,
)
from muster.assignors.embedded import decode_assignment
from tests.kafka.java import java_command
from tests.support.assignors.classic.groups import compute_figures, own

pytestmark = pytest.mark.java

JAVA: Final = Path(__file__).with_name("java_leader")
RACKS: Final = ("east", "north", "west")
GROUPS: Final = 250
TIMEOUT_S: Final = 60.0


@dataclass(frozen=True)
class Group:
    assignor: str
    members: list[Member]
    replica_racks: dict[str, list[list[str]]]

    @property
    def partition_counts(self) -> dict[str, int]:
        return {topic: len(racks) for topic, racks in self.replica_racks.items()}

    def joined(self) -> list[JoinedMember]:
        return [
            JoinedMember(m.member_id, m.instance_id, encode_member_metadata(self.assignor, m))
            for m in self.members
        ]

    def to_json(self) -> str:
        members = [
            {
                "memberId": member.member_id,
                "instanceId": member.instance_id,
                "metadata": member.metadata.hex(),
            }
            for member in self.joined()
        ]
        topics = [{"name": name, "racks": racks} for name, racks in self.replica_racks.items()]
        return json.dumps({"assignor": self.assignor, "members": members, "topics": topics})


def make_group(assignor: str, chance: Random, *, mixed: bool) -> Group:
    """Static and dynamic members who own what an earlier, different group was given.

    In racks for `range` alone: for nearness Kafka's sticky assignors move more.
    """
    in_racks = assignor == "range"
    same = chance.randint(1, 9)
    racks = {
        f"t{i}": [
            chance.sample(RACKS, chance.choice([0, 1, 1, 2, 3])) if in_racks else []
            for _ in range(same if chance.random() < 0.5 else chance.randint(1, 25))
        ]
        for i in range(chance.randint(1, 5))
    }
    topics = list(racks)
    members = [
        Member(
            f"m{chance.randrange(1_000_000)}-{i}",
            chance.sample(topics, chance.randint(1, len(topics))) if mixed else topics,
            f"i{chance.randrange(1_000_000)}-{i}" if chance.random() < 0.3 else None,
            chance.choice([*RACKS, "south", None]) if in_racks else None,
        )
        for i in range(chance.randint(1, 15))
    ]
    earlier = [member for member in members if chance.random() < 0.7]
    earlier += [Member(f"gone{i}", topics) for i in range(chance.randint(0, 2))]
    counts = {topic: chance.randint(1, len(racks[topic])) for topic in topics}
    return Group(assignor, own(members, compute_assignment("sticky", earlier, counts), 7), racks)


def lead_with_kafkas(groups: Sequence[Group]) -> list[GroupAssignment]:
    done = subprocess.run(
        java_command(JAVA, "LeaderProgram"),
        input="\n".join(group.to_json() for group in groups),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        {member: read(bytes.fromhex(data)) for member, data in json.loads(line).items()}
        for line in done.stdout.splitlines()
    ]


def lead_with_ours(group: Group) -> GroupAssignment:
    answer = compute_assignment_bytes(
        group.assignor, group.joined(), group.partition_counts, group.replica_racks
    )
    return {member: read(data) for member, data in answer.items()}


def read(data: bytes) -> dict[str, list[int]]:
    return {each.topic: sorted(each.partitions) for each in decode_assignment(data).partitions}


def test_range_and_roundrobin_are_kafkas() -> None:
    chance = Random(881)
    groups = [
        make_group(chance.choice(["range", "roundrobin"]), chance, mixed=chance.random() < 0.5)
        for _ in range(GROUPS)
    ]
    for group, theirs in zip(groups, lead_with_kafkas(groups), strict=True):
        assert lead_with_ours(group) == theirs, group.to_json()


def test_sticky_is_never_worse_than_kafkas() -> None:
    """`cooperative-sticky` where all subscribe to the same: with mixed subscriptions it may move
    more than Kafka's, towards a group that is more even."""
    chance = Random(54)
    groups = [
        make_group(name, chance, mixed=name == "sticky" and chance.random() < 0.7)
        for name in ("sticky", "cooperative-sticky")
        for _ in range(GROUPS)
    ]
    outcomes: Counter[tuple[str, str]] = Counter()
    for group, kafkas in zip(groups, lead_with_kafkas(groups), strict=True):
        ours = compute_figures(group.members, group.partition_counts, lead_with_ours(group))
        theirs = compute_figures(group.members, group.partition_counts, kafkas)
        assert ours <= theirs, group.to_json()
        outcomes[group.assignor, "win" if ours < theirs else "tie"] += 1
    assert outcomes["sticky", "win"] > 0
    print(dict(outcomes))
