"""The groups and members that a user may make, by what this process has seen."""

from __future__ import annotations

import pytest

from model.errors import GroupMaxSizeReached, PolicyViolation
from model.ids import GroupId, MemberId
from security.quotas.holdings import GRACE_S, Held, Holdings

NOW = 1_000.0


def member(name: str, group: str = "g") -> Held:
    return Held(GroupId(group), MemberId(name))


class Groups:
    """What is there."""

    def __init__(self) -> None:
        self.there: set[Held] = set()
        self.holdings = Holdings()

    def make(
        self, held: Held, now: float = NOW, groups: int | None = None, members: int | None = None
    ) -> None:
        self.holdings.check("a", held, self.is_held, now, groups_max=groups, members_max=members)
        self.there |= {held, Held(held.group_id, None)}

    def is_held(self, held: Held) -> bool:
        return held in self.there


def test_a_user_has_so_many_members_and_no_more() -> None:
    groups = Groups()
    for name in ("m1", "m2"):
        groups.make(member(name), members=2)
    with pytest.raises(GroupMaxSizeReached):
        groups.make(member("m3"), members=2)
    with pytest.raises(GroupMaxSizeReached):
        groups.make(member("m3", "other"), members=2)
    groups.make(member("m1"), members=2)
    with pytest.raises(GroupMaxSizeReached):
        groups.make(member(""), members=2)


def test_who_has_gone_makes_room() -> None:
    groups = Groups()
    groups.make(member("m1"), members=1)
    groups.there.discard(member("m1"))
    with pytest.raises(GroupMaxSizeReached):
        groups.make(member("m2"), members=1)
    groups.make(member("m2"), NOW + GRACE_S, members=1)


def test_what_has_gone_is_looked_for_once_a_second_however_often_a_user_is_refused() -> None:
    groups, looks = Groups(), 0
    for number in range(100):
        groups.make(member(f"m{number}"), members=100)

    def is_held(held: Held) -> bool:
        nonlocal looks
        looks += 1
        return groups.is_held(held)

    for number in range(100):
        with pytest.raises(GroupMaxSizeReached):
            groups.holdings.check(
                "a",
                member(f"more-{number}"),
                is_held,
                NOW + GRACE_S + number / 100,
                groups_max=None,
                members_max=100,
            )
    assert looks < 3 * 100


def test_a_user_has_so_many_groups_and_joins_others() -> None:
    groups = Groups()
    groups.make(member("m1", "g1"), groups=1)
    groups.make(member("m2", "g1"), groups=1)
    with pytest.raises(PolicyViolation):
        groups.make(member("m1", "g2"), groups=1)
    with pytest.raises(PolicyViolation):
        groups.make(Held(GroupId("g2"), None), groups=1)
    groups.there.add(Held(GroupId("anothers"), None))
    groups.make(member("m1", "anothers"), groups=1)


def test_after_a_restart_members_count_again_when_they_are_heard() -> None:
    groups = Groups()
    groups.there |= {member("old"), Held(GroupId("g"), None)}
    groups.holdings.observe("a", member("old"), groups.is_held, NOW)
    groups.holdings.observe("a", member("nobody"), groups.is_held, NOW)
    with pytest.raises(GroupMaxSizeReached):
        groups.make(member("new"), members=1)
    groups.make(member("new"), members=2)


def test_ids_that_nobody_has_are_forgotten() -> None:
    groups = Groups()
    for number in range(1_000):
        groups.holdings.check(
            "a",
            member(f"m{number}"),
            lambda held: False,
            NOW + number,
            groups_max=None,
            members_max=1_000_000,
        )
    assert len(groups.holdings.find("a", groups.is_held, NOW).noted) < 200


def test_users_that_have_nothing_any_more_are_forgotten() -> None:
    groups = Groups()
    for number in range(5_000):
        held = Held(GroupId(f"g{number}"), MemberId("m"))
        groups.holdings.check(
            f"user-{number}",
            held,
            groups.is_held,
            NOW + number,
            groups_max=5,
            members_max=5,
        )
    assert len(groups.holdings) < 200
