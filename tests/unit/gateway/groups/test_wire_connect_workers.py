"""Workers of Kafka Connect form groups of the type `connect` over the wire: three protocols in each
join, of which the first that all know is chosen, and bytes that pass through as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.wire import fields
from tests.support.wire.connection import Connection

JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE_GROUPS, CONSUMER_HEARTBEAT = 11, 12, 13, 14, 15, 68
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
AT_ONCE = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
INCREMENTAL = ("sessioned", "compatible", "default")
EAGER = ("default",)


def read_bytes() -> Mapping[str, bytes]:
    """The bytes that Connect's own code makes of workers and assignments, by name."""
    found: dict[str, str] = {}
    name = ""
    for line in Path(__file__).with_name("connect_protocol.txt").read_text().splitlines():
        if line.startswith("  "):
            found[name] += line.strip()
        elif not line.startswith("#"):
            name = line
            found[name] = ""
    return {name: bytes.fromhex(text) for name, text in found.items()}


BYTES = read_bytes()


class Worker:
    """A worker on a connection of its own."""

    def __init__(self, client: Connection, name: str) -> None:
        self._client = client
        self.name = name
        self.member_id = ""
        self.generation = -1

    async def wait_for_rebalance(self) -> None:
        """Beats until it is told to join again."""
        error = ErrorCode.NONE
        while error == ErrorCode.NONE:
            error = await self.beat()
        assert error == ErrorCode.REBALANCE_IN_PROGRESS

    async def join(
        self,
        protocols: tuple[str, ...] = INCREMENTAL,
        said: str = "",
        protocol_type: str = "connect",
    ) -> Any:
        """Answered when all have joined; `said` is another state of the worker than at first."""
        protocol = request_schema(JOIN, JOIN_VERSION).JoinGroupRequestProtocol
        states = {name: said if name != "default" and said else self.name for name in protocols}
        answer = await self._client.ask(
            JOIN,
            JOIN_VERSION,
            group_id="workers",
            session_timeout=10_000,
            rebalance_timeout=60_000,
            member_id=self.member_id,
            protocol_type=protocol_type,
            protocols=tuple(
                protocol(name=name, metadata=BYTES[f"{state} says {name}"])
                for name, state in states.items()
            ),
        )
        if answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
        return answer

    async def sync(self, protocol: str, given: Mapping[str, str] | None = None) -> Any:
        """`given` are the leader's assignments by member id."""
        assignment = request_schema(SYNC, SYNC_VERSION).SyncGroupRequestAssignment
        return await self._client.ask(
            SYNC,
            SYNC_VERSION,
            group_id="workers",
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="connect",
            protocol_name=protocol,
            assignments=tuple(
                assignment(member_id=member_id, assignment=BYTES[f"given {name}"])
                for member_id, name in (given or {}).items()
            ),
        )

    async def beat(self) -> Any:
        answer = await self._client.ask(
            HEARTBEAT,
            HEARTBEAT_VERSION,
            group_id="workers",
            generation_id=self.generation,
            member_id=self.member_id,
        )
        return answer.error_code

    async def leave(self) -> None:
        identity = request_schema(LEAVE, LEAVE_VERSION).MemberIdentity
        member = identity(member_id=self.member_id, group_instance_id=None, reason="stops")
        answer = await self._client.ask(LEAVE, LEAVE_VERSION, group_id="workers", members=(member,))
        assert answer.error_code == ErrorCode.NONE


@asynccontextmanager
async def run_workers() -> AsyncIterator[tuple[Rig, Worker, Worker]]:
    """Two workers that have got their member ids, and have not joined yet."""
    async with (
        asyncio.timeout(30),
        run_rig(coordinator=AT_ONCE) as rig,
        await rig.connect() as one,
        await rig.connect() as other,
    ):
        workers = Worker(one, "first"), Worker(other, "second")
        for worker in workers:
            answer = await worker.join()
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            worker.member_id = answer.member_id
        yield rig, *workers


