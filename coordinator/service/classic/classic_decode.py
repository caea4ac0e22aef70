"""From messages of ``ClassicService`` to commands of classic groups; pure.

What is missing, out of range or too large raises the ``GroupError`` that Kafka gives for it. What
only the group's state can judge is left to the core.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.service.wire.decode import check_id, decode_offset_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import Limits
from model.commands import (
    AssignmentFailure,
    Caller,
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    SyncGroup,
)
from model.errors import ErrorCode, InconsistentGroupProtocol
from model.ids import InstanceId, MemberId
from muster.v1 import classic_pb2


def decode_join_group(
    caller: Caller, request: classic_pb2.JoinGroupRequest, fresh_id: str, limits: Limits
) -> JoinGroup:
    """``fresh_id`` ends the id of a member that has none yet. Raises ``InvalidRequest`` etc."""
    group_id = decode_offset_group_id(request.group_id, limits)
    if request.rebalance_timeout_ms < 0:
        raise InvalidField("rebalance_timeout_ms", "rebalance_timeout_ms is below 0")
    check_id(request.protocol_type, "protocol_type", limits)
    check_id(request.reason, "reason", limits)
    for protocol in request.protocols:
        check_id(protocol.name, "protocols.name", limits)
    instance_id = _decode_instance_id(request.instance_id, limits)
    return JoinGroup(
        caller,
        group_id,
        _decode_member_id(request.member_id, limits) or None,
        MemberId(f"{instance_id or caller.client_id}-{fresh_id}"),
        request.session_timeout_ms,
        request.rebalance_timeout_ms or request.session_timeout_ms,
        request.protocol_type,
        tuple(JoinProtocol(each.name, each.metadata) for each in request.protocols),
        instance_id,
        reason=request.reason or None,
    )


def decode_sync_group(
    caller: Caller, request: classic_pb2.SyncGroupRequest, limits: Limits
) -> SyncGroup:
    """Raises ``InconsistentGroupProtocol`` where it is not said what the sync is for (KIP-559)."""
    group_id = decode_offset_group_id(request.group_id, limits)
    member_id = _decode_member_id(request.member_id, limits)
    if not request.protocol_type or not request.protocol_name:
        raise InconsistentGroupProtocol("protocol_type and protocol_name have to be there")
    failure = None
    if request.HasField("failure"):
        if request.assignments:
            raise InvalidField("failure", "a leader assigns, or says that it cannot: not both")
        failure = _decode_failure(request.failure, limits)
    return SyncGroup(
        caller,
        group_id,
        member_id,
        request.generation,
        tuple(
            MemberAssignment(_decode_member_id(each.member_id, limits), each.assignment)
            for each in request.assignments
        ),
        _decode_instance_id(request.instance_id, limits),
        request.protocol_type,
        request.protocol_name,
        failure,
    )


def _decode_failure(failure: classic_pb2.AssignmentFailure, limits: Limits) -> AssignmentFailure:
    """The members of the group get the code, so it has to be one that clients know."""
    try:
        error = ErrorCode(failure.error_code)
    except ValueError:
        error = ErrorCode.NONE
    if error is ErrorCode.NONE:
        raise InvalidField(
            "failure.error_code", f"{failure.error_code} is not an error code of Kafka's"
        )
    check_id(failure.error_message, "failure.error_message", limits)
    return AssignmentFailure(error, failure.error_message)


def decode_classic_heartbeat(
    caller: Caller, request: classic_pb2.ClassicHeartbeatRequest, limits: Limits
) -> ClassicHeartbeat:
    return ClassicHeartbeat(
        caller,
        decode_offset_group_id(request.group_id, limits),
        _decode_member_id(request.member_id, limits),
        request.generation,
        _decode_instance_id(request.instance_id, limits),
    )


def decode_leave_group(
    caller: Caller, group_id: str, members: Iterable[classic_pb2.LeavingMember], limits: Limits
) -> LeaveGroup:
    return LeaveGroup(
        caller,
        decode_offset_group_id(group_id, limits),
        tuple(_decode_leaving(each, limits) for each in members),
    )


def _decode_leaving(leaving: classic_pb2.LeavingMember, limits: Limits) -> LeavingMember:
    """Only beside an instance id does an empty member id mean none."""
    check_id(leaving.reason, "members.reason", limits)
    member_id = _decode_member_id(leaving.member_id, limits)
    instance_id = _decode_instance_id(leaving.instance_id, limits)
    named = None if instance_id is not None and not member_id else member_id
    return LeavingMember(named, instance_id, leaving.reason or None)


def _decode_member_id(member_id: str, limits: Limits) -> MemberId:
    check_id(member_id, "member_id", limits)
    return MemberId(member_id)


def _decode_instance_id(instance_id: str, limits: Limits) -> InstanceId | None:
    check_id(instance_id, "instance_id", limits)
    return InstanceId(instance_id) if instance_id else None
