"""Groups that are watched: one description for all, the newest for who is slow, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from coordinator.runtime.members.group_notices import GroupChanges, GroupNotices
from coordinator.service.watch import watched_group
from coordinator.service.watch.watched_group import SLICE, Describe, DescribedGroup
from coordinator.service.watch.watched_groups import GroupWatch, TooManyWatches, WatchedGroups
from model.errors import CoordinatorNotAvailable, GroupError, GroupIdNotFound
from model.ids import GroupId, TopicName
from muster.v1 import admin_pb2

G = GroupId("g")
SOON_S = 30.0
PAUSE_S = 0.02


class Source:
    """A group that is at ``epoch``, and the notices of its changes."""

    def __init__(self) -> None:
        self.notices = GroupNotices()
        self.epoch = 1
        self.error: GroupError | None = None
        self.described = 0
        self.members: list[admin_pb2.GroupMember] = []
        self.wait: Callable[[], asyncio.Future[None]] | None = None

    def changes_of(self, group_id: GroupId) -> GroupChanges:
        return GroupChanges(self.notices, group_id)

    def make_describe(self, group_id: GroupId) -> Describe:
        return self.describe

    async def describe(self) -> DescribedGroup:
        self.described += 1
        if self.wait is not None:
            await self.wait()
        if self.error is not None:
            raise self.error
        group = admin_pb2.Group(group_id=G, group_epoch=self.epoch, members=self.members)
        return DescribedGroup(group, frozenset({TopicName("t")}))

    def change(self, epoch: int) -> None:
        self.epoch = epoch
        self.notices.note(G)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_group, "PAUSE_S", PAUSE_S)


def make(source: Source, most: int = 1_000) -> WatchedGroups:
    return WatchedGroups(source, source.make_describe, most, 5_000)  # type: ignore[arg-type]


async def next_epoch(watch: GroupWatch) -> int:
    look = await watch.next(SOON_S)
    assert look is not None
    message = admin_pb2.WatchGroupResponse.FromString(look.message)
    assert (message.group.group_id, message.heartbeat_interval_ms) == (G, 5_000)
    assert look.topics == {"t"}
    return message.group.group_epoch


async def test_first_the_group_then_its_changes() -> None:
    source = Source()
    with make(source).watch(G) as watch:
        assert await next_epoch(watch) == 1
        assert await watch.next(0.0) is None
        source.change(2)
        assert await next_epoch(watch) == 2


async def test_many_watchers_share_each_description() -> None:
    source = Source()
    groups = make(source)
    count = 3 * SLICE
    with ExitStack() as stack:
        watches = [stack.enter_context(groups.watch(G)) for _ in range(count)]
        for epoch in (1, 2):
            if epoch == 2:
                source.change(2)
            found = await asyncio.gather(*map(next_epoch, watches))
            assert found == [epoch] * count
        assert (source.described, len(source.notices), len(groups)) == (2, 1, count)
    assert (len(source.notices), len(groups)) == (1, 0)
    await asyncio.sleep(0)
    assert len(source.notices) == 0, "a group that nobody watches is followed no more"


async def test_changes_that_follow_closely_are_one() -> None:
    source = Source()
    with make(source).watch(G) as watch:
        assert await next_epoch(watch) == 1
        for epoch in range(2, 30):
            source.change(epoch)
            await asyncio.sleep(0)
        assert await next_epoch(watch) == 29
    assert source.described <= 3


async def test_who_is_slow_gets_the_newest() -> None:
    source = Source()
    groups = make(source)
    with groups.watch(G) as slow, groups.watch(G) as quick:
        assert await next_epoch(slow) == 1
        for epoch in range(1, 6):
            if epoch > 1:
                source.change(epoch)
            assert await next_epoch(quick) == epoch
        assert await next_epoch(slow) == 5
        assert await slow.next(0.0) is None


async def test_a_notice_without_a_difference_is_not_told() -> None:
    source = Source()
    with make(source).watch(G) as watch:
        assert await next_epoch(watch) == 1
        source.change(1)
        assert await watch.next(5 * PAUSE_S) is None
        assert source.described == 2


async def test_who_comes_later_gets_what_is_now() -> None:
    source = Source()
    groups = make(source)
    with groups.watch(G) as first:
        assert await next_epoch(first) == 1
        # The times in a description age without a change of the group.
        await asyncio.sleep(2 * PAUSE_S)
        with groups.watch(G) as second:
            assert await next_epoch(second) == 1
            assert source.described == 2
        assert await first.next(0.0) is None


async def test_it_ends_with_the_error_of_the_description() -> None:
    source = Source()
    groups = make(source)
    with groups.watch(G) as watch:
        assert await next_epoch(watch) == 1
        source.error = GroupIdNotFound("Group g not found.")
        source.notices.note(G)
        with pytest.raises(GroupIdNotFound):
            await watch.next(SOON_S)
        # A group of the same id that comes now is another one: who watches it begins anew.
        source.error = None
        with groups.watch(G) as another:
            assert await next_epoch(another) == 1
        with pytest.raises(GroupIdNotFound):
            await watch.next(SOON_S)
    with groups.watch(G) as again:
        assert await next_epoch(again) == 1


async def test_a_stopping_server_ends_all() -> None:
    source = Source()
    groups = make(source)
    with groups.watch(G) as watch:
        assert await next_epoch(watch) == 1
        groups.stop()
        with pytest.raises(CoordinatorNotAvailable):
            await watch.next(SOON_S)
    with groups.watch(G) as late, pytest.raises(CoordinatorNotAvailable):
        await late.next(SOON_S)


async def test_there_are_only_so_many() -> None:
    groups = make(Source(), most=2)
    with (
        groups.watch(G),
        groups.watch(GroupId("h")),
        pytest.raises(TooManyWatches),
        groups.watch(G),
    ):
        pass
    with groups.watch(G):
        assert len(groups) == 1


async def test_waits_that_time_out_leave_nothing_behind() -> None:
    source = Source()
    groups = make(source)
    with groups.watch(G) as watch:
        assert await next_epoch(watch) == 1
        for _ in range(5):
            assert await watch.next(0.001) is None
        (watched,) = groups._groups.values()
        assert not watched._waiting


async def test_the_members_of_a_large_group_are_encoded_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watched_group, "SLICE_BYTES", 20)
    source = Source()
    source.members = [admin_pb2.GroupMember(member_id=f"m-{n}") for n in range(21)]
    with make(source).watch(G) as watch:
        look = await watch.next(SOON_S)
    assert look is not None
    turns = list(watched_group._encode(admin_pb2.Group(members=source.members), 0))
    assert len(turns) >= 4
    message = admin_pb2.WatchGroupResponse.FromString(look.message)
    group = admin_pb2.Group(group_id=G, group_epoch=1, members=source.members)
    assert message == admin_pb2.WatchGroupResponse(group=group, heartbeat_interval_ms=5_000)


async def test_a_large_group_is_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source()
    monkeypatch.setattr(watched_group, "BYTES_PER_S", 100)
    loop = asyncio.get_running_loop()
    with make(source).watch(G) as watch:
        began_s = loop.time()
        look = await watch.next(SOON_S)
        assert look is not None
        source.change(2)
        assert await next_epoch(watch) == 2
    assert loop.time() - began_s >= len(look.message) / 100 > PAUSE_S


async def test_a_look_that_waits_long_makes_the_next_one_no_later() -> None:
    source = Source()
    busy_s = 0.5

    async def wait() -> None:
        await asyncio.sleep(busy_s)

    source.wait = lambda: asyncio.ensure_future(wait())
    loop = asyncio.get_running_loop()
    with make(source).watch(G) as watch:
        assert await next_epoch(watch) == 1
        source.wait = None
        began_s = loop.time()
        source.change(2)
        assert await next_epoch(watch) == 2
    assert loop.time() - began_s < 3 * busy_s
