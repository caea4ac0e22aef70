"""One session stream: the actions that its client sends, and what they lead to.

``SessionStream`` reads and writes, ``SessionMembers`` has the members, ``SessionOutput`` what is
still to be sent; this decodes actions and submits them. All of it runs on the loop. Between
messages, answers and pending changes nothing runs but one timer for all sessions, which sends
the Ping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Final

from coordinator.runtime.api import Answer
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.member_commits import CommitAnswer, submit_commit
from coordinator.service.calls.services import Services
from coordinator.service.session.assignor_actions import NOT_ON_STREAM, AssignorActions
from coordinator.service.session.assignor_messages import decode_client_assignors
from coordinator.service.session.session_members import SessionMembers
from coordinator.service.session.session_output import SessionOutput
from coordinator.service.session.updates import (
    make_commit_result,
    make_fenced,
    make_left,
    make_refused,
    make_superseded,
)
from coordinator.service.streams.backlog import Share
from coordinator.service.streams.session_turns import ACTION_BYTES, ACTIONS, FIRST_ACTIONS
from coordinator.service.wire.decode import (
    JOIN_EPOCH,
    check_id,
    decode_group_id,
    decode_join,
    decode_leave,
    decode_member_id,
    decode_owned,
    decode_stream_commit,
)
from coordinator.service.wire.error_statuses import encode_group_error
from model.access.acls import Operation
from model.caller import Caller
from model.commands.consumer import UNCHANGED
from model.errors import GroupError, InvalidRequest, UnknownMemberId
from model.ids import GroupId, MemberId
from muster.v1 import group_pb2
from security.identity import Identity
from security.quotas.client_quotas import Work
from security.quotas.holdings import Held

COMMIT_ACTION: Final = "GroupService/Session:commit"
"""The name of commits on session streams among the times of calls."""


class SessionViolation(Exception):
    """The client broke the rules of the stream; the message goes out with INVALID_ARGUMENT."""


class Session:
    """The state of one stream. ``wake`` is called when ``next_message`` may have something."""

    def __init__(
        self,
        services: Services,
        peer: str,
        identity: Identity,
        wake: Callable[[], None],
        share: Share | None = None,
    ) -> None:
        self._services = services
        self._coordinator = services.coordinator
        self._peer = peer
        self._identity = identity
        self._stranger = compute_caller(peer, "", identity)
        """The caller of actions for a member that is not on this stream."""
        self._output = SessionOutput(wake, share)
        self._members = SessionMembers(services, self._output)
        self._assignors = AssignorActions(services, self._members, self._output)
        self.is_stopping = False
        self._throttle_s = 0.0
        services.sessions.open(self)
        services.pinger.add(self)

    def take_throttle_s(self) -> float:
        """For how long nothing more may be read: the client is over its quota of requests."""
        throttle_s, self._throttle_s = self._throttle_s, 0.0
        return throttle_s

    @property
    def is_ending(self) -> bool:
        """Whether the client sends no more, or the server stops."""
        return self._output.is_ending

    @property
    def is_idle(self) -> bool:
        """Whether no answer is in flight and nothing waits to be sent."""
        return self._output.is_idle

    @property
    def is_busy(self) -> bool:
        """Whether the limit of pending requests is reached, so that the stream must not read."""
        return self._members.is_busy()

    def receive(self, request: group_pb2.SessionRequest) -> Iterator[None]:
        """Handle one message of the client, in slices. Raises ``SessionViolation``."""
        limit = self._services.settings.grpc_message_actions_max
        if len(request.actions) > limit:
            raise SessionViolation(
                f"{len(request.actions)} actions in one message; at most {limit} are allowed"
            )
        self._members.renew(request.sequence)
        left, after = FIRST_ACTIONS, len(request.actions)
        for action in request.actions:
            if left <= 0:
                left = ACTIONS
                yield
            after -= 1
            if after:  # Its size costs a serialisation: skip it for the last action.
                left -= 1 + action.ByteSize() // ACTION_BYTES
            self._handle(action)

    def next_message(self) -> group_pb2.SessionResponse | None:
        """The next message to write, or ``None`` if there is none."""
        return self._output.next_message()

    def stop(self) -> None:
        """The server stops: send the answers that are owed, then ``Closing``."""
        self.is_stopping = True
        self.end()

    def end(self) -> None:
        """The client has closed its side; responses that are still due are sent."""
        self._output.end()

    def expire(self) -> None:
        """The client's credentials have ended: only what is owed for its commits is still sent.

        Members stay in their groups until their session timeout, for a session with new ones.
        """
        self._members.close()
        self.end()

    def close(self) -> None:
        """Release everything. Members stay in their groups until their session timeout."""
        self._output.close()
        self._services.pinger.remove(self)
        self._members.close()
        self._services.sessions.close(self)

    def ping_if_silent(self, since: float) -> None:
        """Ask whether the application is alive; a session without members is not asked."""
        if self._members:
            self._output.ping_if_silent(since)

    # ------------------------------------------------------------------------------ requests

    def _handle(self, action: group_pb2.MemberAction) -> None:
        kind = action.WhichOneof("action")
        try:
            if self._services.throttle.is_active and kind not in ("join", "commit"):
                self._note(self._caller_of(action))
            match kind:
                case "join":
                    self._on_join(action)
                case "acknowledge":
                    self._on_acknowledge(action)
                case "commit":
                    self._on_commit(action)
                case "leave":
                    self._on_leave(action)
                case "prepare_assignment":
                    self._assignors.prepare(action)
                case "install_assignment":
                    self._assignors.install(action)
                case None:
                    raise InvalidRequest("an action must be one that this server knows")
        except GroupError as error:
            self._refuse(action, error)

    def _note(self, caller: Caller, held: Held | None = None) -> None:
        throttle_s = self._services.throttle.note(caller, held)
        self._throttle_s = max(self._throttle_s, throttle_s)

    def _refuse(self, action: group_pb2.MemberAction, error: GroupError) -> None:
        """Answer an action that could not be submitted with the update of its kind."""
        group_id, member_id = GroupId(action.group_id), MemberId(action.member_id)
        match action.WhichOneof("action"):
            case "commit":
                result = group_pb2.CommitResult(
                    correlation_id=action.commit.correlation_id, error=encode_group_error(error)
                )
                self._output.send(make_commit_result(group_id, member_id, result))
            case "leave":
                self._output.send(make_left(group_id, member_id, 0, error))
            case "prepare_assignment":
                self._assignors.send_prepared(group_id, member_id, error)
            case "install_assignment":
                self._assignors.send_installed(
                    group_id, member_id, action.install_assignment.group_epoch, error
                )
            case "join":
                self._members.detach((group_id, member_id))
                self._output.send(make_refused(group_id, member_id, action.join.join_id, error))
            case _:
                member = self._members.detach((group_id, member_id))
                join_id = 0 if member is None else member.join_id
                self._output.send(make_refused(group_id, member_id, join_id, error))

    def _on_join(self, action: group_pb2.MemberAction) -> None:
        check_id(action.join.client_id, "client_id", self._services.limits)
        caller = compute_caller(self._peer, action.join.client_id, self._identity)
        limits = self._services.limits
        named = decode_client_assignors(action.join.client_assignors, limits)
        heartbeat = decode_join(caller, action, self._coordinator.image, limits, named)
        self._services.access.check_group(caller, Operation.READ, heartbeat.group_id)
        if heartbeat.subscribed_topic_names is not UNCHANGED:
            names = heartbeat.subscribed_topic_names
            self._services.access.check_topics(caller, Operation.DESCRIBE, names)
        key = (heartbeat.group_id, heartbeat.member_id)
        if heartbeat.member_epoch == JOIN_EPOCH:
            self._services.throttle.check(caller, Work.JOIN, Held(*key))
        else:
            self._note(caller, Held(*key))
        member = self._members.enter(key, caller, action.join)
        if member is None:
            # Its connection had stalled: the client has since joined on another stream.
            self._output.send(make_superseded(*key, action.join.join_id))
            return
        # Until its Join is answered, the client ignores requests to compute.
        self._members.withdraw(key)
        self._members.ask(member, member.handle_join(action.join.join_id, heartbeat))

    def _check_speaks(self, caller: Caller, group_id: GroupId, member_id: MemberId) -> None:
        """Raise unless the member's last Join came on this stream: nothing else may act for it."""
        if not self._services.sessions.speaks((group_id, member_id), self._members):
            self._services.access.check_group(caller, Operation.READ, group_id)
            raise UnknownMemberId(NOT_ON_STREAM)

    def _on_acknowledge(self, action: group_pb2.MemberAction) -> None:
        key = (GroupId(action.group_id), MemberId(action.member_id))
        member = self._members.find(key)
        if member is None:
            self._output.send(make_fenced(*key, 0, UnknownMemberId(NOT_ON_STREAM)))
            return
        self._services.access.check_group(member.caller, Operation.READ, member.group_id)
        message = action.acknowledge
        owned = None
        if message.HasField("owned"):
            owned = decode_owned(
                message.owned.topics, self._coordinator.image, self._services.limits
            )
        reaction = member.handle_acknowledge(message.assignment_id, message.member_epoch, owned)
        if reaction is not None:
            self._members.carry_out(member, reaction)

    def _on_commit(self, action: group_pb2.MemberAction) -> None:
        command = decode_stream_commit(self._caller_of(action), action, self._services.limits)
        self._check_speaks(command.caller, command.group_id, command.member_id)
        correlation_id = action.commit.correlation_id
        self._services.throttle.check(command.caller, Work.COMMIT, Held(command.group_id, None))
        self._output.begin_request()
        reply = partial(
            self._on_committed, command.group_id, command.member_id, correlation_id, perf_counter()
        )
        try:
            submit_commit(self._coordinator, self._services.access, command, reply)
        except GroupError:
            self._output.end_request()
            raise

    def _on_committed(
        self,
        group_id: GroupId,
        member_id: MemberId,
        correlation_id: int,
        began_s: float,
        answer: CommitAnswer,
    ) -> None:
        self._output.end_request()
        self._services.times[COMMIT_ACTION].add(perf_counter() - began_s)
        result = group_pb2.CommitResult(
            correlation_id=correlation_id, error=answer.error, failures=answer.failures
        )
        self._output.send(make_commit_result(group_id, member_id, result))

    def _on_leave(self, action: group_pb2.MemberAction) -> None:
        limits = self._services.limits
        caller = self._caller_of(action)
        group_id = decode_group_id(action.group_id, limits)
        member_id = decode_member_id(action.member_id, limits)
        epoch, instance_id = action.leave.member_epoch, action.leave.instance_id
        command = decode_leave(caller, group_id, member_id, epoch, instance_id, limits)
        self._check_speaks(caller, group_id, member_id)
        self._services.access.check_group(caller, Operation.READ, group_id)
        member = self._members.detach((group_id, member_id))
        join_id = 0 if member is None else member.join_id
        self._output.begin_request()
        self._coordinator.submit(command, partial(self._on_left, group_id, member_id, join_id))

    def _on_left(
        self, group_id: GroupId, member_id: MemberId, join_id: int, answer: Answer
    ) -> None:
        self._output.end_request()
        error = answer if isinstance(answer, GroupError) else None
        self._output.send(make_left(group_id, member_id, join_id, error))

    def _caller_of(self, action: group_pb2.MemberAction) -> Caller:
        member = self._members.find((GroupId(action.group_id), MemberId(action.member_id)))
        return self._stranger if member is None else member.caller
