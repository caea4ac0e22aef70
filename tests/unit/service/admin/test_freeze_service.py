"""FreezeService: who is told of the members of the group."""

from __future__ import annotations

import grpc

from model.access.acls import Operation, ResourceType
from muster.v1 import freeze_pb2, freeze_pb2_grpc
from tests.support.authorizers import Rights
from tests.support.service.stand import running_stand
from tests.unit.service.admin.test_admin_service import first_heartbeat, info


async def test_members_are_named_only_to_who_may_describe_the_group() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        for member in "ab":
            first = first_heartbeat(group_id="g", member_id=member)
            await stand.group_stub().Heartbeat(first)
        stub = freeze_pb2_grpc.FreezeServiceStub(stand.channel())
        asked = freeze_pb2.FreezeGroupRequest(group_id="g", validate_only=True)
        told = await stub.FreezeGroup(asked)
        assert len(told.moves) == told.moves_count == 2
        rights.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        told = await stub.FreezeGroup(asked)
        assert (list(told.moves), list(told.without_target), told.moves_count) == ([], [], 2)
        asked.validate_only = False
        await stub.FreezeGroup(asked)
        resume = freeze_pb2.ResumeGroupRequest(group_id="g", validate_only=True)
        code, detail = await info(stub.ResumeGroup(resume))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert detail.reason == "GROUP_AUTHORIZATION_FAILED"
        resume.validate_only = False
        assert not (await stub.ResumeGroup(resume)).HasField("what_if")
