# Generated from proto/muster/v1/history.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import history_pb2

class HistoryServiceStub:
    ListOwnerships: grpc.UnaryUnaryMultiCallable[history_pb2.ListOwnershipsRequest, history_pb2.ListOwnershipsResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> HistoryServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> HistoryServiceStub: ...

class HistoryServiceAsyncStub(HistoryServiceStub):
    ListOwnerships: grpc.aio.UnaryUnaryMultiCallable[history_pb2.ListOwnershipsRequest, history_pb2.ListOwnershipsResponse]

class HistoryServiceServicer:
    async def ListOwnerships(self, request: history_pb2.ListOwnershipsRequest, context: grpc.aio.ServicerContext[history_pb2.ListOwnershipsRequest, history_pb2.ListOwnershipsResponse]) -> history_pb2.ListOwnershipsResponse: ...

def add_HistoryServiceServicer_to_server(
    servicer: HistoryServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
