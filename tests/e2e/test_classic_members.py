"""One classic group of two members over gRPC and one on the wire: leaders die, servers too."""

from __future__ import annotations

import asyncio
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

import muster
from tests.e2e.groups import GroupView, wait_for_group
from tests.interop.confluent_client import ConfluentClient, produce
from tests.server import MusterServer
from tests.support.waiting import until

PARTITIONS = 6
GROUP = "mixed"
SESSION_TIMEOUT_MS = 2_000
CHECKOUT = Path(__file__).parents[2]
WITHIN_S = 20.0
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1_000}
WIRE = {
    "group.protocol": "classic",
    "partition.assignment.strategy": "range",
    "heartbeat.interval.ms": 100,
}


@asynccontextmanager
async def leading_program(server: MusterServer) -> AsyncIterator[Process]:
    """A process with a member that leads its group."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.e2e.classic_program",
        server.grpc,
        GROUP,
        "orders",
        str(SESSION_TIMEOUT_MS),
        cwd=CHECKOUT,
        stdout=PIPE,
    )
    try:
        assert process.stdout is not None
        assert (await process.stdout.readline()).strip() == b"leads"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@contextmanager
def wire_consumer(server: MusterServer) -> Iterator[ConfluentClient]:
    """A consumer of confluent-kafka that a thread polls."""
    client = ConfluentClient(server, "wire", group=GROUP, settings=WIRE)
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            client.poll()
        client.consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield client
    finally:
        done.set()
        thread.join()


def is_shared_by(count: int) -> Callable[[GroupView], bool]:
    def check(view: GroupView) -> bool:
        return (
            view.state == "GROUP_STATE_STABLE"
            and len(view.members) == count
            and len(view.owners) == PARTITIONS
        )

    return check


@pytest.mark.timeout(120)
async def test_members_of_both_doors_through_deaths_of_leader_and_server(tmp_path: Path) -> None:
    with MusterServer(
        tmp_path / "data", topics={"orders": PARTITIONS}, settings=SETTINGS
    ) as server:
        lost: list[object] = []
        async with (
            leading_program(server) as leader,
            muster.ClassicMember(
                server.grpc,
                GROUP,
                topics=["orders"],
                heartbeat_interval_ms=100,
                on_lost=lost.append,
            ) as near,
        ):
            with wire_consumer(server) as wire:
                await until(
                    lambda: len(near.assignment) == len(wire.held) == 2, "three share", WITHIN_S
                )
                await wait_for_group(server.grpc, GROUP, is_shared_by(3), WITHIN_S)
                leader.kill()
                await until(
                    lambda: len(near.assignment) == len(wire.held) == 3, "two share", WITHIN_S
                )
                await wait_for_group(server.grpc, GROUP, is_shared_by(2), WITHIN_S)
                near_names = {f"{topic}-{index}" for topic, index in near.assignment}
                assert near_names | wire.held == {f"orders-{n}" for n in range(PARTITIONS)}

                generation = near.generation
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
                await near.commit(dict.fromkeys(near.assignment, 7))
                await asyncio.to_thread(produce, server, range(60), "orders", PARTITIONS)
                await until(lambda: len(wire.values) == 30, "wire reads its half", WITHIN_S)
                assert near.generation == generation, "the restart changed nothing"
            await until(lambda: len(near.assignment) == PARTITIONS, "wire has left", WITHIN_S)
            offsets = await near.fetch_offsets()
            committed = sorted(found.offset for found in offsets.values() if found is not None)
            assert committed == [7, 7, 7, 10, 10, 10]
            assert near.is_leader
            assert not lost
