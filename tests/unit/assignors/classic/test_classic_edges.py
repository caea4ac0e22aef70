"""Edge cases for all classic assignors."""

from __future__ import annotations

from typing import ClassVar

import pytest

from muster.assignors.classic import (
    CLASSIC_ASSIGNORS,
    Member,
    UnknownAssignorError,
    compute_assignment,
    find_assignor,
)
from tests.support.assignors.classic.groups import compute_figures, count_partitions

NAMES = [*CLASSIC_ASSIGNORS, "redundant(1)"]
each_assignor = pytest.mark.parametrize("name", NAMES)


@each_assignor
@pytest.mark.parametrize(
    ("members", "counts"),
    [
        ([], {"t": 3}),
        ([Member("a", ["t"])], {}),
        ([Member("a", ["t"])], {"t": 0}),
        ([Member("a", [])], {"t": 3}),
        ([Member("a", []), Member("b", ["gone"])], {"t": 3}),
        ([Member("a", ["gone"], owned={"gone": [0, 1]}, generation=1)], {}),
    ],
    ids=[
        "no members",
        "no topics",
        "no partitions",
        "no subscriptions",
        "an unknown topic",
        "a topic deleted",
    ],
)
def test_where_nothing_can_be_assigned_nobody_gets_anything(
    name: str, members: list[Member], counts: dict[str, int]
) -> None:
    assignment = compute_assignment(name, members, counts)
    assert assignment == {member.member_id: {} for member in members}


@each_assignor
def test_members_without_subscriptions_and_unknown_topics_do_not_disturb_others(name: str) -> None:
    members = [
        Member("a", ["t", "gone"]),
        Member("b", []),
        Member("c", ["t"]),
        Member("d", ["gone"]),
    ]
    assignment = compute_assignment(name, members, {"t": 4, "other": 9})
    assert count_partitions(assignment) == {"a": 2, "b": 0, "c": 2, "d": 0}


@each_assignor
def test_more_members_than_partitions(name: str) -> None:
    members = [Member(f"m{i}", ["t"]) for i in range(9)]
    loads = count_partitions(compute_assignment(name, members, {"t": 4}))
    assert sorted(loads.values()) == [0] * 5 + [1] * 4


@each_assignor
def test_instance_ids_come_first_and_decide(name: str) -> None:
    """A static member has a new member id after each restart, but the assignment stays."""
    members = [
        Member("a", ["t"]),
        Member("x", ["t"], instance_id="2"),
        Member("y", ["t"], instance_id="1"),
    ]
    first = compute_assignment(name, members, {"t": 3})
    assert first == {"y": {"t": [0]}, "x": {"t": [1]}, "a": {"t": [2]}}


@each_assignor
def test_a_topic_named_twice_counts_once(name: str) -> None:
    members = [Member("a", ["t", "t"]), Member("b", ["t"])]
    assert count_partitions(compute_assignment(name, members, {"t": 4})) == {"a": 2, "b": 2}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky", "redundant(1)"])
def test_owned_partitions_that_there_are_not(name: str) -> None:
    """Deleted topics, a topic recreated with fewer partitions, invalid numbers, repeats."""
    owned = {"gone": [0], "t": [-1, 0, 0, 2, 3, 4, 1 << 31, 1 << 70]}
    members = [
        Member("a", ["t", "gone"], owned=owned, generation=1),
        Member("b", ["t"], owned={"t": []}, generation=1),
    ]
    assignment = compute_assignment(name, members, {"t": 4})
    assert len(assignment["a"]["t"]) == 2
    unowned, _, taken = compute_figures(
        members, {"t": 3}, compute_assignment(name, members, {"t": 3})
    )
    assert (unowned, taken) == (0, 0)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_who_no_longer_subscribes_keeps_nothing(name: str) -> None:
    members = [
        Member("a", ["u"], owned={"t": [0, 1]}, generation=1),
        Member("b", ["t", "u"], generation=1),
    ]
    assignment = compute_assignment(name, members, {"t": 2, "u": 2})
    assert assignment["a"] == {"u": [0, 1]}
    assert assignment["b"] == ({"t": [0, 1]} if name == "sticky" else {})


