"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup over the wire, in all versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coordinator.runtime.loading.loading import Loading
from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import JOIN, SYNC, join_fields
from tests.support.wire.connection import Connection

HEARTBEAT, LEAVE, DESCRIBE_GROUPS = 12, 13, 15
AT_ONCE = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
SYNC_VERSIONS = (0, 1, 2, 3, 4, 4, 4, 5, 5, 5)
HEARTBEAT_VERSIONS = (0, 1, 2, 3, 4, 4, 4, 4, 4, 4)
LEAVE_VERSIONS = (0, 1, 2, 3, 4, 5, 5, 5, 5, 5)


async def join(client: Connection, version: int, group: str) -> Any:
    """Join, with the member id that the server gives from version 4 on."""
    answer = await client.ask(JOIN, version, **join_fields(version, group))
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        fields = join_fields(version, group, answer.member_id)
        answer = await client.ask(JOIN, version, **fields)
    return answer


@pytest.mark.parametrize("version", range(10))
async def test_a_member_joins_syncs_beats_and_leaves(version: int) -> None:
    async with run_rig(coordinator=AT_ONCE) as rig, await rig.connect() as client:
        joined = await join(client, version, "g")
        member = joined.member_id
        assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, member)
        assert [(m.member_id, m.metadata) for m in joined.members] == [(member, b"said")]
        who = {"group_id": "g", "member_id": member, "generation_id": 1}

        sync_version = SYNC_VERSIONS[version]
        given = request_schema(SYNC, sync_version).SyncGroupRequestAssignment
        fields = {**who, "assignments": (given(member_id=member, assignment=b"all"),)}
        if sync_version >= 5:
            refused = await client.ask(SYNC, sync_version, **fields)
            assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            fields |= {"protocol_type": "consumer", "protocol_name": "range"}
        synced = await client.ask(SYNC, sync_version, **fields)
        assert (synced.error_code, synced.assignment) == (0, b"all")

        alive = await client.ask(HEARTBEAT, HEARTBEAT_VERSIONS[version], **who)
        assert alive.error_code == 0

        leave_version = LEAVE_VERSIONS[version]
        if leave_version < 3:
            left = await client.ask(LEAVE, leave_version, group_id="g", member_id=member)
        else:
            identity = request_schema(LEAVE, leave_version).MemberIdentity
            reason = {"reason": "done"} if leave_version >= 5 else {}
            members = (identity(member_id=member, group_instance_id=None, **reason),)
            left = await client.ask(LEAVE, leave_version, group_id="g", members=members)
        assert left.error_code == 0
        gone = await client.ask(HEARTBEAT, HEARTBEAT_VERSIONS[version], **who)
        assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_an_instance_gets_another_id_with_every_join() -> None:
    fields = join_fields(9, "g") | {"group_instance_id": "i"}
    async with run_rig(coordinator=AT_ONCE) as rig:
        ids = []
        for _ in range(2):
            async with await rig.connect() as client:
                joined = await client.ask(JOIN, 9, **fields)
                assert joined.error_code == 0
                ids.append(joined.member_id)
        assert len(set(ids)) == len(ids)
        assert all(member_id.startswith("i-") for member_id in ids)


async def test_a_heartbeat_while_the_group_is_loaded_says_that_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Loading, "begin", lambda loading: None)
    async with run_rig(is_loaded=False) as rig, await rig.connect() as client:
        who = {"group_id": "g", "member_id": "m", "generation_id": 1}
        assert (await client.ask(HEARTBEAT, 4, **who)).error_code == 0
        joined = await client.ask(JOIN, 9, **join_fields(9, "g", "m"))
        assert joined.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def has_come(rig: Rig) -> None:
    """Wait until the join is parked: another connection sees the group rebalance."""
    async with await rig.connect() as other:
        while True:
            described = await other.ask(DESCRIBE_GROUPS, 5, groups=("g",))
            if described.groups[0].group_state == "PreparingRebalance":
                return


async def has_read(rig: Rig) -> None:
    """Wait until the server has read what was sent on other connections."""
    async with await rig.connect() as other:
        await other.ask(DESCRIBE_GROUPS, 5, groups=("g",))


async def test_who_is_removed_while_it_waits_is_not_told_its_id_again() -> None:
    async with run_rig(coordinator=AT_ONCE) as rig, await rig.connect() as client:
        assert (await join(client, 9, "g")).error_code == 0
        async with await rig.connect() as other:
            given = await other.ask(JOIN, 9, **join_fields(9, "g"))
            asked = other.ask(JOIN, 9, **join_fields(9, "g", given.member_id))
            waiting = asyncio.create_task(asked)
            await has_come(rig)
            identity = request_schema(LEAVE, 4).MemberIdentity
            members = (identity(member_id=given.member_id, group_instance_id=None),)
            left = await client.ask(LEAVE, 4, group_id="g", members=members)
            assert [row.error_code for row in left.members] == [0]
            answer = await waiting
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


async def check_is_told_of_the_stop(rig: Rig, client: Connection, key: int, version: int) -> None:
    """The server stops; a waiting client gets an error, and its next response too."""
    await rig.server.drain(60)
    await rig.runtime.stop()
    _, told = await client.read(key, version)
    assert told.error_code == ErrorCode.NOT_COORDINATOR
    _, described = await client.read(DESCRIBE_GROUPS, 5)
    assert len(described.groups) == 1
    assert await client.is_closed()


async def test_who_joins_while_the_server_stops_is_told_so_and_has_its_other_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        client.send(JOIN, 3, **join_fields(3, "g"))
        client.send(DESCRIBE_GROUPS, 5, groups=("other",))
        async with asyncio.timeout(30):
            await has_come(rig)
            await check_is_told_of_the_stop(rig, client, JOIN, 3)
    assert caplog.text == "", "the join is not answered again"


async def test_who_waits_for_its_assignment_while_the_server_stops_is_told_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        run_rig(coordinator=AT_ONCE) as rig,
        await rig.connect() as client,
        await rig.connect() as other,
    ):
        leader = (await join(client, 9, "g")).member_id
        joining = asyncio.create_task(join(other, 9, "g"))
        await has_come(rig)
        joined = await client.ask(JOIN, 9, **join_fields(9, "g", leader))
        follower = (await joining).member_id
        assert (joined.leader, joined.generation_id) == (leader, 2)
        other.send(SYNC, 4, group_id="g", member_id=follower, generation_id=2)
        other.send(DESCRIBE_GROUPS, 5, groups=("other",))
        async with asyncio.timeout(30):
            await has_read(rig)
            await check_is_told_of_the_stop(rig, other, SYNC, 4)
    assert caplog.text == "", "the sync is not answered again"
