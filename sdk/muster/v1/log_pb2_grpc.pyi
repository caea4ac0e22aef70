# Generated from proto/muster/v1/log.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import log_pb2

class LogServiceStub:
    DescribeLog: grpc.UnaryUnaryMultiCallable[log_pb2.DescribeLogRequest, log_pb2.DescribeLogResponse]
    ReadLog: grpc.UnaryStreamMultiCallable[log_pb2.ReadLogRequest, log_pb2.ReadLogResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> LogServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> LogServiceStub: ...

class LogServiceAsyncStub(LogServiceStub):
    DescribeLog: grpc.aio.UnaryUnaryMultiCallable[log_pb2.DescribeLogRequest, log_pb2.DescribeLogResponse]
    ReadLog: grpc.aio.UnaryStreamMultiCallable[log_pb2.ReadLogRequest, log_pb2.ReadLogResponse]

class LogServiceServicer:
    async def DescribeLog(self, request: log_pb2.DescribeLogRequest, context: grpc.aio.ServicerContext[log_pb2.DescribeLogRequest, log_pb2.DescribeLogResponse]) -> log_pb2.DescribeLogResponse: ...
    async def ReadLog(self, request: log_pb2.ReadLogRequest, context: grpc.aio.ServicerContext[log_pb2.ReadLogRequest, log_pb2.ReadLogResponse]) -> None: ...

def add_LogServiceServicer_to_server(
    servicer: LogServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
