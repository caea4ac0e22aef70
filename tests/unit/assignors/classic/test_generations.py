"""KIP-341: which claims the leader accepts when members report partitions."""

from __future__ import annotations

import pytest

from muster.assignors.classic import (
    JoinedMember,
    Member,
    compute_assignment,
    compute_assignment_bytes,
)
from muster.assignors.embedded import (
    NO_GENERATION,
    StickyUserData,
    TopicPartitions,
    decode_assignment,
    encode_sticky_user_data,
    encode_subscription,
    make_subscription,
)
from tests.support.assignors.classic.groups import pairs

SIX = {"t": 6}


def had(member: str, generation: int, *partitions: int) -> Member:
    return Member(member, ["t"], owned={"t": partitions}, generation=generation)


def assign(*members: Member, name: str = "sticky") -> dict[str, list[int]]:
    assignment = compute_assignment(name, members, SIX)
    return {member: topics.get("t", []) for member, topics in assignment.items()}


def test_a_member_that_was_away_does_not_get_what_others_have_by_now() -> None:
    """The bug that KIP-341 is about: one partition given to two members."""
    assignment = assign(had("a", 2, 0, 1, 2), had("b", 1, 2, 3, 4))
    assert assignment == {"a": [0, 1, 2], "b": [3, 4, 5]}


def test_two_rounds_without_the_third_member() -> None:
    """b is at generation 2, c still at 1; each keeps partitions without a newer claim."""
    assignment = assign(had("b", 2, 1, 2, 3), had("c", 1, 2, 5))
    assert assignment == {"b": [1, 2, 3], "c": [0, 4, 5]}


def test_members_that_come_back_get_what_they_had() -> None:
    """b had everything for a generation; what it gives up returns to its former owner."""
    assignment = assign(had("a", 1, 0, 3), had("b", 2, 0, 1, 2, 3, 4, 5), had("c", 1, 2, 5))
    assert assignment == {"a": [0, 3], "b": [1, 4], "c": [2, 5]}


def test_former_owners_take_nothing_that_is_kept() -> None:
    """a had all three partitions of b: it gets back the one that b gives up, and one of c's."""
    assignment = assign(had("a", 1, 0, 1, 2), had("b", 2, 0, 1, 2), had("c", 2, 3, 4, 5))
    assert len(set(assignment["a"]) & {0, 1, 2}) == 1
    assert len(set(assignment["b"]) & {0, 1, 2}) == 2
    assert len(set(assignment["c"]) & {3, 4, 5}) == 2


def test_of_equal_claims_none_counts() -> None:
    """Two members claim partition 0 in one generation: nothing tells which is right."""
    one, other = assign(had("a", 3, 0, 1, 2), had("b", 3, 0, 4, 5)).values()
    assert sorted(one + other) == [0, 1, 2, 3, 4, 5]
    assert {1, 2} <= set(one)
    assert {4, 5} <= set(other)


def test_an_old_claim_that_nobody_disputes_counts() -> None:
    assert assign(had("a", 1, 0, 2, 4), had("b", 7, 1, 3, 5)) == {"a": [0, 2, 4], "b": [1, 3, 5]}


def test_a_member_without_generation_is_the_oldest() -> None:
    assignment = assign(had("a", NO_GENERATION, 0, 1, 2), had("b", 0, 2, 3, 4))
    assert assignment == {"a": [0, 1, 5], "b": [2, 3, 4]}


class TestCooperative:
    def test_what_another_has_is_withheld_a_round(self) -> None:
        first = assign(had("a", 1, 0, 1, 2, 3, 4, 5), Member("b", ["t"]), name="cooperative-sticky")
        assert (len(first["a"]), first["b"]) == (3, [])
        second = assign(
            had("a", 2, *first["a"]), had("b", 2, *first["b"]), name="cooperative-sticky"
        )
        assert second["a"] == first["a"]
        assert sorted(second["a"] + second["b"]) == [0, 1, 2, 3, 4, 5]

    def test_what_two_say_they_have_is_withheld(self) -> None:
        assignment = assign(had("a", 3, 0, 1, 2), had("b", 3, 0, 4, 5), name="cooperative-sticky")
        held = assignment["a"] + assignment["b"]
        assert sorted(held) == [1, 2, 3, 4, 5]

    def test_a_stale_claim_takes_nothing_from_the_owner(self) -> None:
        assignment = assign(had("a", 2, 0, 1, 2), had("b", 1, 2, 3, 4), name="cooperative-sticky")
        assert assignment == {"a": [0, 1, 2], "b": [3, 4, 5]}

    def test_what_is_nobodys_goes_where_least_is_owned_meanwhile(self) -> None:
        """a gives up four of ten; two are unowned. b and c get one of those each at once."""
        counts = {"t": 12}
        members = [
            Member("a", ["t"], owned={"t": range(8)}, generation=1),
            Member("b", ["t"], owned={"t": [8]}, generation=1),
            Member("c", ["t"], owned={"t": [9]}, generation=1),
        ]
        assignment = compute_assignment("cooperative-sticky", members, counts)
        loads = {member: len(pairs(topics)) for member, topics in assignment.items()}
        assert loads == {"a": 4, "b": 2, "c": 2}


class TestUserData:
    """Old and new members under old and new leaders."""

    @pytest.mark.parametrize("version", [0, 1])
    def test_a_leader_reads_both_versions(self, version: int) -> None:
        partitions = (TopicPartitions("t", (0, 2, 4)),)
        user_data = encode_sticky_user_data(StickyUserData(partitions, 5), version)
        assert self._lead(user_data)["a"] == [0, 2, 4]

    def test_a_member_without_generation_gives_way_to_one_with(self) -> None:
        """Backward compatibility: version 0 counts as generation -1."""
        partitions = (TopicPartitions("t", (0, 1, 2)),)
        old = encode_sticky_user_data(StickyUserData(partitions), version=0)
        new = encode_sticky_user_data(StickyUserData((TopicPartitions("t", (2, 3, 4)),), 1))
        assert self._lead(old, new) == {"a": [0, 1, 5], "b": [2, 3, 4]}

    @pytest.mark.parametrize("user_data", [None, b"", b"\x00", b"\x7f\xff\xff\xff", b"rubbish"])
    def test_unreadable_user_data_are_nothing_owned(self, user_data: bytes | None) -> None:
        assignment = self._lead(user_data)
        assert sorted(assignment["a"] + assignment["b"]) == [0, 1, 2, 3, 4, 5]

    def test_sticky_does_not_read_the_subscription(self) -> None:
        """Eager members revoke everything before they join, so the subscription may be outdated."""
        told = encode_subscription(make_subscription(["t"], None, [("t", 5)], 9))
        silent = encode_subscription(make_subscription(["t"]))
        as_told = self._lead_bytes(told, silent)
        assert as_told == self._lead_bytes(silent, silent)

    def _lead(self, a: bytes | None, b: bytes | None = None) -> dict[str, list[int]]:
        return self._lead_bytes(
            encode_subscription(make_subscription(["t"], a)),
            encode_subscription(make_subscription(["t"], b)),
        )

    def _lead_bytes(self, a: bytes, b: bytes) -> dict[str, list[int]]:
        joined = [JoinedMember("a", None, a), JoinedMember("b", None, b)]
        answer = compute_assignment_bytes("sticky", joined, SIX)
        return {
            member: [p for t in decode_assignment(data).partitions for p in t.partitions]
            for member, data in answer.items()
        }
