"""Odd, hostile or excessive requests to classic groups: rows 17, 18 and 22 of the corpus.

Each gets a clean answer, leaves nothing half done, and the next client is served. What members
embed that cannot be read refuses the conversion of their group, and leaves it as it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from muster.assignors import embedded
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import HEARTBEAT as CONSUMER_HEARTBEAT
from tests.support.gateway.wire_steps import VERSIONS
from tests.support.wire.connection import PATIENCE_S, Connection
from tests.support.wire.fields import beat
from tests.support.wire.fields import join as join_consumers

JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE_GROUPS, LIST = 11, 12, 13, 14, 15, 16
JOIN_VERSION, SYNC_VERSION, LEAVE_VERSION = 3, 5, 5
WITHIN_S = 5.0
"""CPU time of the process, so that a busy machine fails nothing."""
AT_ONCE = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
SOUND = embedded.encode_subscription(
    embedded.Subscription(("t",), None, (), -1), embedded.HIGHEST_VERSION
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig() -> AsyncIterator[Rig]:
    async with run_rig(coordinator=AT_ONCE) as rig:
        await rig.create_topic("t", 4)
        yield rig


def join_fields(group: str, protocols: dict[str, bytes] | list[str], **more: Any) -> dict[str, Any]:
    protocol = request_schema(JOIN, JOIN_VERSION).JoinGroupRequestProtocol
    said = protocols if isinstance(protocols, dict) else dict.fromkeys(protocols, SOUND)
    named = [(name, said[name]) for name in protocols]
    return {
        "group_id": group,
        "session_timeout": 10_000,
        "rebalance_timeout": 20_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": tuple(protocol(name=name, metadata=data) for name, data in named),
    } | more


async def join(client: Connection, group: str, **more: Any) -> Any:
    """A client of a version that joins without a member id."""
    fields = join_fields(group, more.pop("says", {"range": SOUND}), **more)
    return await client.ask(JOIN, JOIN_VERSION, **fields)


async def sync(client: Connection, group: str, member: str, **more: Any) -> Any:
    given = request_schema(SYNC, SYNC_VERSION).SyncGroupRequestAssignment
    to = more.pop("to", {})
    fields = {
        "group_id": group,
        "member_id": member,
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": tuple(given(member_id=name, assignment=data) for name, data in to.items()),
    }
    return await client.ask(SYNC, SYNC_VERSION, **(fields | more))


async def leave(client: Connection, group: str, members: list[str]) -> Any:
    identity = request_schema(LEAVE, LEAVE_VERSION).MemberIdentity
    named = tuple(identity(member_id=name, group_instance_id=None, reason=None) for name in members)
    return await client.ask(LEAVE, LEAVE_VERSION, group_id=group, members=named)


async def list_groups(client: Connection) -> set[str]:
    return {group.group_id for group in (await client.ask(LIST, 5)).groups}


async def check_served(rig: Rig) -> None:
    """Another client joins, is assigned something and leaves as if nothing had happened."""
    async with await rig.connect() as client:
        joined = await join(client, "served")
        member = joined.member_id
        assert joined.error_code == 0
        generation = {"generation_id": joined.generation_id}
        synced = await sync(client, "served", member, to={member: b"all"}, **generation)
        assert (synced.error_code, synced.assignment) == (0, b"all")
        assert (await leave(client, "served", [member])).error_code == 0


# ------------------------------------------------------------------------------------- row 17


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"says": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout": -1}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
async def test_joins_that_are_refused(rig: Rig, more: dict[str, Any], code: ErrorCode) -> None:
    async with await rig.connect() as client:
        assert (await join(client, "refused", **more)).error_code == code
        assert "refused" not in await list_groups(client)
    await check_served(rig)


@pytest.mark.parametrize(
    "more",
    [
        {"says": {f"p{number}": b"x" for number in range(1_000)}},
        {"says": {"range": bytes(1_000_000)}},
        {"says": ["range", "range"]},
        {"rebalance_timeout": 0},
        {"rebalance_timeout": -1},
        {"says": {"range": SOUND[:7]}},
        {"says": {"range": b"\0\1\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"}},
        {"says": {"range": b""}},
    ],
    ids=["many", "large", "twice", "no timeout", "negative", "cut", "negative count", "empty"],
)
async def test_joins_that_are_odd_and_taken(rig: Rig, more: dict[str, Any]) -> None:
    """The members' metadata concerns only them and their leader."""
    began = time.process_time()
    async with await rig.connect() as client:
        joined = await join(client, "odd", **more)
        assert joined.error_code == 0
        assert (await leave(client, "odd", [joined.member_id])).error_code == 0
    assert time.process_time() - began < WITHIN_S
    await check_served(rig)


