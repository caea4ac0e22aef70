"""The members on one session: their heartbeats, watches, offers to compute, and renewal.

``SessionMember`` decides, and this carries its reactions out: it submits heartbeats, watches for
pending changes, and sends what the client must know.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from functools import partial
from typing import assert_never

from coordinator.runtime.api import Answer, Watch
from coordinator.runtime.targets.client_assignments import Offer
from coordinator.service.calls.services import Services
from coordinator.service.session import session_member as sm
from coordinator.service.session.assignor_messages import make_compute
from coordinator.service.session.session_member import Phase, SessionMember
from coordinator.service.session.session_output import SessionOutput
from coordinator.service.session.updates import (
    make_assignment,
    make_fenced,
    make_refused,
    make_superseded,
)
from coordinator.service.streams.renewal import Renewal
from coordinator.service.streams.sessions import MemberKey
from coordinator.service.wire.decode import JOIN_EPOCH
from model.caller import Caller
from model.errors import ErrorCode, GroupError, UnknownMemberId, UnreleasedInstanceId
from model.ids import GroupId
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from muster.v1 import group_pb2

_EXPIRED = "the session has expired, or partitions were not given up in time"


_numbers = itertools.count(1)


class SessionMembers:
    """The members of one session, which owns them in ``SessionRegistry``.

    It does not refer to its ``Session``: reference counts alone must free a session whose stream
    has ended, because the server's garbage collector looks at few old objects.
    """

    __slots__ = (
        "_coordinator",
        "_loop",
        "_members",
        "_offers",
        "_output",
        "_pending",
        "_renew_at",
        "_renewal",
        "_rights_version",
        "_services",
        "_watches",
        "number",
    )

    def __init__(self, services: Services, output: SessionOutput) -> None:
        self.number = next(_numbers)
        self._services = services
        self._coordinator = services.coordinator
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._members: dict[MemberKey, SessionMember] = {}
        self._watches: dict[MemberKey, Watch] = {}
        self._offers: dict[MemberKey, Offer] = {}
        """Of members that can be asked to compute an assignment."""
        self._renewal = Renewal(services.coordinator)
        self._renew_at = 0.0
        self._rights_version = -1
        """The version of the ACLs by which the members were last looked at."""
        self._pending: list[SessionMember] = []
        """Members with a pending change that no heartbeat has asked for yet."""

    def __len__(self) -> int:
        return len(self._members)

    def find(self, key: MemberKey) -> SessionMember | None:
        """The member, if it is on this session."""
        return self._members.get(key)

    def join_id_of(self, key: MemberKey) -> int:
        """The id of the member's last Join here, or 0."""
        member = self._members.get(key)
        return 0 if member is None else member.join_id

    def is_busy(self) -> bool:
        """Whether so much is pending that the stream should read nothing more."""
        limit = self._services.settings.grpc_stream_pending_max + len(self._members)
        return self._output.pending > limit

    # ------------------------------------------------------------------- who is on the session

    def enter(self, key: MemberKey, caller: Caller, join: group_pb2.Join) -> SessionMember | None:
        """Put the member on this session; ``None`` if a newer session or client has it."""
        member = self._members.get(key)
        limit = self._services.settings.grpc_stream_members_max
        if member is None and len(self._members) >= limit:
            raise _TooManyMembers(f"this stream has {limit} members: open another one")
        if self._is_of_another(key, caller, join):
            return None
        sessions, principal = self._services.sessions, caller.principal
        if not sessions.enter(key, self, join.join_id, join.incarnation, principal):
            return None
        if member is None:
            member = self._members[key] = SessionMember(*key, caller)
            self._renewal.forget()
        return member

    def _is_of_another(self, key: MemberKey, caller: Caller, join: group_pb2.Join) -> bool:
        """Whether another client has taken over the member that the Join resumes.

        Raises ``UnreleasedInstanceId`` for a Join at epoch 0 with the id of a member that may
        hold a lease: it has neither left nor expired, and its incarnation is not this one, or its
        principal is another.
        """
        sessions, incarnation = self._services.sessions, join.incarnation
        if sessions.knows_another_principal(key, caller.principal):
            if join.member_epoch == JOIN_EPOCH and self._coordinator.has_member(*key):
                raise UnreleasedInstanceId(
                    f"The client of another principal uses member id {key[1]}."
                )
            if join.member_epoch != JOIN_EPOCH:
                return True
        if not incarnation:
            return False
        if join.member_epoch != JOIN_EPOCH:
            return sessions.knows_another(key, incarnation)
        if not sessions.knows(key, incarnation) and self._coordinator.has_member(*key):
            raise UnreleasedInstanceId(
                f"Another client uses member id {key[1]}, and has not left the group."
            )
        return False

    def supersede(self, key: MemberKey) -> None:
        """A newer session has resumed the member."""
        member = self.detach(key)
        if member is not None:
            self._output.send(make_superseded(*key, member.join_id))

    def detach(self, key: MemberKey) -> SessionMember | None:
        """Forget the member, and release all that was held for it."""
        member = self._members.pop(key, None)
        if member is None:
            return None
        member.phase = Phase.GONE
        self._renewal.forget()
        self._unwatch(key)
        self.withdraw(key)
        self._services.sessions.leave(key, self)
        return member

    def close(self) -> None:
        """Detach all members. They stay in their groups until their session timeout."""
        for key in tuple(self._members):
            self.detach(key)

    # --------------------------------------------------------------------------------- renewal

    def renew(self, sequence: int) -> None:
        """Renew the sessions of all members, but not more often than a client can profit from."""
        self._look_at_rights()
        now = self._loop.time()
        if now < self._renew_at:
            return
        self._renew_at = now + self._services.touch_interval_s
        gone = self._renewal.renew(tuple(self._members), time.monotonic_ns() // 1_000_000)
        self._output.note_renewed(sequence)
        for key in gone:
            member = self._members[key]
            if member.is_answered:
                # Even with a heartbeat in flight: the client takes the message for a renewal.
                self.carry_out(member, sm.Fence(UnknownMemberId(_EXPIRED)))

    # ------------------------------------------------------------------------------ heartbeats

    def ask(self, member: SessionMember, ask: sm.Ask | None) -> None:
        """Submit a heartbeat of the member, if there is one to submit."""
        if ask is None:
            return
        self._look_at_rights()
        if member.phase is Phase.GONE:
            return
        self._unwatch((member.group_id, member.member_id))
        self._output.begin_request()
        self._coordinator.submit(ask.heartbeat, partial(self._on_answer, member))

    def _on_answer(self, member: SessionMember, answer: Answer) -> None:
        # The answer may send nothing, but a stream that waits to read or to end must look again.
        is_awaited = self._output.is_ending or self.is_busy()
        self._output.end_request()
        if member.phase is not Phase.GONE and self._output.is_open:
            assert isinstance(answer, ConsumerGroupHeartbeatResponse | GroupError)
            self.carry_out(member, member.handle_answer(answer))
        if is_awaited:
            self._output.wake()

    def carry_out(self, member: SessionMember, reaction: sm.Reaction) -> None:
        """Do what the member decided."""
        key = (member.group_id, member.member_id)
        match reaction:
            case sm.Ask():
                self.ask(member, reaction)
            case sm.Tell(response):
                self._send_assignment(member, response)
            case sm.Watch():
                self._unwatch(key)
                on_change = partial(self._on_change, member)
                on_dropped = partial(self.supersede, key)
                self._watches[key] = self._coordinator.watch(
                    *key, on_change, self.number, on_dropped
                )
            case sm.Fence(error):
                self.detach(key)
                self._output.send(make_fenced(*key, member.join_id, error))
            case sm.Refuse(error):
                if member.phase is Phase.GONE:
                    self.detach(key)
                self._output.send(make_refused(*key, member.join_id, error))
            case _:
                assert_never(reaction)

    def _look_at_rights(self) -> None:
        """Fence the members that the ACLs no longer allow; nothing if no ACL has changed.

        A member that joins is not looked at: its Join was authorized for a new subscription.
        """
        rights = self._services.rights
        if rights is None or rights.version == self._rights_version:
            return
        self._rights_version = rights.version
        for member in [each for each in self._members.values() if not each.is_joining]:
            refusal = rights.find_refusal(member.caller, member.group_id, member.member_id)
            if refusal is not None:
                self.carry_out(member, sm.Fence(refusal))

    def _find_refusal(
        self, member: SessionMember, response: ConsumerGroupHeartbeatResponse
    ) -> GroupError | None:
        """Why the member must not see the response, also if a right was revoked while it joined."""
        rights = self._services.rights
        if rights is None:
            return None
        return rights.find_refused_answer(
            member.caller, member.group_id, member.member_id, response.assignment or ()
        )

    def _send_assignment(
        self, member: SessionMember, response: ConsumerGroupHeartbeatResponse
    ) -> None:
        """The client relies on the session timeout in it: the runtime must promise it before."""
        refusal = self._find_refusal(member, response)
        if refusal is not None:
            self.carry_out(member, sm.Fence(refusal))
            return
        if not self._coordinator.promise_session(member.group_id, member.member_id):
            self.carry_out(member, sm.Fence(UnknownMemberId(_EXPIRED)))
            return
        self._output.send(
            make_assignment(
                member,
                response,
                self._coordinator.image,
                self._services.ping_interval_ms,
                self._session_timeout_ms(member.group_id),
            )
        )
        self._offer(member)

    def _session_timeout_ms(self, group_id: GroupId) -> int:
        return self._coordinator.settings_of(group_id).group_consumer_session_timeout_ms

    def _on_change(self, member: SessionMember) -> None:
        """``watch`` may call this before it returns, so the heartbeat waits until it has."""
        if not self._pending:
            self._loop.call_soon(self._ask_for_changes)
        self._pending.append(member)

    def _ask_for_changes(self) -> None:
        pending, self._pending = self._pending, []
        for member in pending:
            self.ask(member, member.handle_change())

    def _unwatch(self, key: MemberKey) -> None:
        watch = self._watches.pop(key, None)
        if watch is not None:
            watch.cancel()

    # ------------------------------------------------------------------- client-side assignors

    def _offer(self, member: SessionMember) -> None:
        """From the answer to its Join on, a member with assignors can be asked to compute."""
        key = (member.group_id, member.member_id)
        if member.names_assignors and key not in self._offers:
            on_asked = partial(self._on_asked, member)
            self._offers[key] = self._coordinator.client_assignments.offer(*key, on_asked)

    def _on_asked(self, member: SessionMember) -> None:
        self._output.send(make_compute(member))

    def withdraw(self, key: MemberKey) -> None:
        """The member cannot be asked to compute until its next Join is answered."""
        offer = self._offers.pop(key, None)
        if offer is not None:
            offer.withdraw()


class _TooManyMembers(GroupError):
    code = ErrorCode.POLICY_VIOLATION
