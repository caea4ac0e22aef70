"""DescribeConfigs (32), versions 1 to 4: brokers, topics and groups.

A broker shows the settings of the coordinator and of this gateway under the names that they have
in the configuration; nothing can be changed on the wire, so all are read-only. Left out: loggers,
client metrics, documentation texts. Needs DESCRIBE_CONFIGS on the cluster, topic or group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

from coordinator.runtime.authorizer import CLUSTER_NAME, Operation, ResourceType
from gateway.api import Api, RequestContext
from gateway.codec import response_schema
from model.errors import (
    ClusterAuthorizationFailed,
    ErrorCode,
    GroupAuthorizationFailed,
    GroupError,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)

KEY = 32
wire = response_schema(KEY)

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5

BOOLEAN, STRING, INT, LONG, LIST = 1, 2, 3, 5, 7
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Config:
    """One config as it is in force."""

    name: str
    value: str | None
    source: int
    config_type: int


def handle(context: RequestContext, request: Any) -> None:
    """Describe each resource; one that fails does so by itself."""
    results = [
        _describe(context, resource, request.include_synonyms) for resource in request.resources
    ]
    context.reply(wire.DescribeConfigsResponse(throttle_time=0, results=results))


def _describe(context: RequestContext, resource: Any, with_synonyms: bool) -> Any:
    try:
        configs = _find(context, resource.resource_type, resource.resource_name)
    except GroupError as error:
        return _make(resource, error.code, error.message, ())
    wanted = resource.configuration_keys
    rows = [
        _make_row(config, with_synonyms)
        for config in configs
        if not wanted or config.name in wanted
    ]
    return _make(resource, ErrorCode.NONE, None, rows)


def _find(context: RequestContext, resource_type: int, name: str) -> list[Config]:
    operation = Operation.DESCRIBE_CONFIGS
    match resource_type:
        case _ if resource_type == TOPIC:
            if not context.authorized(operation, ResourceType.TOPIC, name):
                raise TopicAuthorizationFailed("Not authorized to the topic.")
            return _topic_configs(context, name)
        case _ if resource_type == BROKER:
            if not context.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME):
                raise ClusterAuthorizationFailed("Not authorized to the cluster.")
            return _broker_configs(context, name)
        case _ if resource_type == GROUP:
            if not context.authorized(operation, ResourceType.GROUP, name):
                raise GroupAuthorizationFailed("Not authorized to the group.")
            return _group_configs(context)
        case _:
            raise InvalidRequest(f"Resources of type {resource_type} have no configs here.")


def _topic_configs(context: RequestContext, name: str) -> list[Config]:
    if name not in context.node.coordinator.image.by_name:
        raise UnknownTopicOrPartition(f"There is no topic {name!r}.")
    configs = context.node.topics.topic_configs()
    return [
        Config(key, value, DEFAULT_CONFIG, _type_of_text(value))
        for key, value in sorted(configs.items())
    ]


def _type_of_text(value: str) -> int:
    digits = value.removeprefix("-")
    if digits.isdigit():
        return LONG
    return BOOLEAN if value in ("true", "false") else STRING


def _broker_configs(context: RequestContext, name: str) -> list[Config]:
    """All of this broker; for the empty name, which is all brokers' dynamic default, none."""
    if not name:
        return []
    node = context.node
    if name != str(node.settings.node_id):
        raise InvalidRequest(f"This is broker {node.settings.node_id}, not {name!r}.")
    configs = [
        *_settings_of(node.coordinator.settings),
        *_settings_of(node.settings),
        Config(
            "offsets.topic.num.partitions",
            str(node.coordinator.log_partitions),
            STATIC_BROKER_CONFIG,
            INT,
        ),
    ]
    return sorted(configs, key=lambda config: config.name)


def _settings_of(settings: Any) -> Iterable[Config]:
    for field in fields(settings):
        value = getattr(settings, field.name)
        source = STATIC_BROKER_CONFIG
        if field.default is not MISSING and value == field.default:
            source = DEFAULT_CONFIG
        yield Config(field.name.replace("_", "."), _text_of(value), source, _type_of(value))


def _text_of(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _type_of(value: Any) -> int:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INT if value <= _INT_MAX else LONG
        case tuple():
            return LIST
        case _:
            return STRING


def _group_configs(context: RequestContext) -> list[Config]:
    """A group has no configs of its own: it shows what is in force for all."""
    settings = context.node.coordinator.settings
    return [
        Config(name, str(value), DEFAULT_CONFIG, INT)
        for name, value in (
            ("consumer.assignment.interval.ms", settings.group_consumer_assignment_interval_ms),
            ("consumer.heartbeat.interval.ms", settings.group_consumer_heartbeat_interval_ms),
            ("consumer.session.timeout.ms", settings.group_consumer_session_timeout_ms),
        )
    ]


def _make_row(config: Config, with_synonyms: bool) -> Any:
    synonyms: tuple[Any, ...] = ()
    if with_synonyms:
        synonyms = (
            wire.DescribeConfigsSynonym(name=config.name, value=config.value, source=config.source),
        )
    return wire.DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=True,
        config_source=config.source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=config.config_type,
        documentation=None,
    )


def _make(resource: Any, code: ErrorCode, message: str | None, rows: Iterable[Any]) -> Any:
    return wire.DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(rows),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error for every resource."""
    results = [_make(resource, code, message, ()) for resource in request.resources]
    return wire.DescribeConfigsResponse(throttle_time=0, results=results)


API = Api(key=KEY, name="DescribeConfigs", versions=range(1, 5), handler=handle, failed=failed)
