# Generated from proto/muster/v1/upstream.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import upstream_pb2

class UpstreamServiceStub:
    GetUpstream: grpc.UnaryUnaryMultiCallable[upstream_pb2.GetUpstreamRequest, upstream_pb2.GetUpstreamResponse]
    ListUpstreamGroups: grpc.UnaryUnaryMultiCallable[upstream_pb2.ListUpstreamGroupsRequest, upstream_pb2.ListUpstreamGroupsResponse]
    TakeGroups: grpc.UnaryStreamMultiCallable[upstream_pb2.TakeGroupsRequest, upstream_pb2.GroupReport]
    ReleaseGroups: grpc.UnaryStreamMultiCallable[upstream_pb2.ReleaseGroupsRequest, upstream_pb2.GroupReport]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> UpstreamServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> UpstreamServiceStub: ...

class UpstreamServiceAsyncStub(UpstreamServiceStub):
    GetUpstream: grpc.aio.UnaryUnaryMultiCallable[upstream_pb2.GetUpstreamRequest, upstream_pb2.GetUpstreamResponse]
    ListUpstreamGroups: grpc.aio.UnaryUnaryMultiCallable[upstream_pb2.ListUpstreamGroupsRequest, upstream_pb2.ListUpstreamGroupsResponse]
    TakeGroups: grpc.aio.UnaryStreamMultiCallable[upstream_pb2.TakeGroupsRequest, upstream_pb2.GroupReport]
    ReleaseGroups: grpc.aio.UnaryStreamMultiCallable[upstream_pb2.ReleaseGroupsRequest, upstream_pb2.GroupReport]

class UpstreamServiceServicer:
    async def GetUpstream(self, request: upstream_pb2.GetUpstreamRequest, context: grpc.aio.ServicerContext[upstream_pb2.GetUpstreamRequest, upstream_pb2.GetUpstreamResponse]) -> upstream_pb2.GetUpstreamResponse: ...
    async def ListUpstreamGroups(self, request: upstream_pb2.ListUpstreamGroupsRequest, context: grpc.aio.ServicerContext[upstream_pb2.ListUpstreamGroupsRequest, upstream_pb2.ListUpstreamGroupsResponse]) -> upstream_pb2.ListUpstreamGroupsResponse: ...
    async def TakeGroups(self, request: upstream_pb2.TakeGroupsRequest, context: grpc.aio.ServicerContext[upstream_pb2.TakeGroupsRequest, upstream_pb2.GroupReport]) -> None: ...
    async def ReleaseGroups(self, request: upstream_pb2.ReleaseGroupsRequest, context: grpc.aio.ServicerContext[upstream_pb2.ReleaseGroupsRequest, upstream_pb2.GroupReport]) -> None: ...

def add_UpstreamServiceServicer_to_server(
    servicer: UpstreamServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
