"""``muster.v1.OwnershipService``: checks of fencing tokens."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

import grpc.aio

from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.decode import check_topic_name, decode_group_id
from model.access.acls import Operation
from model.commands.ownership import CheckToken
from model.ids import TopicName
from model.responses.ownership import CheckTokenResponse, Ownership
from muster.v1 import ownership_pb2, ownership_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]

_OWNERSHIPS: Final = {
    Ownership.OWNER: ownership_pb2.OWNERSHIP_OWNER,
    Ownership.LOST: ownership_pb2.OWNERSHIP_LOST,
    Ownership.UNKNOWN: ownership_pb2.OWNERSHIP_UNKNOWN,
}


class OwnershipService(ownership_pb2_grpc.OwnershipServiceServicer):
    """Checks tokens. See ``coordinator.service.wire.error_statuses`` for statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def Check(  # noqa: N802
        self,
        request: ownership_pb2.CheckRequest,
        context: _Context[ownership_pb2.CheckRequest, ownership_pb2.CheckResponse],
    ) -> ownership_pb2.CheckResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_group_id(request.group_id, self._services.limits)
            check_topic_name(request.topic_name)
            caller = compute_caller(context.peer(), "")
            self._services.access.check_group(caller, Operation.DESCRIBE, group_id)
            name = TopicName(request.topic_name)
            self._services.access.check_topics(caller, Operation.DESCRIBE, (name,))
            command = CheckToken(caller, group_id, name, request.partition, request.token)
            response = await self._services.coordinator.call(command)
            assert isinstance(response, CheckTokenResponse)
            return ownership_pb2.CheckResponse(ownership=_OWNERSHIPS[response.ownership])
