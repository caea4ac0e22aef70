"""Our results for the inputs of Kafka 4.3.0's client-side assignors, compared with Kafka's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from muster.assignors.classic import (
    JoinedMember,
    compute_assignment,
    compute_assignment_bytes,
    encode_member_metadata,
    find_assignor,
)
from muster.assignors.classic.leader import read_member
from muster.assignors.embedded import decode_assignment, decode_subscription, encode_subscription
from tests.support.assignors.cases import compute_checksum
from tests.support.assignors.classic.groups import (
    ClassicRound,
    compute_figures,
    pairs,
    read_classic_rounds,
    strip,
)

SMALL, BIG = "assignors.jsonl.gz", "assignors_big.jsonl.gz"
FILES = pytest.mark.parametrize(("file", "count"), [(SMALL, 90), (BIG, 8)], ids=["small", "big"])


def assign(each: ClassicRound) -> dict[str, dict[str, list[int]]]:
    return compute_assignment(
        each.assignor, each.members(), each.partition_counts, each.replica_racks
    )


@FILES
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_roundrobin_are_kafkas(assignor: str, file: str, count: int) -> None:
    rounds = list(read_classic_rounds(file, assignor))
    assert len(rounds) == count
    for each in rounds:
        assignment = assign(each)
        assert strip(assignment) == each.kafkas(), each.name
        if file == BIG:
            assert compute_checksum(assignment) == each.line["checksum"], each.name


def test_racks_matter_in_the_rounds_of_range() -> None:
    rounds = read_classic_rounds(SMALL, "range")
    with_racks = [each for each in rounds if any(member.rack for member in each.members())]
    matters = [
        each
        for each in with_racks
        if strip(compute_assignment("range", each.members(), each.partition_counts))
        != each.kafkas()
    ]
    assert (len(with_racks), len(matters)) == (12, 10)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_is_never_worse_than_kafkas(
    assignor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unowned legal partitions, then the balance score, then partitions taken from live owners."""
    table = []
    for file, count in ((SMALL, 90), (BIG, 8)):
        outcomes: Counter[str] = Counter()
        for each in read_classic_rounds(file, assignor):
            outcome = compare(each)
            outcomes[outcome] += 1
            assert outcome != "loss", each.name
        assert outcomes.total() == count
        table.append(
            f"{assignor:20} {file:24} "
            f"{outcomes['win']:3} wins {outcomes['tie']:3} ties {outcomes['loss']:3} losses"
        )
    with capsys.disabled():
        print("\n" + "\n".join(table))


def compare(each: ClassicRound) -> str:
    members, counts = each.members(), each.partition_counts
    ours = compute_figures(members, counts, assign(each))
    theirs = compute_figures(members, counts, each.line["output"])
    return "win" if ours < theirs else "tie" if ours == theirs else "loss"


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_leader_reads_what_kafkas_members_say(assignor: str) -> None:
    """Owned partitions and generation survive a round trip through the user data."""
    found = find_assignor(assignor)
    for each in read_classic_rounds(SMALL, assignor):
        for member, line in zip(each.members(), each.line["members"], strict=True):
            said = decode_subscription(encode_member_metadata(assignor, member))
            user_data = bytes.fromhex(line["userData"]) if line["userData"] else None
            metadata = encode_subscription(replace(said, user_data=user_data))
            joined = JoinedMember(member.member_id, member.instance_id, metadata)
            read = read_member(found, joined)
            assert pairs(read.owned) == pairs(member.owned), each.name
            assert read.generation == member.generation or not member.owned, each.name


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_bytes_in_and_out_give_the_same_answer(assignor: str) -> None:
    for each in read_classic_rounds(SMALL, assignor):
        joined = [
            JoinedMember(
                member.member_id, member.instance_id, encode_member_metadata(assignor, member)
            )
            for member in each.members()
        ]
        answer = compute_assignment_bytes(
            assignor, joined, each.partition_counts, each.replica_racks
        )
        named = {
            member: {t.topic: list(t.partitions) for t in decode_assignment(data).partitions}
            for member, data in answer.items()
        }
        assert named == assign(each), each.name
