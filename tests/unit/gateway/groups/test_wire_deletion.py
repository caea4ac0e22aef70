"""DeleteGroups and OffsetDelete over the wire, in all versions; codes as Kafka 4.3.0 gave them."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from tests.support.authorizers import Rights
from tests.support.gateway.wire_rig import run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    HEARTBEAT,
    LIST,
    UNPARKED,
    commit_topics,
    fetch,
    member_of,
)
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat

DELETE_GROUPS, OFFSET_DELETE = 42, 47


async def delete_groups(client: Connection, *names: str, version: int = 2) -> list[tuple[str, int]]:
    answer = await client.ask(DELETE_GROUPS, version, groups_names=names)
    return [(row.group_id, row.error_code) for row in answer.results]


async def delete_offsets(
    client: Connection, group: str, **topics: tuple[int, ...]
) -> tuple[int, list[tuple[str, int, int]]]:
    wire = request_schema(OFFSET_DELETE)
    asked = tuple(
        wire.OffsetDeleteRequestTopic(
            name=name,
            partitions=tuple(
                wire.OffsetDeleteRequestPartition(partition_index=number) for number in numbers
            ),
        )
        for name, numbers in topics.items()
    )
    answer = await client.ask(OFFSET_DELETE, 0, group_id=group, topics=asked)
    rows = [
        (topic.name, row.partition_index, row.error_code)
        for topic in answer.topics
        for row in topic.partitions
    ]
    return answer.error_code, rows


async def commit(client: Connection, group: str, *names: str) -> None:
    """Offsets 7 and 8 for partitions 0 and 1 of each topic."""
    for name in names:
        answer = await client.ask(
            COMMIT,
            9,
            group_id=group,
            generation_id_or_member_epoch=-1,
            topics=commit_topics(9, name, {0: (7, ""), 1: (8, "")}),
        )
        assert all(row.error_code == 0 for topic in answer.topics for row in topic.partitions)


async def list_groups(client: Connection) -> list[str]:
    answer = await client.ask(LIST, 5, states_filter=(), types_filter=())
    return [group.group_id for group in answer.groups]


@pytest.mark.parametrize("version", range(3))
async def test_groups_are_deleted_each_for_itself(version: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await commit(client, "simple", "t")
        await commit(client, "", "t")
        epoch = await member_of(client, "live")
        assert await delete_groups(
            client, "simple", "", "missing", "live", "simple", version=version
        ) == [
            ("simple", 0),
            ("", 0),
            ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
            ("live", ErrorCode.NON_EMPTY_GROUP),
        ]
        assert await delete_groups(client, "simple", "", version=version) == [
            ("simple", ErrorCode.GROUP_ID_NOT_FOUND),
            ("", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        assert await list_groups(client) == ["live"]
        assert (await fetch(client, 9, "simple"))["rows"][0][0] == -1
        await client.ask(HEARTBEAT, 1, **beat("live", "m", -1))
        assert await delete_groups(client, "live", version=version) == [("live", 0)]
        assert await delete_groups(client, version=version) == []
        assert await list_groups(client) == []
        assert epoch == await member_of(client, "live"), "as if it had never been"


async def test_offsets_are_deleted_each_for_itself() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        for name in ("t", "u"):
            await rig.create_topic(name, 2)
        await commit(client, "g", "t", "u")
        assert await delete_offsets(client, "missing", t=(0,)) == (69, [])
        assert await delete_offsets(client, "missing", zz=(0,)) == (69, [])
        assert await delete_offsets(client, "missing") == (69, [])
        assert await delete_offsets(client, "", t=(0,)) == (24, [])
        assert await delete_offsets(client, "g") == (0, [])
        assert await delete_offsets(client, "g", t=()) == (0, [])
        await member_of(client, "g")
        assert await delete_offsets(client, "g", zz=(0,), t=(0,), u=(0, 7)) == (
            0,
            [("zz", 0, 3), ("t", 0, 86), ("u", 0, 0), ("u", 7, 3)],
        )
        assert (await fetch(client, 9, "g"))["rows"][0][0] == 7
        await client.ask(HEARTBEAT, 1, **beat("g", "m", -1))
        assert await delete_offsets(client, "g", t=(0,)) == (0, [("t", 0, 0)])
        assert await delete_offsets(client, "g", t=(0,)) == (0, [("t", 0, 0)]), "nothing left"
        rows: Any = (await fetch(client, 9, "g"))["rows"]
        assert (rows[0][0], rows[1][0]) == (-1, 8)


async def test_who_may_delete() -> None:
    rights = Rights(
        (Operation.DELETE, ResourceType.GROUP, "kept"), (Operation.READ, ResourceType.TOPIC, "u")
    )
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await commit(client, "g", "t")
        await commit(client, "kept", "t")
        assert await delete_offsets(client, "kept", t=(0,)) == (30, [])
        assert await delete_offsets(client, "g", u=(0,), t=(0,)) == (0, [("u", 0, 29), ("t", 0, 0)])
        assert await delete_groups(client, "kept", "g") == [("kept", 30), ("g", 0)]
        assert await list_groups(client) == ["kept"]
