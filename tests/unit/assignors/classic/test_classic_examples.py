"""The worked examples of the documents, with their own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import pytest

from muster.assignors.classic import GroupAssignment, Member, compute_assignment
from tests.support.assignors.classic.groups import count_partitions, own, pairs, strip

ALL = ("range", "roundrobin", "sticky")


def read_table(text: str) -> GroupAssignment:
    """Parse lines such as ``C0 t0p0, t1p1``, KIP-54's notation."""
    table: GroupAssignment = {}
    for line in text.strip().splitlines():
        member, _, partitions = line.strip().partition(" ")
        table[member] = {}
        for each in filter(None, partitions.split(", ")):
            topic, _, partition = each.partition("p")
            table[member].setdefault(topic, []).append(int(partition))
    return strip(table)


def join(topics_of: Mapping[str, Sequence[str]]) -> list[Member]:
    return [Member(member, topics) for member, topics in topics_of.items()]


def count_kept(before: GroupAssignment, after: GroupAssignment) -> int:
    return sum(
        len(pairs(before.get(member, {})) & pairs(topics)) for member, topics in after.items()
    )


def reassign(
    name: str, members: list[Member], before: GroupAssignment, counts: Mapping[str, int]
) -> GroupAssignment:
    return strip(compute_assignment(name, own(members, before, generation=1), counts))


class TestKip54Example1:
    """Three consumers, four topics of two partitions, all subscribe to all; C1 leaves."""

    counts: ClassVar = {f"t{i}": 2 for i in range(4)}
    before = read_table(
        """
        C0 t0p0, t1p1, t3p0
        C1 t0p1, t2p0, t3p1
        C2 t1p0, t2p1
        """
    )

    @pytest.mark.parametrize("name", ["roundrobin", "sticky"])
    def test_first_assignment(self, name: str) -> None:
        members = join({m: list(self.counts) for m in ("C0", "C1", "C2")})
        assert strip(compute_assignment(name, members, self.counts)) == self.before

    def test_roundrobin_keeps_three(self) -> None:
        after = reassign("roundrobin", self._left(), self.before, self.counts)
        assert after == read_table(
            """
            C0 t0p0, t1p0, t2p0, t3p0
            C2 t0p1, t1p1, t2p1, t3p1
            """
        )
        assert count_kept(self.before, after) == 3

    def test_sticky_keeps_five(self) -> None:
        after = reassign("sticky", self._left(), self.before, self.counts)
        assert after == read_table(
            """
            C0 t0p0, t1p1, t3p0, t2p0
            C2 t1p0, t2p1, t0p1, t3p1
            """
        )
        assert count_kept(self.before, after) == 5

    def _left(self) -> list[Member]:
        return join({m: list(self.counts) for m in ("C0", "C2")})


class TestKip54Example2:
    """Topics of one, two and three partitions; C0 subscribes to one, C1 to two, C2 to all."""

    counts: ClassVar = {"t0": 1, "t1": 2, "t2": 3}
    topics: ClassVar = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    by_roundrobin = read_table(
        """
        C0 t0p0
        C1 t1p0
        C2 t1p1, t2p0, t2p1, t2p2
        """
    )
    by_sticky = read_table(
        """
        C0 t0p0
        C1 t1p0, t1p1
        C2 t2p0, t2p1, t2p2
        """
    )

    def test_first_assignment(self) -> None:
        members = join(self.topics)
        assert strip(compute_assignment("roundrobin", members, self.counts)) == self.by_roundrobin
        assert strip(compute_assignment("sticky", members, self.counts)) == self.by_sticky

    def test_c0_is_removed(self) -> None:
        left = join({m: topics for m, topics in self.topics.items() if m != "C0"})
        after = reassign("roundrobin", left, self.by_roundrobin, self.counts)
        assert after == read_table(
            """
            C1 t0p0, t1p1
            C2 t1p0, t2p0, t2p1, t2p2
            """
        )
        assert count_kept(self.by_roundrobin, after) == 3
        after = reassign("sticky", left, self.by_sticky, self.counts)
        assert after == read_table(
            """
            C1 t1p0, t1p1, t0p0
            C2 t2p0, t2p1, t2p2
            """
        )
        assert count_kept(self.by_sticky, after) == 5


class TestKip54Example3:
    """Two consumers, two topics of two partitions; C2 comes on board."""

    counts: ClassVar = {"t0": 2, "t1": 2}
    before = read_table(
        """
        C0 t0p0, t1p0
        C1 t0p1, t1p1
        """
    )

    @pytest.mark.parametrize("name", ALL)
    def test_first_assignment(self, name: str) -> None:
        members = join({m: list(self.counts) for m in ("C0", "C1")})
        assert strip(compute_assignment(name, members, self.counts)) == self.before

    @pytest.mark.parametrize(
        ("name", "table"),
        [
            ("range", "C0 t0p0, t1p0\nC1 t0p1, t1p1"),
            ("roundrobin", "C0 t0p0, t1p1\nC1 t0p1\nC2 t1p0"),
        ],
    )
    def test_one_joins(self, name: str, table: str) -> None:
        members = join({m: list(self.counts) for m in ("C0", "C1", "C2")})
        assert reassign(name, members, self.before, self.counts) == read_table(table)

    def test_sticky_moves_one(self) -> None:
        """The document's table is one of four that are as good."""
        members = join({m: list(self.counts) for m in ("C0", "C1", "C2")})
        after = reassign("sticky", members, self.before, self.counts)
        assert sorted(count_partitions(after).values()) == [1, 1, 2]
        assert count_kept(self.before, after) == 3
        assert count_partitions(after)["C2"] == 1


