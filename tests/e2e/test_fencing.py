"""Fencing tokens against a real server: a zombie's write is refused by a guarded store."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import grpc.aio
import pytest

import muster
from muster.v1 import ownership_pb2, ownership_pb2_grpc
from tests.e2e.groups import wait_for_group
from tests.e2e.guarded_store import open_store, write_order
from tests.e2e.test_silence import HEARTBEAT_MS, PATIENCE_S, SESSION_TIMEOUT_MS
from tests.server import MusterServer

GROUP = "billing"
ORDERS = muster.TopicPartition("orders", 0)
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def session_timeout_ms() -> int:
    """Short, so that a zombie's session ends soon."""
    return SESSION_TIMEOUT_MS


@pytest.fixture
def server(tmp_path: Path, session_timeout_ms: int) -> Iterator[MusterServer]:
    settings = {
        "group.consumer.min.session.timeout.ms": SESSION_TIMEOUT_MS,
        "group.consumer.session.timeout.ms": session_timeout_ms,
        "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
        "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    }
    with MusterServer(tmp_path / "data", topics={"orders": 1}, settings=settings) as running:
        yield running


async def ask(target: str, token: int, topic: str = "orders") -> str:
    """What Check says of a token."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = ownership_pb2_grpc.OwnershipServiceStub(channel)
        response = await stub.Check(
            ownership_pb2.CheckRequest(group_id=GROUP, topic_name=topic, token=token)
        )
    return ownership_pb2.Ownership.Name(response.ownership).removeprefix("OWNERSHIP_")


async def test_a_zombie_that_wakes_is_refused(server: MusterServer, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = open_store(path)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.e2e.fenced_program", server.grpc, GROUP, "orders"),
        str(path),
        cwd=CHECKOUT,
        stdin=PIPE,
        stdout=PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None

    async def write_in_program() -> str:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"\n")
        async with asyncio.timeout(PATIENCE_S):
            return (await program.stdout.readline()).decode().strip()

    try:
        async with asyncio.timeout(PATIENCE_S):
            old = int(await program.stdout.readline())
        assert await write_in_program() == "written"
        assert await ask(server.grpc, old) == "OWNER"
        program.send_signal(signal.SIGSTOP)
        async with muster.Member(server.grpc, GROUP, topics=["orders"]) as member:
            await wait_for_group(
                server.grpc,
                GROUP,
                lambda view: view.owners.get(("orders", 0)) == member.member_id,
                PATIENCE_S,
            )
            async for owned in member.changes():
                if ORDERS in owned:
                    break
            token = member.tokens[ORDERS]
            assert token > old
            assert await ask(server.grpc, old) == "LOST"
            assert await ask(server.grpc, token) == "OWNER"
            assert await ask(server.grpc, token + 1_000_000) == "UNKNOWN"
            assert write_order(store, GROUP, ORDERS, token, "owner")
            program.send_signal(signal.SIGCONT)
            assert await write_in_program() == "refused"
            assert write_order(store, GROUP, ORDERS, token, "owner")
        assert await ask(server.grpc, token) == "LOST", "it has left, and nobody has joined yet"
    finally:
        program.kill()
        await program.communicate()
    written = [who for (who,) in store.execute("SELECT written_by FROM orders")]
    assert written[1:] == ["owner", "owner"]


# A client that is slow to connect again must not lose its session here: its place would be new.
@pytest.mark.parametrize("session_timeout_ms", [45_000])
async def test_a_restart_keeps_the_owner_and_raises_its_token(server: MusterServer) -> None:
    async with muster.Member(server.grpc, GROUP, topics=["orders"]) as member:
        async for owned in member.changes():
            if ORDERS in owned:
                break
        before = member.tokens[ORDERS]
        server.kill()
        server.start()
        async with asyncio.timeout(PATIENCE_S):
            while member.tokens.get(ORDERS, 0) <= before:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        assert member.assignment == {ORDERS}
        assert await ask(server.grpc, member.tokens[ORDERS]) == "OWNER"
        assert await ask(server.grpc, before) == "UNKNOWN"
