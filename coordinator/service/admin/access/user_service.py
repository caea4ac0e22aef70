"""``muster.v1.UserService``: users with SCRAM credentials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import grpc.aio
from google.protobuf.message import Message

from coordinator.service.calls.guard import Guard
from coordinator.service.calls.request_ids import RequestIds
from coordinator.service.calls.services import Services
from coordinator.service.wire.paging import compute_page, compute_page_token, compute_slice
from coordinator.service.wire.user_messages import (
    decode_credentials,
    decode_mechanism,
    encode_user,
)
from model.access.acls import Operation
from model.caller import Caller
from model.commands.users import (
    AlterUserScramCredentials,
    DescribeUserScramCredentials,
    ScramDeletion,
    SetUser,
)
from model.responses.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)
from muster.v1 import user_pb2, user_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Answer = TypeVar("_Answer", bound=Message)
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class UserService(user_pb2_grpc.UserServiceServicer):
    """Manages users. See ``coordinator.service.wire.error_statuses`` for the statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._coordinator = services.coordinator
        self._access = services.access
        self._request_ids = RequestIds(services.settings.grpc_request_ids_max, services.limits)

    async def ListUsers(  # noqa: N802
        self,
        request: user_pb2.ListUsersRequest,
        context: _Context[user_pb2.ListUsersRequest, user_pb2.ListUsersResponse],
    ) -> user_pb2.ListUsersResponse:
        async with Guard(context):
            caller = self._access.check_cluster_caller(context.peer(), Operation.DESCRIBE)
            settings = self._services.settings
            page = compute_page(
                request.page_size,
                request.page_token,
                (request.name,),
                settings.grpc_page_size,
                settings.grpc_page_size_max,
            )
            found = await self._coordinator.call(DescribeUserScramCredentials(caller))
            assert isinstance(found, DescribeUserScramCredentialsResponse)
            names = [request.name] if request.name in found.users else []
            if not request.name:
                names = sorted(found.users)
            shown, more = compute_slice(names, page)
            listed = names[shown]
            return user_pb2.ListUsersResponse(
                users=[encode_user(name, found.users[name]) for name in listed],
                next_page_token=compute_page_token(listed[-1], (request.name,)) if more else "",
            )

    async def CreateUser(  # noqa: N802
        self,
        request: user_pb2.CreateUserRequest,
        context: _Context[user_pb2.CreateUserRequest, user_pb2.CreateUserResponse],
    ) -> user_pb2.CreateUserResponse:
        async with Guard(context):
            caller = self._access.check_cluster_caller(context.peer(), Operation.ALTER)

            async def carry_out() -> user_pb2.CreateUserResponse:
                await self._set(caller, request, request.credentials, must_exist=False)
                return user_pb2.CreateUserResponse()

            return await self._request_ids.once(
                caller.principal, request, user_pb2.CreateUserResponse, carry_out
            )

    async def AlterUser(  # noqa: N802
        self,
        request: user_pb2.AlterUserRequest,
        context: _Context[user_pb2.AlterUserRequest, user_pb2.AlterUserResponse],
    ) -> user_pb2.AlterUserResponse:
        async with Guard(context):
            caller = self._access.check_cluster_caller(context.peer(), Operation.ALTER)

            async def carry_out() -> user_pb2.AlterUserResponse:
                await self._set(caller, request, request.credentials, must_exist=True)
                return user_pb2.AlterUserResponse()

            return await self._request_ids.once(
                caller.principal, request, user_pb2.AlterUserResponse, carry_out
            )

    async def DeleteUser(  # noqa: N802
        self,
        request: user_pb2.DeleteUserRequest,
        context: _Context[user_pb2.DeleteUserRequest, user_pb2.DeleteUserResponse],
    ) -> user_pb2.DeleteUserResponse:
        async with Guard(context):
            caller = self._access.check_cluster_caller(context.peer(), Operation.ALTER)

            async def carry_out() -> user_pb2.DeleteUserResponse:
                if request.mechanism:
                    await self._delete_credential(caller, request)
                else:
                    command = SetUser(caller, request.name, (), True, request.validate_only)
                    await self._coordinator.call(command)
                return user_pb2.DeleteUserResponse()

            return await self._request_ids.once(
                caller.principal, request, user_pb2.DeleteUserResponse, carry_out
            )

    async def _set(
        self,
        caller: Caller,
        request: user_pb2.CreateUserRequest | user_pb2.AlterUserRequest,
        messages: Sequence[user_pb2.ScramCredential],
        *,
        must_exist: bool,
    ) -> None:
        credentials = decode_credentials(messages)
        command = SetUser(caller, request.name, credentials, must_exist, request.validate_only)
        await self._coordinator.call(command)

    async def _delete_credential(self, caller: Caller, request: user_pb2.DeleteUserRequest) -> None:
        deletion = ScramDeletion(request.name, decode_mechanism(request.mechanism, "mechanism"))
        command = AlterUserScramCredentials(caller, (deletion,), (), request.validate_only)
        response = await self._coordinator.call(command)
        assert isinstance(response, AlterUserScramCredentialsResponse)
        error = response.errors[request.name]
        if error is not None:
            raise error
