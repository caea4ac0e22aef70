"""A group is damaged in memory: its log partition stops, the others go on, a restart mends it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

import muster
from model.errors import ErrorCode
from model.ids import GroupId, compute_log_partition
from tests.e2e import damaged_server
from tests.e2e.groups import GroupView, wait_for_group
from tests.server import MusterServer
from tests.support.waiting import until
from tests.support.wire import fields
from tests.support.wire.member import HEARTBEAT, WireMember, commit, connect

LOG_PARTITIONS = 50
PARTITIONS = 4
TOPIC = "orders"
DAMAGED = "damaged"
SETTLE_S = 60.0
RETRIABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def find_group(prefix: str, *, together: bool) -> str:
    """A group in the log partition of the damaged one, or in another."""
    place = compute_log_partition(GroupId(DAMAGED), LOG_PARTITIONS)
    names = (f"{prefix}-{number}" for number in range(1_000))
    return next(
        name
        for name in names
        if (compute_log_partition(GroupId(name), LOG_PARTITIONS) == place) is together
    )


NEIGHBOUR = find_group("neighbour", together=True)
OTHER = find_group("other", together=False)
SESSION_OTHER = find_group("session", together=False)
BY_HAND = find_group("by-hand", together=False)


@asynccontextmanager
async def running(server: MusterServer, *groups: str) -> AsyncIterator[list[WireMember]]:
    members = [WireMember(server.address("kafka"), group, TOPIC) for group in groups]
    tasks = [asyncio.create_task(member.run()) for member in members]
    try:
        yield members
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def has_members(count: int) -> Callable[[GroupView], bool]:
    def check(view: GroupView) -> bool:
        return (
            view.state == "GROUP_STATE_STABLE"
            and len(view.members) == count
            and len(view.owners) == PARTITIONS
        )

    return check


async def settle(server: MusterServer, counts: dict[str, int]) -> dict[str, GroupView]:
    return {
        group: await wait_for_group(server.grpc, group, has_members(count), SETTLE_S)
        for group, count in counts.items()
    }


async def ask_all(server: MusterServer, group: str, member: WireMember) -> tuple[int, int, int]:
    """The errors of a heartbeat of a member, of a join, and of a commit."""
    async with await connect(server.address("kafka")) as client:
        beat = fields.beat(group, member.member_id, member.member_epoch)
        # An answer from memory would be one without an error; a parked one comes later.
        answers = [
            (await client.ask(HEARTBEAT, 1, **said)).error_code
            for said in (beat, fields.join(group, "newcomer", (TOPIC,)))
        ]
        return answers[0], answers[1], (await commit(client, group, TOPIC, {0: 1}))[0]


async def read_metrics(server: MusterServer) -> dict[str, float]:
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"http://{server.http}/metrics")).text
    rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(figure) for name, figure in rows}


VIOLATIONS = 'muster_invariant_violations_total{invariant="epoch_order"}'
STOPPED = "muster_log_partitions_stopped"


@pytest.mark.timeout(240)
async def test_one_log_partition_stops_until_a_restart(tmp_path: Path) -> None:
    server = MusterServer(
        tmp_path / "data", topics={TOPIC: PARTITIONS}, environment={damaged_server.GROUP: DAMAGED}
    )
    server.module = "tests.e2e.damaged_server"
    with server:
        async with (
            running(server, DAMAGED, NEIGHBOUR, OTHER) as members,
            muster.Member(server.grpc, SESSION_OTHER, topics=[TOPIC]) as in_session,
        ):
            before = await settle(server, {DAMAGED: 1, NEIGHBOUR: 1, OTHER: 1, SESSION_OTHER: 1})
            assert (await read_metrics(server))[STOPPED] == 0

            os.kill(server.pid, signal.SIGUSR1)
            await until(lambda: damaged_server.DONE in server.output(), within_s=SETTLE_S)
            async with running(server, DAMAGED, OTHER) as newcomers:
                evidence = server.data_dir / "evidence"
                await until(lambda: any(evidence.glob("*.txt")), "there is evidence", SETTLE_S)

                for group, member in zip((DAMAGED, NEIGHBOUR), members, strict=False):
                    assert await ask_all(server, group, member) == (RETRIABLE,) * 3
                # The others go on: a member joins and takes its share, commits are taken.
                await settle(server, {OTHER: 2})
                async with await connect(server.address("kafka")) as client:
                    assert await commit(client, BY_HAND, TOPIC, {0: 1}) == {0: 0}
                await in_session.commit({next(iter(in_session.assignment)): 1})
                found = await read_metrics(server)
                assert (found[STOPPED], found[VIOLATIONS]) == (1, 1)
                check_evidence(server, before[DAMAGED])

                assert await asyncio.to_thread(server.terminate) == 0
                await asyncio.to_thread(server.start)
                after = await settle(server, {DAMAGED: 2, OTHER: 2, NEIGHBOUR: 1})
                assert after[NEIGHBOUR] == before[NEIGHBOUR]
                assert after[DAMAGED].group_epoch > before[DAMAGED].group_epoch
                # Nobody was fenced: all that they met was to be tried again.
                assert not any(member.errors for member in (*members, *newcomers))
                assert (await read_metrics(server))[STOPPED] == 0


def check_evidence(server: MusterServer, before: GroupView) -> None:
    (path,) = (server.data_dir / "evidence").glob("*.txt")
    text = path.read_text()
    assert text.startswith("invariant epoch_order: assignment epoch ")
    (member_id,) = before.members
    for expected in (f"group {DAMAGED!r}", "command ConsumerGroupHeartbeat(", member_id):
        assert expected in text
    lines = [line for line in server.output().splitlines() if "invariant_violated" in line]
    assert len(lines) == 1
    assert DAMAGED in lines[0]
    assert str(path) in server.output()
