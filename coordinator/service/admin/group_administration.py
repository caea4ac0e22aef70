"""The part of ``muster.v1.AdminService`` that changes groups, configs and transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

import grpc.aio
from google.protobuf.message import Message

from coordinator.service.admin.description_messages import encode_plan
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.request_ids import RequestIds
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import decode_any_group_id, decode_offset_group_id
from coordinator.service.wire.error_statuses import InvalidField, encode_error
from model.access.acls import Operation
from model.commands.configs import (
    AlterGroupConfigs,
    ConfigChange,
    ConfigOperation,
    DescribeGroupConfigs,
)
from model.commands.groups import ConvertToClassicGroup, DeleteGroup, PlanMigration
from model.commands.offsets import DeleteOffsets
from model.commands.transactions import EndTransaction, ListTransactions
from model.configs.group_configs import GROUP_CONFIGS
from model.errors import ErrorCode, UnknownProducerId
from model.ids import LogPartition, ProducerId, TopicName
from model.responses.configs import DescribedConfig, GroupConfigsResponse
from model.responses.migration import MigrationPlan
from model.responses.offsets import OffsetDeleteResponse, PartitionResult, TopicResult
from model.responses.transactions import ListedTransaction, ListTransactionsResponse
from muster.v1 import admin_pb2, types_pb2

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Answer = TypeVar("_Answer", bound=Message)
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class GroupAdministration:
    """Administers groups. See ``coordinator.service.wire.error_statuses`` for error statuses."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._coordinator = services.coordinator
        self._access = services.access
        self._request_ids = RequestIds(services.settings.grpc_request_ids_max, services.limits)

    # -------------------------------------------------------------------------------- deletion

    async def DeleteGroup(  # noqa: N802
        self,
        request: admin_pb2.DeleteGroupRequest,
        context: _Context[admin_pb2.DeleteGroupRequest, admin_pb2.DeleteGroupResponse],
    ) -> admin_pb2.DeleteGroupResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_any_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DELETE, group_id)

            async def carry_out() -> admin_pb2.DeleteGroupResponse:
                await self._coordinator.call(DeleteGroup(caller, group_id, request.validate_only))
                return admin_pb2.DeleteGroupResponse()

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.DeleteGroupResponse, carry_out
            )

    async def DeleteOffsets(  # noqa: N802
        self,
        request: admin_pb2.DeleteOffsetsRequest,
        context: _Context[admin_pb2.DeleteOffsetsRequest, admin_pb2.DeleteOffsetsResponse],
    ) -> admin_pb2.DeleteOffsetsResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            topics = _decode_topics(request.topics)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DELETE, group_id)
            self._access.check_topics(caller, Operation.READ, [name for name, _ in topics])

            async def carry_out() -> admin_pb2.DeleteOffsetsResponse:
                command = DeleteOffsets(caller, group_id, topics, request.validate_only)
                response = await self._coordinator.call(command)
                assert isinstance(response, OffsetDeleteResponse)
                failures = [_encode_failures(topic) for topic in response.topics]
                return admin_pb2.DeleteOffsetsResponse(
                    failures=[topic for topic in failures if topic.partitions]
                )

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.DeleteOffsetsResponse, carry_out
            )

    # ------------------------------------------------------------------------------- migration

    async def PlanMigration(  # noqa: N802
        self,
        request: admin_pb2.PlanMigrationRequest,
        context: _Context[admin_pb2.PlanMigrationRequest, admin_pb2.PlanMigrationResponse],
    ) -> admin_pb2.PlanMigrationResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            plan = await self._coordinator.call(PlanMigration(caller, group_id))
            assert isinstance(plan, MigrationPlan)
            return await run_steps(encode_plan(plan))

    async def ConvertToClassicGroup(  # noqa: N802
        self,
        request: admin_pb2.ConvertToClassicGroupRequest,
        context: _Context[
            admin_pb2.ConvertToClassicGroupRequest, admin_pb2.ConvertToClassicGroupResponse
        ],
    ) -> admin_pb2.ConvertToClassicGroupResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.ALTER_CONFIGS, group_id)

            async def carry_out() -> admin_pb2.ConvertToClassicGroupResponse:
                command = ConvertToClassicGroup(caller, group_id, request.validate_only)
                await self._coordinator.call(command)
                return admin_pb2.ConvertToClassicGroupResponse()

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.ConvertToClassicGroupResponse, carry_out
            )

    # ----------------------------------------------------------------------------- group configs

    async def DescribeGroupConfigs(  # noqa: N802
        self,
        request: admin_pb2.DescribeGroupConfigsRequest,
        context: _Context[
            admin_pb2.DescribeGroupConfigsRequest, admin_pb2.DescribeGroupConfigsResponse
        ],
    ) -> admin_pb2.DescribeGroupConfigsResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE_CONFIGS, group_id)
            response = await self._coordinator.call(DescribeGroupConfigs(caller, group_id))
            assert isinstance(response, GroupConfigsResponse)
            return admin_pb2.DescribeGroupConfigsResponse(
                configs=[_encode_config(config) for config in response.configs]
            )

    async def AlterGroupConfigs(  # noqa: N802
        self,
        request: admin_pb2.AlterGroupConfigsRequest,
        context: _Context[admin_pb2.AlterGroupConfigsRequest, admin_pb2.AlterGroupConfigsResponse],
    ) -> admin_pb2.AlterGroupConfigsResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.ALTER_CONFIGS, group_id)
            changes = tuple(_decode_change(change) for change in request.changes)

            async def carry_out() -> admin_pb2.AlterGroupConfigsResponse:
                command = AlterGroupConfigs(caller, group_id, changes, request.validate_only)
                await self._coordinator.call(command)
                return admin_pb2.AlterGroupConfigsResponse()

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.AlterGroupConfigsResponse, carry_out
            )

    # ---------------------------------------------------------------------------- transactions

    async def ListTransactions(  # noqa: N802
        self,
        request: admin_pb2.ListTransactionsRequest,
        context: _Context[admin_pb2.ListTransactionsRequest, admin_pb2.ListTransactionsResponse],
    ) -> admin_pb2.ListTransactionsResponse:
        async with Guard(context):
            caller = compute_caller(context.peer(), "")
            self._access.check_cluster(caller, Operation.DESCRIBE)
            found = await self._coordinator.call(ListTransactions(caller))
            assert isinstance(found, ListTransactionsResponse)
            response = admin_pb2.ListTransactionsResponse()
            add = response.transactions.extend
            await run_steps(make_rows(add, _encode_transaction, found.transactions))
            return response

    async def EndTransaction(  # noqa: N802
        self,
        request: admin_pb2.EndTransactionRequest,
        context: _Context[admin_pb2.EndTransactionRequest, admin_pb2.EndTransactionResponse],
    ) -> admin_pb2.EndTransactionResponse:
        async with Guard(context):
            caller = compute_caller(context.peer(), "")
            self._access.check_cluster(caller, Operation.ALTER)

            async def carry_out() -> admin_pb2.EndTransactionResponse:
                if not 0 <= request.log_partition < self._coordinator.log_partitions:
                    raise UnknownProducerId(f"There is no log partition {request.log_partition}.")
                command = EndTransaction(
                    caller,
                    LogPartition(request.log_partition),
                    ProducerId(request.producer_id),
                    request.producer_epoch,
                    request.commit,
                )
                await self._coordinator.call(command)
                return admin_pb2.EndTransactionResponse()

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.EndTransactionResponse, carry_out
            )


