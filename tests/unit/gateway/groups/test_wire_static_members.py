"""Static members and LeaveGroup over the wire, in all versions."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    DESCRIBE,
    HEARTBEAT,
    UNPARKED,
    commit_codes,
    commit_topics,
    fetch,
    member_of,
)
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

LEAVE_GROUP = 13


async def describe(client: Connection, group: str) -> Any:
    [found] = (
        await client.ask(DESCRIBE, 1, group_ids=(group,), include_authorized_operations=False)
    ).groups
    return found


async def leave_group(
    client: Connection, version: int, group: str, *members: tuple[str, str | None]
) -> tuple[int, list[tuple[str, str | None, int]]]:
    wire = request_schema(LEAVE_GROUP, version)
    identities = tuple(
        wire.MemberIdentity(member_id=member, group_instance_id=instance)
        for member, instance in members
    )
    answer = await client.ask(LEAVE_GROUP, version, group_id=group, members=identities)
    results = [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members]
    return answer.error_code, results


@pytest.mark.parametrize("version", [0, 1])
async def test_a_static_member_leaves_and_comes_back(version: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as one, await rig.connect() as two:
        await rig.create_topic("t", 2)
        await one.ask(HEARTBEAT, version, **join("g", "m1", ("t",), instance_id="i"))
        refused = await two.ask(HEARTBEAT, version, **join("g", "m2", ("t",), instance_id="i"))
        assert refused.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
        left = await one.ask(HEARTBEAT, version, **beat("g", "m1", -2, instance_id="i"))
        assert (left.error_code, left.member_epoch, left.heartbeat_interval) == (0, -2, 0)
        [member] = (await describe(one, "g")).members
        assert (member.instance_id, member.member_epoch) == ("i", -2)
        back = await two.ask(HEARTBEAT, version, **join("g", "m2", ("t",), instance_id="i"))
        assert (back.error_code, back.member_epoch) == (0, 2)
        assert back.assignment.topic_partitions[0].partitions == (0, 1)
        fenced = await one.ask(HEARTBEAT, version, **beat("g", "m1", 2, instance_id="i"))
        assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
        nobody = await one.ask(HEARTBEAT, version, **beat("g", "m1", 2, instance_id="none"))
        assert nobody.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_heartbeat_at_rest_is_fenced_once_its_place_is_taken() -> None:
    """A cached heartbeat must not outlive the member."""
    async with run_rig(UNPARKED) as rig, await rig.connect() as one, await rig.connect() as two:
        await rig.create_topic("t", 2)
        await one.ask(HEARTBEAT, 1, **join("g", "m1", ("t",), instance_id="i"))
        at_rest = beat("g", "m1", 2, instance_id="i")
        for _ in range(3):
            assert (await one.ask(HEARTBEAT, 1, **at_rest)).error_code == ErrorCode.NONE
        await two.ask(HEARTBEAT, 1, **beat("g", "m1", -2, instance_id="i"))
        assert (await one.ask(HEARTBEAT, 1, **at_rest)).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        await two.ask(HEARTBEAT, 1, **join("g", "m2", ("t",), instance_id="i"))
        assert (await one.ask(HEARTBEAT, 1, **at_rest)).error_code == ErrorCode.FENCED_INSTANCE_ID


async def test_a_static_member_that_is_away_commits_and_fetches_at_its_epoch() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await client.ask(HEARTBEAT, 1, **join("g", "m", ("t",), instance_id="i"))
        await client.ask(HEARTBEAT, 1, **beat("g", "m", -2, instance_id="i"))
        codes = {}
        for epoch in (-2, -1, 2):
            answer = await client.ask(
                COMMIT,
                9,
                group_id="g",
                member_id="m",
                generation_id_or_member_epoch=epoch,
                group_instance_id="i",
                topics=commit_topics(9, "t", {0: (5, "")}),
            )
            codes[epoch] = commit_codes(answer)
        stale = ErrorCode.STALE_MEMBER_EPOCH
        assert codes == {-2: [0], -1: [stale], 2: [stale]}
        fetched = await fetch(client, 9, "g", member_id="m", member_epoch=-2)
        assert (fetched["error"], fetched["rows"][0][0]) == (0, 5)
        fetched = await fetch(client, 9, "g", member_id="m", member_epoch=2)
        assert fetched["error"] == stale


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_one_member_leaves_by_old_versions(version: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await member_of(client, "g", "m")
        unknown = await client.ask(LEAVE_GROUP, version, group_id="g", member_id="x")
        assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        nowhere = await client.ask(LEAVE_GROUP, version, group_id="none", member_id="m")
        assert nowhere.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        left = await client.ask(LEAVE_GROUP, version, group_id="g", member_id="m")
        assert left.error_code == ErrorCode.NONE
        assert (await describe(client, "g")).group_state == "Empty"


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_an_administrator_removes_members_and_instances(version: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 4)
        for member, instance in (("a", "i"), ("b", None), ("c", None), ("d", "j")):
            await client.ask(HEARTBEAT, 1, **join("g", member, ("t",), instance_id=instance))
        asked = [("a", None), ("a", None), ("x", None), ("", "none"), ("", ""), ("b", "j")]
        code, results = await leave_group(client, version, "g", *asked)
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert code == ErrorCode.NONE
        assert [row[:2] for row in results] == asked
        assert [row[2] for row in results] == [
            0, 0, unknown, unknown, unknown, ErrorCode.FENCED_INSTANCE_ID,
        ]  # fmt: skip
        code, results = await leave_group(client, version, "g", ("", "j"), ("c", None))
        assert (code, [row[2] for row in results]) == (0, [0, 0])
        group = await describe(client, "g")
        assert [member.member_id for member in group.members] == ["b"]
        assert group.group_epoch == 7, "one epoch for each request"
        assert await leave_group(client, version, "none", ("x", None)) == (
            0, [("x", None, unknown)],
        )  # fmt: skip
        assert await leave_group(client, version, "g") == (0, [])
        code, _ = await leave_group(client, version, "", ("x", None))
        assert code == ErrorCode.INVALID_GROUP_ID


async def test_a_parked_heartbeat_of_a_removed_member_is_told() -> None:
    async with run_rig() as rig, await rig.connect() as one, await rig.connect() as two:
        await rig.create_topic("t", 2)
        await one.ask(HEARTBEAT, 1, **join("g", "m", ("t",)))
        one.send(HEARTBEAT, 1, **beat("g", "m", 2))
        await leave_group(two, 5, "g", ("m", None))
        _, answer = await one.read(HEARTBEAT, 1)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
