"""Groups, connections and topics that come and go over Kafka's wire, and questions about them.

Each function is one piece of work of a round; ``name`` is another one each time, so that nothing
which is kept by a name is kept for the next one.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from model.errors import ErrorCode
from model.ids import GroupId, compute_log_partition
from tests.support.wire.connection import Connection

LIST_OFFSETS, METADATA, COMMIT, OFFSET_FETCH, FIND = 2, 3, 8, 9, 10
JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE_CLASSIC, LIST = 11, 12, 13, 14, 15, 16
CREATE_TOPICS, DELETE_TOPICS, MARKERS, TXN_COMMIT = 19, 20, 27, 28
DESCRIBE_CONFIGS, DELETE_GROUPS, BEAT, DESCRIBE = 32, 42, 68, 69
TOPIC: Final = "orders"
PARTITIONS: Final = 12
SESSION_MS: Final = 6_000
LOG_PARTITIONS: Final = 8
ANSWERED_IN_S: Final = 120.0
_LINGER_0: Final = struct.pack("ii", 1, 0)

Work = Callable[[str, str], Awaitable[None]]


class Refused(RuntimeError):
    """The server answered what it must not answer here."""


@asynccontextmanager
async def connected(address: str, name: str) -> AsyncIterator[Connection]:
    """A connection of its own, whose client id is another one each time."""
    connection = await Connection.open(address, name, ANSWERED_IN_S)
    try:
        yield connection
    finally:
        connection.close()


def check(error_code: int, what: str) -> None:
    """Raises ``Refused``."""
    if error_code:
        raise Refused(f"{what}: error {int(error_code)}")


async def delete_group(connection: Connection, group: str) -> None:
    answer = await connection.ask(DELETE_GROUPS, 2, groups_names=[group])
    check(answer.results[0].error_code, f"delete {group}")


def offsets_of(topic: str, offset: int, count: int = PARTITIONS) -> list[dict[str, Any]]:
    rows = [
        {
            "partition_index": number,
            "committed_offset": offset,
            "committed_metadata": f"at {offset}",
        }
        for number in range(count)
    ]
    return [{"name": topic, "partitions": rows}]


async def simple_group(address: str, name: str) -> None:
    """Commits of nobody's member, a look at them, and the end of the group."""
    async with connected(address, name) as connection:
        for offset in range(3):
            await connection.ask(COMMIT, 9, group_id=name, topics=offsets_of(TOPIC, offset))
        await connection.ask(OFFSET_FETCH, 9, groups=[{"group_id": name, "topics": None}])
        await delete_group(connection, name)


async def consumer_group(address: str, name: str) -> None:
    """Two members of the consumer protocol, commits, and the end of the group."""
    async with connected(address, name) as one, connected(address, f"{name}-2") as two:
        first = await join_consumer(one, name, "m1", subscribed_topic_names=(TOPIC,))
        await join_consumer(two, name, "m2", subscribed_topic_names=(TOPIC,), rack_id=name)
        answer = await one.ask(
            COMMIT,
            9,
            group_id=name,
            member_id="m1",
            generation_id_or_member_epoch=first.member_epoch,
            topics=offsets_of(TOPIC, 7, 3),
        )
        for row in answer.topics[0].partitions:
            check(row.error_code, "a commit of a member")
        await leave_consumer(one, name, "m1")
        await leave_consumer(two, name, "m2")
        await delete_group(one, name)


async def pattern_group(address: str, name: str) -> None:
    """A member whose pattern nobody had before; its group is left, and goes of itself."""
    async with connected(address, name) as connection:
        pattern = f"{TOPIC}|{name}.*"
        await join_consumer(
            connection, name, "m", subscribed_topic_names=None, subscribed_topic_regex=pattern
        )
        await leave_consumer(connection, name, "m")


async def join_consumer(connection: Connection, group: str, member: str, **fields: Any) -> Any:
    answer = await connection.ask(
        BEAT,
        1,
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout=5_000,
        topic_partitions=(),
        **fields,
    )
    check(answer.error_code, "a join")
    return answer


async def leave_consumer(connection: Connection, group: str, member: str) -> None:
    answer = await connection.ask(
        BEAT, 1, group_id=group, member_id=member, member_epoch=-1, topic_partitions=None
    )
    check(answer.error_code, "a leave")


async def classic_group(address: str, name: str) -> None:
    """A classic member that joins, works, leaves; the end of the group."""
    async with connected(address, name) as connection:
        joined = await join_classic(connection, name)
        who: dict[str, Any] = {
            "group_id": name,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
        }
        rows = [{"member_id": joined.member_id, "assignment": name.encode()}]
        who |= {"protocol_type": "consumer", "protocol_name": "range"}
        synced = await connection.ask(SYNC, 5, **who, assignments=rows)
        check(synced.error_code, "a sync")
        del who["protocol_type"], who["protocol_name"]
        check((await connection.ask(HEARTBEAT, 4, **who)).error_code, "a heartbeat")
        await connection.ask(DESCRIBE_CLASSIC, 5, groups=[name])
        await connection.ask(
            COMMIT,
            9,
            group_id=name,
            member_id=joined.member_id,
            generation_id_or_member_epoch=joined.generation_id,
            topics=offsets_of(TOPIC, 5, 3),
        )
        await connection.ask(
            LEAVE, 5, group_id=name, members=[{"member_id": joined.member_id, "reason": name}]
        )
        await delete_group(connection, name)


