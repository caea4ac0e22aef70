"""Changes as they are noted: one case each, and what the cases have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from coordinator.runtime.audit import Change
from model.access.acls import Operation, ResourceType
from model.ids import GroupId
from tests.security.audited.audited_doors import (
    PRODUCER,
    Doors,
)

ALLOW_ALICE: Final = {
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
    "resource_type": "GROUP",
    "resource_name": "g",
    "pattern_type": "LITERAL",
}
ORDERS: Final = {"topic_id": "b3JkZXJzAQEBAQEBAQEBAQ", "partitions": 3}
BACKUP: Final = {"folder": "/backups/1", "bytes": 0, "with_credentials": True}
SESSION: Final = "consumer.session.timeout.ms"


class Case(NamedTuple):
    """What is done, after ``before`` was, and the change that is noted."""

    do: Callable[[Doors], Awaitable[Any]]
    change: Change
    first: Callable[[Doors], Awaitable[Any]] | None = None


def topic_change(
    kind: str, operation: Operation, before: Any, after: Any, name: str = "orders"
) -> Change:
    return Change(kind, operation, ResourceType.TOPIC, name, before, after)


def group_change(kind: str, operation: Operation, before: Any, after: Any) -> Change:
    return Change(kind, operation, ResourceType.GROUP, "g", before, after)


def moved(kind: str, before: str, after: str) -> Change:
    return group_change(kind, Operation.ALTER_CONFIGS, {"place": before}, {"place": after})


def cluster_change(
    kind: str, before: Any, after: Any, operation: Operation = Operation.ALTER
) -> Change:
    return Change(kind, operation, ResourceType.CLUSTER, "kafka-cluster", before, after)


def offsets(offset: int) -> dict[str, Any]:
    return {"offsets": {"orders-0": offset, "orders-1": offset}}


def transaction(state: str, partition: int = 1) -> dict[str, Any]:
    return {
        "log_partition": partition,
        "producer_id": PRODUCER,
        "producer_epoch": 2,
        "state": state,
        "groups": ["g"],
    }


ACL_CREATED: Final = cluster_change("CreateAcls", None, {"acls": [ALLOW_ALICE]})
ACL_DELETED: Final = cluster_change("DeleteAcls", {"acls": [ALLOW_ALICE]}, None)
GROWN: Final = topic_change("GrowTopic", Operation.ALTER, ORDERS, ORDERS | {"partitions": 5})
DELETED: Final = topic_change("DeleteTopic", Operation.DELETE, ORDERS, None)
CONFIGURED: Final = group_change(
    "AlterGroupConfigs", Operation.ALTER_CONFIGS, {}, {SESSION: "50000"}
)
GROUP_DELETED: Final = group_change(
    "DeleteGroup", Operation.DELETE, {"type": "classic", "state": "Empty"} | offsets(5), None
)
OFFSET_DELETED: Final = group_change(
    "DeleteOffsets", Operation.DELETE, {"offsets": {"orders-0": 5}}, None
)
LEFT: Final = group_change("LeaveGroup", Operation.READ, {"members": ["pod-1"]}, None)


CREDENTIAL: Final = {
    "mechanism": "SCRAM-SHA-256",
    "salt": b"s" * 16,
    "iterations": 4_096,
    "stored_key": b"k" * 32,
    "server_key": b"v" * 32,
}
OTHER_CREDENTIAL: Final = CREDENTIAL | {"stored_key": b"K" * 32}
ALICE: Final = {"users": {"alice": {"SCRAM-SHA-256": 4_096}}}


QUOTA_SET: Final = cluster_change(
    "AlterQuotas",
    None,
    {"quotas": [{"user": "alice", "commit_rate": 5.0}]},
    Operation.ALTER_CONFIGS,
)


def call(name: str, /, **fields: Any) -> Callable[[Doors], Awaitable[Any]]:
    return lambda doors: doors.call(name, **fields)


def ask(key: int, version: int, **fields: Any) -> Callable[[Doors], Awaitable[Any]]:
    return lambda doors: doors.wire.ask(key, version, **fields)


def commit_first(doors: Doors) -> Awaitable[None]:
    return doors.commit(5)


async def end_transaction(doors: Doors) -> None:
    place = {"log_partition": doors.runtime.partition_of(GroupId("g")), "producer_id": PRODUCER}
    await doors.call("AdminService.EndTransaction", **place, producer_epoch=2, commit=True)


async def write_marker(doors: Doors) -> None:
    partition = doors.runtime.partition_of(GroupId("g"))
    topic = {"name": "__consumer_offsets", "partition_indexes": [partition]}
    marker = {
        "producer_id": PRODUCER,
        "producer_epoch": 2,
        "transaction_result": False,
        "topics": [topic],
        "coordinator_epoch": 1,
    }
    await doors.wire.ask(27, 1, markers=[marker])
