# Generated from proto/muster/v1/quota.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import quota_pb2

class QuotaServiceStub:
    ListQuotas: grpc.UnaryUnaryMultiCallable[quota_pb2.ListQuotasRequest, quota_pb2.ListQuotasResponse]
    AlterQuotas: grpc.UnaryUnaryMultiCallable[quota_pb2.AlterQuotasRequest, quota_pb2.AlterQuotasResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> QuotaServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> QuotaServiceStub: ...

class QuotaServiceAsyncStub(QuotaServiceStub):
    ListQuotas: grpc.aio.UnaryUnaryMultiCallable[quota_pb2.ListQuotasRequest, quota_pb2.ListQuotasResponse]
    AlterQuotas: grpc.aio.UnaryUnaryMultiCallable[quota_pb2.AlterQuotasRequest, quota_pb2.AlterQuotasResponse]

class QuotaServiceServicer:
    async def ListQuotas(self, request: quota_pb2.ListQuotasRequest, context: grpc.aio.ServicerContext[quota_pb2.ListQuotasRequest, quota_pb2.ListQuotasResponse]) -> quota_pb2.ListQuotasResponse: ...
    async def AlterQuotas(self, request: quota_pb2.AlterQuotasRequest, context: grpc.aio.ServicerContext[quota_pb2.AlterQuotasRequest, quota_pb2.AlterQuotasResponse]) -> quota_pb2.AlterQuotasResponse: ...

def add_QuotaServiceServicer_to_server(
    servicer: QuotaServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
