"""What each call of gRPC is noted as, and which calls are noted as nothing."""

from __future__ import annotations

from typing import Final

from model.access.acls import Operation
from model.caller import ANONYMOUS
from tests.security.audited.noted_changes import (
    ACL_CREATED,
    ACL_DELETED,
    ALICE,
    ALLOW_ALICE,
    BACKUP,
    CONFIGURED,
    CREDENTIAL,
    DELETED,
    GROUP_DELETED,
    GROWN,
    LEFT,
    OFFSET_DELETED,
    ORDERS,
    OTHER_CREDENTIAL,
    QUOTA_SET,
    SESSION,
    Case,
    call,
    cluster_change,
    commit_first,
    end_transaction,
    group_change,
    moved,
    offsets,
    topic_change,
    transaction,
)

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
    "GroupService.ReportEndOffsets",
}
