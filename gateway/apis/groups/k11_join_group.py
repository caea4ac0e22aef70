"""JoinGroup (11), versions 0 to 9: a classic member joins or rejoins a group.

Version 0 uses the session timeout as the rebalance timeout. Version 4 gives a new dynamic member
its id first (KIP-394), version 5 adds static members (KIP-345), version 9 can tell a returning
leader to skip the assignment (KIP-814). The response follows when all members have joined. Needs
READ on the group.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

from coordinator.runtime.api import Answer
from gateway.api import Api, RequestContext
from gateway.apis.groups.group_rights import check_may_read
from gateway.codec.kio_schema import response_schema
from gateway.heartbeats.heartbeat_field_checks import check_sizes
from model.commands.classic import PROTOCOLS_MAX, JoinGroup, JoinProtocol
from model.errors import (
    ErrorCode,
    GroupError,
    InvalidRequest,
    MemberIdRequired,
    MemberRemoved,
)
from model.ids import GroupId, InstanceId, MemberId
from model.responses.classic import JoinGroupResponse

KEY = 11
wire = response_schema(KEY)

FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_VERSION_REQUIRING_MEMBER_ID: Final = 4
FIRST_VERSION_WITH_PROTOCOL_TYPE: Final = 7
FIRST_VERSION_SKIPPING_ASSIGNMENT: Final = 9

NO_GENERATION: Final = -1


def handle(context: RequestContext, request: Any) -> None:
    """Authorise, validate and submit."""
    if not check_may_read(context, request.group_id):
        return
    try:
        check_join_sizes(context, request)
    except InvalidRequest as error:
        context.reply_failed(error.code, error.message)
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, MemberIdRequired):
            context.reply(_refuse(context, answer.code, answer.member_id))
        elif isinstance(answer, MemberRemoved):
            context.reply(_refuse(context, answer.code, ""))
        elif isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
        elif check_may_read(context, request.group_id):
            assert isinstance(answer, JoinGroupResponse)
            context.reply(_respond(context, answer))

    context.submit_waiting(make_command(context, request), on_answer)


def check_join_sizes(context: RequestContext, request: Any) -> None:
    """Bound the fields that go into the group's record; raises ``InvalidRequest``."""
    if len(request.protocols) > PROTOCOLS_MAX:
        raise InvalidRequest(f"A member can support at most {PROTOCOLS_MAX} protocols.")
    check_sizes(
        context.node.settings.gateway_id_max_bytes,
        ("ClientId", context.caller.client_id),
        ("MemberId", request.member_id),
        ("GroupInstanceId", getattr(request, "group_instance_id", None)),
        ("ProtocolType", request.protocol_type),
        *(("Protocol name", protocol.name) for protocol in request.protocols),
    )


def make_command(context: RequestContext, request: Any) -> JoinGroup:
    """The command, with the wire's sentinels resolved."""
    version, session_timeout_ms = context.version, request.session_timeout
    has_rebalance_timeout = version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    rebalance_timeout_ms = request.rebalance_timeout if has_rebalance_timeout else -1
    instance_id = getattr(request, "group_instance_id", None)
    return JoinGroup(
        context.caller,
        GroupId(request.group_id),
        MemberId(request.member_id) if request.member_id else None,
        MemberId(f"{instance_id or context.caller.client_id}-{uuid.uuid4()}"),
        session_timeout_ms,
        session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        request.protocol_type,
        tuple(JoinProtocol(protocol.name, protocol.metadata) for protocol in request.protocols),
        None if instance_id is None else InstanceId(instance_id),
        version >= FIRST_VERSION_REQUIRING_MEMBER_ID,
        version >= FIRST_VERSION_SKIPPING_ASSIGNMENT,
        getattr(request, "reason", None),
    )


def _respond(context: RequestContext, answer: JoinGroupResponse) -> Any:
    return wire.JoinGroupResponse(
        throttle_time=0,
        error_code=ErrorCode.NONE,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=_protocol_name(context, answer.protocol_name),
        leader=answer.leader or "",
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            wire.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in answer.members
        ],
    )


def _protocol_name(context: RequestContext, name: str | None) -> str | None:
    """The protocol name, which is not nullable below version 7."""
    return "" if name is None and context.version < FIRST_VERSION_WITH_PROTOCOL_TYPE else name


def _refuse(context: RequestContext, code: ErrorCode, member_id: str) -> Any:
    return wire.JoinGroupResponse(
        throttle_time=0,
        error_code=code,
        generation_id=NO_GENERATION,
        protocol_type=None,
        protocol_name=_protocol_name(context, None),
        leader="",
        skip_assignment=False,
        member_id=member_id,
        members=(),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request; whoever a full group or the ACLs reject does not get its id back."""
    forgets = code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return _refuse(context, code, "" if forgets else request.member_id)


API = Api(key=KEY, name="JoinGroup", versions=range(10), handler=handle, failed=failed)
