"""IncrementalAlterConfigs (44), versions 0 and 1: alters group configs.

The changes of a group are applied atomically. Left out: broker configs, which are fixed while the
server runs, topic configs, which cannot be altered, and client metrics. Needs ALTER_CONFIGS on each
group.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.cluster.k32_describe_configs import BROKER, GROUP, TOPIC
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import COMMANDS_SLICE, handle_in_slices, pace
from gateway.topic_requests import Gather, find_duplicates
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.errors import (
    ClusterAuthorizationFailed,
    ErrorCode,
    GroupAuthorizationFailed,
    GroupError,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from model.ids import GroupId, TopicName

KEY = 44
wire = response_schema(KEY)

BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
CONFIGS_MAX: Final = 1_000
"""Far more than there are configs: a group's changes are applied in one step."""
_OPERATIONS: Final = {operation.value: operation for operation in ConfigOperation}


def handle(context: RequestContext, request: Any) -> None:
    """Alter each resource; errors are per resource."""
    handle_in_slices(context, _alter(context, request))


def _alter(context: RequestContext, request: Any) -> Steps[None]:
    def reply(responses: Any) -> None:
        context.reply(wire.IncrementalAlterConfigsResponse(throttle_time=0, responses=responses))

    twice = find_duplicates(map(attrgetter("resource_type", "resource_name"), request.resources))
    gather = Gather[Any](context, reply)
    for resource, is_slice_done in pace(request.resources, COMMANDS_SLICE):
        if is_slice_done:
            yield
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise InvalidRequest("Each resource must appear at most once.")
            command = _make_command(context, resource, request.validate_only)
        except GroupError as error:
            gather.add(_make(resource, error.code, error.message))
            continue
        gather.submit(command, partial(_compute_result, resource))
    gather.close()


def _make_command(context: RequestContext, resource: Any, validate_only: bool) -> AlterGroupConfigs:
    name = resource.resource_name
    if resource.resource_type != GROUP:
        raise _refuse(context, resource.resource_type, name)
    if not context.authorized(Operation.ALTER_CONFIGS, ResourceType.GROUP, name):
        raise GroupAuthorizationFailed("Not authorized to the group.")
    if len(resource.configs) > CONFIGS_MAX:
        raise InvalidRequest(f"A request may alter at most {CONFIGS_MAX} configs of a group.")
    changes = tuple(_decode_change(config) for config in resource.configs)
    return AlterGroupConfigs(context.caller, GroupId(name), changes, validate_only)


def _refuse(context: RequestContext, resource_type: int, name: str) -> GroupError:
    """The error for a resource that is not a group."""
    operation = Operation.ALTER_CONFIGS
    match resource_type:
        case _ if resource_type == TOPIC:
            if not context.authorized(operation, ResourceType.TOPIC, name):
                return TopicAuthorizationFailed("Not authorized to the topic.")
            if TopicName(name) not in context.node.coordinator.image.by_name:
                return UnknownTopicOrPartition(f"Topic {name!r} does not exist.")
            return InvalidRequest("Topic configs cannot be altered.")
        case _ if resource_type in (BROKER, BROKER_LOGGER, CLIENT_METRICS):
            if not context.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME):
                return ClusterAuthorizationFailed("Not authorized to the cluster.")
            return InvalidRequest("Broker configs cannot be altered at runtime: restart with them.")
        case _:
            return InvalidRequest(f"Unknown resource type {resource_type}")


def _decode_change(config: Any) -> ConfigChange:
    operation = _OPERATIONS.get(config.config_operation)
    if operation is None:
        # Kafka has no more specific error code.
        raise UnknownServerError(f"Unknown config operation {config.config_operation}.")
    return ConfigChange(config.name, operation, config.value)


def _compute_result(resource: Any, answer: Answer) -> Any:
    if isinstance(answer, GroupError):
        return _make(resource, answer.code, answer.message)
    return _make(resource, ErrorCode.NONE, None)


def _make(resource: Any, code: ErrorCode, message: str | None) -> Any:
    return wire.AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every resource."""
    responses = [_make(resource, code, message) for resource in request.resources]
    return wire.IncrementalAlterConfigsResponse(throttle_time=0, responses=responses)


API = Api(
    key=KEY,
    name="IncrementalAlterConfigs",
    versions=range(2),
    handler=handle,
    failed=failed,
    is_large=True,
)
