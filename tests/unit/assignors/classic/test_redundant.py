"""`redundant(n)` assigns each partition to n members."""

from __future__ import annotations

import pytest

from muster.assignors.classic import GroupAssignment, JoinedMember, Member, compute_assignment
from muster.assignors.classic.leader import compute_assignment_bytes, encode_member_metadata
from muster.assignors.embedded import decode_assignment
from tests.support.assignors.classic.groups import count_partitions, find_holders, own


def make_members(count: int, *topics: str) -> list[Member]:
    return [Member(f"m{i}", topics) for i in range(count)]


def count_moved(before: GroupAssignment, after: GroupAssignment) -> int:
    return sum(
        len(set(partitions) - set(after.get(member, {}).get(topic, ())))
        for member, topics in before.items()
        for topic, partitions in topics.items()
    )


@pytest.mark.parametrize("copies", [1, 2, 3, 4, 7])
def test_each_partition_has_so_many_holders(copies: int) -> None:
    members = make_members(4, "t", "u")
    counts = {"t": 5, "u": 3}
    assignment = compute_assignment(f"redundant({copies})", members, counts)
    holders = find_holders(members, counts, assignment)
    assert len(holders) == 8
    assert {len(set(who)) for who in holders.values()} == {min(copies, 4)}
    loads = count_partitions(assignment).values()
    assert max(loads) - min(loads) <= 1


def test_a_search_index_of_two_replicas_through_a_members_life() -> None:
    counts = {"t": 6}
    first = compute_assignment("redundant(2)", make_members(3, "t"), counts)
    assert set(count_partitions(first).values()) == {4}

    grown = own(make_members(4, "t"), first, generation=1)
    second = compute_assignment("redundant(2)", grown, counts)
    assert set(count_partitions(second).values()) == {3}
    assert count_moved(first, second) == 3

    shrunk = [each for each in own(make_members(4, "t"), second, 2) if each.member_id != "m1"]
    third = compute_assignment("redundant(2)", shrunk, counts)
    assert set(count_partitions(third).values()) == {4}
    kept = {member: topics for member, topics in second.items() if member != "m1"}
    assert count_moved(kept, third) == 0


def test_copies_too_many_are_given_up_by_the_oldest() -> None:
    members = [
        Member("a", ["t"], owned={"t": [0]}, generation=1),
        Member("b", ["t"], owned={"t": [0]}, generation=2),
        Member("c", ["t"], owned={"t": [0]}, generation=3),
    ]
    assignment = compute_assignment("redundant(2)", members, {"t": 1})
    assert assignment == {"a": {}, "b": {"t": [0]}, "c": {"t": [0]}}


def test_mixed_subscriptions() -> None:
    members = [Member("a", ["t"]), Member("b", ["t", "u"]), Member("c", ["u"]), Member("d", ["u"])]
    counts = {"t": 4, "u": 6}
    assignment = compute_assignment("redundant(2)", members, counts)
    assert count_partitions(assignment) == {"a": 4, "b": 6, "c": 5, "d": 5}


def test_over_the_wire_it_is_sticky() -> None:
    name, counts = "redundant(2)", {"t": 6}
    before = compute_assignment(name, make_members(3, "t"), counts)
    joined = [
        JoinedMember(member.member_id, None, encode_member_metadata(name, member))
        for member in own(make_members(3, "t"), before, generation=1)
    ]
    answer = compute_assignment_bytes(name, joined[::-1], counts)
    assert {
        member: {each.topic: list(each.partitions) for each in decode_assignment(data).partitions}
        for member, data in answer.items()
    } == before
