"""JoinGroup and SyncGroup of one classic member, and its assignment if it leads."""

from __future__ import annotations

import logging
import secrets

from muster.classic.classic_calls import ClassicCalls
from muster.classic.classic_membership import ClassicMembership, Lost
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import (
    UNKNOWN_SERVER_ERROR,
    AssignmentFailed,
    Generation,
    GroupProtocol,
)
from muster.connection.lease import read_clock
from muster.connection.unary import raise_failures
from muster.errors import (
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    CallbackFailed,
    JoinRefused,
    MemberLost,
    decode_error,
)
from muster.v1 import classic_pb2

_LOG = logging.getLogger("muster")


class JoinAgain(Exception):
    """The generation has failed: join again, after a pause if ``waits``."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__()
        self.waits = waits


class ClassicRebalance:
    """``kept`` has what the application raised while it assigned, and has not seen yet."""

    def __init__(
        self,
        group_id: str,
        protocol: GroupProtocol,
        options: ClassicOptions,
        membership: ClassicMembership,
        calls: ClassicCalls,
    ) -> None:
        self.kept: list[CallbackFailed] = []
        self._group_id = group_id
        self._protocol = protocol
        self._options = options
        self._membership = membership
        self._calls = calls
        self._incarnation = secrets.randbits(62) | 1

    async def join(self) -> tuple[Generation, bool]:
        """Join; returns the generation, and whether its leader must not assign (KIP-814)."""
        membership = self._membership
        while True:
            membership.rejoin_reason, reason = "", membership.rejoin_reason
            request = classic_pb2.JoinGroupRequest(
                group_id=self._group_id,
                member_id=membership.member_id,
                instance_id=self._options.instance_id,
                client_id=self._options.client_id,
                session_timeout_ms=self._options.session_timeout_ms,
                rebalance_timeout_ms=self._options.rebalance_timeout_ms,
                protocol_type=self._protocol.protocol_type,
                protocols=[
                    classic_pb2.GroupProtocol(name=name, metadata=metadata)
                    for name, metadata in self._protocol.make_protocols()
                ],
                reason=reason,
                incarnation=self._incarnation,
            )
            sent_at = read_clock()
            answer = await self._calls.ask(lambda: self._calls.stub.JoinGroup, request)
            match answer.error.error_code:
                case 0:
                    membership.joined_at = sent_at
                    if answer.leader:
                        membership.lease.note_undisturbed(sent_at)
                    return membership.accept(answer), answer.skip_assignment
                case code if code == MEMBER_ID_REQUIRED:
                    membership.member_id = answer.member_id
                case code if code == REBALANCE_IN_PROGRESS:
                    raise JoinAgain(waits=True)
                case code if code == UNKNOWN_MEMBER_ID and membership.member_id:
                    raise Lost(answer.error.reason, forgets_id=True)
                case code if code == FENCED_INSTANCE_ID:
                    raise decode_error(answer.error, MemberLost)
                case _:
                    raise decode_error(answer.error, JoinRefused)

    async def sync(self, generation: Generation, skips: bool) -> bytes:
        """Sync, and assign before if this member leads. Raises ``JoinAgain``, ``Lost``."""
        request = classic_pb2.SyncGroupRequest(
            group_id=self._group_id,
            member_id=generation.member_id,
            instance_id=self._options.instance_id,
            generation=generation.generation,
            protocol_type=self._protocol.protocol_type,
            protocol_name=generation.protocol_name,
            client_id=self._options.client_id,
        )
        if generation.is_leader and skips:
            await self._protocol.note_skipped(generation)
        elif generation.is_leader:
            await self._assign(generation, request)
        sent_at = read_clock()
        answer = await self._calls.ask(lambda: self._calls.stub.SyncGroup, request)
        match answer.error.error_code:
            case 0:
                assignment: bytes = answer.assignment
                self._note_synced(generation, assignment, sent_at)
                return assignment
            case code if code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
                raise Lost(answer.error.reason, forgets_id=code == UNKNOWN_MEMBER_ID)
            case code if code in (FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED):
                raise decode_error(answer.error, MemberLost)
            case code if code == REBALANCE_IN_PROGRESS:
                raise JoinAgain(waits=request.HasField("failure"))
            case _:
                # The leader could not assign; another one may, or the same one later.
                self._calls.trouble = str(decode_error(answer.error))
                _LOG.warning("assignment_failed group=%s %s", self._group_id, self._calls.trouble)
                raise JoinAgain(waits=True)

    def _note_synced(self, generation: Generation, assignment: bytes, sent_at: float) -> None:
        membership = self._membership
        membership.lease.note_renewed(sent_at)
        if generation.leader:
            membership.lease.note_undisturbed(sent_at)
        elif not (membership.has_lease and self._protocol.gives_up(assignment)):
            # In a consumer group, a join that frees no partition does not extend the timeout.
            membership.lease.note_undisturbed(membership.joined_at)
        membership.has_lease = True

    async def _assign(self, generation: Generation, request: classic_pb2.SyncGroupRequest) -> None:
        """Put the assignments of all members into the request, or why there are none."""
        try:
            assigned = await raise_failures(self._protocol.assign(generation))
        except AssignmentFailed as error:
            request.failure.error_code = error.code
            request.failure.error_message = str(error)
        except Exception as error:  # noqa: BLE001 - kept, and raised where the application looks
            _LOG.error("assign_failed group=%s", self._group_id, exc_info=error)
            failure = CallbackFailed(f"assigning raised {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.kept.append(failure)
            request.failure.error_code = UNKNOWN_SERVER_ERROR
            request.failure.error_message = str(error)[:200]
        else:
            for member_id, assignment in assigned.items():
                request.assignments.add(member_id=member_id, assignment=assignment)
