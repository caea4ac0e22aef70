"""A right that is revoked under load: nothing passes to anybody who has lost it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from tests.security import revoked_clients as kinds
from tests.security.revoked_case import KEEPS, LOSES, NO_GROUP, NO_TOPIC, Case, connect
from tests.server import MusterServer
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, commit, join
from tests.support.wire.frames import make_frame

TOPICS = {"orders": 12, "payments": 12, "noise": 12}
ANONYMOUS = "User:ANONYMOUS"
TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, PREFIXED = 3, 4
ALL, READ = 2, 3
CREATE_ACLS, DELETE_ACLS = 30, 31
LOAD = 2
"""Connections of each kind that load the server."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    started = MusterServer(
        tmp_path / "data",
        topics=TOPICS,
        settings={
            "authorizer.class.name": "StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "group.initial.rebalance.delay.ms": 0,
            "gateway.park.ms": 2_000,
        },
    )
    with started:
        yield started


def allow(kind: int, name: str, operation: int, host: str, pattern: int = LITERAL) -> Any:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": ANONYMOUS,
        "host": host,
        "operation": operation,
        "permission_type": 3,
    }


async def set_up(safe: Connection) -> None:
    """Who comes from one host may do everything; the other one what may be revoked."""
    creations = [
        allow(CLUSTER, "kafka-cluster", ALL, KEEPS),
        allow(GROUP, "*", ALL, KEEPS),
        allow(TOPIC, "*", ALL, KEEPS),
        allow(GROUP, "load-", READ, "*", PREFIXED),
        allow(TOPIC, "noise", READ, "*"),
        allow(GROUP, "g-", READ, LOSES, PREFIXED),
        allow(TOPIC, "orders", READ, "*"),
        allow(GROUP, "t-", READ, "*", PREFIXED),
        allow(TOPIC, "payments", READ, LOSES),
    ]
    answer = await safe.ask(CREATE_ACLS, 3, creations=creations)
    assert {row.error_code for row in answer.results} == {0}


async def revoke(safe: Connection) -> None:
    """Delete the ACLs of the host that loses its rights."""
    wanted = [
        {
            "resource_type_filter": kind,
            "resource_name_filter": name,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": LOSES,
            "operation": 1,
            "permission_type": 1,
        }
        for kind, name in ((GROUP, "g-"), (TOPIC, "payments"))
    ]
    answer = await safe.ask(DELETE_ACLS, 3, filters=wanted)
    assert [len(row.matching_acls) for row in answer.filter_results] == [1, 1]


# ------------------------------------------------------------------------------------------- load


async def flood(case: Case, number: int, frame: bytes, client: Connection) -> None:
    """Send the same request over and over, some at a time."""
    client.writer.write(frame * 10)
    while not case.is_over:
        size = int.from_bytes(await client.reader.readexactly(4), "big")
        await client.reader.readexactly(size)
        case.served["load"] = case.served.get("load", 0) + 1
        client.writer.write(frame)
        if not number:
            await client.writer.drain()


async def begin_load(case: Case, tasks: asyncio.TaskGroup) -> None:
    for number in range(LOAD):
        group = f"load-{case.prefix}{number}"
        frames = [
            make_frame(8, 9, correlation_id=1, **commit(f"{group}c", "noise", {number: 7})
                       | {"generation_id_or_member_epoch": -1}),
            make_frame(69, 1, correlation_id=1, group_ids=[group]),
        ]  # fmt: skip
        member = await case.connect()
        for name in (group, f"{group}-2"):
            answer = await member.ask(68, 1, **join(name, "m", ("noise",)))
            assert answer.error_code == 0
        frames.append(make_frame(68, 1, correlation_id=1, **beat(name, "m", answer.member_epoch)))
        lines = [await case.connect(), await case.connect(), member]
        for frame, line in zip(frames, lines, strict=True):
            tasks.create_task(flood(case, number, frame, line))


# ------------------------------------------------------------------------------------ what holds


async def read_offsets(case: Case, safe: Connection) -> dict[tuple[str, int], int]:
    """What the groups of the case have committed, as one that keeps its rights sees it."""
    wanted = [
        {"group_id": group, "topics": None, "member_epoch": -1}
        for group in sorted({group for group, _ in case.acknowledged})
    ]
    answer = await safe.ask(9, 9, groups=wanted)
    return {
        (group.group_id, row.partition_index): row.committed_offset
        for group in answer.groups
        for topic in group.topics
        for row in topic.partitions
    }


def check_commits(case: Case, at_once: dict[tuple[str, int], int]) -> None:
    """What was acknowledged was durable when the revocation was answered."""
    assert case.acknowledged.keys() == at_once.keys()
    late = {key for key, offset in case.acknowledged.items() if offset > at_once[key]}
    assert not late


async def test_what_is_revoked_holds_for_every_kind_of_client(server: MusterServer) -> None:
    """READ of a group is taken from some, READ and DESCRIBE of a topic from others."""
    safe = await connect(server, KEEPS)
    await set_up(safe)
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(server.grpc, options=options) as channel:
        cases = (
            Case(server, "g-", "orders", NO_GROUP, safe, channel),
            Case(server, "t-", "payments", NO_TOPIC, safe, channel),
        )
        try:
            at_once = await revoke_under_load(cases)
        finally:
            for case in cases:
                await case.close()
    for case, offsets in zip(cases, at_once, strict=True):
        check_commits(case, offsets)
    server.kill()
    await asyncio.to_thread(server.start)
    async with await connect(server, KEEPS) as again:
        assert at_once == [await read_offsets(case, again) for case in cases]
    await safe.end()


async def revoke_under_load(cases: tuple[Case, Case]) -> list[dict[tuple[str, int], int]]:
    """Run all clients, and revoke; the offsets that were committed when that was answered."""
    kinds_of = (
        (cases[0], kinds.FOR_GROUP, kinds.WAIT_FOR_GROUP),
        (cases[1], kinds.FOR_BOTH, kinds.WAIT_FOR_TOPIC),
    )
    asks = [(case, name, await kind(case)) for case, asking, _ in kinds_of for name, kind in asking]
    async with asyncio.TaskGroup() as tasks:
        await begin_load(cases[0], tasks)
        for case, name, ask in asks:
            tasks.create_task(case.run(name, ask))
        for case, asking, _ in kinds_of:
            await case.wait_for(case.served, dict(asking))
        waits = [
            (case, name, await kind(case))
            for case, _, waiting in kinds_of
            for name, kind in waiting
        ]
        await revoke(cases[0].safe)
        for case in cases:
            case.is_revoked = True
        at_once = [await read_offsets(case, case.safe) for case in cases]
        passed = [(case.prefix, name) for case, name, end in waits if await end()]
        for case, asking, _ in kinds_of:
            await case.wait_for(case.refused, dict(asking))
            case.is_over = True
    assert (passed, [case.leaks for case in cases]) == ([], [[], []])
    assert cases[0].served["load"] > 300
    assert at_once == [await read_offsets(case, case.safe) for case in cases]
    return at_once
