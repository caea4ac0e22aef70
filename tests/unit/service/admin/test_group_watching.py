"""AdminService.WatchGroup against a real coordinator: changes, rights, a slow reader, the ends."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest

from coordinator.service.settings import GrpcSettings
from coordinator.service.streams.backlog import Backlog
from model.access.acls import Operation, ResourceType
from model.ids import GroupId, compute_log_partition
from muster.v1 import admin_pb2
from security.identity import Identity
from security.quotas.address_limits import AddressLimits
from tests.support.authorizers import Rights
from tests.support.service.session_client import GROUP, SessionClient
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.service.admin.test_admin_service import make_groups
from tests.unit.service.classic.test_classic_service import join_request, sync_request

G = GROUP
WITHIN_S = 30.0


class Watcher:
    """One stream. ``until`` reads on until the group is as it should be."""

    def __init__(self, stand: Stand, group_id: str = G) -> None:
        request = admin_pb2.WatchGroupRequest(group_id=group_id)
        self.call = stand.admin_stub().WatchGroup(request)
        self.heartbeats = 0
        self.groups: list[admin_pb2.Group] = []

    async def read(self) -> admin_pb2.WatchGroupResponse:
        async with asyncio.timeout(WITHIN_S):
            message = await self.call.read()
        assert isinstance(message, admin_pb2.WatchGroupResponse), "the stream ended"
        return message

    async def next(self) -> admin_pb2.Group:
        while True:
            message = await self.read()
            if message.HasField("group"):
                self.groups.append(message.group)
                return message.group
            self.heartbeats += 1

    async def until(self, is_so: Callable[[admin_pb2.Group], bool]) -> admin_pb2.Group:
        while not is_so(group := await self.next()):
            pass
        return group

    async def until_epoch(self, epoch: int) -> None:
        await self.until(lambda group: group.group_epoch >= epoch)

    async def fail(self) -> tuple[grpc.StatusCode, str]:
        """The status with which it ends."""
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await self.until(lambda _: False)
        return raised.value.code(), str(raised.value.details())


def owned(group: admin_pb2.Group) -> dict[str, int]:
    """How many partitions each member owns."""
    return {
        member.member_id: sum(len(topic.partitions) for topic in member.assignment)
        for member in group.members
    }


async def test_first_the_group_then_every_change_of_it(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    one = await client.join("m1", group_id=G)
    await client.settle("m1", one)
    watcher = Watcher(stand)
    assert owned(await watcher.next()) == {"m1": 4}
    other = SessionClient(stand.group_stub())
    await other.settle("m2", await other.join("m2", group_id=G, join_id=2))
    waits = await watcher.until(lambda group: any(each.waits for each in group.members))
    assert {each.member_id: [wait.owner_id for wait in each.waits] for each in waits.members} == {
        "m1": [],
        "m2": ["m1"],
    }
    await client.settle("m1", await client.expect("assignment", "m1"))
    await watcher.until(lambda group: owned(group) == {"m1": 2, "m2": 2})
    grow = admin_pb2.GrowTopicRequest(
        topic_name="orders", num_partitions=6, request_id=str(uuid.uuid4())
    )
    before = watcher.groups[-1].group_epoch
    await stand.admin_stub().GrowTopic(grow)
    await watcher.until(lambda group: group.group_epoch > before)


async def test_a_classic_group_shows_who_has_joined_so_far() -> None:
    async with running_stand(initial_rebalance_delay_ms=0) as stand:
        await _check_who_has_joined(stand)


async def _check_who_has_joined(stand: Stand) -> None:
    classic = stand.classic_stub()
    # The first join is refused with the member id to join with.
    first = await classic.JoinGroup(join_request(group_id=G))
    one = await classic.JoinGroup(join_request(group_id=G, member_id=first.member_id))
    assigned = {one.member_id: b"all"}
    await classic.SyncGroup(sync_request(one.member_id, one.generation, assigned, group_id=G))
    watcher = Watcher(stand)
    assert (await watcher.next()).state == admin_pb2.GROUP_STATE_STABLE
    second = await classic.JoinGroup(join_request(group_id=G))
    call = classic.JoinGroup(join_request(group_id=G, member_id=second.member_id))
    # Nothing of it is in the log before the leader has assigned.
    found = await watcher.until(
        lambda group: group.state == admin_pb2.GROUP_STATE_PREPARING_REBALANCE
    )
    assert {each.member_id for each in found.members} == {one.member_id, second.member_id}
    call.cancel()


async def test_a_stream_is_not_silent() -> None:
    settings = GrpcSettings(grpc_ping_interval_ms=100)
    async with running_stand(grpc_settings=settings) as stand:
        await make_groups(stand, G)
        watcher = Watcher(stand)
        assert (await watcher.read()).heartbeat_interval_ms == 100
        for _ in range(2):
            message = await watcher.read()
            assert (message.HasField("group"), message.heartbeat_interval_ms) == (False, 100)


async def test_a_deleted_group_ends_it(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.join("m1", group_id=G)
    watcher = Watcher(stand)
    await watcher.next()
    await client.end()
    remove = admin_pb2.RemoveMembersRequest(group_id=G, request_id=str(uuid.uuid4()))
    remove.members.add(member_id="m1")
    await stand.admin_stub().RemoveMembers(remove)
    await watcher.until(lambda group: not group.members)
    delete = admin_pb2.DeleteGroupRequest(group_id=G, request_id=str(uuid.uuid4()))
    await stand.admin_stub().DeleteGroup(delete)
    assert await watcher.fail() == (
        grpc.StatusCode.NOT_FOUND,
        "GROUP_ID_NOT_FOUND: Group billing not found.",
    )


async def test_a_group_of_offsets_alone_ends_with_them(stand: Stand) -> None:
    await make_groups(stand)
    watcher = Watcher(stand, "loose")
    assert (await watcher.next()).state == admin_pb2.GROUP_STATE_EMPTY
    delete = admin_pb2.DeleteGroupRequest(group_id="loose", request_id=str(uuid.uuid4()))
    await stand.admin_stub().DeleteGroup(delete)
    assert (await watcher.fail())[0] is grpc.StatusCode.NOT_FOUND


async def test_a_group_that_does_not_exist_cannot_be_watched(stand: Stand) -> None:
    watcher = Watcher(stand, "nobody")
    assert (await watcher.fail())[0] is grpc.StatusCode.NOT_FOUND
    assert not watcher.groups


async def test_a_restart_ends_it_and_is_followed(stand: Stand) -> None:
    await make_groups(stand, G)
    watcher = Watcher(stand)
    before = await watcher.next()
    ending = asyncio.create_task(watcher.fail())
    await asyncio.sleep(0)
    await stand.stop_server()
    code, _ = await ending
    assert code is grpc.StatusCode.UNAVAILABLE
    await stand.restart()
    await stand.runtime.loaded()
    again = Watcher(stand)
    assert (await again.next()).group_epoch == before.group_epoch


async def test_a_group_of_a_stopped_partition_is_shown(stand: Stand) -> None:
    await make_groups(stand, G)
    partition = compute_log_partition(GroupId(G), stand.runtime.log_partitions)
    stand.runtime._shards[partition].soft.is_stopped = True
    stand.runtime.stats.log_partitions_stopped += 1
    stand.runtime._note_stopped()
    assert len((await Watcher(stand).next()).members) == 1


# ------------------------------------------------------------------------------------ rights


@pytest.mark.parametrize(
    "right",
    [
        (Operation.DESCRIBE, ResourceType.GROUP, G),
        (Operation.DESCRIBE, ResourceType.TOPIC, "orders"),
    ],
)
async def test_rights_are_checked_as_long_as_it_lasts(
    right: tuple[Operation, ResourceType, str],
) -> None:
    rights = Rights()
    settings = GrpcSettings(grpc_ping_interval_ms=100)
    async with running_stand(authorizer=rights, grpc_settings=settings) as stand:
        await make_groups(stand, G)
        watcher = Watcher(stand)
        await watcher.next()
        rights.denied.add(right)
        assert (await watcher.fail())[0] is grpc.StatusCode.PERMISSION_DENIED
        late = Watcher(stand)
        assert (await late.fail())[0] is grpc.StatusCode.PERMISSION_DENIED
        assert not late.groups


async def test_it_ends_with_what_has_shown_who_the_client_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [1_000.0]
    clock = SimpleNamespace(time=lambda: now_s[0])
    monkeypatch.setattr("coordinator.service.admin.group_watching.time", clock)

    async def authenticate(context: object) -> Identity:
        return Identity("User:a", expires_at_ms=1_001_000)

    settings = GrpcSettings(grpc_ping_interval_ms=100)
    async with running_stand(authenticate=authenticate, grpc_settings=settings) as stand:
        await make_groups(stand, G)
        watcher = Watcher(stand)
        await watcher.next()
        now_s[0] = 1_001.0
        code, message = await watcher.fail()
        assert code is grpc.StatusCode.UNAUTHENTICATED
        assert "credentials" in message


# ------------------------------------------------------------------------------------ limits


async def test_there_are_only_so_many() -> None:
    async with running_stand(grpc_settings=GrpcSettings(grpc_watches_max=1)) as stand:
        await make_groups(stand, G)
        first = Watcher(stand)
        await first.next()
        code, message = await Watcher(stand).fail()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert message == "grpc.watches.max: 1 watches of groups are open"
        first.call.cancel()
        await until_free(stand)
        await Watcher(stand).next()


async def test_they_count_as_sessions_of_their_address() -> None:
    limits = AddressLimits(1, {})
    async with running_stand(sessions_per_ip=limits) as stand:
        await make_groups(stand, G)
        await Watcher(stand).next()
        code, message = await Watcher(stand).fail()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert message.startswith("max.connections.per.ip")


async def until_free(stand: Stand) -> None:
    await until(lambda: not len(stand.server._watched), "no group is watched")


async def test_a_client_that_goes_is_forgotten(stand: Stand) -> None:
    await make_groups(stand, G)
    watcher = Watcher(stand)
    await watcher.next()
    assert (len(stand.server._watched), len(stand.runtime.parts.notices)) == (1, 1)
    watcher.call.cancel()
    await until_free(stand)
    await asyncio.sleep(0)
    assert len(stand.runtime.parts.notices) == 0


@pytest.fixture
def backlogs(monkeypatch: pytest.MonkeyPatch) -> list[Backlog]:
    """What servers count of unread messages."""
    made: list[Backlog] = []

    class Noted(Backlog):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr("coordinator.service.grpc_server.Backlog", Noted)
    return made


@pytest.fixture
async def wide(backlogs: list[Backlog], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    """A group whose description is larger than what gRPC takes from a writer unread."""
    monkeypatch.setattr("coordinator.service.watch.watched_group.PAUSE_S", 0.001)
    monkeypatch.setattr("coordinator.service.watch.watched_group.BYTES_PER_S", 1e12)
    async with running_stand() as stand:
        client = SessionClient(stand.group_stub())
        await client.join("m0", group_id=G, client_id="x" * 1_000)
        await stand.create_topic("wide", 20_000)
        await client.join(
            "m1", group_id=G, join_id=2, topics=["wide", "orders"], client_id="y" * 1_000
        )
        yield stand


async def test_a_slow_reader_gets_the_newest(wide: Stand) -> None:
    slow, quick = Watcher(wide), Watcher(wide)
    first = await slow.next()
    assert first.ByteSize() > 20_000
    assert await quick.next()
    changes = 80
    for n in range(changes):
        await grow(wide, n)
        await quick.until_epoch(first.group_epoch + n + 1)
    newest = quick.groups[-1].group_epoch
    await slow.until(lambda group: group.group_epoch == newest)
    assert len(slow.groups) < changes / 2, "what it did not read in time is not kept for it"


async def test_who_reads_nothing_holds_one_message(wide: Stand, backlogs: list[Backlog]) -> None:
    slow, quick = Watcher(wide), Watcher(wide)
    first, _ = await slow.next(), await quick.next()
    for n in range(40):
        await grow(wide, n)
        await quick.until_epoch(first.group_epoch + n + 1)
    assert 0 < backlogs[-1].total <= 2 * (quick.groups[-1].ByteSize() + 100)


async def grow(stand: Stand, n: int) -> None:
    """A new group epoch."""
    request = admin_pb2.GrowTopicRequest(
        topic_name="wide", num_partitions=20_001 + n, request_id=str(uuid.uuid4())
    )
    await stand.admin_stub().GrowTopic(request)
