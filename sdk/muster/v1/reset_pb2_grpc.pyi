# Generated from proto/muster/v1/reset.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import reset_pb2

class ResetServiceStub:
    ResetOffsets: grpc.UnaryUnaryMultiCallable[reset_pb2.ResetOffsetsRequest, reset_pb2.ResetOffsetsResponse]
    GetReset: grpc.UnaryUnaryMultiCallable[reset_pb2.GetResetRequest, reset_pb2.GetResetResponse]
    ListOffsetChanges: grpc.UnaryUnaryMultiCallable[reset_pb2.ListOffsetChangesRequest, reset_pb2.ListOffsetChangesResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> ResetServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> ResetServiceStub: ...

class ResetServiceAsyncStub(ResetServiceStub):
    ResetOffsets: grpc.aio.UnaryUnaryMultiCallable[reset_pb2.ResetOffsetsRequest, reset_pb2.ResetOffsetsResponse]
    GetReset: grpc.aio.UnaryUnaryMultiCallable[reset_pb2.GetResetRequest, reset_pb2.GetResetResponse]
    ListOffsetChanges: grpc.aio.UnaryUnaryMultiCallable[reset_pb2.ListOffsetChangesRequest, reset_pb2.ListOffsetChangesResponse]

class ResetServiceServicer:
    async def ResetOffsets(self, request: reset_pb2.ResetOffsetsRequest, context: grpc.aio.ServicerContext[reset_pb2.ResetOffsetsRequest, reset_pb2.ResetOffsetsResponse]) -> reset_pb2.ResetOffsetsResponse: ...
    async def GetReset(self, request: reset_pb2.GetResetRequest, context: grpc.aio.ServicerContext[reset_pb2.GetResetRequest, reset_pb2.GetResetResponse]) -> reset_pb2.GetResetResponse: ...
    async def ListOffsetChanges(self, request: reset_pb2.ListOffsetChangesRequest, context: grpc.aio.ServicerContext[reset_pb2.ListOffsetChangesRequest, reset_pb2.ListOffsetChangesResponse]) -> reset_pb2.ListOffsetChangesResponse: ...

def add_ResetServiceServicer_to_server(
    servicer: ResetServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
