"""`redundant(n)` over the Kafka wire: the leader assigns each partition to n members."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from muster.assignors.classic import (
    JoinedMember,
    Member,
    compute_assignment_bytes,
    encode_member_metadata,
)
from muster.assignors.embedded import decode_assignment
from tests.support.gateway.wire_rig import run_rig
from tests.support.wire.connection import Connection

JOIN, SYNC = 11, 14
JOIN_VERSION, SYNC_VERSION = 3, 3
"""The last versions that join in one step, and that sync without a protocol name."""
PROTOCOL = "redundant(2)"
PARTITIONS = {"orders": 6}
SETTINGS = CoordinatorSettings(group_initial_rebalance_delay_ms=1_000)
WITHIN_S = 30.0


def join_fields(name: str) -> dict[str, Any]:
    metadata = encode_member_metadata(PROTOCOL, Member(name, ("orders",)))
    protocol = request_schema(JOIN, JOIN_VERSION).JoinGroupRequestProtocol
    return {
        "group_id": "g",
        "session_timeout": 10_000,
        "rebalance_timeout": 20_000,
        "protocol_type": "consumer",
        "protocols": (protocol(name=PROTOCOL, metadata=metadata),),
    }


async def sync(client: Connection, joined: Any) -> list[tuple[str, int]]:
    """Sync, as the leader or not; return the member's assignment."""
    given = request_schema(SYNC, SYNC_VERSION).SyncGroupRequestAssignment
    members = [JoinedMember(m.member_id, None, m.metadata) for m in joined.members]
    assigned = compute_assignment_bytes(PROTOCOL, members, PARTITIONS) if members else {}
    client.send(
        SYNC,
        SYNC_VERSION,
        group_id="g",
        member_id=joined.member_id,
        generation_id=joined.generation_id,
        assignments=tuple(given(member_id=to, assignment=data) for to, data in assigned.items()),
    )
    _, answer = await client.read(SYNC, SYNC_VERSION, WITHIN_S)
    assert answer.error_code == 0
    found = decode_assignment(answer.assignment).partitions
    return [(topic.topic, number) for topic in found for number in topic.partitions]


async def test_each_partition_is_at_two_of_three_members() -> None:
    async with (
        run_rig(coordinator=SETTINGS) as rig,
        await rig.connect() as one,
        await rig.connect() as two,
        await rig.connect() as three,
    ):
        clients = {"a": one, "b": two, "c": three}
        for name, client in clients.items():
            client.send(JOIN, JOIN_VERSION, **join_fields(name))
        answers = [await c.read(JOIN, JOIN_VERSION, WITHIN_S) for c in clients.values()]
        joined = [answer for _, answer in answers]
        assert [len(answer.members) for answer in joined].count(3) == 1, "one leads"
        held = await asyncio.gather(*map(sync, clients.values(), joined))
        copies = Counter(place for places in held for place in places)
        assert copies == dict.fromkeys((("orders", number) for number in range(6)), 2)
        assert [len(set(places)) for places in held] == [4, 4, 4]
