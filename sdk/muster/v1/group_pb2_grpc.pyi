# Generated from proto/muster/v1/group.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import group_pb2

class GroupServiceStub:
    Session: grpc.StreamStreamMultiCallable[group_pb2.SessionRequest, group_pb2.SessionResponse]
    Heartbeat: grpc.UnaryUnaryMultiCallable[group_pb2.HeartbeatRequest, group_pb2.HeartbeatResponse]
    CommitOffsets: grpc.UnaryUnaryMultiCallable[group_pb2.CommitOffsetsRequest, group_pb2.CommitOffsetsResponse]
    FetchOffsets: grpc.UnaryUnaryMultiCallable[group_pb2.FetchOffsetsRequest, group_pb2.FetchOffsetsResponse]
    ReportEndOffsets: grpc.UnaryUnaryMultiCallable[group_pb2.ReportEndOffsetsRequest, group_pb2.ReportEndOffsetsResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> GroupServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> GroupServiceStub: ...

class GroupServiceAsyncStub(GroupServiceStub):
    Session: grpc.aio.StreamStreamMultiCallable[group_pb2.SessionRequest, group_pb2.SessionResponse]
    Heartbeat: grpc.aio.UnaryUnaryMultiCallable[group_pb2.HeartbeatRequest, group_pb2.HeartbeatResponse]
    CommitOffsets: grpc.aio.UnaryUnaryMultiCallable[group_pb2.CommitOffsetsRequest, group_pb2.CommitOffsetsResponse]
    FetchOffsets: grpc.aio.UnaryUnaryMultiCallable[group_pb2.FetchOffsetsRequest, group_pb2.FetchOffsetsResponse]
    ReportEndOffsets: grpc.aio.UnaryUnaryMultiCallable[group_pb2.ReportEndOffsetsRequest, group_pb2.ReportEndOffsetsResponse]

class GroupServiceServicer:
    async def Session(self, request: AsyncIterator[group_pb2.SessionRequest], context: grpc.aio.ServicerContext[group_pb2.SessionRequest, group_pb2.SessionResponse]) -> None: ...
    async def Heartbeat(self, request: group_pb2.HeartbeatRequest, context: grpc.aio.ServicerContext[group_pb2.HeartbeatRequest, group_pb2.HeartbeatResponse]) -> group_pb2.HeartbeatResponse: ...
    async def CommitOffsets(self, request: group_pb2.CommitOffsetsRequest, context: grpc.aio.ServicerContext[group_pb2.CommitOffsetsRequest, group_pb2.CommitOffsetsResponse]) -> group_pb2.CommitOffsetsResponse: ...
    async def FetchOffsets(self, request: group_pb2.FetchOffsetsRequest, context: grpc.aio.ServicerContext[group_pb2.FetchOffsetsRequest, group_pb2.FetchOffsetsResponse]) -> group_pb2.FetchOffsetsResponse: ...
    async def ReportEndOffsets(self, request: group_pb2.ReportEndOffsetsRequest, context: grpc.aio.ServicerContext[group_pb2.ReportEndOffsetsRequest, group_pb2.ReportEndOffsetsResponse]) -> group_pb2.ReportEndOffsetsResponse: ...

def add_GroupServiceServicer_to_server(
    servicer: GroupServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
