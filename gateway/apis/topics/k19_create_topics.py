"""CreateTopics (19), versions 2 to 7: creates topics that are stored on this server.

Needs CREATE on the cluster or on the topic. There is one replica, on this server, so a replication
factor other than 1 or -1 is rejected, as by a single-broker Kafka. Of the topic configs only
``cleanup.policy`` takes effect; the other known ones are accepted and ignored, and the response
shows the effective values.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Container, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

from coordinator.core.groups.topic_records import check_topic_name
from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import may_see
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import COMMANDS_SLICE, SLICE, handle_in_slices, pace
from gateway.topic_requests import Gather, find_duplicates, is_allowed
from gateway.topics.log.policies import CLEANUP_POLICIES, DELETE
from gateway.topics.replica_assignments import check_assignment
from gateway.topics.topic_catalogue import TopicDataError
from gateway.topics.topic_configs import (
    CLEANUP_POLICY,
    KNOWN_TOPIC_CONFIGS,
    compute_topic_config_source,
)
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.topics import CreateTopic
from model.errors import ErrorCode, GroupError
from model.ids import TopicId, TopicName
from model.responses.topics import TopicResponse
from model.topics import Topic

KEY = 19
wire = response_schema(KEY)

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
DEFAULT: Final = -1
REPLICATION_FACTOR: Final = 1
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
RESERVED_TOPIC_IDS: Final = frozenset((0, 1))
"""Kafka's zero UUID, and the id of its metadata topic."""

_log = logging.getLogger("muster.gateway")


def handle(context: RequestContext, request: Any) -> None:
    """Create the topics; each has its own result."""
    handle_in_slices(context, _create(context, request))


def _create(context: RequestContext, request: Any) -> Steps[None]:
    gather = Gather[Any](context, lambda results: _reply(context, results))
    duplicates = find_duplicates(map(attrgetter("name"), request.topics))
    for name, is_slice_done in pace(duplicates, SLICE):
        gather.add(_make_error(name, ErrorCode.INVALID_REQUEST, f"Duplicate topic {name!r}."))
        if is_slice_done:
            yield
    may_create_all = may_see(context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    total = yield from _count_partitions(context, request, duplicates)
    for wanted, is_slice_done in pace(request.topics, COMMANDS_SLICE):
        if is_slice_done:
            yield
        if wanted.name in duplicates:
            continue
        try:
            if not (may_create_all or is_allowed(context, Operation.CREATE, wanted.name)):
                raise TopicDataError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            if total > PARTITIONS_PER_REQUEST_MAX:
                raise TopicDataError(
                    ErrorCode.POLICY_VIOLATION,
                    f"A request may create at most {PARTITIONS_PER_REQUEST_MAX} partitions.",
                )
            command = _make_command(context, wanted, request.validate_only)
        except (TopicDataError, GroupError) as error:
            gather.add(_make_error(wanted.name, error.code, error.message))
        else:
            _submit(context, wanted, command, gather)
    gather.close()


def _count_partitions(
    context: RequestContext, request: Any, duplicates: Container[str]
) -> Steps[int]:
    """The number of partitions that the request creates in all."""
    total = 0
    for wanted, is_slice_done in pace(request.topics, SLICE):
        if wanted.name not in duplicates:
            total += max(_compute_partitions(context, wanted), 0)
        if is_slice_done:
            yield
    return total


def _submit(
    context: RequestContext, wanted: Any, command: CreateTopic, gather: Gather[Any]
) -> None:
    """Submit a topic's creation, once its cleanup policy is durable if it is not ``delete``."""
    to_result = partial(_compute_result, context, wanted)
    policy = _find_policy(wanted.configs)
    exists = wanted.name in context.node.topics.image.by_name
    if policy == DELETE or exists or command.validate_only:
        gather.submit(command, to_result)
        return
    fill = gather.begin()

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.node.topics.drop_cleanup_policy(command.topic_id)
        fill(to_result(answer))

    def on_kept(error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            context.submit(command, on_answer)
        else:
            fill(_make_error(wanted.name, error, "The topic's cleanup.policy cannot be written."))

    context.node.topics.keep_cleanup_policy(command.topic_id, policy, on_kept)


def _find_policy(configs: Sequence[Any]) -> str:
    return next((config.value for config in configs if config.name == CLEANUP_POLICY), DELETE)


def _make_command(context: RequestContext, wanted: Any, validate_only: bool) -> CreateTopic:
    """The command for one topic; raises ``TopicDataError`` or ``GroupError``."""
    if wanted.name == CLUSTER_METADATA_TOPIC:
        raise TopicDataError(ErrorCode.INVALID_REQUEST, f"Topic {wanted.name} is internal.")
    image = context.node.topics.image
    name = TopicName(wanted.name)
    if name not in image.by_name:
        try:
            _check_shape(context, wanted)
            _check_configs(wanted.configs)
        except TopicDataError:
            # An invalid name, which the coordinator checks, takes precedence.
            check_topic_name(image, name)
            raise
    return CreateTopic(
        context.caller,
        name,
        make_topic_id(),
        _compute_partitions(context, wanted),
        validate_only,
    )


def _check_shape(context: RequestContext, wanted: Any) -> None:
    if wanted.assignments:
        _check_assignments(context, wanted)
        return
    factor = wanted.replication_factor
    if factor != DEFAULT and factor < 1:
        raise TopicDataError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be 1, or -1 for that."
        )
    if wanted.num_partitions != DEFAULT and wanted.num_partitions < 1:
        raise TopicDataError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions must be larger than 0, or -1 for the default.",
        )
    if factor > REPLICATION_FACTOR:
        raise TopicDataError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"There is one broker, so the replication factor must be 1, not {factor}.",
        )


