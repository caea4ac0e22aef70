# Generated from proto/muster/v1/user.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import user_pb2

class UserServiceStub:
    ListUsers: grpc.UnaryUnaryMultiCallable[user_pb2.ListUsersRequest, user_pb2.ListUsersResponse]
    CreateUser: grpc.UnaryUnaryMultiCallable[user_pb2.CreateUserRequest, user_pb2.CreateUserResponse]
    AlterUser: grpc.UnaryUnaryMultiCallable[user_pb2.AlterUserRequest, user_pb2.AlterUserResponse]
    DeleteUser: grpc.UnaryUnaryMultiCallable[user_pb2.DeleteUserRequest, user_pb2.DeleteUserResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> UserServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> UserServiceStub: ...

class UserServiceAsyncStub(UserServiceStub):
    ListUsers: grpc.aio.UnaryUnaryMultiCallable[user_pb2.ListUsersRequest, user_pb2.ListUsersResponse]
    CreateUser: grpc.aio.UnaryUnaryMultiCallable[user_pb2.CreateUserRequest, user_pb2.CreateUserResponse]
    AlterUser: grpc.aio.UnaryUnaryMultiCallable[user_pb2.AlterUserRequest, user_pb2.AlterUserResponse]
    DeleteUser: grpc.aio.UnaryUnaryMultiCallable[user_pb2.DeleteUserRequest, user_pb2.DeleteUserResponse]

class UserServiceServicer:
    async def ListUsers(self, request: user_pb2.ListUsersRequest, context: grpc.aio.ServicerContext[user_pb2.ListUsersRequest, user_pb2.ListUsersResponse]) -> user_pb2.ListUsersResponse: ...
    async def CreateUser(self, request: user_pb2.CreateUserRequest, context: grpc.aio.ServicerContext[user_pb2.CreateUserRequest, user_pb2.CreateUserResponse]) -> user_pb2.CreateUserResponse: ...
    async def AlterUser(self, request: user_pb2.AlterUserRequest, context: grpc.aio.ServicerContext[user_pb2.AlterUserRequest, user_pb2.AlterUserResponse]) -> user_pb2.AlterUserResponse: ...
    async def DeleteUser(self, request: user_pb2.DeleteUserRequest, context: grpc.aio.ServicerContext[user_pb2.DeleteUserRequest, user_pb2.DeleteUserResponse]) -> user_pb2.DeleteUserResponse: ...

def add_UserServiceServicer_to_server(
    servicer: UserServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
