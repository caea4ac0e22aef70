"""Each call asks for the right that docs/security.md names, and does nothing without it."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
import pytest
from google.protobuf.message_factory import GetMessageClass

from model.access.acls import Operation, ResourceType
from model.ids import LogPartition
from tests.support.authorizers import Rights
from tests.support.service.methods import METHODS
from tests.support.service.stand import Stand, running_stand

ROOT: Final = Path(__file__).parents[3]


class Without(Enum):
    """What a call does without its right."""

    IS_REFUSED = "PERMISSION_DENIED"
    ANSWERS = "the answer has the error, as the response of Kafka's API"
    FAILS = "the answer has the error for each of its partitions"
    LEAVES_OUT = "what the caller may not see is left out"
    IS_UNKNOWN = "NOT_FOUND, as if it were not there"


class Right(NamedTuple):
    """What a call asks for first, with the least request, and what it does without it."""

    operation: Operation
    resource_type: ResourceType
    fields: dict[str, Any]
    without: Without = Without.IS_REFUSED


_GROUP: Final = {"group_id": "g"}
_TOPIC: Final = {"topic_name": "orders"}
_MEMBER: Final = {"group_id": "g", "member_id": "m"}
_BEAT: Final = _MEMBER | {"member_epoch": 1}
_SYNC: Final = _MEMBER | {"protocol_type": "consumer", "protocol_name": "range"}
_USER: Final[dict[str, Any]] = {
    "name": "a",
    "credentials": [
        {
            "mechanism": "SCRAM-SHA-256",
            "salt": b"salt",
            "iterations": 4_096,
            "stored_key": bytes(32),
            "server_key": bytes(32),
        }
    ],
}
_OFFSETS: Final = {"topic_name": "orders", "partitions": [{"partition": 0, "offset": 1}]}
_RESET: Final[dict[str, Any]] = {"group_id": "g", "plan": {"topics": [_OFFSETS]}}
_COMMIT: Final[dict[str, Any]] = {
    "group_id": "g",
    "topics": [_OFFSETS],
}

RIGHTS: Final[dict[str, Right]] = {
    "AccessService.ListAcls": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "AccessService.CreateAcls": Right(Operation.ALTER, ResourceType.CLUSTER, {}),
    "AccessService.DeleteAcls": Right(Operation.ALTER, ResourceType.CLUSTER, {}),
    "AccessService.CheckAccess": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "AdminService.ListGroups": Right(
        Operation.DESCRIBE, ResourceType.CLUSTER, {}, Without.LEAVES_OUT
    ),
    "AdminService.DescribeGroup": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "AdminService.DeleteGroup": Right(Operation.DELETE, ResourceType.GROUP, _GROUP),
    "AdminService.RemoveMembers": Right(
        Operation.READ, ResourceType.GROUP, _GROUP | {"members": [{"member_id": "m"}]}
    ),
    "AdminService.DeleteOffsets": Right(Operation.DELETE, ResourceType.GROUP, _GROUP),
    "AdminService.DescribeGroupConfigs": Right(
        Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, _GROUP
    ),
    "AdminService.AlterGroupConfigs": Right(Operation.ALTER_CONFIGS, ResourceType.GROUP, _GROUP),
    "AdminService.WatchGroup": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "AdminService.PlanMigration": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "AdminService.ConvertToClassicGroup": Right(
        Operation.ALTER_CONFIGS, ResourceType.GROUP, _GROUP
    ),
    "AdminService.ListTransactions": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "AdminService.EndTransaction": Right(Operation.ALTER, ResourceType.CLUSTER, {}),
    "AdminService.ListTopics": Right(
        Operation.DESCRIBE, ResourceType.TOPIC, {}, Without.LEAVES_OUT
    ),
    "AdminService.CreateTopic": Right(
        Operation.CREATE, ResourceType.CLUSTER, {"topic_name": "new", "num_partitions": 1}
    ),
    "AdminService.GrowTopic": Right(
        Operation.ALTER, ResourceType.TOPIC, _TOPIC | {"num_partitions": 9}
    ),
    "AdminService.SetTopicRacks": Right(Operation.ALTER, ResourceType.TOPIC, _TOPIC),
    "AdminService.DeleteTopic": Right(
        Operation.DELETE, ResourceType.CLUSTER, _TOPIC, Without.IS_UNKNOWN
    ),
    "BackupService.CreateBackup": Right(Operation.ALTER, ResourceType.CLUSTER, {}),
    "ClassicService.JoinGroup": Right(Operation.READ, ResourceType.GROUP, _GROUP, Without.ANSWERS),
    "ClassicService.SyncGroup": Right(
        Operation.READ,
        ResourceType.GROUP,
        _SYNC,
        Without.ANSWERS,
    ),
    "ClassicService.Heartbeat": Right(Operation.READ, ResourceType.GROUP, _MEMBER, Without.ANSWERS),
    "ClassicService.LeaveGroup": Right(Operation.READ, ResourceType.GROUP, _GROUP, Without.ANSWERS),
    "GroupService.Session": Right(Operation.READ, ResourceType.GROUP, {}),
    "GroupService.Heartbeat": Right(Operation.READ, ResourceType.GROUP, _BEAT, Without.ANSWERS),
    "GroupService.CommitOffsets": Right(
        Operation.READ, ResourceType.GROUP, _COMMIT, Without.ANSWERS
    ),
    "OwnershipService.Check": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP | _TOPIC),
    "GroupService.FetchOffsets": Right(
        Operation.DESCRIBE, ResourceType.GROUP, _GROUP, Without.ANSWERS
    ),
    "GroupService.ReportEndOffsets": Right(
        Operation.WRITE,
        ResourceType.TOPIC,
        {"topics": [{"topic_name": "orders", "partitions": [{"end_offset": 1}]}]},
        Without.FAILS,
    ),
    "QuotaService.ListQuotas": Right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, {}),
    "QuotaService.AlterQuotas": Right(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, {}),
    "FreezeService.FreezeGroup": Right(Operation.ALTER_CONFIGS, ResourceType.GROUP, _GROUP),
    "FreezeService.ResumeGroup": Right(Operation.ALTER_CONFIGS, ResourceType.GROUP, _GROUP),
    "LogService.DescribeLog": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "LogService.ReadLog": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "ResetService.GetReset": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "ResetService.ListOffsetChanges": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "ResetService.ResetOffsets": Right(Operation.READ, ResourceType.GROUP, _RESET),
    "UpstreamService.GetUpstream": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "UpstreamService.ListUpstreamGroups": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "UpstreamService.TakeGroups": Right(
        Operation.ALTER_CONFIGS, ResourceType.GROUP, {"group_ids": ["g"]}
    ),
    "UpstreamService.ReleaseGroups": Right(
        Operation.ALTER_CONFIGS, ResourceType.GROUP, {"group_ids": ["g"]}
    ),
    "UserService.ListUsers": Right(Operation.DESCRIBE, ResourceType.CLUSTER, {}),
    "UserService.CreateUser": Right(Operation.ALTER, ResourceType.CLUSTER, _USER),
    "UserService.AlterUser": Right(Operation.ALTER, ResourceType.CLUSTER, _USER),
    "UserService.DeleteUser": Right(Operation.ALTER, ResourceType.CLUSTER, {"name": "a"}),
    "ExplainService.ExplainGroup": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "HistoryService.ListOwnerships": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "RecordService.ListRecords": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
    "WhatIfService.WhatIf": Right(Operation.DESCRIBE, ResourceType.GROUP, _GROUP),
}
"""``Session`` is asked action by action: tests/unit/service/session/test_session.py."""

CALLS: Final = [name for name, method in METHODS.items() if not method.client_streaming]


def test_every_call_has_a_row() -> None:
    assert RIGHTS.keys() == METHODS.keys()


def test_every_row_is_in_the_documentation() -> None:
    """A row says what is asked for first; what else a call needs follows after a comma."""
    page = (ROOT / "docs" / "security.md").read_text()
    shown = re.findall(r"^\| `(\w+\.\w+)` \| (\w+) on the (\w+)", page, re.MULTILINE)
    assert {name: tuple(right) for name, *right in shown} == {
        name: (right.operation.value, right.resource_type.value) for name, right in RIGHTS.items()
    }


async def call(
    stand: Stand, name: str, fields: dict[str, Any], metadata: tuple[tuple[str, str], ...] = ()
) -> tuple[grpc.StatusCode | None, Any]:
    """The status of a refusal, and the answer if there is one."""
    method = METHODS[name]
    assert method.containing_service is not None
    path = f"/{method.containing_service.full_name}/{method.name}"
    ask = stand.channel().unary_unary(
        path,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    try:
        return None, await ask(GetMessageClass(method.input_type)(**fields), metadata=metadata)
    except grpc.aio.AioRpcError as refused:
        return refused.code(), None


def read_all(stand: Stand) -> tuple[Any, ...]:
    """The ends of the log, and the side records."""
    store = stand.store
    ends = [store.next_offset(LogPartition(number)) for number in range(store.partitions)]
    return *ends, *store.side()


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_without_its_right_does_nothing(name: str) -> None:
    right = RIGHTS[name]
    rights = Rights(is_denied=lambda asked: True)
    async with running_stand(authorizer=rights) as stand:
        written = read_all(stand)
        status, answer = await call(stand, name, right.fields)
        match right.without:
            case Without.IS_REFUSED:
                assert status is grpc.StatusCode.PERMISSION_DENIED
            case Without.IS_UNKNOWN:
                assert status is grpc.StatusCode.NOT_FOUND
            case Without.LEAVES_OUT:
                assert not [value for _, value in answer.ListFields() if value]
            case Without.ANSWERS:
                assert answer.error.reason == f"{right.resource_type.value}_AUTHORIZATION_FAILED"
            case Without.FAILS:
                (failed,) = answer.failures
                reasons = {each.error.reason for each in failed.partitions}
                assert reasons == {f"{right.resource_type.value}_AUTHORIZATION_FAILED"}
        assert (rights.asked[0].operation, rights.asked[0].resource_type) == right[:2]
        assert read_all(stand) == written, "nothing was written"