async def test_a_join_of_16_mib_is_not_read(rig: Rig) -> None:
    """The request exceeds the frame limit: the connection is closed, and no group is created."""
    async with await rig.connect() as client:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await join(client, "huge", says={"range": bytes(16 << 20)})
    async with await rig.connect() as client:
        assert "huge" not in await list_groups(client)
    await check_served(rig)


# ------------------------------------------------------------------------------------- row 18


async def test_syncs_that_are_odd(rig: Rig) -> None:
    async with await rig.connect() as first, await rig.connect() as second:
        leader = (await join(first, "s")).member_id
        other = asyncio.create_task(join(second, "s"))
        # The first has to come again: the second waits for it.
        again = await asyncio.wait_for(join(first, "s", member_id=leader), PATIENCE_S)
        follower = (await other).member_id
        assert (again.leader, again.generation_id) == (leader, 2)
        now = {"generation_id": 2}
        for wrong, code in (
            ({"generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
            ({"generation_id": 3}, ErrorCode.ILLEGAL_GENERATION),
            ({**now, "protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({**now, "protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({**now, "protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ):
            answer = await sync(first, "s", leader, **wrong)
            assert answer.error_code == code, wrong
        stranger = await sync(first, "s", "nobody", **now)
        assert stranger.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        # What a follower says of assignments is not heard, nor what is for strangers.
        waiting = asyncio.create_task(sync(second, "s", follower, to={follower: b"mine"}, **now))
        given = {leader: b"a", follower: b"b", "nobody": b"c"}
        led = await sync(first, "s", leader, to=given, **now)
        followed = await waiting
        assert (led.assignment, followed.assignment) == (b"a", b"b")
        described = await first.ask(DESCRIBE_GROUPS, 5, groups=("s",))
        (group,) = described.groups
        assert {member.member_id for member in group.members} == {leader, follower}
    await check_served(rig)


# ------------------------------------------------------------------------------------- row 22


async def test_many_members_leave_at_once_known_unknown_and_twice(rig: Rig) -> None:
    began = time.process_time()
    async with await rig.connect() as client:
        member = (await join(client, "l")).member_id
        strangers = [f"nobody-{number}" for number in range(50_000)]
        answer = await leave(client, "l", [*strangers, member, member])
        codes = [row.error_code for row in answer.members]
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert set(codes[:-2]) == {unknown}
        assert codes[-2:] == [0, unknown]
        assert (await leave(client, "l", [member])).members[0].error_code == unknown
    assert time.process_time() - began < WITHIN_S
    await check_served(rig)


# -------------------------------------------------------------------- what refuses a conversion


@pytest.mark.parametrize(
    "said", [SOUND[:7], b"", b"\xff\xff", b"\0\1\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"]
)
async def test_what_cannot_be_read_refuses_the_conversion(rig: Rig, said: bytes) -> None:
    async with await rig.connect() as client, await rig.connect() as newcomer:
        joined = await join(client, "m", says={"range": said})
        who = {"generation_id": joined.generation_id}
        assert (await sync(client, "m", joined.member_id, to={}, **who)).error_code == 0
        before = await client.ask(DESCRIBE_GROUPS, 5, groups=("m",))
        refused = await newcomer.ask(CONSUMER_HEARTBEAT, 1, **join_consumers("m", "n", ("t",)))
        assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "its subscription cannot be read" in refused.error_message
        assert await client.ask(DESCRIBE_GROUPS, 5, groups=("m",)) == before
        beating = {"group_id": "m", "member_id": joined.member_id, **who}
        assert (await client.ask(HEARTBEAT, 4, **beating)).error_code == 0
        await leave(client, "m", [joined.member_id])
    await check_served(rig)


# ---------------------------------------------------------------- with the consumer protocol off


async def test_with_the_consumer_protocol_off_its_heartbeats_are_refused() -> None:
    """Row C1. The API is advertised all the same, as by Kafka, whose filter is the listener's."""
    off = CoordinatorSettings(
        group_initial_rebalance_delay_ms=0, group_coordinator_rebalance_protocols=("classic",)
    )
    async with run_rig(coordinator=off) as rig, await rig.connect() as client:
        await rig.create_topic("t", 4)
        refused = await client.ask(CONSUMER_HEARTBEAT, 1, **join_consumers("c", "n", ("t",)))
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        left = await client.ask(CONSUMER_HEARTBEAT, 1, **beat("c", "n", -1))
        assert left.error_code == ErrorCode.UNSUPPORTED_VERSION
        versions = await client.ask(VERSIONS, 0)
        assert CONSUMER_HEARTBEAT in {api.api_key for api in versions.api_keys}
        await check_served(rig)
