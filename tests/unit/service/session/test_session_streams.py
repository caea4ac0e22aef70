"""Several streams that speak of one member: only the one with its highest Join is heard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from coordinator.runtime.api import Reply
from coordinator.service.settings import GrpcSettings
from coordinator.service.streams import sessions as sessions_module
from coordinator.service.streams.sessions import MemberKey, SessionRegistry
from model.commands.command import Command
from model.ids import GroupId, MemberId
from muster.v1 import group_pb2, types_pb2
from tests.support.service.session_client import (
    GROUP,
    SessionClient,
    acknowledge,
    commit,
    join,
    leave,
    only,
    partitions_of,
)
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until

KEY: MemberKey = (GroupId("g"), MemberId("m"))


class Stream:
    """A session, as the registry sees it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.superseded: list[MemberKey] = []

    def supersede(self, key: MemberKey) -> None:
        self.superseded.append(key)

    def stop(self) -> None:
        raise NotImplementedError


def test_the_highest_join_speaks_in_whatever_order_they_come() -> None:
    registry, older, newer = SessionRegistry(), Stream(1), Stream(2)
    assert registry.enter(KEY, newer, 6)
    assert not registry.enter(KEY, older, 5)
    assert (older.superseded, newer.superseded) == ([], [])
    assert registry.speaks(KEY, newer)
    assert not registry.speaks(KEY, older)
    assert registry.enter(KEY, older, 7)
    assert newer.superseded == [KEY]
    assert registry.speaks(KEY, older)


def test_what_came_last_is_remembered_when_its_stream_has_gone() -> None:
    registry, older, newer = SessionRegistry(), Stream(1), Stream(2)
    registry.enter(KEY, newer, 6)
    registry.leave(KEY, newer)
    assert not registry.enter(KEY, older, 5)
    assert registry.speaks(KEY, newer)
    # Another client that came to use the same id, on whichever stream, has a higher one.
    assert registry.enter(KEY, older, 6)
    assert newer.superseded == []


def test_on_one_stream_nothing_overtakes() -> None:
    registry, older, newer = SessionRegistry(), Stream(1), Stream(2)
    registry.enter(KEY, older, 9)
    assert registry.enter(KEY, older, 3)
    assert not registry.enter(KEY, newer, 8)


def test_a_bounded_number_of_members_is_remembered() -> None:
    registry, stream = SessionRegistry(), Stream(1)
    count = sessions_module.PAST_MAX + 10
    keys: list[MemberKey] = [(GroupId("g"), MemberId(f"m{n}")) for n in range(count)]
    for key in keys:
        registry.enter(key, stream, 1)
        registry.leave(key, stream)
    assert len(registry._past) == sessions_module.PAST_MAX
    assert not registry._latest
    assert not registry.speaks(keys[9], stream)
    assert registry.speaks(keys[10], stream)


async def committed(stand: Stand, partition: int) -> int:
    wanted = types_pb2.TopicPartitions(topic_name="orders", partitions=[partition])
    request = group_pb2.FetchOffsetsRequest(
        group_id=GROUP, partitions=types_pb2.PartitionSet(topics=[wanted])
    )
    response = await stand.group_stub().FetchOffsets(request)
    offset: int = response.topics[0].partitions[0].offset
    return offset


async def test_a_join_that_comes_late_does_nothing(stand: Stand) -> None:
    """The client gave its first connection up before what it had sent there arrived."""
    older, newer = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await newer.join("m1", join_id=6)
    await newer.settle("m1", joined)
    await older.send(join("m1", join_id=5))
    update = await older.next_update()
    assert (update.join_id, update.fenced.superseded) == (5, True)
    await newer.send(commit("m1", joined.member_epoch, {0: 1}))
    assert not (await newer.expect("commit_result")).HasField("error")
    assert (await stand.members(GROUP))["m1"].assignment


async def test_the_claim_of_a_late_join_acknowledges_nothing(stand: Stand) -> None:
    """It says what the member owned when it was sent; by now it owns more, and is to give it up."""
    older, newer, other = (SessionClient(stand.group_stub()) for _ in range(3))
    await other.settle("m", await other.join("m"))
    waiting = await newer.join("z", join_id=1)
    await newer.settle("z", waiting)
    # Held by the network from here on.
    late = join("z", join_id=2, member_epoch=waiting.member_epoch)
    shrunk = await other.expect("assignment", "m")
    await other.settle("m", shrunk)
    resumed = await newer.join("z", join_id=3, member_epoch=waiting.member_epoch)
    if not partitions_of(resumed):
        await newer.settle("z", resumed)
        resumed = await newer.expect("assignment", "z")
    await newer.settle("z", resumed)
    third = SessionClient(stand.group_stub())
    await third.settle("y", await third.join("y"))
    told = await newer.expect("assignment", "z")
    # What "m" has released may be told once more before the third member's share is.
    while not told.HasField("assignment") or partitions_of(told) == partitions_of(resumed):
        await newer.send(acknowledge("z", told, resumed.assignment.topics))
        told = await newer.expect("assignment", "z")
    revoked = partitions_of(resumed) - partitions_of(told)
    assert revoked
    await older.send(late)
    assert (await older.expect("fenced", "z")).superseded
    held = [p for t in (await stand.members(GROUP))["y"].assignment for p in t.partitions]
    assert not revoked & set(held)
    await newer.send(acknowledge("z", told, only(resumed, partitions_of(told))))
    assert partitions_of(await third.expect("assignment", "y")) == revoked


