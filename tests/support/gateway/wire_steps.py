"""Steps shared by the tests of the group APIs: join, commit, fetch."""

from __future__ import annotations

from typing import Any

from gateway.codec.kio_schema import request_schema
from tests.support.gateway.wire_rig import topic_id_of, with_settings
from tests.support.wire.connection import Connection
from tests.support.wire.fields import join

METADATA, COMMIT, FETCH, FIND = 3, 8, 9, 10
JOIN, SYNC = 11, 14
DESCRIBE_GROUPS, LIST, VERSIONS, CONFIGS = 15, 16, 18, 32
CLUSTER, HEARTBEAT, DESCRIBE = 60, 68, 69

UNPARKED = with_settings(gateway_park_ms=0)


async def member_of(client: Connection, group: str, member: str = "m") -> int:
    """A member of a group of its own, subscribed to t; its epoch."""
    answer = await client.ask(HEARTBEAT, 1, **join(group, member, ("t",)))
    assert answer.error_code == 0, answer
    epoch: int = answer.member_epoch
    return epoch


def commit_topics(version: int, name: str, rows: dict[int, Any]) -> tuple[Any, ...]:
    """Topics of a commit: partition -> (offset, metadata)."""
    wire = request_schema(COMMIT, version)
    partitions = []
    for partition, (offset, metadata) in rows.items():
        values = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_metadata": metadata,
        }
        if version >= 6:
            values["committed_leader_epoch"] = 3
        partitions.append(wire.OffsetCommitRequestPartition(**values))
    which: dict[str, Any] = {"name": name}
    if version >= 10:
        which = {"topic_id": topic_id_of(name)}
    return (wire.OffsetCommitRequestTopic(partitions=tuple(partitions), **which),)


def commit_codes(answer: Any) -> list[int]:
    return [row.error_code for topic in answer.topics for row in topic.partitions]


async def fetch(client: Connection, version: int, group: str, **extra: Any) -> dict[str, Any]:
    """Fetch partitions 0 and 1 of t: error, and partition -> (offset, epoch, metadata, error)."""
    wire = request_schema(FETCH, version)
    if version < 8:
        topic = wire.OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
        answer = await client.ask(FETCH, version, group_id=group, topics=(topic,), **extra)
        topics, code = answer.topics, getattr(answer, "error_code", 0)
    else:
        which: dict[str, Any] = {"name": "t"} if version < 10 else {"topic_id": topic_id_of("t")}
        topic = wire.OffsetFetchRequestTopics(partition_indexes=(0, 1), **which)
        row = wire.OffsetFetchRequestGroup(group_id=group, topics=(topic,), **extra)
        answer = await client.ask(FETCH, version, groups=(row,))
        [found] = answer.groups
        assert found.group_id == group
        topics, code = found.topics, found.error_code
    return {
        "error": code,
        "rows": {
            row.partition_index: (
                row.committed_offset,
                getattr(row, "committed_leader_epoch", None),
                row.metadata,
                row.error_code,
            )
            for topic in topics
            for row in topic.partitions
        },
    }


def join_fields(version: int, group: str, member: str = "") -> dict[str, Any]:
    """The fields of a JoinGroup of a classic member."""
    protocol = request_schema(JOIN, version).JoinGroupRequestProtocol
    fields: dict[str, Any] = {
        "group_id": group,
        "session_timeout": 10_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": (protocol(name="range", metadata=b"said"),),
    }
    return fields | ({"rebalance_timeout": 20_000} if version >= 1 else {})
