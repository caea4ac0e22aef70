"""Migration of groups in AdminService, and sessions with the consumer protocol disabled."""

from __future__ import annotations

import uuid

import grpc

from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from muster.v1 import admin_pb2
from tests.support.authorizers import Rights
from tests.support.service.session_client import GROUP, SessionClient, join
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import info, make_groups
from tests.unit.service.session.test_group_service import first_heartbeat


async def test_a_group_with_members_is_not_converted(stand: Stand) -> None:
    await make_groups(stand, "live")
    stub = stand.admin_stub()
    request = admin_pb2.ConvertToClassicGroupRequest(group_id="live")
    code, detail = await info(stub.ConvertToClassicGroup(request))
    assert (code, detail.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NON_EMPTY_GROUP")
    assert detail.metadata["group_id"] == "live"
    missing = admin_pb2.ConvertToClassicGroupRequest(group_id="nobody")
    code, detail = await info(stub.ConvertToClassicGroup(missing))
    assert (code, detail.reason) == (grpc.StatusCode.NOT_FOUND, "GROUP_ID_NOT_FOUND")


async def test_a_repeated_conversion_has_one_effect(stand: Stand) -> None:
    await make_groups(stand)
    stub = stand.admin_stub()
    request = admin_pb2.ConvertToClassicGroupRequest(group_id="loose", request_id=str(uuid.uuid4()))
    for _ in range(2):
        await stub.ConvertToClassicGroup(request)
    asked = admin_pb2.PlanMigrationRequest(group_id="loose")
    plan = await stub.PlanMigration(asked)
    assert plan.group_type == admin_pb2.GROUP_TYPE_CLASSIC
    assert plan.verdict == admin_pb2.MIGRATION_VERDICT_READY
    code, detail = await info(stub.PlanMigration(admin_pb2.PlanMigrationRequest(group_id="nobody")))
    assert (code, detail.reason) == (grpc.StatusCode.NOT_FOUND, "GROUP_ID_NOT_FOUND")


async def test_rights_are_asked_for() -> None:
    denied = (
        (Operation.DESCRIBE, ResourceType.GROUP, GROUP),
        (Operation.ALTER_CONFIGS, ResourceType.GROUP, GROUP),
    )
    async with running_stand(authorizer=Rights(*denied)) as stand:
        stub = stand.admin_stub()
        for call in (
            stub.PlanMigration(admin_pb2.PlanMigrationRequest(group_id=GROUP)),
            stub.ConvertToClassicGroup(admin_pb2.ConvertToClassicGroupRequest(group_id=GROUP)),
        ):
            code, _ = await info(call)
            assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_a_session_is_refused_while_the_consumer_protocol_is_off() -> None:
    async with running_stand(protocols=("classic",)) as stand:
        client = SessionClient(stand.group_stub())
        await client.send(join("m1"))
        refused = await client.expect("refused", "m1")
        assert refused.error.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert refused.error.reason == "UNSUPPORTED_VERSION"
        beaten = await stand.group_stub().Heartbeat(first_heartbeat(group_id=GROUP))
        assert beaten.error.error_code == ErrorCode.UNSUPPORTED_VERSION
