"""DescribeConfigs (32), versions 1 to 4: brokers, topics and groups.

A broker has the coordinator's and the gateway's settings, under their configuration names. Broker
and topic configs are read-only; group configs can be altered. Left out: loggers, client metrics,
and documentation of broker and topic configs. Needs DESCRIBE_CONFIGS on the cluster, topic or
group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import COMMANDS_SLICE, handle_in_slices, pace
from gateway.topic_requests import Gather
from gateway.topics.topic_configs import compute_topic_config_source
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.configs import DescribeGroupConfigs
from model.configs.group_configs import GROUP_CONFIGS, GroupConfig
from model.errors import (
    ClusterAuthorizationFailed,
    ErrorCode,
    GroupAuthorizationFailed,
    GroupError,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from model.ids import GroupId, TopicName
from model.responses.configs import DescribedConfig, GroupConfigsResponse
from model.secret import Secret

KEY = 32
wire = response_schema(KEY)

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
DYNAMIC_GROUP_CONFIG: Final = 8

BOOLEAN, STRING, INT, LONG, LIST, PASSWORD = 1, 2, 3, 5, 7, 9
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Config:
    """One effective config; ``synonyms`` are (name, value, source) in order of precedence."""

    name: str
    value: str | None
    source: int
    config_type: int
    synonyms: tuple[tuple[str, str | None, int], ...] = ()
    documentation: str | None = None
    read_only: bool = True


def handle(context: RequestContext, request: Any) -> None:
    """Describe each resource; errors are per resource."""
    handle_in_slices(context, _describe(context, request))


def _describe(context: RequestContext, request: Any) -> Steps[None]:
    def reply(results: Any) -> None:
        context.reply(wire.DescribeConfigsResponse(throttle_time=0, results=results))

    gather = Gather[Any](context, reply)
    for resource, is_slice_done in pace(request.resources, COMMANDS_SLICE):
        if is_slice_done:
            yield
        try:
            if resource.resource_type == GROUP:
                command = _make_command(context, resource.resource_name)
                gather.submit(command, _GroupResult(request, resource))
                continue
            configs = _find(context, resource.resource_type, resource.resource_name)
        except GroupError as error:
            gather.add(_make(resource, error.code, error.message, ()))
            continue
        gather.add(_make_result(request, resource, configs))
    gather.close()


def _make_command(context: RequestContext, name: str) -> DescribeGroupConfigs:
    if not context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, name):
        raise GroupAuthorizationFailed("Not authorized to the group.")
    if not name:
        raise InvalidRequest("Group name must not be empty")
    return DescribeGroupConfigs(context.caller, GroupId(name))


class _GroupResult:
    """Makes the result of a group from the answer to its command."""

    def __init__(self, request: Any, resource: Any) -> None:
        self._request = request
        self._resource = resource

    def __call__(self, answer: Answer) -> Any:
        if isinstance(answer, GroupError):
            return _make(self._resource, answer.code, answer.message, ())
        assert isinstance(answer, GroupConfigsResponse)
        configs = [_group_config(row) for row in answer.configs]
        return _make_result(self._request, self._resource, configs)


def _make_result(request: Any, resource: Any, configs: Iterable[Config]) -> Any:
    wanted = resource.configuration_keys
    with_documentation = getattr(request, "include_documentation", False)
    rows = [
        _make_row(config, request.include_synonyms, with_documentation)
        for config in configs
        if not wanted or config.name in wanted
    ]
    return _make(resource, ErrorCode.NONE, "", rows)


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
        case _:
            raise InvalidRequest(f"Unsupported resource type {resource_type}.")


def _topic_configs(context: RequestContext, name: str) -> list[Config]:
    topic = context.node.coordinator.image.by_name.get(TopicName(name))
    if topic is None:
        raise UnknownTopicOrPartition(f"Topic {name!r} does not exist.")
    configs = context.node.topics.topic_configs(topic.topic_id)
    return [
        Config(key, value, compute_topic_config_source(key, value), _type_of_text(value))
        for key, value in sorted(configs.items())
    ]


def _type_of_text(value: str) -> int:
    digits = value.removeprefix("-")
    if digits.isdigit():
        return LONG
    return BOOLEAN if value in ("true", "false") else STRING


def _broker_configs(context: RequestContext, name: str) -> list[Config]:
    """The configs of this broker; none for the empty name, the cluster-wide dynamic default."""
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
        if is_dataclass(value):
            # Server-wide defaults of group configs: not a single config.
            continue
        source = STATIC_BROKER_CONFIG
        if field.default is not MISSING and value == field.default:
            source = DEFAULT_CONFIG
        yield Config(field.name.replace("_", "."), _text_of(value), source, _type_of(value))


def _text_of(value: Any) -> str | None:
    match value:
        case None | Secret():
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
        case Secret():
            return PASSWORD
        case _:
            return STRING


def _group_config(row: DescribedConfig) -> Config:
    known = GROUP_CONFIGS[row.name]
    synonyms = tuple(_list_synonyms(known, row))
    return Config(
        row.name,
        row.value,
        synonyms[0][2],
        known.config_type.value,
        synonyms,
        known.documentation,
        read_only=False,
    )


def _list_synonyms(known: GroupConfig, row: DescribedConfig) -> Iterator[tuple[str, str, int]]:
    """The group's own value, the server's if it differs from the default, and the default."""
    if row.own is not None:
        yield row.name, row.own, DYNAMIC_GROUP_CONFIG
    name = row.name if known.setting is None else known.setting
    if row.server != known.default:
        yield name, row.server, STATIC_BROKER_CONFIG
    yield name, known.default, DEFAULT_CONFIG


def _make_row(config: Config, with_synonyms: bool, with_documentation: bool) -> Any:
    synonyms: tuple[Any, ...] = ()
    if with_synonyms:
        rows = config.synonyms or ((config.name, config.value, config.source),)
        synonyms = tuple(
            wire.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in rows
        )
    return wire.DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.config_type == PASSWORD,
        synonyms=synonyms,
        config_type=config.config_type,
        documentation=config.documentation if with_documentation else None,
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
    """Fail every resource."""
    results = [_make(resource, code, message, ()) for resource in request.resources]
    return wire.DescribeConfigsResponse(throttle_time=0, results=results)


API = Api(
    key=KEY,
    name="DescribeConfigs",
    versions=range(1, 5),
    handler=handle,
    failed=failed,
    is_large=True,
)
