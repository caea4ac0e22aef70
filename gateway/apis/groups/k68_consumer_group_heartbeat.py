"""ConsumerGroupHeartbeat (68), versions 0 and 1: joining, heartbeating and leaving (KIP-848).

Version 1 adds regular expressions and requires the client to generate the member id; in version 0
the server generates it for a member that joins without one. Needs READ on the group, and DESCRIBE
on every topic subscribed by name; a regular expression only matches topics that the member may
DESCRIBE.
"""

from __future__ import annotations

import uuid
from typing import Any

from coordinator.runtime.api import Answer
from gateway.api import Api, RequestContext
from gateway.apis.groups.group_rights import check_may_read
from gateway.codec.kio_schema import response_schema
from gateway.heartbeats.heartbeat_field_checks import check_heartbeat
from gateway.heartbeats.heartbeat_wire import (
    Heartbeat,
    make_heartbeat_decoder,
    make_long_heartbeat_decoder,
)
from model.access.acls import Operation, ResourceType
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.errors import ErrorCode, GroupError, InvalidRequest
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.responses.consumer import ConsumerGroupLeaveResponse

KEY = 68
wire = response_schema(KEY)


def handle(context: RequestContext, request: Heartbeat) -> None:
    """Authorise, validate and submit; ``gateway.heartbeats.heartbeats`` parks and caches."""
    if not check_may_read(context, request.group_id):
        return
    names = request.subscribed_topic_names or ()
    limit = context.node.coordinator.settings.group_subscriptions_max
    if len(names) > limit:
        message = f"A member cannot subscribe to more than {limit} topics."
        context.reply_failed(ErrorCode.INVALID_REQUEST, message)
        return
    for name in () if context.node.allows_all else names:
        if not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            message = "Not authorized to a subscribed topic."
            context.reply_failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
            return
    try:
        check_heartbeat(
            request,
            context.version,
            context.caller.client_id,
            context.node.settings.gateway_id_max_bytes,
        )
    except InvalidRequest as error:
        context.reply_failed(error.code, error.message)
        return
    if request.member_epoch < 0:
        _leave(context, request)
        return
    context.node.heartbeats.submit(context, make_command(context, request))


def make_command(context: RequestContext, request: Heartbeat) -> ConsumerGroupHeartbeat:
    """The command for a member epoch of 0 or more, with the wire's sentinels resolved."""
    names = request.subscribed_topic_names
    return ConsumerGroupHeartbeat(
        context.caller,
        GroupId(request.group_id),
        MemberId(request.member_id or str(uuid.uuid4())),
        request.member_epoch,
        UNCHANGED if request.rebalance_timeout == -1 else request.rebalance_timeout,
        UNCHANGED if names is None else tuple(map(TopicName, names)),
        request.topic_partitions,
        UNCHANGED if request.rack_id is None else request.rack_id,
        UNCHANGED if request.server_assignor is None else request.server_assignor,
        None if request.instance_id is None else InstanceId(request.instance_id),
        UNCHANGED if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
    )


def _leave(context: RequestContext, request: Heartbeat) -> None:
    command = ConsumerGroupLeave(
        context.caller,
        GroupId(request.group_id),
        MemberId(request.member_id),
        request.member_epoch,
        None if request.instance_id is None else InstanceId(request.instance_id),
    )

    def on_answer(answer: Answer) -> None:
        key = (request.group_id, request.member_id)
        context.node.heartbeats.forget(context.client.heartbeats, key)
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
            return
        assert isinstance(answer, ConsumerGroupLeaveResponse)
        context.reply(
            wire.ConsumerGroupHeartbeatResponse(
                throttle_time=0,
                error_code=ErrorCode.NONE,
                member_id=answer.member_id,
                member_epoch=answer.member_epoch,
                heartbeat_interval=0,
            )
        )

    context.submit(command, on_answer)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request."""
    return wire.ConsumerGroupHeartbeatResponse(
        throttle_time=0,
        error_code=code,
        error_message=message or None,
        member_epoch=0,
        heartbeat_interval=0,
    )


API = Api(
    key=KEY,
    name="ConsumerGroupHeartbeat",
    versions=range(2),
    handler=handle,
    failed=failed,
    decode=make_heartbeat_decoder,
    decode_long=make_long_heartbeat_decoder,
    is_repeated=True,
)
