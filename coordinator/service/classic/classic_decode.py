"""Decoding of ``ClassicService`` messages to commands of classic groups; pure.

Fields that are missing, out of range or too large raise the ``GroupError`` that Kafka returns for
them. Checks that need the group's state are left to the core.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.service.wire.decode import check_id, decode_offset_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import Limits
from model.caller import Caller
from model.commands.classic import (
    AssignmentFailure,
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.commands.consumer import LeaveGroup, LeavingMember
from model.errors import ErrorCode, InconsistentGroupProtocol
from model.ids import InstanceId, MemberId
from muster.v1 import classic_pb2


def decode_join_group(
    caller: Caller, request: classic_pb2.JoinGroupRequest, fresh_id: str, limits: Limits
) -> JoinGroup:
    """Decode a join; raises ``InvalidGroupId`` and ``InvalidField``.

    A member without an id gets one that ends with ``fresh_id``.
    """
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
    """Decode a sync; raises ``InconsistentGroupProtocol`` if it names no protocol (KIP-559)."""
    group_id = decode_offset_group_id(request.group_id, limits)
    member_id = _decode_member_id(request.member_id, limits)
    if not request.protocol_type or not request.protocol_name:
        raise InconsistentGroupProtocol("protocol_type and protocol_name are required")
    failure = None
    if request.HasField("failure"):
        if request.assignments:
            raise InvalidField("failure", "set either assignments or failure, not both")
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
    """Decode a leader's failure; its code goes to the other members, so clients must know it."""
    try:
        error = ErrorCode(failure.error_code)
    except ValueError:
        error = ErrorCode.NONE
    if error is ErrorCode.NONE:
        raise InvalidField("failure.error_code", f"{failure.error_code} is not a Kafka error code")
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
    """Decode a leaving member; an empty member id means none only if an instance id is set."""
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
