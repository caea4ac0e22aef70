"""What is noted as a refusal: what a caller asked for and did not get, not what is left out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest

from coordinator.runtime.authorizer import AclAuthorizer, AllowAll
from coordinator.runtime.commands.changes import Changes
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from gateway.wire_server import KafkaServer
from model.access.acls import Acl, Operation, Permission, ResourcePattern, ResourceType, Rule
from model.caller import ANONYMOUS, INTERNAL
from model.commands.access import CreateAcls, DeleteAcls
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import TopicName
from muster.v1 import admin_pb2, admin_pb2_grpc, group_pb2, group_pb2_grpc
from tests.support.audits import KeptAudit, Refusal
from tests.support.gateway.wire_rig import NoRecords, topic_id_of
from tests.support.gateway.wire_steps import UNPARKED, join_fields
from tests.support.memory import MemoryLogStore
from tests.support.waiting import until
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, commit, join

READ, DESCRIBE = Operation.READ, Operation.DESCRIBE
GROUP, TOPIC, CLUSTER = ResourceType.GROUP, ResourceType.TOPIC, ResourceType.CLUSTER


class Guarded:
    """A server with both doors, on which ACLs decide."""

    def __init__(
        self, runtime: Runtime, wire: Connection, channel: grpc.aio.Channel, audit: KeptAudit
    ) -> None:
        self.runtime = runtime
        self.wire = wire
        self.admin = admin_pb2_grpc.AdminServiceStub(channel)
        self.groups = group_pb2_grpc.GroupServiceStub(channel)
        self.audit = audit

    async def allow(self, operation: Operation, kind: ResourceType, name: str) -> None:
        await self.runtime.call(CreateAcls(INTERNAL, (make_acl(operation, kind, name),)))

    async def revoke(self, operation: Operation, kind: ResourceType, name: str) -> None:
        await self.runtime.call(DeleteAcls(INTERNAL, (make_acl(operation, kind, name),)))


def make_acl(operation: Operation, kind: ResourceType, name: str) -> Acl:
    return Acl(ResourcePattern(kind, name), Rule(ANONYMOUS, "*", operation, Permission.ALLOW))


@asynccontextmanager
async def run_guarded() -> AsyncIterator[Guarded]:
    audit = KeptAudit()
    authorizer = AclAuthorizer(audit=audit)
    runtime = Runtime(MemoryLogStore(4), CoordinatorSettings(), authorizer=authorizer, audit=audit)
    await runtime.start()
    await runtime.loaded()
    wire = KafkaServer(runtime, authorizer, NoRecords(runtime), UNPARKED)  # type: ignore[arg-type]
    kafka_port = await wire.start("127.0.0.1", 0)
    server = GrpcServer(runtime, authorizer, GrpcSettings(), audit=audit)
    grpc_port = await server.start("127.0.0.1", 0)
    for name in ("orders", "hidden"):
        await runtime.call(CreateTopic(INTERNAL, TopicName(name), topic_id_of(name), 2))
    try:
        async with (
            await Connection.open(f"127.0.0.1:{kafka_port}") as client,
            grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel,
        ):
            yield Guarded(runtime, client, channel, audit)
    finally:
        await server.stop(0.1)
        await wire.stop()
        await runtime.stop()


Ask = Callable[[Guarded], Awaitable[Any]]


def ask(key: int, version: int, **fields: Any) -> Ask:
    return lambda server: server.wire.ask(key, version, **fields)


FILTERS: dict[str, Ask] = {
    "Metadata of all topics": ask(3, 9, topics=None, allow_auto_topic_creation=False),
    "ListGroups": ask(16, 4),
    "DescribeTopicPartitions of all": ask(75, 0, topics=[], response_partition_limit=9),
    "AdminService.ListGroups": lambda server: server.admin.ListGroups(
        admin_pb2.ListGroupsRequest()
    ),
    "AdminService.ListTopics": lambda server: server.admin.ListTopics(
        admin_pb2.ListTopicsRequest()
    ),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_what_a_list_leaves_out_is_no_refusal(name: str) -> None:
    async with run_guarded() as server:
        await server.allow(READ, GROUP, "g")
        await server.allow(READ, TOPIC, "orders")
        await server.wire.ask(8, 8, **commit("g", "orders", {0: 5}))
        await server.revoke(READ, GROUP, "g")
        await FILTERS[name](server)
        assert server.audit.refusals == []


async def test_all_offsets_of_a_group_without_a_topic_are_no_refusal() -> None:
    async with run_guarded() as server:
        for right in ((READ, GROUP, "g"), (READ, TOPIC, "orders"), (READ, TOPIC, "hidden")):
            await server.allow(*right)
        for topic in ("orders", "hidden"):
            await server.wire.ask(8, 8, **commit("g", topic, {0: 5}))
        await server.revoke(READ, TOPIC, "hidden")
        group = {"group_id": "g", "topics": None}
        answer = await server.wire.ask(9, 8, groups=[group])
        assert [topic.name for topic in answer.groups[0].topics] == ["orders"]
        await server.groups.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="g"))
        assert server.audit.refusals == []
        # Named, it is one.
        named = {"name": "hidden", "partition_indexes": [0]}
        await server.wire.ask(9, 8, groups=[group | {"topics": [named]}])
        assert server.audit.refusals == [Refusal(ANONYMOUS, DESCRIBE, TOPIC, "hidden")]


async def test_what_a_regular_expression_does_not_stand_for_is_no_refusal() -> None:
    async with run_guarded() as server:
        for right in ((READ, GROUP, "g"), (READ, TOPIC, "orders")):
            await server.allow(*right)
        fields = join("g", "m", (), subscribed_topic_regex=".*")
        answer = await server.wire.ask(68, 1, **fields)
        assert answer.error_code == 0

        async def is_resolved() -> bool:
            answer = await server.wire.ask(68, 1, **beat("g", "m", epoch))
            return answer.assignment is not None or answer.member_epoch > epoch

        epoch = answer.member_epoch
        await until(lambda: any(group.regex_topics for group in server.runtime.groups()))
        await is_resolved()
        assert server.audit.refusals == []


async def test_the_rights_that_a_description_lists_are_no_refusals() -> None:
    async with run_guarded() as server:
        await server.allow(DESCRIBE, TOPIC, "orders")
        await server.allow(DESCRIBE, GROUP, "g")
        asked = {"topics": [{"name": "orders"}], "include_topic_authorized_operations": True}
        await server.wire.ask(3, 9, **asked, allow_auto_topic_creation=False)
        await server.wire.ask(15, 5, groups=["g"], include_authorized_operations=True)
        assert server.audit.refusals == []


REFUSALS: dict[str, tuple[Ask, Refusal]] = {
    "JoinGroup": (ask(11, 5, **join_fields(5, "g")), Refusal(ANONYMOUS, READ, GROUP, "g")),
    "Metadata": (
        ask(3, 9, topics=[{"name": "orders"}], allow_auto_topic_creation=False),
        Refusal(ANONYMOUS, DESCRIBE, TOPIC, "orders"),
    ),
    "FindCoordinator": (
        ask(10, 4, key_type=0, coordinator_keys=["g"]),
        Refusal(ANONYMOUS, DESCRIBE, GROUP, "g"),
    ),
    "CreateTopics": (
        ask(19, 5, topics=[{"name": "new", "num_partitions": 1, "replication_factor": 1}]),
        Refusal(ANONYMOUS, Operation.CREATE, TOPIC, "new"),
    ),
    "WriteTxnMarkers": (
        ask(
            27,
            1,
            markers=[
                {
                    "producer_id": 1,
                    "producer_epoch": 0,
                    "transaction_result": True,
                    "topics": [{"name": "__consumer_offsets", "partition_indexes": [0]}],
                    "coordinator_epoch": 0,
                }
            ],
        ),
        Refusal(ANONYMOUS, Operation.CLUSTER_ACTION, CLUSTER, "kafka-cluster"),
    ),
    "InitProducerId": (
        ask(22, 4, transactional_id=None, transaction_timeout=1_000),
        Refusal(ANONYMOUS, Operation.IDEMPOTENT_WRITE, CLUSTER, "kafka-cluster"),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_is_one_note_with_the_resource(name: str) -> None:
    asks, refusal = REFUSALS[name]
    async with run_guarded() as server:
        await asks(server)
        assert server.audit.refusals == [refusal]
        (caller,) = server.audit.callers
        assert (caller.client_id, caller.client_host, caller.listener) == (
            "c", "/127.0.0.1", "PLAINTEXT",
        )  # fmt: skip
        # Each time, though the decision is remembered.
        await asks(server)
        assert server.audit.refusals == [refusal] * 2


async def test_a_refused_call_is_a_note() -> None:
    async with run_guarded() as server:
        with pytest.raises(grpc.aio.AioRpcError):
            await server.admin.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="g"))
        with pytest.raises(grpc.aio.AioRpcError):
            await server.admin.CreateTopic(
                admin_pb2.CreateTopicRequest(topic_name="new", num_partitions=1)
            )
        assert server.audit.refusals == [
            Refusal(ANONYMOUS, Operation.DELETE, GROUP, "g"),
            Refusal(ANONYMOUS, Operation.CREATE, TOPIC, "new"),
        ]
        assert {caller.listener for caller in server.audit.callers} == {"grpc"}


async def test_a_right_that_is_revoked_is_noted_with_the_next_heartbeat() -> None:
    async with run_guarded() as server:
        for right in ((READ, GROUP, "g"), (READ, TOPIC, "orders")):
            await server.allow(*right)
        answer = await server.wire.ask(68, 1, **join("g", "m", ("orders",)))
        await server.revoke(READ, TOPIC, "orders")
        await server.wire.ask(68, 1, **beat("g", "m", answer.member_epoch))
        assert server.audit.refusals == [Refusal(ANONYMOUS, DESCRIBE, TOPIC, "orders")]


async def test_who_is_allowed_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats and commits that repeat ask no authorizer and look at no change."""
    async with run_guarded() as server:
        for right in ((READ, GROUP, "g"), (READ, TOPIC, "orders")):
            await server.allow(*right)
        answer = await server.wire.ask(68, 1, **join("g", "m", ("orders",)))
        member = {"member_id": "m", "generation_id_or_member_epoch": answer.member_epoch}

        async def live(offset: int) -> None:
            beaten = await server.wire.ask(68, 1, **beat("g", "m", answer.member_epoch))
            fields = commit("g", "orders", {0: offset}) | member
            done = await server.wire.ask(8, 9, **fields)
            assert (beaten.error_code, done.topics[0].partitions[0].error_code) == (0, 0)

        for offset in range(3):
            await live(offset)
        calls: list[object] = []
        monkeypatch.setattr(AclAuthorizer, "may_see", lambda *asked: calls.append(asked) or True)
        monkeypatch.setattr(Changes, "submit", lambda *asked: calls.append(asked))
        for offset in range(10):
            await live(offset)
        assert calls == []
        assert (server.audit.refusals, server.audit.changes) == ([], [])


def test_without_access_control_there_is_nothing_to_note() -> None:
    assert AllowAll.may_see is AllowAll.authorize
    runtime = Runtime(MemoryLogStore(1), CoordinatorSettings())
    assert runtime._audited == frozenset()