def _decode_topics(
    topics: Iterable[types_pb2.TopicPartitions],
) -> tuple[tuple[TopicName, tuple[int, ...]], ...]:
    found = []
    for topic in topics:
        if not topic.topic_name:
            raise InvalidField("topics", "set topic_name for each topic")
        found.append((TopicName(topic.topic_name), tuple(topic.partitions)))
    return tuple(found)


def _encode_failures(topic: TopicResult) -> types_pb2.TopicFailures:
    return types_pb2.TopicFailures(
        topic_name=topic.name or "",
        topic_id=topic.topic_id or b"",
        partitions=[
            _encode_failure(row) for row in topic.partitions if row.error is not ErrorCode.NONE
        ],
    )


_REASONS = {
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "a member subscribes to the topic",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the partition does not exist",
}


def _encode_failure(row: PartitionResult) -> types_pb2.PartitionFailure:
    error = encode_error(row.error, _REASONS.get(row.error, ""))
    return types_pb2.PartitionFailure(partition=row.partition, error=error)


def _encode_config(config: DescribedConfig) -> admin_pb2.GroupConfig:
    source = admin_pb2.CONFIG_SOURCE_DEFAULT
    if config.own is not None:
        source = admin_pb2.CONFIG_SOURCE_GROUP
    elif config.server != GROUP_CONFIGS[config.name].default:
        source = admin_pb2.CONFIG_SOURCE_SERVER
    return admin_pb2.GroupConfig(
        name=config.name, value=config.value, source=source, server_value=config.server
    )


def _decode_change(change: admin_pb2.ConfigChange) -> ConfigChange:
    if not change.HasField("value"):
        return ConfigChange(change.name, ConfigOperation.DELETE)
    return ConfigChange(change.name, ConfigOperation.SET, change.value)


def _encode_transaction(listed: ListedTransaction) -> admin_pb2.Transaction:
    return admin_pb2.Transaction(
        producer_id=listed.producer_id,
        producer_epoch=listed.producer_epoch,
        log_partition=listed.partition,
        since_ms=listed.since_ms,
        times_out_at_ms=listed.times_out_at_ms,
        offsets=[
            admin_pb2.PendingOffset(
                group_id=waiting.group_id,
                topic_name=waiting.topic_name,
                partition=waiting.partition,
                offset=waiting.offset,
            )
            for waiting in listed.offsets
        ],
    )
