"""Notices of changes of groups: who gets them, once, and no longer than it follows."""

from __future__ import annotations

import asyncio

import pytest

from coordinator.runtime.members.group_notices import GroupChanges, GroupNotices
from model.ids import GroupId

A, B, C = GroupId("a"), GroupId("b"), GroupId("c")


async def is_told(changes: GroupChanges) -> bool:
    """Whether a wait ends at once."""
    waiting = asyncio.ensure_future(changes.wait())
    await asyncio.sleep(0)
    told = waiting.done()
    waiting.cancel()
    return told


@pytest.mark.parametrize("changed", [[A], [A, C], [C, A, GroupId("d"), GroupId("e")]])
async def test_who_follows_a_group_is_told_of_it_alone(changed: list[GroupId]) -> None:
    notices = GroupNotices()
    with GroupChanges(notices, A) as of_a, GroupChanges(notices, B) as of_b:
        notices.look_at(changed)
        assert (await is_told(of_a), await is_told(of_b)) == (True, False)


async def test_changes_that_nobody_waited_for_are_one() -> None:
    notices = GroupNotices()
    with GroupChanges(notices, A) as changes, GroupChanges(notices, A) as others:
        for _ in range(3):
            notices.note(A)
        assert [await is_told(changes), await is_told(changes)] == [True, False]
        assert await is_told(others)


async def test_nobody_is_kept_who_follows_no_more() -> None:
    notices = GroupNotices()
    with GroupChanges(notices, A) as changes:
        with GroupChanges(notices, A):
            assert len(notices) == 2
        notices.note(A)
        assert await is_told(changes)
    assert len(notices) == 0
    notices.look_at([A])
    assert not await is_told(changes)
