"""``muster.v1.QuotaService``: client quotas."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import grpc.aio

from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.quota_messages import (
    decode_alteration,
    decode_filter,
    encode_quotas,
)
from model.access.acls import Operation
from model.commands.quotas import AlterQuotas, DescribeQuotas
from model.responses.quotas import AlterQuotasResponse, DescribeQuotasResponse
from muster.v1 import quota_pb2, quota_pb2_grpc
from security.quotas.quota_selection import canonize_filter, select_quotas

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class QuotaService(quota_pb2_grpc.QuotaServiceServicer):
    """Manages quotas. See ``coordinator.service.wire.error_statuses`` for statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._coordinator = services.coordinator
        self._access = services.access

    async def ListQuotas(  # noqa: N802
        self,
        request: quota_pb2.ListQuotasRequest,
        context: _Context[quota_pb2.ListQuotasRequest, quota_pb2.ListQuotasResponse],
    ) -> quota_pb2.ListQuotasResponse:
        async with Guard(context):
            caller = self._access.check_cluster_caller(context.peer(), Operation.DESCRIBE_CONFIGS)
            means = canonize_filter(decode_filter(request.entity))
            found = await self._coordinator.call(DescribeQuotas(caller))
            assert isinstance(found, DescribeQuotasResponse)
            selected = await run_steps(select_quotas(found.quotas, means))
            response = quota_pb2.ListQuotasResponse()
            rows = make_rows(response.entities.extend, lambda each: encode_quotas(*each), selected)
            await run_steps(rows)
            return response

    async def AlterQuotas(  # noqa: N802
        self,
        request: quota_pb2.AlterQuotasRequest,
        context: _Context[quota_pb2.AlterQuotasRequest, quota_pb2.AlterQuotasResponse],
    ) -> quota_pb2.AlterQuotasResponse:
        async with Guard(context):
            caller = self._access.check_cluster_caller(context.peer(), Operation.ALTER_CONFIGS)
            alteration = decode_alteration(request)
            command = AlterQuotas(caller, (alteration,), request.validate_only)
            response = await self._coordinator.call(command)
            assert isinstance(response, AlterQuotasResponse)
            (error,) = response.errors
            if error is not None:
                raise error
            return quota_pb2.AlterQuotasResponse()
