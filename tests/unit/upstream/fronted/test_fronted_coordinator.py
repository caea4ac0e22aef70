"""What becomes of a command in front of a cluster, by the place of its group and by the door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial

import pytest

from coordinator.runtime.authorizer import AllowAll
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.commands.classic import ClassicHeartbeat, JoinGroup, JoinProtocol
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.groups import (
    ConsumerGroupDescribe,
    DeleteGroup,
    DescribeGroups,
    ListGroups,
    PlanMigration,
)
from model.commands.offsets import DeleteOffsets, OffsetFetch
from model.commands.places import GiveGroupUp, NotePlace, ReturnGroup
from model.commands.resets import ResetOffsets
from model.commands.topics import CreateTopic
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, LogOffset, MemberId, TopicId
from model.places import Place
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
)
from tests.support.service.given_ends import GivenEnds
from tests.support.upstream.offset_cluster import Fate
from tests.support.upstream.offsets_rig import (
    FOO,
    GENERATION,
    Asked,
    G,
    OffsetsRig,
    make_commit,
    make_lone_commit,
)
from tests.support.virtual.server import CALLER
from tests.unit.cli.admin.test_admin_commands import invoke
from upstream.fronted.fronted_coordinator import FrontedCoordinator
from upstream.fronted.group_deletions import GroupDeletions

OTHER = GroupId("other")
BEAT = ClassicHeartbeat(CALLER, G, MemberId("a"), GENERATION)
DELETE = DeleteGroup(CALLER, G)


@dataclass(frozen=True)
class Doors:
    """A group ``g`` that is here, seen from both doors."""

    rig: OffsetsRig
    kafka: FrontedCoordinator
    grpc: FrontedCoordinator

    async def place(self, place: Place, group_id: GroupId = G) -> None:
        await self.rig.runtime.call(NotePlace(CALLER, group_id, place))

    async def empty(self) -> None:
        """The members are gone."""
        await self.rig.runtime.call(GiveGroupUp(CALLER, G))
        await self.place(Place.MUSTER)

    def ask(self, command: Command, *, grpc: bool = False) -> Asked:
        return Asked(partial((self.grpc if grpc else self.kafka).submit, command))

    async def say(self, command: Command, *, grpc: bool = False) -> str:
        return await self.ask(command, grpc=grpc).said()


@pytest.fixture
async def doors() -> AsyncIterator[Doors]:
    rig = OffsetsRig()
    await rig.start()
    deletions = GroupDeletions(rig.runtime, rig.cluster, rig.takeovers, rig.offsets)
    parts = rig.runtime, rig.offsets, rig.takeovers, deletions
    kafka, grpc = FrontedCoordinator(*parts), FrontedCoordinator(*parts, for_grpc=True)
    yield Doors(rig, kafka, grpc)
    await kafka.stop()


def make_heartbeat(epoch: int = 0) -> ConsumerGroupHeartbeat:
    if epoch:
        return ConsumerGroupHeartbeat(CALLER, G, MemberId("m"), epoch)
    return ConsumerGroupHeartbeat(CALLER, G, MemberId("m"), 0, 60_000, (FOO,), ())


def make_join(member: str | None = "a") -> JoinGroup:
    protocols = (JoinProtocol("range", b""),)
    known = None if member is None else MemberId(member)
    return JoinGroup(CALLER, G, known, MemberId("new"), 10_000, 60_000, "consumer", protocols)


# ---------------------------------------------------------------------------------------- here


async def test_a_group_that_is_here_is_served(doors: Doors) -> None:
    assert await doors.say(BEAT) == "REBALANCE_IN_PROGRESS"
    join = doors.ask(make_join("a"))
    assert await doors.say(make_commit("b", (0, 5))) == "0 NONE"
    assert await doors.say(OffsetFetch(CALLER, G, None)) == "0=5"
    assert doors.rig.fake.offsets[G][FOO, 0][0] == 5
    assert doors.kafka.commit_ticket(make_commit("b", (0, 5))) is None
    await doors.ask(make_join("b")).answer()
    assert await join.said() == "JoinGroupResponse"
    assert doors.rig.seats.asked == []


async def test_the_lag_of_a_group_that_is_here_is_known(doors: Doors) -> None:
    """Its offsets are the cluster's, as are the ends of its partitions."""
    assert await doors.say(make_commit("b", (0, 5), (1, 6))) == "0 NONE, 1 NONE"
    ends = GivenEnds(foo={0: 8})
    server = GrpcServer(doors.grpc, AllowAll(), GrpcSettings(), end_offsets=ends)
    port = await server.start("127.0.0.1", 0)
    try:
        shown = await asyncio.to_thread(
            invoke, "group", "offsets", G, "-o", "csv", "--server", f"127.0.0.1:{port}"
        )
    finally:
        await server.stop(0)
    assert [line.split(",")[2:6] for line in shown.out.splitlines()[1:]] == [
        ["0", "5", "8", "3"],
        ["1", "6", "", ""],
    ]


