"""Each change that an administrator makes, over either door, is noted with before and after.

The tables have every command that is audited, and every call and API that submits one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, get_args

import grpc.aio
import pytest

from coordinator.dispatch.command_table import COMMANDS
from coordinator.runtime.audit import Change
from coordinator.runtime.commands.audited_commands import (
    AUDITED,
    AuditedCommand,
    find_audited,
)
from gateway.apis.api_registry import APIS
from model.acls import Operation, ResourceType
from model.caller import ANONYMOUS
from model.commands.command import Command
from model.ids import GroupId, LogPartition
from tests.security.audited_doors import (
    COMMIT,
    HEARTBEAT,
    LEAVE,
    METHODS,
    PRODUCER,
    Doors,
    run_doors,
)
from tests.support.wire.fields import beat, commit, join

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


RPCS: Final = {
    "AccessService.CreateAcls": Case(
        call("AccessService.CreateAcls", acls=[ALLOW_ALICE, ALLOW_ALICE]), ACL_CREATED
    ),
    "AccessService.DeleteAcls": Case(
        call("AccessService.DeleteAcls"),
        ACL_DELETED,
        call("AccessService.CreateAcls", acls=[ALLOW_ALICE]),
    ),
    "UserService.CreateUser": Case(
        call("UserService.CreateUser", name="alice", credentials=[CREDENTIAL]),
        cluster_change("SetUser", None, ALICE),
    ),
    "UserService.AlterUser": Case(
        call("UserService.AlterUser", name="alice", credentials=[CREDENTIAL]),
        cluster_change("SetUser", ALICE, ALICE),
        call("UserService.CreateUser", name="alice", credentials=[OTHER_CREDENTIAL]),
    ),
    "QuotaService.AlterQuotas": Case(
        call(
            "QuotaService.AlterQuotas",
            entity={"user": "alice"},
            changes=[{"key": "commit_rate", "value": 5}],
        ),
        QUOTA_SET,
    ),
    "UserService.DeleteUser": Case(
        call("UserService.DeleteUser", name="alice"),
        cluster_change("SetUser", ALICE, None),
        call("UserService.CreateUser", name="alice", credentials=[CREDENTIAL]),
    ),
    "UpstreamService.TakeGroups": Case(
        call("UpstreamService.TakeGroups", group_ids=["g"]),
        moved("TakeGroup", "upstream", "muster"),
    ),
    "UpstreamService.ReleaseGroups": Case(
        call("UpstreamService.ReleaseGroups", all=True),
        moved("ReleaseGroup", "muster", "upstream"),
        call("UpstreamService.TakeGroups", group_ids=["g"]),
    ),
    "AdminService.CreateTopic": Case(
        call("AdminService.CreateTopic", topic_name="new", num_partitions=2),
        topic_change("CreateTopic", Operation.CREATE, None, {"partitions": 2}, "new"),
    ),
    "AdminService.GrowTopic": Case(
        call("AdminService.GrowTopic", topic_name="orders", num_partitions=5), GROWN
    ),
    "AdminService.SetTopicRacks": Case(
        call("AdminService.SetTopicRacks", topic_name="orders", replica_racks=[{"names": ["a"]}]),
        topic_change(
            "SetTopicRacks", Operation.ALTER, ORDERS, ORDERS | {"racks": (("a",),)}
        ),
    ),
    "AdminService.DeleteTopic": Case(
        call("AdminService.DeleteTopic", topic_name="orders"), DELETED
    ),
    "AdminService.AlterGroupConfigs": Case(
        call(
            "AdminService.AlterGroupConfigs",
            group_id="g",
            changes=[{"name": SESSION, "value": "50000"}],
        ),
        CONFIGURED,
    ),
    "AdminService.ConvertToClassicGroup": Case(
        call("AdminService.ConvertToClassicGroup", group_id="g"),
        group_change(
            "ConvertToClassicGroup",
            Operation.ALTER_CONFIGS,
            {"type": "consumer", "state": "Empty"},
            {"type": "classic", "state": "Empty"},
        ),
        lambda doors: doors.empty_consumer_group(),
    ),
    "FreezeService.FreezeGroup": Case(
        call("FreezeService.FreezeGroup", group_id="g"),
        group_change(
            "FreezeGroup", Operation.ALTER_CONFIGS, {"frozen": False}, {"frozen": True}
        ),
        lambda doors: doors.empty_consumer_group(),
    ),
    "FreezeService.ResumeGroup": Case(
        call("FreezeService.ResumeGroup", group_id="g"),
        group_change(
            "ResumeGroup",
            Operation.ALTER_CONFIGS,
            {"frozen": True, "by": ANONYMOUS},
            {"frozen": False},
        ),
        lambda doors: doors.frozen_group(),
    ),
    "AdminService.DeleteGroup": Case(
        call("AdminService.DeleteGroup", group_id="g"), GROUP_DELETED, commit_first
    ),
    "AdminService.RemoveMembers": Case(
        call("AdminService.RemoveMembers", group_id="g", members=[{"instance_id": "pod-1"}]),
        group_change("RemoveMembers", Operation.READ, {"members": ["pod-1"]}, None),
        lambda doors: doors.join_static(),
    ),
    "AdminService.DeleteOffsets": Case(
        call(
            "AdminService.DeleteOffsets",
            group_id="g",
            topics=[{"topic_name": "orders", "partitions": [0, 99]}],
        ),
        OFFSET_DELETED,
        commit_first,
    ),
    "AdminService.EndTransaction": Case(
        end_transaction,
        cluster_change(
            "EndTransaction", transaction("Ongoing"), transaction("CompleteCommit")
        ),
        lambda doors: doors.transact(),
    ),
    "BackupService.CreateBackup": Case(
        call("BackupService.CreateBackup", folder="/backups/1", with_credentials=True),
        cluster_change("CreateBackup", None, BACKUP),
    ),
    "GroupService.CommitOffsets": Case(
        call(
            "GroupService.CommitOffsets",
            group_id="g",
            topics=[{"topic_name": "orders", "partitions": [{"partition": 0, "offset": 2}]}],
        ),
        group_change(
            "OffsetCommit",
            Operation.READ,
            {"offsets": {"orders-0": 5}},
            {"offsets": {"orders-0": 2}},
        ),
        commit_first,
    ),
    "ResetService.ResetOffsets": Case(
        call("ResetService.ResetOffsets", group_id="g", offset=2),
        group_change(
            "ResetOffsets", Operation.READ, offsets(5), offsets(2),
        ),
        commit_first,
    ),
    "ClassicService.LeaveGroup": Case(
        call("ClassicService.LeaveGroup", group_id="g", members=[{"instance_id": "pod-1"}]),
        LEFT,
        lambda doors: doors.join_static(),
    ),
}  # fmt: skip

READS: Final = {
    "OwnershipService.Check", "ResetService.GetReset", "ExplainService.ExplainGroup",
    "ResetService.ListOffsetChanges",
    "AccessService.ListAcls", "AccessService.CheckAccess",
    "UserService.ListUsers", "QuotaService.ListQuotas",
    "UpstreamService.GetUpstream", "UpstreamService.ListUpstreamGroups",
    "AdminService.ListGroups",
    "AdminService.DescribeGroup",
    "AdminService.PlanMigration",
    "WhatIfService.WhatIf",
    "AdminService.DescribeGroupConfigs",
    "AdminService.ListTransactions",
    "AdminService.ListTopics",
    "GroupService.FetchOffsets",
    "AdminService.WatchGroup", "HistoryService.ListOwnerships", "RecordService.ListRecords",
    "LogService.DescribeLog", "LogService.ReadLog",
}  # fmt: skip
BY_MEMBERS: Final = {
    "ClassicService.JoinGroup",
    "ClassicService.SyncGroup",
    "ClassicService.Heartbeat",
    "GroupService.Session",
    "GroupService.Heartbeat",
}

WIRE: Final = {
    "OffsetCommit": Case(
        lambda doors: doors.commit(2),
        group_change("OffsetCommit", Operation.READ, offsets(5), offsets(2)),
        commit_first,
    ),
    "LeaveGroup": Case(
        ask(LEAVE, 3, group_id="g", members=[{"member_id": "", "group_instance_id": "pod-1"}]),
        LEFT,
        lambda doors: doors.join_static(),
    ),
    "CreateTopics": Case(
        ask(19, 5, topics=[{"name": "new", "num_partitions": 2, "replication_factor": 1}]),
        topic_change("CreateTopic", Operation.CREATE, None, {"partitions": 2}, "new"),
    ),
    "DeleteTopics": Case(ask(20, 5, topic_names=["orders"]), DELETED),
    "WriteTxnMarkers": Case(
        write_marker,
        cluster_change(
            "WriteTxnMarkers",
            transaction("Ongoing"),
            transaction("CompleteAbort"),
            Operation.CLUSTER_ACTION,
        ),
        lambda doors: doors.transact(),
    ),
    "CreateAcls": Case(
        ask(
            30,
            3,
            creations=[
                {
                    "resource_type": 3,
                    "resource_name": "g",
                    "resource_pattern_type": 3,
                    "principal": "User:alice",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ],
        ),
        ACL_CREATED,
    ),
    "DeleteAcls": Case(
        ask(
            31,
            3,
            filters=[
                {
                    "resource_type_filter": 1,
                    "resource_name_filter": None,
                    "principal_filter": None,
                    "host_filter": None,
                    "pattern_type_filter": 1,
                    "operation": 1,
                    "permission_type": 1,
                }
            ],
        ),
        ACL_DELETED,
        call("AccessService.CreateAcls", acls=[ALLOW_ALICE]),
    ),
    "AlterUserScramCredentials": Case(
        ask(
            51,
            0,
            upsertions=[
                {
                    "name": "alice",
                    "mechanism": 1,
                    "iterations": 4_096,
                    "salt": b"s" * 16,
                    "salted_password": b"p" * 32,
                }
            ],
        ),
        cluster_change("AlterUserScramCredentials", None, ALICE),
    ),
    "AlterClientQuotas": Case(
        ask(
            49,
            1,
            entries=[
                {
                    "entity": [{"entity_type": "user", "entity_name": "alice"}],
                    "ops": [{"key": "commit_rate", "value": 5.0, "remove": False}],
                }
            ],
            validate_only=False,
        ),
        QUOTA_SET,
    ),
    "CreatePartitions": Case(
        ask(37, 3, topics=[{"name": "orders", "count": 5, "assignments": None}]), GROWN
    ),
    "DeleteGroups": Case(ask(42, 2, groups_names=["g"]), GROUP_DELETED, commit_first),
    "IncrementalAlterConfigs": Case(
        ask(
            44,
            1,
            resources=[
                {
                    "resource_type": 32,
                    "resource_name": "g",
                    "configs": [{"name": SESSION, "config_operation": 0, "value": "50000"}],
                }
            ],
        ),
        CONFIGURED,
    ),
    "OffsetDelete": Case(
        ask(
            47,
            0,
            group_id="g",
            topics=[
                {
                    "name": "orders",
                    "partitions": [{"partition_index": 0}, {"partition_index": 99}],
                }
            ],
        ),
        OFFSET_DELETED,
        commit_first,
    ),
}
UNAUDITED_APIS: Final = {
    "Produce", "Fetch", "ListOffsets", "Metadata", "OffsetFetch", "FindCoordinator", "JoinGroup",
    "Heartbeat", "SyncGroup", "DescribeGroups", "ListGroups", "ApiVersions", "InitProducerId",
    "TxnOffsetCommit", "DescribeAcls", "DescribeUserScramCredentials", "DescribeConfigs",
    "DescribeCluster", "DescribeClientQuotas", "SaslHandshake", "SaslAuthenticate",
    "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ListConfigResources",
    "DescribeTopicPartitions",
}  # fmt: skip


def test_every_command_is_audited_or_said_not_to_be() -> None:
    every = set(get_args(Command))
    audited = {kind for kind in every if find_audited(object.__new__(kind)) is not None}
    assert audited == AUDITED == set(get_args(AuditedCommand))
    assert every <= COMMANDS.keys()


def test_every_call_and_api_has_a_row() -> None:
    assert RPCS.keys() | READS | BY_MEMBERS == METHODS.keys()
    assert WIRE.keys() | UNAUDITED_APIS == {api.name for api in APIS}
    kinds = {case.change.kind for case in (*RPCS.values(), *WIRE.values())}
    assert kinds == {kind.__name__ for kind in AUDITED} | {
        "CreateBackup",
        "TakeGroup",
        "ReleaseGroup",
    }


async def check(case: Case) -> Doors:
    async with run_doors() as doors:
        if case.first is not None:
            await case.first(doors)
        doors.audit.changes.clear()
        doors.audit.callers.clear()
        await case.do(doors)
        (change,) = doors.audit.changes
        expected = case.change
        if expected.kind == "CreateTopic":  # Its id is random.
            assert change.after is not None
            change = Change(*fields(change)[:-1], {"partitions": change.after["partitions"]})
        assert fields(change) == fields(expected, doors.runtime.partition_of(GroupId("g")))
        assert doors.audit.refusals == []
        # Once more it is refused, or changes nothing.
        doors.audit.changes.clear()
        if expected.kind not in ("CreateBackup", "OffsetCommit"):
            with suppress(grpc.aio.AioRpcError):
                await case.do(doors)
            assert doors.audit.changes == []
        return doors


def fields(change: Change, partition: LogPartition | None = None) -> tuple[Any, ...]:
    states = [change.before, change.after]
    for number, state in enumerate(states):
        if state is not None and "log_partition" in state and partition is not None:
            states[number] = {**state, "log_partition": partition}
    return (change.kind, change.operation, change.resource_type, change.resource_name, *states)


@pytest.mark.parametrize("name", RPCS)
async def test_a_call_is_noted(name: str) -> None:
    doors = await check(RPCS[name])
    (caller,) = doors.audit.callers
    assert (caller.principal, caller.client_host, caller.listener) == (
        ANONYMOUS, "/127.0.0.1", "grpc",
    )  # fmt: skip


@pytest.mark.parametrize("name", WIRE)
async def test_a_request_is_noted(name: str) -> None:
    doors = await check(WIRE[name])
    (caller,) = doors.audit.callers
    assert (caller.principal, caller.client_id, caller.client_host, caller.listener) == (
        ANONYMOUS, "cli-7", "/127.0.0.1", "PLAINTEXT",
    )  # fmt: skip


async def test_what_is_only_tried_is_no_change() -> None:
    async with run_doors() as doors:
        await doors.commit(5)
        await doors.empty_consumer_group()
        doors.audit.changes.clear()
        for name, fields in (
            ("AdminService.CreateTopic", {"topic_name": "new", "num_partitions": 1}),
            ("AdminService.GrowTopic", {"topic_name": "orders", "num_partitions": 9}),
            ("AdminService.SetTopicRacks", {"topic_name": "orders"}),
            ("AdminService.DeleteTopic", {"topic_name": "orders"}),
            ("AdminService.AlterGroupConfigs",
             {"group_id": "g", "changes": [{"name": SESSION, "value": "50000"}]}),
            ("AdminService.ConvertToClassicGroup", {"group_id": "g"}),
            ("FreezeService.FreezeGroup", {"group_id": "g"}),
            ("AdminService.DeleteGroup", {"group_id": "g"}),
            ("AdminService.DeleteOffsets",
             {"group_id": "g", "topics": [{"topic_name": "orders", "partitions": [0]}]}),
            ("AccessService.DeleteAcls", {}),
        ):  # fmt: skip
            await doors.call(name, **fields, validate_only=True)
        assert doors.audit.changes == []


async def test_what_members_do_is_no_change() -> None:
    async with run_doors() as doors:
        answer = await doors.wire.ask(HEARTBEAT, 1, **join("g", "m", ("orders",)))
        topics = commit("g", "orders", {0: 7})["topics"]
        done = await doors.wire.ask(
            COMMIT,
            9,
            group_id="g",
            member_id="m",
            generation_id_or_member_epoch=answer.member_epoch,
            topics=topics,
        )
        assert done.topics[0].partitions[0].error_code == 0
        await doors.wire.ask(HEARTBEAT, 1, **beat("g", "m", -1))
        assert doors.audit.changes == []


async def test_very_many_offsets_are_several_lines() -> None:
    async with run_doors() as doors:
        await doors.call("AdminService.GrowTopic", topic_name="orders", num_partitions=250)
        doors.audit.changes.clear()
        for offset in (1, 2):
            rows = dict.fromkeys(range(250), offset)
            await doors.wire.ask(COMMIT, 8, **commit("g", "orders", rows))
        assert [change.before for change in doors.audit.changes[:3]] == [None] * 3
        noted = [
            (change.before["offsets"], change.after["offsets"])  # type: ignore[index]
            for change in doors.audit.changes[3:]
        ]
        assert [len(after) for _, after in noted] == [100, 100, 50]  # type: ignore[arg-type]
        assert all(before.keys() == after.keys() for before, after in noted)  # type: ignore[attr-defined]


async def test_offsets_that_are_too_many_to_look_at_are_counted() -> None:
    async with run_doors() as doors:
        await doors.call("AdminService.GrowTopic", topic_name="orders", num_partitions=1_002)
        doors.audit.changes.clear()
        rows = dict.fromkeys(range(1_002), 1)
        await doors.wire.ask(COMMIT, 8, **commit("g", "orders", rows))
        *parts, last = [change.after for change in doors.audit.changes]
        assert len(parts) == 10
        assert last == {"offsets_not_looked_at": 2}
