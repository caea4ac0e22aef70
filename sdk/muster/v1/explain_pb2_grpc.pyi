# Generated from proto/muster/v1/explain.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import explain_pb2

class ExplainServiceStub:
    ExplainGroup: grpc.UnaryUnaryMultiCallable[explain_pb2.ExplainGroupRequest, explain_pb2.ExplainGroupResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> ExplainServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> ExplainServiceStub: ...

class ExplainServiceAsyncStub(ExplainServiceStub):
    ExplainGroup: grpc.aio.UnaryUnaryMultiCallable[explain_pb2.ExplainGroupRequest, explain_pb2.ExplainGroupResponse]

class ExplainServiceServicer:
    async def ExplainGroup(self, request: explain_pb2.ExplainGroupRequest, context: grpc.aio.ServicerContext[explain_pb2.ExplainGroupRequest, explain_pb2.ExplainGroupResponse]) -> explain_pb2.ExplainGroupResponse: ...

def add_ExplainServiceServicer_to_server(
    servicer: ExplainServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
