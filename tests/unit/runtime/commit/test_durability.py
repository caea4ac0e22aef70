"""Tracking of what is not durable yet, by group."""

from __future__ import annotations

from coordinator.runtime.commit.durability import Durability
from model.ids import GroupId


def test_groups_settle_in_the_order_in_which_they_changed() -> None:
    """Trigger: the order of a set of names differs between processes; simulations differed."""
    durability = Durability()
    names = [GroupId(f"group-{number * 7 % 50}") for number in range(50)]
    for name in names:
        durability.note_group(name, 1)
    assert list(durability.settle(1)) == names


def test_a_change_is_pending_until_the_last_generation_that_touched_it() -> None:
    durability = Durability()
    group = GroupId("g")
    durability.note_group(group, 1)
    durability.note_group(group, 2)
    assert list(durability.settle(1)) == [group]
    assert durability.generation_of_groups((group,)) == 2
    assert list(durability.settle(2)) == [group]
    assert durability.generation_of_groups((group,)) == 0


def test_commits_are_kept_apart_from_membership() -> None:
    durability = Durability()
    group = GroupId("g")
    durability.note_offsets(group, 3)
    assert durability.generation_of_groups((group,)) == 0
    assert durability.generation_of_offsets(group) == 3
    assert durability.generation_of_all() == 3
    assert list(durability.settle(3)) == []
    assert durability.generation_of_offsets(group) == 0
