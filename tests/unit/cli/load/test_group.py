"""When a group is complete, and what its joins took."""

from __future__ import annotations

from cli.load.figures.recorder import Recorder
from cli.load.members.classic_assignment import (
    compute_ranges,
    decode_assignment,
    encode_assignment,
)
from cli.load.members.group import Group


def test_a_join_lasts_until_all_members_are_at_the_new_epoch_and_nothing_is_owed() -> None:
    took: list[int] = []
    group = Group("g", 4, took.append)
    group.begin_join()
    group.move(0, 1, 0, 0)
    assert not took, "no partition has an owner yet"
    group.move(1, 1, 4, 1)
    assert not took, "the assignment is not acknowledged"
    group.move(1, 1, 0, -1)
    assert len(took) == 1
    group.begin_join()
    assert not group.is_complete
    group.move(0, 2, 0, 0)
    assert len(took) == 1, "the first member is an epoch behind, though it owns all partitions"
    group.move(1, 2, -2, 1)
    group.move(2, 2, 0, -1)
    assert len(took) == 1, "two partitions have no owner"
    group.move(2, 2, 2, 0)
    assert len(took) == 2
    assert group.is_complete


def test_what_a_member_that_leaves_owned_has_no_owner() -> None:
    group = Group("g", 2, lambda _: None)
    for _ in range(2):
        group.begin_join()
        group.move(0, 3, 1, 0)
    assert group.is_complete
    group.remove(3, 1, 0)
    assert not group.is_complete
    group.move(3, 4, 1, 0)
    assert group.is_complete


def test_ranges_give_each_partition_to_one_member() -> None:
    ranges = compute_ranges(["c", "a", "b"], 10)
    assert sorted(number for each in ranges.values() for number in each) == list(range(10))
    assert [len(ranges[name]) for name in "abc"] == [4, 3, 3]
    assert sum(len(each) for each in compute_ranges(["a", "b", "c"], 2).values()) == 2


def test_an_assignment_is_read_as_it_was_written() -> None:
    assert decode_assignment(encode_assignment("orders", range(3, 6))) == (3, 4, 5)
    assert decode_assignment(b"") == ()


def test_joins_that_last_are_given_up_with_the_time_until_then() -> None:
    """Bug: those that took longest, to the end of the test, were not counted at all."""
    took: list[int] = []
    group = Group("g", 1, took.append)
    group.begin_join()
    group.begin_join()
    assert group.is_converging
    recorder = Recorder(is_held=False)
    recorder.record_not_converged(group.give_up())
    assert len(took) == 2
    assert recorder.take().errors == {"NOT_CONVERGED": 2}
    assert not group.is_converging
    group.move(0, 1, 1, 0)
    group.move(0, 1, 0, 0)
    assert len(took) == 2
