# Generated from proto/muster/v1/record.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import record_pb2

class RecordServiceStub:
    ListRecords: grpc.UnaryUnaryMultiCallable[record_pb2.ListRecordsRequest, record_pb2.ListRecordsResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> RecordServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> RecordServiceStub: ...

class RecordServiceAsyncStub(RecordServiceStub):
    ListRecords: grpc.aio.UnaryUnaryMultiCallable[record_pb2.ListRecordsRequest, record_pb2.ListRecordsResponse]

class RecordServiceServicer:
    async def ListRecords(self, request: record_pb2.ListRecordsRequest, context: grpc.aio.ServicerContext[record_pb2.ListRecordsRequest, record_pb2.ListRecordsResponse]) -> record_pb2.ListRecordsResponse: ...

def add_RecordServiceServicer_to_server(
    servicer: RecordServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