async def join_classic(connection: Connection, group: str) -> Any:
    fields: dict[str, Any] = {
        "group_id": group,
        "session_timeout": SESSION_MS,
        "rebalance_timeout": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1\0\0\0\0\xff\xff\xff\xff\0\0\0\0"}],
    }
    while True:
        told = await connection.ask(JOIN, 9, **fields)
        joined = await connection.ask(JOIN, 9, **fields, member_id=told.member_id)
        # A group that nobody has joined yet may have expired in between.
        if joined.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            check(joined.error_code, "a classic join")
            return joined


async def member_that_never_joins(address: str, name: str) -> None:
    """One that is given its id, and goes."""
    async with connected(address, name) as connection:
        await connection.ask(
            JOIN,
            9,
            group_id=name,
            session_timeout=SESSION_MS,
            rebalance_timeout=SESSION_MS,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )


async def transaction(address: str, name: str) -> None:
    """Offsets of a transaction, which its coordinator ends; the end of the group."""
    producer_id = int.from_bytes(name.encode()[-7:], "big") % (1 << 60)
    producer = {"producer_id": producer_id, "producer_epoch": 0}
    async with connected(address, name) as connection:
        answer = await connection.ask(
            TXN_COMMIT,
            3,
            transactional_id=name,
            group_id=name,
            **producer,
            topics=offsets_of(TOPIC, 9, 3),
        )
        for row in answer.topics[0].partitions:
            check(row.error_code, "a commit in a transaction")
        where = compute_log_partition(GroupId(name), LOG_PARTITIONS)
        topics = [{"name": "__consumer_offsets", "partition_indexes": (where,)}]
        marker = {**producer, "transaction_result": len(name) % 2 == 0, "topics": topics}
        await connection.ask(MARKERS, 1, markers=[marker])
        await connection.ask(COMMIT, 9, group_id=name, topics=offsets_of(TOPIC, 10, 1))
        await delete_group(connection, name)


async def topic(address: str, name: str) -> None:
    """A topic that others' patterns match, offsets of it, and its end."""
    name = f"soaked-{name}"
    async with connected(address, name) as connection:
        row = {"name": name, "num_partitions": 4, "replication_factor": 1}
        answer = await connection.ask(CREATE_TOPICS, 5, topics=[row])
        check(answer.topics[0].error_code, "create topic")
        await connection.ask(METADATA, 9, topics=[{"name": name}])
        await connection.ask(COMMIT, 9, group_id=name, topics=offsets_of(name, 1, 4))
        await connection.ask(
            DESCRIBE_CONFIGS, 4, resources=[{"resource_type": 2, "resource_name": name}]
        )
        partitions = [{"partition_index": 0, "timestamp": -1}]
        await connection.ask(
            LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": name, "partitions": partitions}]
        )
        await asyncio.sleep(0.3)
        answer = await connection.ask(DELETE_TOPICS, 5, topic_names=[name], timeout=10_000)
        check(answer.responses[0].error_code, "delete topic")
        # With its last offset the group may have gone already.
        await connection.ask(DELETE_GROUPS, 2, groups_names=[name])


async def questions(address: str, name: str) -> None:
    """What tools ask: all groups listed and described, by names that are there and are not."""
    async with connected(address, name) as connection:
        listed = await connection.ask(LIST, 5)
        groups = [row.group_id for row in listed.groups][:50]
        await connection.ask(DESCRIBE, 1, group_ids=[*groups, name])
        await connection.ask(DESCRIBE_CLASSIC, 5, groups=[*groups, name])
        await connection.ask(METADATA, 9, topics=None)
        await connection.ask(FIND, 4, key_type=0, coordinator_keys=[name, *groups])
        await connection.ask(
            DESCRIBE_CONFIGS, 4, resources=[{"resource_type": 4, "resource_name": "1"}]
        )
        for number in range(5):
            await connection.ask(METADATA, 9, topics=[{"name": f"{name}-{number}"}])
            await connection.ask(
                COMMIT, 9, group_id=f"{name}-{number}", topics=offsets_of(f"{name}-{number}", 1, 1)
            )


async def broken_connections(address: str, name: str) -> None:
    """Clients that reset, send a half, or join and are gone without a word."""
    host, _, port = address.rpartition(":")
    for said in (b"", b"\0\0", b"\0\0\1\0\0\x12\0\3", b"GET / HTTP/1.1\r\n\r\n", name.encode()):
        with socket.create_connection((host, int(port))) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
            line.sendall(said)
            await asyncio.sleep(0)
    gone = await Connection.open(address, name, ANSWERED_IN_S)
    joined = await join_consumer(gone, name, "m", subscribed_topic_names=(TOPIC,))
    gone.send(
        BEAT,
        1,
        group_id=name,
        member_id="m",
        member_epoch=joined.member_epoch,
        topic_partitions=None,
    )
    gone.reset()
