"""``muster.v1.ClassicService``: classic groups over gRPC."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Hashable
from typing import Final, TypeAlias, TypeVar

import grpc.aio

from coordinator.runtime.loop.slices import Steps
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.sequences import Sequences
from coordinator.service.calls.services import Services
from coordinator.service.calls.waits import Waits
from coordinator.service.classic.classic_decode import (
    decode_classic_heartbeat,
    decode_join_group,
    decode_leave_group,
    decode_sync_group,
)
from coordinator.service.wire.answer_slices import SLICE, make_rows, run_steps
from coordinator.service.wire.decode import check_id
from coordinator.service.wire.error_statuses import encode_error, encode_group_error
from coordinator.service.wire.limits import Limits
from model.access.acls import Operation
from model.caller import Caller
from model.commands.classic import ClassicHeartbeat
from model.commands.classic import JoinGroup as JoinGroupCommand
from model.commands.consumer import LeaveGroup
from model.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    GroupError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import MemberId
from model.responses.classic import (
    ClassicHeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from model.responses.response import Response
from muster.v1 import classic_pb2, classic_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
NO_GENERATION: Final = -1
"""No member is in this generation, so a heartbeat with it has no effect."""

_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class ClassicService(classic_pb2_grpc.ClassicServiceServicer):
    """Serves members of classic groups. Protocol errors are returned inside the response.

    ``waits`` holds the pending joins and syncs.
    """

    def __init__(self, services: Services, waits: Waits) -> None:
        self._services = services
        self._waits = waits
        self._joins = Sequences()

    async def JoinGroup(  # noqa: N802
        self,
        request: classic_pb2.JoinGroupRequest,
        context: _Context[classic_pb2.JoinGroupRequest, classic_pb2.JoinGroupResponse],
    ) -> classic_pb2.JoinGroupResponse:
        async with Guard(context):
            try:
                return await self._join(request, context.peer())
            except MemberIdRequired as error:
                return classic_pb2.JoinGroupResponse(
                    error=encode_group_error(error), member_id=error.member_id
                )
            except GroupError as error:
                return classic_pb2.JoinGroupResponse(error=encode_group_error(error))

    async def SyncGroup(  # noqa: N802
        self,
        request: classic_pb2.SyncGroupRequest,
        context: _Context[classic_pb2.SyncGroupRequest, classic_pb2.SyncGroupResponse],
    ) -> classic_pb2.SyncGroupResponse:
        async with Guard(context):
            try:
                return await self._sync(request, context.peer())
            except GroupError as error:
                return classic_pb2.SyncGroupResponse(error=encode_group_error(error))

    async def Heartbeat(  # noqa: N802
        self,
        request: classic_pb2.ClassicHeartbeatRequest,
        context: _Context[
            classic_pb2.ClassicHeartbeatRequest, classic_pb2.ClassicHeartbeatResponse
        ],
    ) -> classic_pb2.ClassicHeartbeatResponse:
        async with Guard(context):
            try:
                is_held = await self._heartbeat(request, context.peer())
            except CoordinatorLoadInProgress:
                # As in Kafka, a heartbeat succeeds while the group is being loaded.
                is_held = False
            except RebalanceInProgress as error:
                return classic_pb2.ClassicHeartbeatResponse(
                    error=encode_group_error(error), is_held=error.is_held
                )
            except GroupError as error:
                return classic_pb2.ClassicHeartbeatResponse(error=encode_group_error(error))
            return classic_pb2.ClassicHeartbeatResponse(is_held=is_held)

    async def LeaveGroup(  # noqa: N802
        self,
        request: classic_pb2.LeaveGroupRequest,
        context: _Context[classic_pb2.LeaveGroupRequest, classic_pb2.LeaveGroupResponse],
    ) -> classic_pb2.LeaveGroupResponse:
        async with Guard(context):
            try:
                return await self._leave(request, context.peer())
            except GroupError as error:
                return classic_pb2.LeaveGroupResponse(error=encode_group_error(error))

    def _caller(self, peer: str, client_id: str) -> Caller:
        check_id(client_id, "client_id", self._services.limits)
        return compute_caller(peer, client_id)

    async def _join(
        self, request: classic_pb2.JoinGroupRequest, peer: str
    ) -> classic_pb2.JoinGroupResponse:
        caller = self._caller(peer, request.client_id)
        command = decode_join_group(caller, request, str(uuid.uuid4()), self._services.limits)
        self._services.access.check_group(caller, Operation.READ, command.group_id)
        response = await self._call_in_order(command, request)
        # It may have waited long for others, and the right may have been revoked meanwhile.
        self._services.access.check_group(caller, Operation.READ, command.group_id)
        assert isinstance(response, JoinGroupResponse)
        return classic_pb2.JoinGroupResponse(
            member_id=response.member_id,
            generation=response.generation,
            protocol_type=response.protocol_type or "",
            protocol_name=response.protocol_name or "",
            leader=response.leader or "",
            members=[
                classic_pb2.JoinedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id or "",
                    metadata=member.metadata,
                )
                for member in response.members
            ],
            skip_assignment=response.skip_assignment,
        )

    async def _call_in_order(
        self, command: JoinGroupCommand, request: classic_pb2.JoinGroupRequest
    ) -> Response:
        """Submit a join; raises what ``Waits.call`` raises.

        Raises ``CoordinatorNotAvailable`` or ``UnknownMemberId`` if a later join came before it.
        """
        key = _find_order(command, request.incarnation)
        if key is None:
            return await self._waits.call(self._services.coordinator, command)
        noted = self._joins.note(key, request.sequence)
        if noted is None:
            if command.member_id is not None:
                await self._check_is_member(command, command.member_id)
            raise CoordinatorNotAvailable("a later join of this member was received first")
        try:
            return await self._waits.call(self._services.coordinator, command)
        except GroupError:
            # The rejected join may not be the member's own.
            self._joins.withdraw(noted)
            raise

    async def _check_is_member(self, command: JoinGroupCommand, member_id: MemberId) -> None:
        """Raise ``UnknownMemberId`` if the member does not exist: it must join with a new id."""
        nothing = ClassicHeartbeat(
            command.caller, command.group_id, member_id, NO_GENERATION, by_server=True
        )
        try:
            await self._services.coordinator.call(nothing)
        except UnknownMemberId:
            raise
        except GroupError:
            return

    async def _sync(
        self, request: classic_pb2.SyncGroupRequest, peer: str
    ) -> classic_pb2.SyncGroupResponse:
        caller = self._caller(peer, request.client_id)
        command = decode_sync_group(caller, request, self._services.limits)
        self._services.access.check_group(caller, Operation.READ, command.group_id)
        response = await self._waits.call(self._services.coordinator, command)
        self._services.access.check_group(caller, Operation.READ, command.group_id)
        assert isinstance(response, SyncGroupResponse)
        return classic_pb2.SyncGroupResponse(
            protocol_type=response.protocol_type or "",
            protocol_name=response.protocol_name or "",
            assignment=response.assignment,
        )

    async def _heartbeat(self, request: classic_pb2.ClassicHeartbeatRequest, peer: str) -> bool:
        """Submit a heartbeat; returns whether the member's SyncGroup waits for the leader's."""
        caller = self._caller(peer, request.client_id)
        command = decode_classic_heartbeat(caller, request, self._services.limits)
        self._services.access.check_group(caller, Operation.READ, command.group_id)
        response = await self._services.coordinator.call(command)
        assert isinstance(response, ClassicHeartbeatResponse)
        return response.is_held

    async def _leave(
        self, request: classic_pb2.LeaveGroupRequest, peer: str
    ) -> classic_pb2.LeaveGroupResponse:
        caller = self._caller(peer, request.client_id)
        parts = await run_steps(_decode_leave(caller, request, self._services.limits))
        self._services.access.check_group(caller, Operation.READ, parts[0].group_id)
        errors: list[ErrorCode] = []
        for part in parts:
            response = await self._services.coordinator.call(part)
            assert isinstance(response, LeaveGroupResponse)
            errors += response.errors
            # ``call`` does not suspend if no member is known, so yield to the event loop here.
            await asyncio.sleep(0)
        answer = classic_pb2.LeaveGroupResponse()
        rows = zip(request.members, errors, strict=True)
        await run_steps(make_rows(answer.members.extend, _make_left, rows))
        return answer


def _decode_leave(
    caller: Caller, request: classic_pb2.LeaveGroupRequest, limits: Limits
) -> Steps[list[LeaveGroup]]:
    """Decode a LeaveGroup completely, as one command per slice of its members."""
    parts = []
    for begin in range(0, max(len(request.members), 1), SLICE):
        members = request.members[begin : begin + SLICE]
        parts.append(decode_leave_group(caller, request.group_id, members, limits))
        if len(members) == SLICE:
            yield
    return parts


def _make_left(
    row: tuple[classic_pb2.LeavingMember, ErrorCode],
) -> classic_pb2.LeftMember:
    asked, error = row
    return classic_pb2.LeftMember(
        member_id=asked.member_id,
        instance_id=asked.instance_id,
        error=None if error is ErrorCode.NONE else encode_error(error, ""),
    )


def _find_order(command: JoinGroupCommand, incarnation: int) -> Hashable | None:
    """The key by which joins are ordered: the member, or the instance id and incarnation."""
    if command.member_id is not None:
        return command.group_id, command.member_id
    if command.instance_id is not None and incarnation:
        return command.group_id, command.instance_id, incarnation
    return None
