"""A restart of settled groups changes no epoch and moves no partition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import muster
from tests.e2e.groups import GroupView, describe, wait_for_group
from tests.server import MusterServer
from tests.support.waiting import until
from tests.support.wire.member import WireMember

MEMBERS = 100
PARTITIONS = 250
WIRE, SESSION = "wire-group", "session-group"
SETTLE_S = 60


@asynccontextmanager
async def wire_members(server: MusterServer) -> AsyncIterator[list[WireMember]]:
    members = [WireMember(server.address("kafka"), WIRE, "orders") for _ in range(MEMBERS)]
    running = [asyncio.create_task(member.run()) for member in members]
    try:
        yield members
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def session_members(server: MusterServer) -> AsyncIterator[list[muster.Member]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(muster.Member(server.grpc, SESSION, topics=["orders"]))
            for _ in range(MEMBERS)
        ]


def is_settled(view: GroupView) -> bool:
    return (
        view.state == "GROUP_STATE_STABLE"
        and len(view.members) == MEMBERS
        and len(view.owners) == PARTITIONS
    )


@pytest.mark.parametrize("how", ["SIGTERM", "kill -9"])
@pytest.mark.timeout(180)
async def test_restart_moves_nothing(how: str, tmp_path: Path) -> None:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as server:
        async with wire_members(server) as on_wire, session_members(server) as on_sessions:
            target = server.grpc
            before = {
                group: await wait_for_group(target, group, is_settled, SETTLE_S)
                for group in (WIRE, SESSION)
            }
            if how == "SIGTERM":
                assert await asyncio.to_thread(server.terminate) == 0
            else:
                server.kill()
            beats = {member.member_id: member.heartbeats for member in on_wire}
            await asyncio.to_thread(server.start)
            await until(
                lambda: all(m.heartbeats >= beats[m.member_id] + 2 for m in on_wire),
                "every wire member heartbeats again",
                SETTLE_S,
            )
            for member in on_sessions:
                # A commit is accepted from a member that the new server knows at its epoch.
                where = next(iter(member.assignment))
                await member.commit({where: 1})
            for group, view in before.items():
                assert await describe(target, group) == view
            assert not any(member.errors for member in on_wire)
