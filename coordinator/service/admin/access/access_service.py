"""``muster.v1.AccessService``: ACLs, and why a caller may or may not do something."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import grpc.aio

from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.acl_messages import (
    decode_acl,
    decode_filter,
    decode_request,
    encode_acl,
    encode_decision,
)
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.error_statuses import InvalidField
from model.access.acls import Acl, AclFilter, Operation
from model.caller import Caller
from model.commands.access import ACLS_PER_COMMAND_MAX, CreateAcls, DeleteAcls, DescribeAcls
from model.responses.access import DescribeAclsResponse
from muster.v1 import access_pb2, access_pb2_grpc
from security.acl_selection import select_acls, split_deletions

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class AccessService(access_pb2_grpc.AccessServiceServicer):
    """Manages ACLs. See ``coordinator.service.wire.error_statuses`` for the statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._coordinator = services.coordinator
        self._access = services.access

    async def ListAcls(  # noqa: N802
        self,
        request: access_pb2.ListAclsRequest,
        context: _Context[access_pb2.ListAclsRequest, access_pb2.ListAclsResponse],
    ) -> access_pb2.ListAclsResponse:
        async with Guard(context):
            caller = self._check(context, Operation.DESCRIBE)
            response = access_pb2.ListAclsResponse()
            found = await self._select(caller, decode_filter(request.filter))
            await run_steps(make_rows(response.acls.extend, encode_acl, found))
            return response

    async def CreateAcls(  # noqa: N802
        self,
        request: access_pb2.CreateAclsRequest,
        context: _Context[access_pb2.CreateAclsRequest, access_pb2.CreateAclsResponse],
    ) -> access_pb2.CreateAclsResponse:
        async with Guard(context):
            caller = self._check(context, Operation.ALTER)
            if len(request.acls) > ACLS_PER_COMMAND_MAX:
                raise InvalidField("acls", f"at most {ACLS_PER_COMMAND_MAX} in a call")
            acls = [decode_acl(acl, f"acls[{n}]") for n, acl in enumerate(request.acls)]
            await self._coordinator.call(CreateAcls(caller, tuple(acls)))
            return access_pb2.CreateAclsResponse()

    async def DeleteAcls(  # noqa: N802
        self,
        request: access_pb2.DeleteAclsRequest,
        context: _Context[access_pb2.DeleteAclsRequest, access_pb2.DeleteAclsResponse],
    ) -> access_pb2.DeleteAclsResponse:
        async with Guard(context):
            caller = self._check(context, Operation.ALTER)
            found = await self._select(caller, decode_filter(request.filter))
            meant = () if request.validate_only else found
            for acls in await run_steps(split_deletions(meant)):
                await self._coordinator.call(DeleteAcls(caller, acls))
            response = access_pb2.DeleteAclsResponse()
            await run_steps(make_rows(response.acls.extend, encode_acl, found))
            return response

    async def CheckAccess(  # noqa: N802
        self,
        request: access_pb2.CheckAccessRequest,
        context: _Context[access_pb2.CheckAccessRequest, access_pb2.CheckAccessResponse],
    ) -> access_pb2.CheckAccessResponse:
        async with Guard(context):
            self._check(context, Operation.DESCRIBE)
            return encode_decision(self._access.decide(decode_request(request)))

    async def _select(self, caller: Caller, means: AclFilter) -> list[Acl]:
        found = await self._coordinator.call(DescribeAcls(caller))
        assert isinstance(found, DescribeAclsResponse)
        return await run_steps(select_acls(found.acls, means))

    def _check(
        self, context: grpc.aio.ServicerContext[_Request, _Response], operation: Operation
    ) -> Caller:
        caller = compute_caller(context.peer(), "")
        self._access.check_acls(caller, operation)
        return caller
