"""Takeovers of groups of the simulated cluster, with a real runtime."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from gateway.codec.client_frames import ClientRequest
from model.commands.consumer import LeaveGroup, LeavingMember
from model.commands.groups import DescribeGroups
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.errors import (
    ErrorCode,
    NotCoordinator,
    RebalanceInProgress,
)
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from model.places import Place
from model.responses.classic import ClassicHeartbeatResponse, JoinGroupResponse
from model.responses.groups import DescribeGroupsResponse
from model.responses.offsets import OffsetCommitResponse, OffsetFetchResponse
from tests.sim.upstream.stock_member import StockMember
from tests.support.upstream.takeover_rig import G, TakeoverRig
from tests.support.virtual.server import CALLER
from tests.support.waiting import until
from upstream.front.cluster_front import Places
from upstream.hooks import Takeovers as Hooks
from upstream.relay.relay_places import RelayPlaces
from upstream.sentinel.sentinel_requests import DESCRIBE_GROUPS, LEAVE_GROUP, SYNC_GROUP
from upstream.sentinel.sentinel_sign import decode_sign
from upstream.takeover import group_mover
from upstream.takeover.machine.takeover_events import MemberTimes
from upstream.takeover.release_alone import release_alone


@pytest.fixture
async def rig() -> AsyncIterator[TakeoverRig]:
    rig = TakeoverRig()
    await rig.start()
    yield rig
    await rig.stop()


async def take(rig: TakeoverRig, members: list[StockMember]) -> list[object]:
    """Take the group while its members come to the node; what their heartbeats heard."""
    taking = asyncio.create_task(rig.takeovers.take(G))
    await until(lambda: rig.place is Place.TAKING)
    beats = [rig.beat(member) for member in members]
    report = await taking
    assert report.place is Place.MUSTER, report
    return [await beat.wait() for beat in beats]


def make_commit(member: StockMember, offset: int) -> OffsetCommit:
    columns = make_offset_columns([(0, offset, -1, "")])
    topics = (TopicOffsets(TopicName("orders"), None, columns),)
    return OffsetCommit(CALLER, G, MemberId(member.member_id), member.generation, topics)


async def test_members_of_a_stable_group_go_on_as_if_their_coordinator_had_moved(
    rig: TakeoverRig,
) -> None:
    members = rig.join_stock(3)
    rig.relayed.members[members[1].member_id] = MemberTimes(led_generation=members[1].generation)
    heard = await take(rig, members)
    assert {type(answer) for answer in heard} == {ClassicHeartbeatResponse}, heard
    group = await rig.runtime.call(DescribeGroups(CALLER, (G,)))
    assert isinstance(group, DescribeGroupsResponse)
    assert group.groups[0].state == "Stable"
    committed = await rig.send(make_commit(members[2], 3)).wait()
    assert isinstance(committed, OffsetCommitResponse)
    assert committed.topics[0].partitions[0].error is ErrorCode.NONE


@pytest.mark.parametrize("led", [-1, 7])
async def test_without_its_leader_nobody_would_see_topics_grow_and_all_join_again(
    rig: TakeoverRig, led: int
) -> None:
    members = rig.join_stock(2)
    rig.relayed.members[members[0].member_id] = MemberTimes(led_generation=led)
    heard = await take(rig, members)
    assert all(isinstance(answer, RebalanceInProgress) for answer in heard)


async def test_members_hear_of_one_rebalance_and_keep_their_ids(rig: TakeoverRig) -> None:
    members = rig.join_stock(3)
    heard = await take(rig, members)
    assert all(isinstance(answer, RebalanceInProgress) for answer in heard)
    assert all(rig.runtime.holds_member(G, MemberId(each.member_id)) for each in members)
    assert rig.relayed.ended
    sentinel = rig.model.group(G).find_instance("muster")
    assert sentinel is not None
    sign = decode_sign(sentinel.assignment)
    assert sign is not None
    assert sign.uuid == "uuid-1"
    assert rig.takeovers.sentinel_of(G) is not None


async def test_all_sides_get_what_they_ask_for(rig: TakeoverRig) -> None:
    hooks: Hooks = rig.takeovers
    relays: RelayPlaces = rig.takeovers
    front: Places = rig.takeovers
    assert relays.find_place(G) is front.find_place(G) is Place.UPSTREAM
    assert not hooks.is_asked_for(G)


async def test_the_sentinel_shows_all_partitions(rig: TakeoverRig) -> None:
    members = rig.join_stock(1)
    await take(rig, members)
    sentinel = rig.model.group(G).find_instance("muster")
    assert sentinel is not None
    assert b"\x00\x06orders\x00\x00\x00\x04" in sentinel.assignment


async def test_joins_are_held_until_the_group_is_here(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    taking = asyncio.create_task(rig.takeovers.take(G))
    await until(lambda: rig.place is Place.TAKING)
    joins = [rig.join(member.member_id) for member in members]
    await taking
    answers = [await join.wait() for join in joins]
    joined = [answer for answer in answers if isinstance(answer, JoinGroupResponse)]
    assert {answer.member_id for answer in joined} == {each.member_id for each in members}


async def test_commits_on_the_way_are_made_in_the_cluster(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    taking = asyncio.create_task(rig.takeovers.take(G))
    await until(lambda: rig.place is Place.TAKING)
    answer = await rig.send(make_commit(members[0], 7)).wait()
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error is ErrorCode.NONE
    assert rig.model.group(G).offsets[("orders", 0)] == 7
    fetch = OffsetFetch(CALLER, G, (TopicToFetch(TopicName("orders"), None, (0,)),))
    fetched = await rig.send(fetch).wait()
    assert isinstance(fetched, OffsetFetchResponse)
    assert fetched.topics[0].partitions[0].offset == 7
    rig.beat(members[1])
    await taking


async def test_a_member_that_leaves_on_the_way_is_not_adopted(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    taking = asyncio.create_task(rig.takeovers.take(G))
    await until(lambda: rig.place is Place.TAKING)
    gone = LeavingMember(MemberId(members[1].member_id))
    await rig.send(LeaveGroup(CALLER, G, (gone,))).wait()
    rig.beat(members[0])
    await taking
    assert rig.runtime.holds_member(G, MemberId(members[0].member_id))
    assert not rig.runtime.holds_member(G, MemberId(members[1].member_id))


async def test_a_stranger_puts_the_take_off_and_everybody_is_answered(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    del rig.relayed.members[members[1].member_id]
    taking = asyncio.create_task(rig.takeovers.take(G))
    await until(lambda: rig.place is Place.TAKING)
    beat = rig.beat(members[0])
    report = await taking
    assert isinstance(await beat.wait(), NotCoordinator)
    assert report.place is Place.UPSTREAM
    assert [each.client_id for each in report.strangers] == ["stock1"]
    assert rig.place is Place.UPSTREAM
    assert [each.error for each in rig.takeovers.reports()] == [report.error]
    rig.takeovers.ask_to_take(G, "a member")
    assert not rig.takeovers.is_asked_for(G)


@pytest.mark.parametrize("number", range(1, 12))
async def test_what_nobody_foresaw_leaves_nobody_waiting(
    rig: TakeoverRig, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(group_mover, "_PAUSE_S", 0.05)
    members = rig.join_stock(1)
    asked = 0

    def fail(request: ClientRequest) -> str:
        nonlocal asked
        asked += request.key in (DESCRIBE_GROUPS, SYNC_GROUP, LEAVE_GROUP)
        if asked == number:
            asked += 1
            raise LookupError("an answer that no broker gives")
        return ""

    rig.cluster.lose = fail
    rig.takeovers.ask_to_take(G, "a member")
    await until(lambda: rig.place is Place.TAKING or not rig.takeovers.is_asked_for(G))
    beat = rig.beat(members[0])
    assert await beat.wait()
    await until(lambda: rig.place in (Place.UPSTREAM, Place.MUSTER))
    await until(lambda: not rig.takeovers.is_asked_for(G))


async def test_a_dry_run_changes_nothing(rig: TakeoverRig) -> None:
    rig.join_stock(1)
    report = await rig.takeovers.take(G, dry_run=True)
    assert report.error == ""
    assert rig.place is Place.UPSTREAM
    rig.relayed.members.clear()
    report = await rig.takeovers.take(G, dry_run=True)
    assert [each.client_id for each in report.strangers] == ["stock0"]


async def test_an_evicted_sentinel_comes_back(rig: TakeoverRig) -> None:
    members = rig.join_stock(1)
    await take(rig, members)
    before = rig.takeovers.sentinel_of(G)
    rig.model.leave(G, [("", "muster")])
    rig.takeovers.note_refused(G, ErrorCode.UNKNOWN_MEMBER_ID)
    assert rig.takeovers.sentinel_of(G) is None
    after = await rig.takeovers.await_sentinel(G)
    assert before is not None
    assert after.member_id != before.member_id


async def test_after_a_lost_answer_the_sentinel_is_another_member(rig: TakeoverRig) -> None:
    members = rig.join_stock(1)
    await take(rig, members)
    before = rig.takeovers.sentinel_of(G)
    assert before is not None
    rig.takeovers.note_lost_answer(G, before)
    after = await rig.takeovers.await_sentinel(G)
    late = rig.model.commit(G, before.member_id, "muster", before.generation, {("orders", 0): 1})
    assert late is ErrorCode.FENCED_INSTANCE_ID
    now = rig.model.commit(G, after.member_id, "muster", after.generation, {("orders", 0): 2})
    assert now is ErrorCode.NONE


async def test_a_restart_keeps_the_group_and_takes_the_seat_again(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    await take(rig, members)
    await rig.restart()
    assert rig.place is Place.MUSTER
    await rig.takeovers.await_sentinel(G)
    assert rig.runtime.holds_member(G, MemberId(members[0].member_id))


async def test_a_restart_in_the_middle_goes_back_or_on(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    reached = asyncio.Event()

    async def stay(step: str) -> None:
        if step == "removing":
            reached.set()
            await asyncio.Event().wait()

    rig.on_step = stay
    taking = asyncio.create_task(rig.takeovers.take(G))
    await until(lambda: rig.place is Place.TAKING)
    beats = [rig.beat(member) for member in members]
    await reached.wait()
    taking.cancel()
    rig.on_step = None
    await rig.restart()
    assert all([await beat.wait() for beat in beats])
    await until(lambda: rig.place is Place.UPSTREAM)
    assert rig.model.group(G).find_instance("muster") is None
    assert len(rig.model.group(G).members) == 2


async def test_a_member_is_awaited_until_it_is_heard_here(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    taking = asyncio.create_task(rig.takeovers.take(G))
    early, late = (member.member_id for member in members)
    await until(lambda: rig.takeovers.awaits_member(G, early))
    first = rig.beat(members[0])
    await until(lambda: not rig.takeovers.awaits_member(G, early))
    assert rig.takeovers.awaits_member(G, late)
    assert not rig.takeovers.awaits_member(G, "")
    beats = [first, rig.beat(members[1])]
    assert (await taking).place is Place.MUSTER
    assert all([await beat.wait() for beat in beats])
    assert not rig.takeovers.awaits_member(G, "unknown")


async def test_a_group_goes_back_when_its_last_member_has_gone_over(rig: TakeoverRig) -> None:
    members = rig.join_stock(2)
    await take(rig, members)
    releasing = asyncio.create_task(rig.takeovers.release(G))
    await until(lambda: rig.place is Place.RETURNING)
    await until(lambda: rig.takeovers.meets_former_member(G, members[0].member_id))
    members[0].member_id = ""
    members[0].join()
    await until(lambda: len(rig.model.group(G).members) == 2)
    assert not members[0].is_assigned
    rig.takeovers.note_joined(G, MemberId(members[1].member_id))
    members[1].member_id = ""
    members[1].join()
    report = await releasing
    assert report.place is Place.UPSTREAM
    assert report.error == ""
    assert all(member.is_assigned for member in members)
    assert not rig.runtime.holds_group(G)


async def test_a_dry_run_of_a_release_changes_nothing(rig: TakeoverRig) -> None:
    await take(rig, rig.join_stock(1))
    report = await rig.takeovers.release(G, dry_run=True)
    assert report.error == ""
    assert rig.place is Place.MUSTER
    missing = await rig.takeovers.release(GroupId("nothing"))
    assert missing.error == "the group is not here"


async def test_a_sentinel_that_is_in_the_way_of_a_deletion_leaves(rig: TakeoverRig) -> None:
    report = await rig.takeovers.take(G)
    assert report.place is Place.MUSTER
    assert await rig.takeovers.leave(G)
    assert rig.model.group(G).members == {}
    assert rig.place is Place.UPSTREAM


async def test_groups_that_match_are_taken_for_a_join(rig: TakeoverRig) -> None:
    assert not rig.takeovers.asks_to_take(G, "joined")
    rig.takeovers._pattern = re.compile("ord.*")
    assert rig.takeovers.asks_to_take(G, "joined")
    assert rig.takeovers.is_asked_for(G)
    await until(lambda: rig.place is Place.MUSTER)


async def test_another_muster_takes_the_groups_of_a_dead_one(rig: TakeoverRig) -> None:
    await take(rig, rig.join_stock(1))
    second = TakeoverRig(rig.model, "uuid-2", port=2)
    await second.start()
    try:
        # Nobody listens at the port that the first one's sign names.
        await until(lambda: second.place is Place.MUSTER)
        before = rig.takeovers.sentinel_of(G)
        assert before is not None
        assert (
            rig.model.heartbeat(G, before.member_id, "muster", before.generation)
            is ErrorCode.FENCED_INSTANCE_ID
        )
        rig.takeovers.note_refused(G, ErrorCode.FENCED_INSTANCE_ID)
        await until(lambda: rig.place is Place.UPSTREAM)
        assert not rig.runtime.holds_group(G)
        assert second.takeovers.sentinel_of(G) is not None
    finally:
        await second.stop()


async def test_a_group_is_released_without_a_server(rig: TakeoverRig) -> None:
    await take(rig, rig.join_stock(1))
    await rig.takeovers.stop()
    dry = await release_alone(rig.cluster, None, dry_run=True)  # type: ignore[arg-type]
    assert [(each.group_id, each.is_released) for each in dry] == [(G, True)]
    assert rig.model.group(G).find_instance("muster") is not None
    done = await release_alone(rig.cluster, [G, "other"], dry_run=False)  # type: ignore[arg-type]
    assert [each.error for each in done] == ["", "no Muster has it"]
    assert rig.model.group(G).members == {}