async def test_offsets_are_not_deleted_in_the_cluster(doors: Doors) -> None:
    assert await doors.say(DeleteOffsets(CALLER, G, ((FOO, (0,)),))) == "NON_EMPTY_GROUP"


async def test_offsets_in_the_cluster_are_reset_there_and_not_undone(doors: Doors) -> None:
    await doors.empty()
    reset = ResetOffsets(CALLER, G, make_lone_commit((0, 7)).topics)
    assert await doors.say(reset) == "OffsetsReset"
    assert await doors.say(replace(reset, undoes=LogOffset(3))) == "POLICY_VIOLATION"


async def test_topics_are_the_cluster_s(doors: Doors) -> None:
    assert await doors.say(CreateTopic(CALLER, FOO, TopicId(bytes(16)), 1)) == "POLICY_VIOLATION"


# ------------------------------------------------------------------------------ in the cluster


async def test_a_group_in_the_cluster_is_not_served(doors: Doors) -> None:
    await doors.place(Place.UPSTREAM)
    for command in (
        BEAT,
        make_join(),
        make_heartbeat(epoch=3),
        make_commit("a", (0, 1)),
        OffsetFetch(CALLER, G, None),
        DeleteOffsets(CALLER, G, ()),
        DELETE,
        PlanMigration(CALLER, G),
    ):
        assert await doors.say(command) == "NOT_COORDINATOR", command
    assert doors.rig.seats.asked == []
    assert doors.kafka.ticket(G, MemberId("a")) is None


async def test_whom_the_cluster_cannot_serve_makes_the_group_come(doors: Doors) -> None:
    await doors.place(Place.UPSTREAM)
    assert await doors.say(make_heartbeat()) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert [group for group, _ in doors.rig.seats.asked] == [G]
    # Now that it is asked for, its commands are answered on the way.
    waiting = [doors.ask(command) for command in (BEAT, make_commit("a", (0, 1)), make_heartbeat())]
    assert [type(each).__name__ for each in doors.rig.seats.passed_on] == [
        "ClassicHeartbeat",
        "OffsetCommit",
        "ConsumerGroupHeartbeat",
    ]
    assert not any(each.is_answered for each in waiting)


async def test_a_member_over_grpc_makes_the_group_come(doors: Doors) -> None:
    await doors.place(Place.UPSTREAM)
    assert await doors.say(BEAT, grpc=True) == "UNKNOWN_MEMBER_ID"
    assert doors.rig.seats.asked == []
    assert await doors.say(make_join(None), grpc=True) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert [group for group, _ in doors.rig.seats.asked] == [G]


# ----------------------------------------------------------------------------------- on the way


async def test_a_group_on_its_way_is_served_by_the_takeover(doors: Doors) -> None:
    await doors.place(Place.TAKING)
    for command in (BEAT, make_join(), make_commit("a", (0, 1)), OffsetFetch(CALLER, G, None)):
        doors.ask(command)
        assert doors.rig.seats.passed_on[-1] is command
    for refused in (DELETE, PlanMigration(CALLER, G), DeleteOffsets(CALLER, G, ())):
        assert await doors.say(refused) == "COORDINATOR_LOAD_IN_PROGRESS"


async def test_members_of_a_group_that_returns_are_sent_away(doors: Doors) -> None:
    await doors.rig.runtime.call(ReturnGroup(CALLER, G))
    assert await doors.say(make_join("a")) == "NOT_COORDINATOR"
    assert await doors.say(make_join(None)) == "NOT_COORDINATOR"
    assert doors.rig.seats.elsewhere == [(G, "a")]
    assert await doors.say(BEAT) == "REBALANCE_IN_PROGRESS"
    assert await doors.say(make_commit("a", (0, 5))) == "0 NONE"
    assert await doors.say(make_heartbeat()) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert await doors.say(make_join("a"), grpc=True) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert await doors.say(DELETE) == "COORDINATOR_LOAD_IN_PROGRESS"
    doors.rig.fake.seats.clear()
    assert await doors.say(make_commit("a", (0, 6))) == "NOT_COORDINATOR"


# ----------------------------------------------------------------------------- lists of groups


