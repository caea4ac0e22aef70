"""The part of ``muster.v1.AdminService`` that removes members of groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import grpc.aio

from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.runtime.api import Coordinator
from coordinator.runtime.loop.slices import Steps
from coordinator.service.admin.description_messages import encode_classic_member, encode_member
from coordinator.service.calls.access import Access
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.request_ids import RequestIds
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import check_id, decode_offset_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import Limits
from model.access.acls import Operation
from model.caller import Caller
from model.commands.consumer import LeavingMember
from model.commands.groups import RemoveMembers
from model.ids import InstanceId, MemberId, TopicName
from model.responses.groups import DescribedClassicMember, DescribedMember, MembersRemoved
from muster.v1 import admin_pb2

MEMBERS_MAX: Final = 100
"""Members of one request: they are described and removed in one iteration."""

_Context: TypeAlias = grpc.aio.ServicerContext[
    admin_pb2.RemoveMembersRequest, admin_pb2.RemoveMembersResponse
]


class MemberRemoval:
    """Removes members. See ``coordinator.service.wire.error_statuses`` for error statuses."""

    _services: Services
    _coordinator: Coordinator
    _access: Access
    _request_ids: RequestIds

    async def RemoveMembers(  # noqa: N802
        self, request: admin_pb2.RemoveMembersRequest, context: _Context
    ) -> admin_pb2.RemoveMembersResponse:
        async with Guard(context, group_id=request.group_id):
            limits = self._services.limits
            group_id = decode_offset_group_id(request.group_id, limits)
            members = _decode_members(request.members, limits)
            check_id(request.reason, "reason", limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.READ, group_id)

            async def carry_out() -> admin_pb2.RemoveMembersResponse:
                command = RemoveMembers(
                    caller,
                    group_id,
                    members,
                    request.reason,
                    request.preview or None,
                    request.validate_only,
                )
                removed = await self._coordinator.call(command)
                assert isinstance(removed, MembersRemoved)
                return await run_steps(self._encode(caller, removed))

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.RemoveMembersResponse, carry_out
            )

    def _encode(
        self, caller: Caller, removed: MembersRemoved
    ) -> Steps[admin_pb2.RemoveMembersResponse]:
        is_consumer = removed.protocol_type == PROTOCOL_TYPE
        encoded = admin_pb2.RemoveMembersResponse(
            remaining=removed.remaining, preview=removed.revision
        )

        def encode(member: DescribedMember | DescribedClassicMember) -> admin_pb2.GroupMember:
            if isinstance(member, DescribedMember):
                found = encode_member(member)
            else:
                found = encode_classic_member(member, is_consumer, self._coordinator.image)
            self._leave_seen(caller, found)
            return found

        yield from make_rows(encoded.members.extend, encode, removed.of_any_protocol)
        return encoded

    def _leave_seen(self, caller: Caller, member: admin_pb2.GroupMember) -> None:
        """Leave out topics that the caller may not describe, and what could name them."""

        def sees(name: str) -> bool:
            return self._access.sees_topic(caller, Operation.DESCRIBE, TopicName(name))

        for topics in (member.assignment, member.pending_revocation, member.target_assignment):
            kept = [topic for topic in topics if sees(topic.topic_name)]
            del topics[:]
            topics.extend(kept)
        names = [name for name in member.subscribed_topic_names if sees(name)]
        member.subscribed_topic_names[:] = names
        member.ClearField("classic_metadata")
        member.ClearField("classic_assignment")


def _decode_members(
    members: Iterable[admin_pb2.MemberToRemove], limits: Limits
) -> tuple[LeavingMember, ...]:
    found = []
    for member in members:
        check_id(member.member_id, "members.member_id", limits)
        check_id(member.instance_id, "members.instance_id", limits)
        if not member.member_id and not member.instance_id:
            raise InvalidField("members", "set member_id or instance_id for each member")
        found.append(
            LeavingMember(
                MemberId(member.member_id) if member.member_id else None,
                InstanceId(member.instance_id) if member.instance_id else None,
            )
        )
    if not 0 < len(found) <= MEMBERS_MAX:
        raise InvalidField("members", f"name 1 to {MEMBERS_MAX} members")
    return tuple(found)
