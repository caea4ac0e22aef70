"""The part of AdminService that changes groups, against a real coordinator."""

from __future__ import annotations

import uuid

import grpc

from coordinator.service.grpc_server import compute_ping_interval_ms
from coordinator.service.settings import GrpcSettings
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.caller import INTERNAL
from model.commands.offsets import TopicOffsets
from model.commands.transactions import TxnOffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from muster.v1 import admin_pb2, group_pb2, types_pb2
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import failure, info, make_groups
from tests.unit.service.session.test_group_service import offsets

SESSION = "consumer.session.timeout.ms"


async def begin(stand: Stand, group: str, producer_id: int = 7) -> None:
    rows = make_offset_columns([(0, 5, -1, "")])
    topics = (TopicOffsets(TopicName("orders"), None, rows),)
    await stand.runtime.call(
        TxnOffsetCommit(INTERNAL, GroupId(group), ProducerId(producer_id), 1, topics)
    )


async def test_a_repeated_deletion_has_one_effect(stand: Stand) -> None:
    await make_groups(stand)
    stub = stand.admin_stub()
    request = admin_pb2.DeleteGroupRequest(group_id="loose", request_id=str(uuid.uuid4()))
    for _ in range(2):
        await stub.DeleteGroup(request)
    code, detail = await info(stub.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="loose")))
    assert (code, detail.reason) == (grpc.StatusCode.NOT_FOUND, "GROUP_ID_NOT_FOUND")
    assert detail.metadata["group_id"] == "loose"


