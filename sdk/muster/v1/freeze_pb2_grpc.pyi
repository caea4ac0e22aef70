# Generated from proto/muster/v1/freeze.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import freeze_pb2

class FreezeServiceStub:
    FreezeGroup: grpc.UnaryUnaryMultiCallable[freeze_pb2.FreezeGroupRequest, freeze_pb2.FreezeGroupResponse]
    ResumeGroup: grpc.UnaryUnaryMultiCallable[freeze_pb2.ResumeGroupRequest, freeze_pb2.ResumeGroupResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> FreezeServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> FreezeServiceStub: ...

class FreezeServiceAsyncStub(FreezeServiceStub):
    FreezeGroup: grpc.aio.UnaryUnaryMultiCallable[freeze_pb2.FreezeGroupRequest, freeze_pb2.FreezeGroupResponse]
    ResumeGroup: grpc.aio.UnaryUnaryMultiCallable[freeze_pb2.ResumeGroupRequest, freeze_pb2.ResumeGroupResponse]

class FreezeServiceServicer:
    async def FreezeGroup(self, request: freeze_pb2.FreezeGroupRequest, context: grpc.aio.ServicerContext[freeze_pb2.FreezeGroupRequest, freeze_pb2.FreezeGroupResponse]) -> freeze_pb2.FreezeGroupResponse: ...
    async def ResumeGroup(self, request: freeze_pb2.ResumeGroupRequest, context: grpc.aio.ServicerContext[freeze_pb2.ResumeGroupRequest, freeze_pb2.ResumeGroupResponse]) -> freeze_pb2.ResumeGroupResponse: ...

def add_FreezeServiceServicer_to_server(
    servicer: FreezeServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
