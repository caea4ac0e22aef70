"""PrepareAssignment and InstallAssignment of a member that computes with its own assignor."""

from __future__ import annotations

import asyncio
from functools import partial

from coordinator.runtime.api import Answer
from coordinator.service.calls.services import Services
from coordinator.service.session.assignor_messages import (
    decode_install,
    decode_prepare,
    make_installed,
    make_prepared,
)
from coordinator.service.session.session_member import SessionMember
from coordinator.service.session.session_members import SessionMembers
from coordinator.service.session.session_output import SessionOutput
from model.access.acls import Operation
from model.commands.client_assignment import PrepareAssignmentResponse
from model.errors import GroupError, UnknownMemberId
from model.ids import GroupId, MemberId
from muster.v1 import group_pb2

NOT_ON_STREAM = "this member is not on this stream: join or resume it first"
_ENCODED_AT_ONCE = 300
"""Groups with more members are encoded in a thread, at about 20 µs a member."""


class AssignorActions:
    """Both actions for the members of one session."""

    __slots__ = ("_coordinator", "_loop", "_members", "_output", "_services")

    def __init__(self, services: Services, members: SessionMembers, output: SessionOutput) -> None:
        self._services = services
        self._coordinator = services.coordinator
        self._members = members
        self._output = output
        self._loop = asyncio.get_running_loop()

    def prepare(self, action: group_pb2.MemberAction) -> None:
        """Submit a PrepareAssignment."""
        member = self._find_member(action)
        self._output.begin_request()
        self._coordinator.submit(
            decode_prepare(
                member.caller, member.group_id, member.member_id, action.prepare_assignment
            ),
            partial(self._on_prepared, member.group_id, member.member_id),
        )

    def _on_prepared(self, group_id: GroupId, member_id: MemberId, answer: Answer) -> None:
        self._output.end_request()
        self.send_prepared(group_id, member_id, answer)

    def send_prepared(self, group_id: GroupId, member_id: MemberId, answer: Answer) -> None:
        """Send the answer to a PrepareAssignment."""
        assert isinstance(answer, PrepareAssignmentResponse | GroupError)
        join_id = self._members.join_id_of((group_id, member_id))
        image = self._coordinator.image
        make = partial(make_prepared, group_id, member_id, join_id, answer, image)
        if isinstance(answer, GroupError) or len(answer.members) <= _ENCODED_AT_ONCE:
            self._output.send(make())
            return
        self._output.begin_request()
        self._loop.run_in_executor(None, make).add_done_callback(self._on_encoded)

    def _on_encoded(self, encoded: asyncio.Future[group_pb2.MemberUpdate]) -> None:
        self._output.end_request()
        if not encoded.cancelled():
            self._output.send(encoded.result())

    def install(self, action: group_pb2.MemberAction) -> None:
        """Submit an InstallAssignment."""
        member, message = self._find_member(action), action.install_assignment
        group_id, member_id = member.group_id, member.member_id
        image, limits = self._coordinator.image, self._services.limits
        command = decode_install(member.caller, group_id, member_id, message, image, limits)
        self._output.begin_request()
        self._coordinator.submit(
            command, partial(self._on_installed, group_id, member_id, message.group_epoch)
        )

    def _on_installed(
        self, group_id: GroupId, member_id: MemberId, group_epoch: int, answer: Answer
    ) -> None:
        self._output.end_request()
        self.send_installed(group_id, member_id, group_epoch, answer)

    def send_installed(
        self, group_id: GroupId, member_id: MemberId, group_epoch: int, answer: Answer
    ) -> None:
        """Send the answer to an InstallAssignment."""
        error = answer if isinstance(answer, GroupError) else None
        join_id = self._members.join_id_of((group_id, member_id))
        self._output.send(make_installed(group_id, member_id, join_id, group_epoch, error))

    def _find_member(self, action: group_pb2.MemberAction) -> SessionMember:
        member = self._members.find((GroupId(action.group_id), MemberId(action.member_id)))
        if member is None:
            raise UnknownMemberId(NOT_ON_STREAM)
        self._services.access.check_group(member.caller, Operation.READ, member.group_id)
        return member
