"""No request leaves a reference cycle: its objects are freed by reference counting.

A server rarely runs the garbage collector (``cli.serve.collector``). A cycle stays until
then, and the collection that comes at last stops the loop for as long as there is something to
find.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from gateway.codec.kio_schema import request_schema
from gateway.settings import GatewaySettings
from gateway.topics.local_topics import LocalTopics
from gateway.topics.settings import TopicSettings
from gateway.wire_server import KafkaServer
from model.caller import INTERNAL
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import TopicName
from tests.garbage import count_left, run_as_served
from tests.support.gateway.wire_rig import topic_id_of
from tests.support.memory import MemoryLogStore
from tests.support.waiting import until
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join
from tests.unit.gateway.topics.store_rig import a_batch

PRODUCE, FETCH, LIST_OFFSETS, METADATA, COMMIT, OFFSET_FETCH, FIND = 0, 1, 2, 3, 8, 9, 10
JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE_GROUPS, LIST, VERSIONS = 11, 12, 13, 14, 15, 16, 18
CREATE_TOPICS, DELETE_TOPICS, TXN_COMMIT, DELETE_GROUPS = 19, 20, 28, 42
CONSUMER_HEARTBEAT, DESCRIBE = 68, 69
TOPICS = ("orders", "bills")
PARTITIONS = 4
MANY = 1_000


class Served:
    """A server, and client connections that leave no cycles themselves."""

    def __init__(
        self, port: int, topics: LocalTopics, runtime: Runtime, server: KafkaServer
    ) -> None:
        self.port = port
        self.server = server
        self.topics = topics
        self.runtime = runtime
        self.end = 0
        """The end offset of orders-0."""

    async def connect(self) -> Connection:
        # A loop keeps timers that are over for a while, some hundred of them.
        return await Connection.open(f"127.0.0.1:{self.port}", patience_s=None)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    # What is written last is held until a checkpoint has it.
    settings = CoordinatorSettings(
        group_initial_rebalance_delay_ms=0, log_checkpoint_interval_ms=10
    )
    runtime = Runtime(MemoryLogStore(2), settings)
    await runtime.start()
    await runtime.loaded()
    topics = LocalTopics(folder, runtime, TopicSettings(log_min_free_bytes=0))
    await topics.start()
    for name in TOPICS:
        await runtime.call(CreateTopic(INTERNAL, TopicName(name), topic_id_of(name), PARTITIONS))
    server = KafkaServer(runtime, AllowAll(), topics, GatewaySettings(gateway_park_ms=60))
    port = await server.start("127.0.0.1", 0)
    try:
        yield Served(port, topics, runtime, server)
    finally:
        await server.stop()
        await topics.stop()
        await runtime.stop()


def fetch_fields(wait_ms: int, name: str = "bills", offset: int = 0) -> dict[str, Any]:
    wire = request_schema(FETCH, 12)
    partitions = tuple(
        wire.FetchPartition(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        for number in (range(PARTITIONS) if name == "bills" else range(1))
    )
    topic = wire.FetchTopic(topic=name, partitions=partitions)
    return {"max_wait": wait_ms, "min_bytes": 1, "topics": (topic,)}


def produce_fields(topic: str) -> dict[str, Any]:
    wire = request_schema(PRODUCE, 9)
    data = wire.PartitionProduceData(index=0, records=a_batch(b"v"))
    rows = (wire.TopicProduceData(name=topic, partition_data=(data,)),)
    return {"acks": 1, "timeout": 1_000, "topic_data": rows}


def commit_fields(key: int, version: int, group: str, offset: int) -> dict[str, Any]:
    wire = request_schema(key, version)
    kind = "TxnOffsetCommit" if key == TXN_COMMIT else "OffsetCommit"
    row = getattr(wire, f"{kind}RequestPartition")(
        partition_index=0,
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata="said",
    )
    topic = getattr(wire, f"{kind}RequestTopic")(name="orders", partitions=(row,))
    return {"group_id": group, "topics": (topic,)}


def classic_fields(group: str, member: str, metadata: bytes = b"") -> dict[str, Any]:
    wire = request_schema(JOIN, 9)
    return {
        "group_id": group,
        "session_timeout": 10_000,
        "rebalance_timeout": 20_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": (wire.JoinGroupRequestProtocol(name="range", metadata=metadata),),
    }


async def sync(client: Connection, group: str, member: str, generation: int) -> Any:
    return await client.ask(
        SYNC,
        5,
        group_id=group,
        generation_id=generation,
        member_id=member,
        protocol_type="consumer",
        protocol_name="range",
    )


async def join_classic(client: Connection, group: str) -> tuple[str, int]:
    told = await client.ask(JOIN, 9, **classic_fields(group, ""))
    joined = await client.ask(JOIN, 9, **classic_fields(group, told.member_id))
    assert joined.error_code == 0
    assert (await sync(client, group, joined.member_id, joined.generation_id)).error_code == 0
    return joined.member_id, joined.generation_id


async def leave_classic(client: Connection, group: str, member: str) -> None:
    wire = request_schema(LEAVE, 5)
    identity = wire.MemberIdentity(member_id=member, group_instance_id=None, reason=None)
    await client.ask(LEAVE, 5, group_id=group, members=(identity,))


async def ask_many(served: Served, times: int, key: int, version: int, **fields: Any) -> None:
    client = await served.connect()
    for _ in range(times):
        answer = await client.ask(key, version, **fields)
        assert getattr(answer, "error_code", 0) == 0
    await client.end()


# ------------------------------------------------------------------------------ what is asked


async def fetches_that_wait(served: Served, times: int) -> None:
    await ask_many(served, times, FETCH, 12, **fetch_fields(1))


async def fetches_that_are_woken(served: Served, times: int) -> None:
    """Each fetch waits for the record that is produced after it."""
    reader, writer = await served.connect(), await served.connect()
    for _ in range(times):
        reader.send(FETCH, 12, **fetch_fields(60_000, "orders", served.end))
        await writer.ask(PRODUCE, 9, **produce_fields("orders"))
        served.end += 1
        assert (await reader.read(FETCH, 12))[1].error_code == 0
    await reader.end()
    await writer.end()


async def fetches_that_are_left(served: Served, times: int) -> None:
    for _ in range(times // 10):
        client = await served.connect()
        for _ in range(10):
            client.send(FETCH, 12, **fetch_fields(60_000))
        await client.writer.drain()
        await client.end()
    # Who asks now was accepted last. The second fetch of each waits for the first, and nothing is
    # read: the server looks once a second.
    client = await served.connect()
    await client.ask(VERSIONS, 0)
    await client.end()
    await until(lambda: not served.server.connections)
    await asyncio.sleep(0.1)  # the loop closes what is left of them in its next turns


async def produced(served: Served, times: int) -> None:
    await ask_many(served, times, PRODUCE, 9, **produce_fields("orders"))
    served.end += times


async def offsets_listed(served: Served, times: int) -> None:
    wire = request_schema(LIST_OFFSETS, 7)
    row = wire.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    topic = wire.ListOffsetsTopic(name="orders", partitions=(row,))
    await ask_many(served, times, LIST_OFFSETS, 7, replica_id=-1, topics=(topic,))


async def commits(served: Served, times: int) -> None:
    client = await served.connect()
    for number in range(times):
        answer = await client.ask(COMMIT, 9, **commit_fields(COMMIT, 9, "simple", number))
        assert answer.topics[0].partitions[0].error_code == 0
    await client.end()


async def commits_in_transactions(served: Served, times: int) -> None:
    client = await served.connect()
    fields = commit_fields(TXN_COMMIT, 3, "simple", 7)
    for _ in range(times):
        answer = await client.ask(
            TXN_COMMIT, 3, **fields, transactional_id="t", producer_id=1, producer_epoch=0
        )
        assert answer.topics[0].partitions[0].error_code >= 0
    await client.end()


async def offsets_fetched(served: Served, times: int) -> None:
    wire = request_schema(OFFSET_FETCH, 9)
    topic = wire.OffsetFetchRequestTopics(name="orders", partition_indexes=(0, 1))
    group = wire.OffsetFetchRequestGroup(
        group_id="simple", member_id=None, member_epoch=-1, topics=(topic,)
    )
    await ask_many(served, times, OFFSET_FETCH, 9, groups=(group,))


async def reads(served: Served, times: int) -> None:
    client = await served.connect()
    for _ in range(times):
        await client.ask(VERSIONS, 3, client_software_name="c", client_software_version="1")
        await client.ask(METADATA, 9, topics=None)
        await client.ask(FIND, 4, key_type=0, coordinator_keys=("g",))
        await client.ask(LIST, 5, states_filter=(), types_filter=())
        await client.ask(DESCRIBE_GROUPS, 5, groups=("simple", "classic"))
        await client.ask(DESCRIBE, 1, group_ids=("simple", "at-rest-0"))
    await client.end()


async def heartbeats(served: Served, times: int) -> None:
    """Each heartbeat is parked, and the next one ends its park."""
    client = await served.connect()
    joined = await client.ask(CONSUMER_HEARTBEAT, 1, **join("again", "m", TOPICS))
    fields = beat("again", "m", joined.member_epoch)
    for _ in range(times):
        for _ in range(10):
            client.send(CONSUMER_HEARTBEAT, 1, **fields)
        for _ in range(10):
            assert (await client.read(CONSUMER_HEARTBEAT, 1))[1].error_code == 0
    await client.ask(CONSUMER_HEARTBEAT, 1, **beat("again", "m", -1))
    await client.end()


async def parks(served: Served, times: int) -> None:
    """Parks of resting members that end after their time, by a change and by a lost connection."""
    everybody = [await served.connect() for _ in range(20)]

    async def live(number: int, client: Connection) -> None:
        group = f"at-rest-{number % 4}"
        said = join(group, f"m{number}", TOPICS)
        epoch = (await client.ask(CONSUMER_HEARTBEAT, 1, **said)).member_epoch
        owned: Any = None
        for _ in range(times // 20):
            fields = beat(group, f"m{number}", epoch, topic_partitions=owned)
            answer = await client.ask(CONSUMER_HEARTBEAT, 1, **fields)
            assert answer.error_code == 0
            epoch = answer.member_epoch
            if answer.assignment is not None:
                owned = _owned(answer.assignment)
            else:
                owned = None
        client.send(CONSUMER_HEARTBEAT, 1, **beat(group, f"m{number}", epoch))
        await client.writer.drain()
        await asyncio.sleep(0.005)
        other = await served.connect()
        await other.ask(CONSUMER_HEARTBEAT, 1, **beat(group, f"m{number}", -1))
        await other.end()

    await asyncio.gather(*(live(number, client) for number, client in enumerate(everybody)))
    for client in everybody:
        await client.end()


def _owned(assignment: Any) -> tuple[Any, ...]:
    wire = request_schema(CONSUMER_HEARTBEAT, 1)
    return tuple(
        wire.TopicPartitions(topic_id=row.topic_id, partitions=row.partitions)
        for row in assignment.topic_partitions
    )


async def members_that_come_and_go(served: Served, times: int) -> None:
    client = await served.connect()
    for number in range(times):
        member = f"m{number}"
        answer = await client.ask(CONSUMER_HEARTBEAT, 1, **join("churn", member, TOPICS))
        assert answer.error_code == 0
        assert (
            await client.ask(CONSUMER_HEARTBEAT, 1, **beat("churn", member, -1))
        ).error_code == 0
    await client.end()


async def classic_members(served: Served, times: int) -> None:
    client = await served.connect()
    for _ in range(times // 4):
        member, generation = await join_classic(client, "classic")
        await client.ask(
            HEARTBEAT, 4, group_id="classic", generation_id=generation, member_id=member
        )
        await leave_classic(client, "classic", member)
    await client.end()


async def joins_that_wait(served: Served, times: int) -> None:
    """Two members: each JoinGroup waits for the other one, and each SyncGroup for the leader's."""
    clients = [await served.connect() for _ in range(2)]
    members = ["", ""]
    for number, client in enumerate(clients):
        told = await client.ask(JOIN, 9, **classic_fields("two", ""))
        members[number] = told.member_id
    for turn in range(times // 4):
        for number in (0, 1):
            said = classic_fields("two", members[number], b"%d" % turn)
            clients[number].send(JOIN, 9, **said)
        joined = [(await client.read(JOIN, 9))[1] for client in clients]
        if any(answer.error_code for answer in joined):
            continue
        leader = 0 if joined[0].leader == members[0] else 1
        for number in (1 - leader, leader):
            clients[number].send(
                SYNC,
                5,
                group_id="two",
                generation_id=joined[number].generation_id,
                member_id=members[number],
                protocol_type="consumer",
                protocol_name="range",
            )
        for client in clients:
            await client.read(SYNC, 5)
    for client, member in zip(clients, members, strict=True):
        await leave_classic(client, "two", member)
        await client.end()


async def connections(served: Served, times: int) -> None:
    for number in range(times):
        client = await served.connect()
        await client.ask(
            VERSIONS, 3, client_software_name=f"c{number}", client_software_version="1"
        )
        await client.end()


async def broken_frames(served: Served, times: int) -> None:
    for number in range(times):
        client = await served.connect()
        client.writer.write(struct.pack(">ihhi", 60, 200 + number % 80, 99, 1) + bytes(52))
        await client.reader.read()
        await client.end()


async def groups_that_come_and_go(served: Served, times: int) -> None:
    client = await served.connect()
    for number in range(times):
        group = f"simple-{number}"
        await client.ask(COMMIT, 9, **commit_fields(COMMIT, 9, group, 1))
        answer = await client.ask(DELETE_GROUPS, 2, groups_names=(group,))
        assert answer.results[0].error_code == 0
    await client.end()


async def topics_that_come_and_go(served: Served, times: int) -> None:
    client = await served.connect()
    wire = request_schema(CREATE_TOPICS, 5)
    for number in range(times // 4):
        name = f"topic-{number}"
        row = wire.CreatableTopic(
            name=name, num_partitions=2, replication_factor=1, assignments=(), configs=()
        )
        await client.ask(CREATE_TOPICS, 5, topics=(row,), timeout=1_000, validate_only=False)
        answer = await client.ask(DELETE_TOPICS, 5, topic_names=(name,), timeout=1_000)
        assert answer.responses[0].error_code == 0
    await client.end()


KINDS = (
    fetches_that_wait,
    fetches_that_are_woken,
    fetches_that_are_left,
    produced,
    offsets_listed,
    commits,
    commits_in_transactions,
    offsets_fetched,
    reads,
    heartbeats,
    parks,
    members_that_come_and_go,
    classic_members,
    joins_that_wait,
    connections,
    broken_frames,
    groups_that_come_and_go,
    topics_that_come_and_go,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_requests_leave_nothing(
    kind: Callable[[Served, int], Awaitable[None]], tmp_path: Path
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as served, asyncio.timeout(120):
            left = await count_left(lambda times: kind(served, times), MANY)
            assert not left, left

    run_as_served(main())