async def test_a_deletion_may_be_tried(stand: Stand) -> None:
    await make_groups(stand, "live")
    stub = stand.admin_stub()
    await stub.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="loose", validate_only=True))
    topics = [types_pb2.TopicPartitions(topic_name="orders", partitions=[0, 9])]
    request = admin_pb2.DeleteOffsetsRequest(group_id="loose", topics=topics, validate_only=True)
    (failed,) = (await stub.DeleteOffsets(request)).failures
    assert failed.topic_name == "orders"
    assert [(row.partition, row.error.reason) for row in failed.partitions] == [
        (9, "UNKNOWN_TOPIC_OR_PARTITION")
    ]
    fetched = await stand.group_stub().FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="loose"))
    assert fetched.topics[0].partitions[0].offset == 1
    code, detail = await info(
        stub.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="live", validate_only=True))
    )
    assert (code, detail.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NON_EMPTY_GROUP")
    unnamed = admin_pb2.DeleteOffsetsRequest(
        group_id="loose", topics=[types_pb2.TopicPartitions(partitions=[0])]
    )
    code, _ = await failure(stub.DeleteOffsets(unnamed))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_settings_are_altered_and_described(stand: Stand) -> None:
    stub = stand.admin_stub()
    change = admin_pb2.ConfigChange(name=SESSION, value="50000")
    request = admin_pb2.AlterGroupConfigsRequest(group_id="g", changes=[change])
    await stub.AlterGroupConfigs(request)
    asked = admin_pb2.DescribeGroupConfigsRequest(group_id="g")
    rows = {row.name: row for row in (await stub.DescribeGroupConfigs(asked)).configs}
    assert (rows[SESSION].value, rows[SESSION].server_value) == ("50000", "45000")
    assert rows[SESSION].source == admin_pb2.CONFIG_SOURCE_GROUP
    undo = admin_pb2.AlterGroupConfigsRequest(
        group_id="g", changes=[admin_pb2.ConfigChange(name=SESSION)]
    )
    await stub.AlterGroupConfigs(undo)
    rows = {row.name: row for row in (await stub.DescribeGroupConfigs(asked)).configs}
    assert rows[SESSION].source == admin_pb2.CONFIG_SOURCE_DEFAULT
    bad = admin_pb2.AlterGroupConfigsRequest(
        group_id="g", changes=[admin_pb2.ConfigChange(name=SESSION, value="1")]
    )
    code, detail = await info(stub.AlterGroupConfigs(bad))
    assert (code, detail.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_CONFIG")


async def test_a_member_is_told_the_timeout_of_its_group(stand: Stand) -> None:
    change = admin_pb2.ConfigChange(name=SESSION, value="50000")
    request = admin_pb2.AlterGroupConfigsRequest(group_id="g", changes=[change])
    await stand.admin_stub().AlterGroupConfigs(request)
    for group, timeout_ms in (("g", 50_000), ("other", 45_000)):
        answer = await stand.group_stub().Heartbeat(
            group_pb2.HeartbeatRequest(
                group_id=group,
                member_id="m",
                rebalance_timeout_ms=60_000,
                subscription=group_pb2.Subscription(subscribed_topic_names=["orders"]),
                owned=types_pb2.PartitionSet(),
            )
        )
        assert answer.session_timeout_ms == timeout_ms


def test_a_session_lives_in_a_group_with_a_short_timeout() -> None:
    """The session is pinged often enough for the shortest timeout."""
    settings = CoordinatorSettings(
        group_consumer_min_session_timeout_ms=300, group_consumer_min_heartbeat_interval_ms=1
    )
    assert compute_ping_interval_ms(settings, GrpcSettings()) == 100
    assert compute_ping_interval_ms(settings, GrpcSettings(grpc_ping_interval_ms=20)) == 20
    assert compute_ping_interval_ms(CoordinatorSettings(), GrpcSettings()) == 7_500
    rare = CoordinatorSettings(group_consumer_heartbeat_interval_ms=10_000)
    assert compute_ping_interval_ms(rare, GrpcSettings()) == 10_000


async def test_only_an_open_transaction_is_ended(stand: Stand) -> None:
    stub = stand.admin_stub()
    await begin(stand, "g")
    (listed,) = (await stub.ListTransactions(admin_pb2.ListTransactionsRequest())).transactions
    assert (listed.producer_id, listed.producer_epoch) == (7, 1)
    assert listed.log_partition == stand.runtime.partition_of(GroupId("g"))
    assert [(row.group_id, row.topic_name, row.offset) for row in listed.offsets] == [
        ("g", "orders", 5)
    ]
    place = {"log_partition": listed.log_partition, "producer_id": 7, "commit": True}
    code, detail = await info(
        stub.EndTransaction(admin_pb2.EndTransactionRequest(producer_epoch=70_000, **place))
    )
    assert (code, detail.reason) == (grpc.StatusCode.ABORTED, "INVALID_PRODUCER_EPOCH")
    elsewhere = {**place, "log_partition": -1, "producer_epoch": 1}
    code, detail = await info(stub.EndTransaction(admin_pb2.EndTransactionRequest(**elsewhere)))
    assert detail.reason == "UNKNOWN_PRODUCER_ID"
    await stub.EndTransaction(admin_pb2.EndTransactionRequest(producer_epoch=1, **place))
    code, detail = await info(
        stub.EndTransaction(admin_pb2.EndTransactionRequest(producer_epoch=1, **place))
    )
    assert (code, detail.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "UNKNOWN_PRODUCER_ID",
    )
    fetched = await stand.group_stub().FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="g"))
    assert fetched.topics[0].partitions[0].offset == 5


async def test_who_may() -> None:
    group, cluster = ResourceType.GROUP, ResourceType.CLUSTER
    rights = Rights(
        (Operation.DELETE, group, "g"),
        (Operation.DESCRIBE_CONFIGS, group, "g"),
        (Operation.ALTER_CONFIGS, group, "g"),
        (Operation.DESCRIBE, cluster, CLUSTER_NAME),
        (Operation.ALTER, cluster, CLUSTER_NAME),
    )
    async with running_stand(authorizer=rights) as stand:
        stub = stand.admin_stub()
        await stand.group_stub().CommitOffsets(
            group_pb2.CommitOffsetsRequest(group_id="g", topics=offsets(p0=1))
        )
        for call in (
            stub.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="g")),
            stub.DeleteOffsets(admin_pb2.DeleteOffsetsRequest(group_id="g")),
            stub.DescribeGroupConfigs(admin_pb2.DescribeGroupConfigsRequest(group_id="g")),
            stub.AlterGroupConfigs(admin_pb2.AlterGroupConfigsRequest(group_id="g")),
            stub.ListTransactions(admin_pb2.ListTransactionsRequest()),
            stub.EndTransaction(admin_pb2.EndTransactionRequest()),
        ):
            code, _ = await failure(call)
            assert code is grpc.StatusCode.PERMISSION_DENIED
