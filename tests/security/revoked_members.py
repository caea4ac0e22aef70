"""Members on the Kafka wire whose rights are revoked: heartbeats, and requests that wait."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from cli.load.members.classic_assignment import encode_assignment, encode_subscription
from tests.security.revoked_case import Ask, Case
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

JOIN, BEAT, SYNC, HEARTBEAT = 11, 12, 14, 68
REBALANCE: Final = 27


async def join_consumer(
    case: Case, client: Connection, group: str, member: str, topic: str | None = None
) -> int:
    """A member of the consumer protocol that has all partitions which it may have; its epoch."""
    answer = await client.ask(
        HEARTBEAT, 1, **join(case.group(group), member, (topic or case.topic,))
    )
    while answer.assignment is None or not answer.assignment.topic_partitions:
        assert answer.error_code == 0, answer
        fields = beat(case.group(group), member, answer.member_epoch, topic_partitions=())
        answer = await client.ask(HEARTBEAT, 1, **fields)
    return int(answer.member_epoch)


async def steady(case: Case) -> Ask:
    """Heartbeats that repeat: two members on a connection, so that none is held."""
    client = await case.connect()
    groups = ("steady", "steady2")
    beats = [beat(case.group(g), "m", await join_consumer(case, client, g, "m")) for g in groups]

    async def ask() -> bool:
        answers = [await client.ask(HEARTBEAT, 1, **each) for each in beats]
        codes = [each.error_code for each in answers]
        return any(map(case.is_granted, codes))

    return ask


async def grasping(case: Case) -> Ask:
    """Heartbeats that claim nothing, so that each answer has an assignment."""
    client = await case.connect()
    await join_consumer(case, client, "grasping2", "m")  # So that no heartbeat is held.
    epoch = await join_consumer(case, client, "grasping", "m")
    fields = beat(case.group("grasping"), "m", epoch, topic_partitions=())

    async def ask() -> bool:
        return case.is_granted((await client.ask(HEARTBEAT, 1, **fields)).error_code)

    return ask


async def hold_heartbeat(case: Case) -> Ask:
    """A heartbeat that is held back until the next request on its connection."""
    client = await case.connect()
    epoch = await join_consumer(case, client, "parked", "m")
    fields = beat(case.group("parked"), "m", epoch)
    was_early: list[bool] = []
    while True:
        client.send(HEARTBEAT, 1, **fields)
        held = asyncio.create_task(client.read(HEARTBEAT, 1))
        if not (await asyncio.wait([held], timeout=0.3))[0]:
            break
    held.add_done_callback(lambda _: was_early.append(not case.is_revoked))

    async def end() -> bool:
        client.send(HEARTBEAT, 1, **fields)
        answers = [await held, await client.read(HEARTBEAT, 1)]
        # It is held for a second, which may have been over before the revocation.
        late = answers[1:] if was_early == [True] else answers
        return any(map(case.is_granted, [answer.error_code for _, answer in late]))

    return end


def join_fields(case: Case, group: str, member: str = "", version: int = 3) -> dict[str, Any]:
    metadata = encode_subscription(case.topic)
    return {
        "group_id": case.group(group),
        "session_timeout": 20_000,
        "rebalance_timeout": 20_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }


def sync_fields(
    case: Case, group: str, joined: Any, shares: dict[str, list[int]] | None = None
) -> dict[str, Any]:
    rows = [
        {"member_id": member, "assignment": encode_assignment(case.topic, share)}
        for member, share in (shares or {}).items()
    ]
    return {
        "group_id": case.group(group),
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "assignments": rows,
    }


async def join_classic(case: Case, client: Connection, group: str, member: str = "") -> Any:
    """Join a classic group and lead it; the answer to JoinGroup."""
    joined = await client.ask(JOIN, 3, **join_fields(case, group, member))
    assert joined.error_code == 0, joined
    shares = {each.member_id: [number] for number, each in enumerate(joined.members)}
    synced = await client.ask(SYNC, 3, **sync_fields(case, group, joined, shares))
    assert synced.error_code == 0, synced
    return joined


async def classic(case: Case, group: str = "classic") -> Ask:
    """Heartbeat and SyncGroup of a classic member; in ``mixed`` the group is a consumer group."""
    client = await case.connect()
    if group == "mixed":
        await join_consumer(case, case.safe, group, "keeps")
    joined = await join_classic(case, client, group)
    who = {
        "group_id": case.group(group),
        "member_id": joined.member_id,
        "generation_id": joined.generation_id,
    }

    async def ask() -> bool:
        heard = await client.ask(BEAT, 3, **who)
        synced = await client.ask(SYNC, 3, **sync_fields(case, group, joined))
        if synced.assignment:
            return True
        codes = {heard.error_code, synced.error_code}
        assert codes <= {0, REBALANCE, case.code}, codes
        return codes != {case.code}

    return ask


async def mixed(case: Case) -> Ask:
    return await classic(case, "mixed")


async def wait_for_join(case: Case) -> Ask:
    """A JoinGroup that waits for a member which keeps its rights."""
    client = await case.connect()
    first = await join_classic(case, case.safe, "joining")
    asked = asyncio.create_task(client.ask(JOIN, 3, **join_fields(case, "joining")))
    await hear_rebalance(case, "joining", first)

    async def end() -> bool:
        fields = join_fields(case, "joining", first.member_id)
        assert (await case.safe.ask(JOIN, 3, **fields)).error_code == 0
        answer = await asked
        return case.is_granted(answer.error_code) or bool(answer.members)

    return end


async def wait_for_sync(case: Case) -> Ask:
    """A SyncGroup that waits for a leader which keeps its rights."""
    client = await case.connect()
    first = await join_classic(case, case.safe, "syncing")
    asked = asyncio.create_task(client.ask(JOIN, 3, **join_fields(case, "syncing")))
    await hear_rebalance(case, "syncing", first)
    led = await case.safe.ask(JOIN, 3, **join_fields(case, "syncing", first.member_id))
    joined = await asked
    synced = asyncio.create_task(client.ask(SYNC, 3, **sync_fields(case, "syncing", joined)))

    async def end() -> bool:
        shares = {led.member_id: [0], joined.member_id: [1]}
        answer = await case.safe.ask(SYNC, 3, **sync_fields(case, "syncing", led, shares))
        assert answer.error_code == 0
        found = await synced
        return case.is_granted(found.error_code) or bool(found.assignment)

    return end


async def hear_rebalance(case: Case, group: str, joined: Any) -> None:
    """Wait until the other member's JoinGroup has come."""
    who = {
        "group_id": case.group(group),
        "member_id": joined.member_id,
        "generation_id": joined.generation_id,
    }
    code = 0
    while code != REBALANCE:
        code = (await case.safe.ask(BEAT, 3, **who)).error_code