async def test_commits_and_leaves_count_on_the_stream_that_has_the_member(stand: Stand) -> None:
    older, newer = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await older.join("m1", join_id=1)
    await older.settle_and_hear("m1", joined)
    again = await newer.join(
        "m1", join_id=2, member_epoch=joined.member_epoch, owned=joined.assignment.topics
    )
    await newer.settle_and_hear("m1", again)
    assert (await older.expect("fenced", "m1")).superseded
    await newer.send(commit("m1", again.member_epoch, {0: 10}))
    assert not (await newer.expect("commit_result")).HasField("error")
    await older.send(commit("m1", again.member_epoch, {0: 5}))
    assert (await older.expect("commit_result")).error.reason == "UNKNOWN_MEMBER_ID"
    assert await committed(stand, 0) == 10
    await older.send(leave("m1"))
    assert (await older.expect("left")).error.reason == "UNKNOWN_MEMBER_ID"
    assert "m1" in await stand.members(GROUP)
    await newer.send(leave("m1"))
    assert not (await newer.expect("left")).HasField("error")
    # It is remembered after the member has gone, too.
    await older.send(join("m1", join_id=1))
    assert (await older.expect("fenced", "m1")).superseded
    assert not await stand.members(GROUP)


async def test_who_uses_an_id_that_another_client_uses_takes_it_over(stand: Stand) -> None:
    """The one that began later has the higher Joins; the other hears so, whenever it joins."""
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    await first.settle_and_hear("m1", await first.join("m1", join_id=1_000))
    await second.settle_and_hear("m1", await second.join("m1", join_id=2_000))
    assert (await first.expect("fenced", "m1")).superseded
    await first.send(join("m1", join_id=1_001))
    assert (await first.expect("fenced", "m1")).superseded
    await second.send(commit("m1", 2, {0: 1}))
    await second.next_update()
    assert set(await stand.members(GROUP)) == {"m1"}


async def test_another_one_with_the_id_waits_until_the_member_has_left(stand: Stand) -> None:
    """The first may be cut off: it believes to own its partitions until its lease has ended."""
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await first.join("m1", join_id=1, incarnation=7)
    await first.settle("m1", joined)
    await second.send(join("m1", join_id=2, incarnation=8))
    refused = await second.expect("refused", "m1")
    assert refused.error.reason == "UNRELEASED_INSTANCE_ID"
    await first.send(commit("m1", joined.member_epoch, {0: 10}))
    assert not (await first.expect("commit_result")).HasField("error")
    await first.send(leave("m1"))
    assert not (await first.expect("left")).HasField("error")
    assert partitions_of(await second.join("m1", join_id=3, incarnation=8)) == {0, 1, 2, 3}
    # What the first still says is of a member that there is no more.
    await first.send(join("m1", join_id=4, incarnation=7, member_epoch=joined.member_epoch))
    assert (await first.expect("fenced", "m1")).superseded


async def test_who_comes_back_by_another_stream_waits_for_nobody(stand: Stand) -> None:
    older, newer = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    await older.join("m1", join_id=1, incarnation=7)
    # The answer was lost.
    joined = await newer.join("m1", join_id=2, incarnation=7)
    assert partitions_of(joined) == {0, 1, 2, 3}
    await newer.settle("m1", joined)
    assert (await older.expect("fenced", "m1")).superseded
    await older.join("m1", join_id=3, incarnation=7, member_epoch=joined.member_epoch)


async def test_a_restart_gives_nobody_an_id_that_is_in_use(stand: Stand) -> None:
    first = SessionClient(stand.group_stub())
    joined = await first.join("m1", join_id=1, incarnation=7)
    await first.settle("m1", joined)
    await stand.stop_server()
    await stand.restart()
    second = SessionClient(stand.group_stub())
    await second.send(join("m1", join_id=2, incarnation=8))
    assert (await second.expect("refused", "m1")).error.reason == "UNRELEASED_INSTANCE_ID"
    first = SessionClient(stand.group_stub())
    await first.join("m1", join_id=3, incarnation=7, member_epoch=joined.member_epoch)


async def test_a_static_member_that_is_away_waits_for_whoever_comes(stand: Stand) -> None:
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await first.join("m1", join_id=1, incarnation=7, instance_id="i")
    await first.settle("m1", joined)
    await first.send(leave("m1", member_epoch=-2, instance_id="i"))
    assert not (await first.expect("left")).HasField("error")
    again = await second.join("m1", join_id=2, incarnation=8, instance_id="i")
    assert partitions_of(again) == {0, 1, 2, 3}


async def test_a_stream_is_read_again_when_what_it_waited_for_says_nothing() -> None:
    """Bug: it had lost its members to another stream while their joins were being answered."""
    limits = GrpcSettings(grpc_stream_pending_max=1)
    async with running_stand(grpc_settings=limits) as small:
        held: list[Callable[[], None]] = []
        older, newer = SessionClient(small.group_stub()), SessionClient(small.group_stub())
        submit = small.runtime.submit

        def hold(command: Command, reply: Reply) -> None:
            held.append(partial(submit, command, reply))

        small.runtime.submit = hold  # type: ignore[method-assign]
        names = ("a", "b", "c", "d")
        await older.send(*(join(name, group_id=name) for name in names))
        await until(lambda: len(held) == 4)
        await newer.send(*(join(name, group_id=name, join_id=2) for name in names))
        for _ in names:
            assert (await older.expect("fenced")).superseded
        await older.send(leave("stranger"))
        await older.expect("left")
        small.runtime.submit = submit  # type: ignore[method-assign]
        for go_on in held:
            go_on()
        for _ in names:
            await newer.expect("assignment")
        await older.send(leave("stranger"))
        await older.expect("left")
