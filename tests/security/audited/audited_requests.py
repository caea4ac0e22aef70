"""What each request of Kafka's wire is noted as, and which APIs are noted as nothing."""

from __future__ import annotations

from typing import Final

from model.access.acls import Operation
from tests.security.audited.audited_doors import (
    LEAVE,
)
from tests.security.audited.noted_changes import (
    ACL_CREATED,
    ACL_DELETED,
    ALICE,
    ALLOW_ALICE,
    CONFIGURED,
    DELETED,
    GROUP_DELETED,
    GROWN,
    LEFT,
    OFFSET_DELETED,
    QUOTA_SET,
    SESSION,
    Case,
    ask,
    call,
    cluster_change,
    commit_first,
    group_change,
    offsets,
    topic_change,
    transaction,
    write_marker,
)

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