def _check_assignments(context: RequestContext, wanted: Any) -> None:
    if wanted.replication_factor != DEFAULT or wanted.num_partitions != DEFAULT:
        raise TopicDataError(
            ErrorCode.INVALID_REQUEST,
            "With replica assignments, partitions and replication factor must be -1.",
        )
    indexes = sorted(assignment.partition_index for assignment in wanted.assignments)
    if indexes != list(range(len(indexes))):
        raise TopicDataError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Assignments must be for partitions 0, 1, 2, ..."
        )
    for assignment in wanted.assignments:
        check_assignment(assignment.broker_ids, context.node.settings.node_id)


def _check_configs(configs: Sequence[Any]) -> None:
    for config in configs:
        if config.name not in KNOWN_TOPIC_CONFIGS:
            raise TopicDataError(
                ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {config.name!r}"
            )
        if config.value is None:
            raise TopicDataError(ErrorCode.INVALID_CONFIG, f"{config.name} must have a value.")
        if config.name == CLEANUP_POLICY and config.value not in CLEANUP_POLICIES:
            raise TopicDataError(
                ErrorCode.INVALID_CONFIG,
                f"{CLEANUP_POLICY} must be delete, compact or both, not {config.value!r}.",
            )


def _compute_partitions(context: RequestContext, wanted: Any) -> int:
    if wanted.assignments:
        return len(wanted.assignments)
    if wanted.num_partitions == DEFAULT:
        return context.node.settings.num_partitions
    return int(wanted.num_partitions)


def make_topic_id() -> TopicId:
    """A random version 4 UUID that Kafka does not reserve and whose text has no leading '-'."""
    while True:
        number = int.from_bytes(secrets.token_bytes(16), "big")
        number = number & ~(0xF << 76) | 4 << 76
        number = number & ~(0x3 << 62) | 2 << 62
        # A first byte of 0xF8 or more is '-' in Kafka's Base64 form, which tools parse as a flag.
        if number not in RESERVED_TOPIC_IDS and number >> 120 < 0xF8:
            return TopicId(number.to_bytes(16, "big"))


def _compute_result(context: RequestContext, wanted: Any, answer: Answer) -> Any:
    if isinstance(answer, GroupError):
        return _make_error(wanted.name, answer.code, answer.message)
    assert isinstance(answer, TopicResponse)
    ignored = [each.name for each in wanted.configs if each.name != CLEANUP_POLICY]
    if ignored:
        names = ", ".join(ignored)
        _log.info("topic_configs_ignored topic=%s configs=%s", answer.topic.name, names)
    return _make_created(context, answer.topic)


def _make_created(context: RequestContext, topic: Topic) -> Any:
    if not may_see(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return wire.CreatableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_code=ErrorCode.NONE,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=None,
        )
    return wire.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=topic.partitions,
        replication_factor=REPLICATION_FACTOR,
        configs=[
            wire.CreatableTopicConfigs(
                name=name,
                value=value,
                read_only=True,
                config_source=compute_topic_config_source(name, value),
                is_sensitive=False,
            )
            for name, value in context.node.topics.topic_configs(topic.topic_id).items()
        ],
    )


def _make_error(name: str, code: int, message: str) -> Any:
    return wire.CreatableTopicResult(
        name=name, topic_id=None, error_code=code, error_message=message, configs=[]
    )


def _reply(context: RequestContext, results: Sequence[Any]) -> None:
    context.reply(wire.CreateTopicsResponse(throttle_time=0, topics=results))


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every topic."""
    results = [_make_error(wanted.name, code, message) for wanted in request.topics]
    return wire.CreateTopicsResponse(throttle_time=0, topics=results)


API = Api(
    key=KEY, name="CreateTopics", versions=range(2, 8), handler=handle, failed=failed, is_large=True
)
