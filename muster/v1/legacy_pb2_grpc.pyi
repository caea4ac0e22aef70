# Generated from proto/muster/v1/legacy.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import legacy_pb2

class LegacyServiceStub:
    JoinGroup: grpc.UnaryUnaryMultiCallable[legacy_pb2.JoinGroupRequest, legacy_pb2.JoinGroupResponse]
    SyncGroup: grpc.UnaryUnaryMultiCallable[legacy_pb2.SyncGroupRequest, legacy_pb2.SyncGroupResponse]
    Heartbeat: grpc.UnaryUnaryMultiCallable[legacy_pb2.ClassicHeartbeatRequest, legacy_pb2.ClassicHeartbeatResponse]
    LeaveGroup: grpc.UnaryUnaryMultiCallable[legacy_pb2.LeaveGroupRequest, legacy_pb2.LeaveGroupResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> LegacyServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> LegacyServiceStub: ...

class LegacyServiceAsyncStub(LegacyServiceStub):
    JoinGroup: grpc.aio.UnaryUnaryMultiCallable[legacy_pb2.JoinGroupRequest, legacy_pb2.JoinGroupResponse]
    SyncGroup: grpc.aio.UnaryUnaryMultiCallable[legacy_pb2.SyncGroupRequest, legacy_pb2.SyncGroupResponse]
    Heartbeat: grpc.aio.UnaryUnaryMultiCallable[legacy_pb2.ClassicHeartbeatRequest, legacy_pb2.ClassicHeartbeatResponse]
    LeaveGroup: grpc.aio.UnaryUnaryMultiCallable[legacy_pb2.LeaveGroupRequest, legacy_pb2.LeaveGroupResponse]

class LegacyServiceServicer:
    async def JoinGroup(self, request: legacy_pb2.JoinGroupRequest, context: grpc.aio.ServicerContext[legacy_pb2.JoinGroupRequest, legacy_pb2.JoinGroupResponse]) -> legacy_pb2.JoinGroupResponse: ...
    async def SyncGroup(self, request: legacy_pb2.SyncGroupRequest, context: grpc.aio.ServicerContext[legacy_pb2.SyncGroupRequest, legacy_pb2.SyncGroupResponse]) -> legacy_pb2.SyncGroupResponse: ...
    async def Heartbeat(self, request: legacy_pb2.ClassicHeartbeatRequest, context: grpc.aio.ServicerContext[legacy_pb2.ClassicHeartbeatRequest, legacy_pb2.ClassicHeartbeatResponse]) -> legacy_pb2.ClassicHeartbeatResponse: ...
    async def LeaveGroup(self, request: legacy_pb2.LeaveGroupRequest, context: grpc.aio.ServicerContext[legacy_pb2.LeaveGroupRequest, legacy_pb2.LeaveGroupResponse]) -> legacy_pb2.LeaveGroupResponse: ...

def add_LegacyServiceServicer_to_server(
    servicer: LegacyServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