async def test_lists_show_what_is_here(doors: Doors) -> None:
    await doors.place(Place.MUSTER, OTHER)
    await doors.place(Place.TAKING, GroupId("taking"))
    answer = await doors.ask(ListGroups(CALLER)).answer()
    assert isinstance(answer, ListGroupsResponse)
    assert [(each.group_id, each.state) for each in answer.groups] == [
        ("g", "PreparingRebalance"),
        ("other", "Empty"),
    ]
    answer = await doors.ask(ListGroups(CALLER, states=("empty",), types=("Classic",))).answer()
    assert isinstance(answer, ListGroupsResponse)
    assert [each.group_id for each in answer.groups] == ["other"]
    await doors.place(Place.UPSTREAM)
    answer = await doors.ask(ListGroups(CALLER)).answer()
    assert isinstance(answer, ListGroupsResponse)
    assert [each.group_id for each in answer.groups] == ["other"]


async def test_descriptions_are_of_what_is_here(doors: Doors) -> None:
    await doors.place(Place.MUSTER, OTHER)
    asked = GroupId("away"), G, OTHER
    answer = await doors.ask(DescribeGroups(CALLER, asked)).answer()
    assert isinstance(answer, DescribeGroupsResponse)
    assert [(each.group_id, each.error, each.state) for each in answer.groups] == [
        ("away", ErrorCode.NOT_COORDINATOR, ""),
        ("g", ErrorCode.NONE, "PreparingRebalance"),
        ("other", ErrorCode.NONE, "Empty"),
    ]
    answer = await doors.ask(ConsumerGroupDescribe(CALLER, asked)).answer()
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    assert [(each.group_id, each.error) for each in answer.groups] == [
        ("away", ErrorCode.NOT_COORDINATOR),
        ("g", ErrorCode.GROUP_ID_NOT_FOUND),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


async def test_a_consumer_group_is_not_shown_as_an_empty_classic_group(doors: Doors) -> None:
    """Bug: DescribeGroups said that each group that is here and not classic is empty."""
    await doors.place(Place.MUSTER, OTHER)
    await doors.ask(replace(make_heartbeat(), group_id=OTHER)).answer()
    answer = await doors.ask(DescribeGroups(CALLER, (OTHER,))).answer()
    assert isinstance(answer, DescribeGroupsResponse)
    (other,) = answer.groups
    assert (other.error, other.state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


# ---------------------------------------------------------------------------- deleting groups


async def test_an_empty_group_is_deleted_in_the_cluster_too(doors: Doors) -> None:
    assert await doors.say(DELETE) == "NON_EMPTY_GROUP"
    await doors.empty()
    assert await doors.say(DeleteGroup(CALLER, G, validate_only=True)) == "Done"
    assert doors.rig.fake.deleted == []
    assert await doors.say(DELETE) == "Done"
    assert doors.rig.fake.deleted == [G]
    assert doors.kafka.place_of(G) is None


async def test_nobody_joins_a_group_that_is_being_deleted(doors: Doors) -> None:
    await doors.empty()
    gate = doors.rig.fake.gate = asyncio.Event()
    deleting = doors.ask(DELETE)
    while not doors.rig.fake.asked:  # noqa: ASYNC110 - the loop runs until the request is made
        await asyncio.sleep(0)
    assert await doors.say(make_heartbeat()) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert await doors.say(DELETE) == "COORDINATOR_LOAD_IN_PROGRESS"
    await doors.place(Place.UPSTREAM)
    assert await doors.say(make_heartbeat()) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert doors.rig.seats.asked == []
    gate.set()
    assert await deleting.said() == "Done"


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWERED])
async def test_a_group_that_the_cluster_does_not_delete_stays(doors: Doors, fate: Fate) -> None:
    await doors.empty()
    doors.rig.fake.fates.append(fate)
    if fate is Fate.ANSWERED:

        async def leave_and_be_followed(group_id: GroupId) -> bool:
            return True  # A stranger is in the cluster's group at once.

        doors.rig.seats.leave = leave_and_be_followed  # type: ignore[method-assign]
    expected = "NON_EMPTY_GROUP" if fate is Fate.ANSWERED else "COORDINATOR_NOT_AVAILABLE"
    assert await doors.say(DELETE) == expected
    assert doors.rig.seats.refused == [(G, ErrorCode.UNKNOWN_MEMBER_ID)]
    assert doors.kafka.holds_group(G)
    answer = await doors.ask(make_heartbeat()).answer()
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)


async def test_a_sentinel_that_cannot_leave(doors: Doors) -> None:
    await doors.empty()
    doors.rig.seats.may_leave = False
    assert await doors.say(DELETE) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert doors.rig.fake.asked == []


async def test_errors_reach_who_awaits(doors: Doors) -> None:
    with pytest.raises(GroupError):
        await doors.kafka.call(DELETE)