@each_assignor
def test_what_cannot_be_a_group(name: str) -> None:
    with pytest.raises(ValueError, match="two members have the same member id"):
        compute_assignment(name, [Member("a", ["t"]), Member("a", ["t"])], {"t": 1})
    with pytest.raises(ValueError, match="topic 't' has -1 partitions"):
        compute_assignment(name, [Member("a", ["t"])], {"t": -1})


@pytest.mark.parametrize(
    "name", ["", "uniform", "Range", "redundant", "redundant(0)", "redundant(-1)", "redundant(²)"]
)
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownAssignorError, match=r"use one of range, .*, redundant\(n\)"):
        find_assignor(name)


def test_the_assignors_know_how_their_members_join() -> None:
    assert [name for name, each in CLASSIC_ASSIGNORS.items() if each.is_cooperative] == [
        "cooperative-sticky"
    ]
    assert all(find_assignor(name).name == name for name in NAMES)


class TestRangeWithRacks:
    """KIP-881, in cases that the recorded rounds do not cover."""

    def test_members_get_what_is_near(self) -> None:
        members = [Member("a", ["t"], rack="east"), Member("b", ["t"], rack="west")]
        racks = {"t": [["west"], ["east"], ["west"], ["east"]]}
        assignment = compute_assignment("range", members, {"t": 4}, racks)
        assert assignment == {"a": {"t": [1, 3]}, "b": {"t": [0, 2]}}

    def test_balance_goes_before_nearness(self) -> None:
        members = [Member("a", ["t"], rack="east"), Member("b", ["t"], rack="west")]
        racks = {"t": [["east"], ["east"], ["east"], ["west"]]}
        assignment = compute_assignment("range", members, {"t": 4}, racks)
        assert assignment == {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}

    def test_topics_alike_stay_together(self) -> None:
        members = [Member("a", ["t", "u"], rack="east"), Member("b", ["t", "u"], rack="west")]
        racks = {topic: [["west"], ["east"]] for topic in ("t", "u")}
        assignment = compute_assignment("range", members, {"t": 2, "u": 2}, racks)
        assert assignment == {"a": {"t": [1], "u": [1]}, "b": {"t": [0], "u": [0]}}

    @pytest.mark.parametrize(
        "racks",
        [{}, {"t": []}, {"t": [[], []]}, {"t": [["east"]]}, {"t": [["north"], ["north"]]}],
        ids=["none", "no partitions", "no replicas", "too few", "elsewhere"],
    )
    def test_racks_that_say_nothing(self, racks: dict[str, list[list[str]]]) -> None:
        members = [Member("a", ["t"], rack="east"), Member("b", ["t"], rack="")]
        assignment = compute_assignment("range", members, {"t": 2}, racks)
        assert assignment == {"a": {"t": [0]}, "b": {"t": [1]}}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
class TestNearness:
    """KIP-881 for the sticky assignors: partitions to assign go to members in their racks."""

    racks: ClassVar = {"t": [["west"], ["east"], ["west"], ["east"]]}

    def test_a_new_group(self, name: str) -> None:
        members = [Member("a", ["t"], rack="east"), Member("b", ["t"], rack="west")]
        assignment = compute_assignment(name, members, {"t": 4}, self.racks)
        assert assignment == {"a": {"t": [1, 3]}, "b": {"t": [0, 2]}}

    def test_nothing_moves_for_it(self, name: str) -> None:
        members = [
            Member("a", ["t"], rack="east", owned={"t": [0, 2]}, generation=1),
            Member("b", ["t"], rack="west", owned={"t": [1, 3]}, generation=1),
        ]
        assignment = compute_assignment(name, members, {"t": 4}, self.racks)
        assert assignment == {"a": {"t": [0, 2]}, "b": {"t": [1, 3]}}

    def test_what_is_left_goes_to_the_others(self, name: str) -> None:
        members = [Member("a", ["t"], rack="west"), Member("b", ["t"]), Member("c", ["t"], rack="")]
        assignment = compute_assignment(name, members, {"t": 4}, self.racks)
        assert assignment["a"]["t"] == [0, 2]
        assert sorted(assignment["b"]["t"] + assignment["c"]["t"]) == [1, 3]