def grow(name: str, consumers: int) -> list[GroupAssignment]:
    """One topic of eight partitions, and one consumer more each time."""
    counts = {"t": 8}
    states: list[GroupAssignment] = [{}]
    for count in range(1, consumers + 1):
        members = join({f"C{i}": ["t"] for i in range(count)})
        states.append(reassign(name, members, states[-1], counts))
    return states[1:]


def count_swaps(before: GroupAssignment, after: GroupAssignment) -> int:
    """Partitions that one consumer is assigned and another has revoked."""
    assigned = {
        (m, each)
        for m, topics in after.items()
        for each in pairs(topics) - pairs(before.get(m, {}))
    }
    revoked = {
        (m, each)
        for m, topics in before.items()
        for each in pairs(topics) - pairs(after.get(m, {}))
    }
    assert len(assigned) == len(revoked)
    return len(assigned)


class TestEffectiveKafkaChapter15:
    """One topic, eight partitions, from one consumer to four. The chapter's tables and swaps."""

    @pytest.mark.parametrize(
        ("name", "swaps"),
        [
            ("range", [4, 3, 5]),
            ("roundrobin", [4, 4, 5]),
            ("sticky", [4, 2, 2]),
        ],
        ids=["range", "roundrobin", "the optimum"],
    )
    def test_swaps(self, name: str, swaps: list[int]) -> None:
        states = grow(name, 4)
        assert [count_swaps(*pair) for pair in pairwise(states)] == swaps
        for state in states:
            loads = count_partitions(state).values()
            assert max(loads) - min(loads) <= 1

    @pytest.mark.parametrize(
        ("name", "tables"),
        [
            (
                "range",
                [
                    [[0, 1, 2, 3, 4, 5, 6, 7]],
                    [[0, 1, 2, 3], [4, 5, 6, 7]],
                    [[0, 1, 2], [3, 4, 5], [6, 7]],
                    [[0, 1], [2, 3], [4, 5], [6, 7]],
                ],
            ),
            (
                "roundrobin",
                [
                    [[0, 1, 2, 3, 4, 5, 6, 7]],
                    [[0, 2, 4, 6], [1, 3, 5, 7]],
                    [[0, 3, 6], [1, 4, 7], [2, 5]],
                    [[0, 4], [1, 5], [2, 6], [3, 7]],
                ],
            ),
        ],
    )
    def test_tables(self, name: str, tables: list[list[list[int]]]) -> None:
        for state, table in zip(grow(name, 4), tables, strict=True):
            assert state == {f"C{i}": {"t": partitions} for i, partitions in enumerate(table)}

    def test_the_optimum_of_three_to_four(self) -> None:
        """The chapter's optimum tables. Its last delta table names P6 where the table of
        partitions has P5; P5 is right: P6 stays with C2."""
        three = {"C0": {"t": [0, 1, 2]}, "C1": {"t": [4, 5, 6]}, "C2": {"t": [3, 7]}}
        delta = {"C0": {2}, "C1": {5}}
        four = {
            "C0": {"t": [0, 1]},
            "C1": {"t": [4, 6]},
            "C2": {"t": [3, 7]},
            "C3": {"t": [2, 5]},
        }
        assert count_swaps(three, four) == sum(map(len, delta.values())) == 2
        members = join({f"C{i}": ["t"] for i in range(4)})
        after = reassign("sticky", members, three, {"t": 8})
        assert count_swaps(three, after) == 2
        assert count_partitions(after) == dict.fromkeys(four, 2)
        assert after["C2"] == four["C2"]

    def test_two_to_three(self) -> None:
        """Optimum: P3 leaves C0 and P7 leaves C1; one each of any would do."""
        two = {"C0": {"t": [0, 1, 2, 3]}, "C1": {"t": [4, 5, 6, 7]}}
        members = join({f"C{i}": ["t"] for i in range(3)})
        after = reassign("sticky", members, two, {"t": 8})
        assert count_partitions(after) == {"C0": 3, "C1": 3, "C2": 2}
        assert count_swaps(two, after) == 2

    def test_range_is_uneven_over_several_narrow_topics(self) -> None:
        """T0 has eight partitions, T1 to T3 two each: C2 gets none of those, however many."""
        counts = {"T0": 8, "T1": 2, "T2": 2, "T3": 2}
        members = join({f"C{i}": list(counts) for i in range(3)})
        assignment = compute_assignment("range", members, counts)
        assert assignment == {
            "C0": {"T0": [0, 1, 2], "T1": [0], "T2": [0], "T3": [0]},
            "C1": {"T0": [3, 4, 5], "T1": [1], "T2": [1], "T3": [1]},
            "C2": {"T0": [6, 7]},
        }
        for even in ("roundrobin", "sticky"):
            loads = count_partitions(compute_assignment(even, members, counts)).values()
            assert sorted(loads) == [4, 5, 5]
