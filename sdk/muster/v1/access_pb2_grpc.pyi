# Generated from proto/muster/v1/access.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import access_pb2

class AccessServiceStub:
    ListAcls: grpc.UnaryUnaryMultiCallable[access_pb2.ListAclsRequest, access_pb2.ListAclsResponse]
    CreateAcls: grpc.UnaryUnaryMultiCallable[access_pb2.CreateAclsRequest, access_pb2.CreateAclsResponse]
    DeleteAcls: grpc.UnaryUnaryMultiCallable[access_pb2.DeleteAclsRequest, access_pb2.DeleteAclsResponse]
    CheckAccess: grpc.UnaryUnaryMultiCallable[access_pb2.CheckAccessRequest, access_pb2.CheckAccessResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> AccessServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> AccessServiceStub: ...

class AccessServiceAsyncStub(AccessServiceStub):
    ListAcls: grpc.aio.UnaryUnaryMultiCallable[access_pb2.ListAclsRequest, access_pb2.ListAclsResponse]
    CreateAcls: grpc.aio.UnaryUnaryMultiCallable[access_pb2.CreateAclsRequest, access_pb2.CreateAclsResponse]
    DeleteAcls: grpc.aio.UnaryUnaryMultiCallable[access_pb2.DeleteAclsRequest, access_pb2.DeleteAclsResponse]
    CheckAccess: grpc.aio.UnaryUnaryMultiCallable[access_pb2.CheckAccessRequest, access_pb2.CheckAccessResponse]

class AccessServiceServicer:
    async def ListAcls(self, request: access_pb2.ListAclsRequest, context: grpc.aio.ServicerContext[access_pb2.ListAclsRequest, access_pb2.ListAclsResponse]) -> access_pb2.ListAclsResponse: ...
    async def CreateAcls(self, request: access_pb2.CreateAclsRequest, context: grpc.aio.ServicerContext[access_pb2.CreateAclsRequest, access_pb2.CreateAclsResponse]) -> access_pb2.CreateAclsResponse: ...
    async def DeleteAcls(self, request: access_pb2.DeleteAclsRequest, context: grpc.aio.ServicerContext[access_pb2.DeleteAclsRequest, access_pb2.DeleteAclsResponse]) -> access_pb2.DeleteAclsResponse: ...
    async def CheckAccess(self, request: access_pb2.CheckAccessRequest, context: grpc.aio.ServicerContext[access_pb2.CheckAccessRequest, access_pb2.CheckAccessResponse]) -> access_pb2.CheckAccessResponse: ...

def add_AccessServiceServicer_to_server(
    servicer: AccessServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
