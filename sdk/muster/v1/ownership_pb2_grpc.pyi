# Generated from proto/muster/v1/ownership.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import ownership_pb2

class OwnershipServiceStub:
    Check: grpc.UnaryUnaryMultiCallable[ownership_pb2.CheckRequest, ownership_pb2.CheckResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> OwnershipServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> OwnershipServiceStub: ...

class OwnershipServiceAsyncStub(OwnershipServiceStub):
    Check: grpc.aio.UnaryUnaryMultiCallable[ownership_pb2.CheckRequest, ownership_pb2.CheckResponse]

class OwnershipServiceServicer:
    async def Check(self, request: ownership_pb2.CheckRequest, context: grpc.aio.ServicerContext[ownership_pb2.CheckRequest, ownership_pb2.CheckResponse]) -> ownership_pb2.CheckResponse: ...

def add_OwnershipServiceServicer_to_server(
    servicer: OwnershipServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