async def form(first: Worker, second: Worker, protocols: tuple[str, ...] = INCREMENTAL) -> Any:
    """Both in one generation, the second as one that has come to the first; the leader's answer."""
    coming = asyncio.create_task(second.join(protocols))
    await first.wait_for_rebalance()
    led, followed = await asyncio.gather(first.join(said="first-with-all"), coming)
    assert followed.members == ()
    return led


async def test_two_workers_hand_work_over_in_two_steps_and_one_takes_it_back() -> None:
    async with run_workers() as (rig, first, second):
        alone = await first.join()
        assert (alone.protocol_type, alone.protocol_name) == ("connect", "sessioned")
        synced = await first.sync("sessioned", {first.member_id: "all"})
        assert (synced.protocol_type, synced.protocol_name) == ("connect", "sessioned")
        assert synced.assignment == BYTES["given all"]

        led = await form(first, second)
        assert (led.leader, led.generation_id) == (first.member_id, 2)
        assert {member.member_id: member.metadata for member in led.members} == {
            first.member_id: BYTES["first-with-all says sessioned"],
            second.member_id: BYTES["second says sessioned"],
        }
        revoking = {first.member_id: "less", second.member_id: "none"}
        assert await sync_both(first, second, revoking) == ["less", "none"]

        # Who gave something up joins again, and the next generation hands it to the other.
        again = asyncio.create_task(first.join())
        await second.wait_for_rebalance()
        await asyncio.gather(again, second.join())
        handing = {first.member_id: "none", second.member_id: "second"}
        assert await sync_both(first, second, handing) == ["none", "second"]
        await check_described(rig, second, "sessioned")

        await second.leave()
        await first.wait_for_rebalance()
        assert (await first.join()).generation_id == 4
        assert (await first.sync("sessioned", {first.member_id: "all"})).error_code == 0
        assert await first.beat() == ErrorCode.NONE


async def sync_both(first: Worker, second: Worker, given: Mapping[str, str]) -> list[str]:
    """The assignment of each; the follower syncs first, and waits."""
    waiting = asyncio.create_task(second.sync("sessioned"))
    synced = [await first.sync("sessioned", given), await waiting]
    assert [answer.error_code for answer in synced] == [0, 0]
    names = {BYTES[f"given {name}"]: name for name in ("all", "less", "none", "second")}
    return [names[answer.assignment] for answer in synced]


async def check_described(rig: Rig, second: Worker, protocol: str) -> None:
    async with await rig.connect() as client:
        (group,) = (await client.ask(DESCRIBE_GROUPS, 5, groups=("workers",))).groups
    assert (group.group_state, group.protocol_type) == ("Stable", "connect")
    assert group.protocol_data == protocol
    (shown,) = (member for member in group.members if member.member_id == second.member_id)
    assert shown.member_metadata == BYTES[f"second says {protocol}"]
    assert shown.member_assignment == BYTES["given second"]


async def test_a_worker_of_the_eager_protocol_makes_it_the_group_s() -> None:
    async with run_workers() as (_, first, second):
        await first.join()
        await first.sync("sessioned", {first.member_id: "all"})
        led = await form(first, second, EAGER)
        assert led.protocol_name == "default"
        assert {member.metadata for member in led.members} == {
            BYTES["first says default"],
            BYTES["second says default"],
        }
        given = {first.member_id: "eager", second.member_id: "eager"}
        assert (await first.sync("default", given)).assignment == BYTES["given eager"]


async def test_others_are_kept_out_of_a_group_of_workers() -> None:
    async with run_workers() as (rig, first, other):
        await first.join(INCREMENTAL[:1])
        await first.sync("sessioned", {first.member_id: "all"})
        refused = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await other.join(EAGER)).error_code == refused
        assert (await other.join(protocol_type="consumer")).error_code == refused
        async with await rig.connect() as client:
            joined = fields.join("workers", "m", ("orders",))
            answer = await client.ask(CONSUMER_HEARTBEAT, 1, **joined)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert await first.beat() == ErrorCode.NONE
