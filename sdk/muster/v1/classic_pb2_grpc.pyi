# Generated from proto/muster/v1/classic.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import classic_pb2

class ClassicServiceStub:
    JoinGroup: grpc.UnaryUnaryMultiCallable[classic_pb2.JoinGroupRequest, classic_pb2.JoinGroupResponse]
    SyncGroup: grpc.UnaryUnaryMultiCallable[classic_pb2.SyncGroupRequest, classic_pb2.SyncGroupResponse]
    Heartbeat: grpc.UnaryUnaryMultiCallable[classic_pb2.ClassicHeartbeatRequest, classic_pb2.ClassicHeartbeatResponse]
    LeaveGroup: grpc.UnaryUnaryMultiCallable[classic_pb2.LeaveGroupRequest, classic_pb2.LeaveGroupResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> ClassicServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> ClassicServiceStub: ...

class ClassicServiceAsyncStub(ClassicServiceStub):
    JoinGroup: grpc.aio.UnaryUnaryMultiCallable[classic_pb2.JoinGroupRequest, classic_pb2.JoinGroupResponse]
    SyncGroup: grpc.aio.UnaryUnaryMultiCallable[classic_pb2.SyncGroupRequest, classic_pb2.SyncGroupResponse]
    Heartbeat: grpc.aio.UnaryUnaryMultiCallable[classic_pb2.ClassicHeartbeatRequest, classic_pb2.ClassicHeartbeatResponse]
    LeaveGroup: grpc.aio.UnaryUnaryMultiCallable[classic_pb2.LeaveGroupRequest, classic_pb2.LeaveGroupResponse]

class ClassicServiceServicer:
    async def JoinGroup(self, request: classic_pb2.JoinGroupRequest, context: grpc.aio.ServicerContext[classic_pb2.JoinGroupRequest, classic_pb2.JoinGroupResponse]) -> classic_pb2.JoinGroupResponse: ...
    async def SyncGroup(self, request: classic_pb2.SyncGroupRequest, context: grpc.aio.ServicerContext[classic_pb2.SyncGroupRequest, classic_pb2.SyncGroupResponse]) -> classic_pb2.SyncGroupResponse: ...
    async def Heartbeat(self, request: classic_pb2.ClassicHeartbeatRequest, context: grpc.aio.ServicerContext[classic_pb2.ClassicHeartbeatRequest, classic_pb2.ClassicHeartbeatResponse]) -> classic_pb2.ClassicHeartbeatResponse: ...
    async def LeaveGroup(self, request: classic_pb2.LeaveGroupRequest, context: grpc.aio.ServicerContext[classic_pb2.LeaveGroupRequest, classic_pb2.LeaveGroupResponse]) -> classic_pb2.LeaveGroupResponse: ...

def add_ClassicServiceServicer_to_server(
    servicer: ClassicServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
