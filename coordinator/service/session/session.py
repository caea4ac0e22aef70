"""One session stream: its members, what they ask and what they are told.

``SessionMember`` decides, ``SessionStream`` reads and writes; this is what joins them to the
coordinator. All of it runs on the loop. Between messages, answers and news nothing runs but one
timer for all sessions, which sends the Ping.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import assert_never

from coordinator.runtime.api import Answer, Watch
from coordinator.runtime.authorizer import Operation
from coordinator.runtime.targets.client_assignments import Offer
from coordinator.service.calls.door import Door
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.member_commits import CommitAnswer, submit_commit
from coordinator.service.session import session_member as sm
from coordinator.service.session.assignor_messages import (
    decode_install,
    decode_local_assignors,
    decode_prepare,
    make_compute,
    make_installed,
    make_prepared,
)
from coordinator.service.session.session_member import Phase, SessionMember
from coordinator.service.session.updates import (
    make_assignment,
    make_commit_result,
    make_fenced,
    make_left,
    make_refused,
    make_superseded,
)
from coordinator.service.streams.backlog import Share
from coordinator.service.streams.outbox import Outbox
from coordinator.service.streams.renewal import Renewal
from coordinator.service.streams.session_turns import ACTION_BYTES, ACTIONS, FIRST_ACTIONS
from coordinator.service.streams.sessions import MemberKey
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
from model.commands import UNCHANGED, Caller, ConsumerGroupHeartbeat
from model.errors import (
    ErrorCode,
    GroupError,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from model.ids import GroupId, MemberId
from model.local_commands import PrepareAssignmentResponse
from model.responses import ConsumerGroupHeartbeatResponse
from muster.v1 import group_pb2

_ENCODED_AT_ONCE = 300
"""Members of a group that is told to one of them; more are encoded in a thread, 20 µs each."""

_numbers = itertools.count(1)

_EXPIRED = "the session has expired, or partitions were not given up in time"
_NOT_ON_STREAM = "this member is not on this stream: join or resume it first"


class SessionViolation(Exception):
    """The client broke the rules of the stream; the message goes out with INVALID_ARGUMENT."""


class Session:
    """The state of one stream. ``wake`` is called when ``next_message`` may have something."""

    def __init__(
        self, door: Door, peer: str, wake: Callable[[], None], share: Share | None = None
    ) -> None:
        self.number = next(_numbers)
        self._door = door
        self._coordinator = door.coordinator
        self._peer = peer
        self._stranger = compute_caller(peer, "")
        """Who acts as a member that is not on this stream."""
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._members: dict[MemberKey, SessionMember] = {}
        self._watches: dict[MemberKey, Watch] = {}
        self._offers: dict[MemberKey, Offer] = {}
        """Of members that can be asked to compute."""
        self._renewal = Renewal(door.coordinator)
        self._news: list[SessionMember] = []
        self._outbox = Outbox(share)
        self._in_flight = 0
        self._touch_at = 0.0
        self._sent_at = self._loop.time()
        self._is_open = True
        self.is_stopping = False
        self.is_ending = False
        door.sessions.open(self)
        door.pinger.add(self)

    @property
    def is_idle(self) -> bool:
        """Whether no answer is owed and nothing waits to be sent."""
        return not self._in_flight and not self._outbox

    @property
    def is_busy(self) -> bool:
        """Whether so much is pending that nothing more should be read."""
        limit = self._door.settings.grpc_stream_pending_max + len(self._members)
        return self._in_flight + len(self._outbox) > limit

    def receive(self, request: group_pb2.SessionRequest) -> Iterator[None]:
        """Handles one message of the client, in slices. Raises ``SessionViolation``."""
        limit = self._door.settings.grpc_message_actions_max
        if len(request.actions) > limit:
            raise SessionViolation(
                f"{len(request.actions)} actions in one message; at most {limit} are allowed"
            )
        self._renew(request.sequence)
        left, after = FIRST_ACTIONS, len(request.actions)
        for action in request.actions:
            if left <= 0:
                left = ACTIONS
                yield
            after -= 1
            if after:  # To know its size it is serialised.
                left -= 1 + action.ByteSize() // ACTION_BYTES
            self._handle(action)

    def next_message(self) -> group_pb2.SessionResponse | None:
        """What to send now; ``None`` where nothing is."""
        message = self._outbox.next_message()
        if message is not None:
            self._sent_at = self._loop.time()
        return message

    def stop(self) -> None:
        """The server stops: answers that are owed still go out, then ``Closing``."""
        self.is_stopping = True
        self.end()

    def end(self) -> None:
        """The client sends no more; what it is owed still goes out."""
        self.is_ending = True
        self._wake()

    def close(self) -> None:
        """Lets go of everything. Members stay in their groups until their session timeout."""
        self._is_open = False
        self._outbox.clear()
        self._door.pinger.remove(self)
        for key in tuple(self._members):
            self._detach(key)
        self._door.sessions.close(self)

    def ping_if_silent(self, since: float) -> None:
        """Asks whether the application is alive. Nobody need answer for a session of no one."""
        if self._members and self._sent_at <= since:
            self._outbox.add_ping()
            self._wake()

    def supersede(self, key: MemberKey) -> None:
        """A newer session has resumed the member."""
        member = self._detach(key)
        if member is not None:
            self._tell(make_superseded(*key, member.join_id))

    # ------------------------------------------------------------------------------ requests

    def _renew(self, sequence: int) -> None:
        """Any message renews all members, but not more often than a client can profit from."""
        now = self._loop.time()
        if now < self._touch_at:
            return
        self._touch_at = now + self._door.touch_interval_s
        gone = self._renewal.renew(tuple(self._members), time.monotonic_ns() // 1_000_000)
        self._outbox.renewed_sequence = sequence
        for key in gone:
            member = self._members[key]
            if member.is_answered:
                # Whatever is being asked for it: the client takes the message for a renewal.
                self._carry_out(member, sm.Fence(UnknownMemberId(_EXPIRED)))

    def _handle(self, action: group_pb2.MemberAction) -> None:
        kind = action.WhichOneof("action")
        try:
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
                    self._on_prepare(action)
                case "install_assignment":
                    self._on_install(action)
                case None:
                    raise InvalidRequest("an action must be one that this server knows")
        except GroupError as error:
            self._refuse(action, error)

    def _refuse(self, action: group_pb2.MemberAction, error: GroupError) -> None:
        """What could not even be submitted is answered in the words of its kind."""
        group_id, member_id = GroupId(action.group_id), MemberId(action.member_id)
        match action.WhichOneof("action"):
            case "commit":
                result = group_pb2.CommitResult(
                    correlation_id=action.commit.correlation_id, error=encode_group_error(error)
                )
                self._tell(make_commit_result(group_id, member_id, result))
            case "leave":
                self._tell(make_left(group_id, member_id, 0, error))
            case "prepare_assignment":
                self._on_prepared(group_id, member_id, error)
            case "install_assignment":
                self._on_installed(
                    group_id, member_id, action.install_assignment.group_epoch, error
                )
            case "join":
                self._detach((group_id, member_id))
                self._tell(make_refused(group_id, member_id, action.join.join_id, error))
            case _:
                member = self._detach((group_id, member_id))
                join_id = 0 if member is None else member.join_id
                self._tell(make_refused(group_id, member_id, join_id, error))

    def _on_join(self, action: group_pb2.MemberAction) -> None:
        check_id(action.join.client_id, "client_id", self._door.limits)
        caller = compute_caller(self._peer, action.join.client_id)
        limits = self._door.limits
        named = decode_local_assignors(action.join.local_assignors, limits)
        heartbeat = decode_join(caller, action, self._coordinator.image, limits, named)
        self._door.access.check_group(caller, Operation.READ, heartbeat.group_id)
        if heartbeat.subscribed_topic_names is not UNCHANGED:
            names = heartbeat.subscribed_topic_names
            self._door.access.check_topics(caller, Operation.DESCRIBE, names)
        key = (heartbeat.group_id, heartbeat.member_id)
        member = self._enter(key, caller, action.join)
        if member is None:
            # The client has joined over another stream since: this is what its connection held.
            self._tell(make_superseded(*key, action.join.join_id))
            return
        # It hears nothing until the answer to the Join.
        self._withdraw(key)
        self._ask(member, member.handle_join(action.join.join_id, heartbeat))

    def _enter(self, key: MemberKey, caller: Caller, join: group_pb2.Join) -> SessionMember | None:
        """The member, on this stream from now on; ``None`` where another one has it."""
        member = self._members.get(key)
        limit = self._door.settings.grpc_stream_members_max
        if member is None and len(self._members) >= limit:
            raise _TooManyMembers(f"this stream has {limit} members: open another one")
        if self._is_of_another(key, join):
            return None
        if not self._door.sessions.enter(key, self, join.join_id, join.incarnation):
            return None
        if member is None:
            member = self._members[key] = SessionMember(*key, caller)
            self._renewal.forget()
        return member

    def _is_of_another(self, key: MemberKey, join: group_pb2.Join) -> bool:
        """Whether the member that the Join resumes is somebody else's now.

        Raises for whoever begins with the id of a member that may hold a lease: it has neither
        left nor expired, and is not known to be of this incarnation.
        """
        sessions, incarnation = self._door.sessions, join.incarnation
        if not incarnation:
            return False
        if join.member_epoch != JOIN_EPOCH:
            return sessions.knows_another(key, incarnation)
        if not sessions.knows(key, incarnation) and self._coordinator.has_member(*key):
            raise UnreleasedInstanceId(
                f"Another client uses member id {key[1]}, and has not left the group."
            )
        return False

    def _check_speaks(self, caller: Caller, group_id: GroupId, member_id: MemberId) -> None:
        """What is said of a member counts on the stream of its last Join alone."""
        if not self._door.sessions.speaks((group_id, member_id), self):
            self._door.access.check_group(caller, Operation.READ, group_id)
            raise UnknownMemberId(_NOT_ON_STREAM)

    def _on_acknowledge(self, action: group_pb2.MemberAction) -> None:
        key = (GroupId(action.group_id), MemberId(action.member_id))
        member = self._members.get(key)
        if member is None:
            self._tell(make_fenced(*key, 0, UnknownMemberId(_NOT_ON_STREAM)))
            return
        self._door.access.check_group(member.caller, Operation.READ, member.group_id)
        said = action.acknowledge
        owned = None
        if said.HasField("owned"):
            owned = decode_owned(said.owned.topics, self._coordinator.image, self._door.limits)
        reaction = member.handle_acknowledge(said.assignment_id, said.member_epoch, owned)
        if reaction is not None:
            self._carry_out(member, reaction)

    def _on_commit(self, action: group_pb2.MemberAction) -> None:
        command = decode_stream_commit(self._caller_of(action), action, self._door.limits)
        self._check_speaks(command.caller, command.group_id, command.member_id)
        correlation_id = action.commit.correlation_id
        self._in_flight += 1
        reply = partial(self._on_committed, command.group_id, command.member_id, correlation_id)
        try:
            submit_commit(self._coordinator, self._door.access, command, reply)
        except GroupError:
            self._in_flight -= 1
            raise

    def _on_committed(
        self, group_id: GroupId, member_id: MemberId, correlation_id: int, answer: CommitAnswer
    ) -> None:
        self._in_flight -= 1
        result = group_pb2.CommitResult(
            correlation_id=correlation_id, error=answer.error, failures=answer.failures
        )
        self._tell(make_commit_result(group_id, member_id, result))

    def _on_leave(self, action: group_pb2.MemberAction) -> None:
        limits = self._door.limits
        caller = self._caller_of(action)
        group_id = decode_group_id(action.group_id, limits)
        member_id = decode_member_id(action.member_id, limits)
        epoch, instance_id = action.leave.member_epoch, action.leave.instance_id
        command = decode_leave(caller, group_id, member_id, epoch, instance_id, limits)
        self._check_speaks(caller, group_id, member_id)
        self._door.access.check_group(caller, Operation.READ, group_id)
        member = self._detach((group_id, member_id))
        join_id = 0 if member is None else member.join_id
        self._in_flight += 1
        self._coordinator.submit(command, partial(self._on_left, group_id, member_id, join_id))

    def _on_prepare(self, action: group_pb2.MemberAction) -> None:
        member = self._find_computing(action)
        self._in_flight += 1
        self._coordinator.submit(
            decode_prepare(
                member.caller, member.group_id, member.member_id, action.prepare_assignment
            ),
            partial(self._on_prepared, member.group_id, member.member_id, is_answer=True),
        )

    def _on_prepared(
        self, group_id: GroupId, member_id: MemberId, answer: Answer, is_answer: bool = False
    ) -> None:
        self._in_flight -= is_answer
        assert isinstance(answer, PrepareAssignmentResponse | GroupError)
        join_id, image = self._join_id_of((group_id, member_id)), self._coordinator.image
        make = partial(make_prepared, group_id, member_id, join_id, answer, image)
        if isinstance(answer, GroupError) or len(answer.members) <= _ENCODED_AT_ONCE:
            self._tell(make())
            return
        self._in_flight += 1
        self._loop.run_in_executor(None, make).add_done_callback(self._on_encoded)

    def _on_encoded(self, encoded: asyncio.Future[group_pb2.MemberUpdate]) -> None:
        self._in_flight -= 1
        if not encoded.cancelled():
            self._tell(encoded.result())

    def _on_install(self, action: group_pb2.MemberAction) -> None:
        member, said = self._find_computing(action), action.install_assignment
        group_id, member_id = member.group_id, member.member_id
        image, limits = self._coordinator.image, self._door.limits
        command = decode_install(member.caller, group_id, member_id, said, image, limits)
        self._in_flight += 1
        self._coordinator.submit(
            command,
            partial(self._on_installed, group_id, member_id, said.group_epoch, is_answer=True),
        )

    def _on_installed(
        self,
        group_id: GroupId,
        member_id: MemberId,
        group_epoch: int,
        answer: Answer,
        is_answer: bool = False,
    ) -> None:
        self._in_flight -= is_answer
        error = answer if isinstance(answer, GroupError) else None
        join_id = self._join_id_of((group_id, member_id))
        self._tell(make_installed(group_id, member_id, join_id, group_epoch, error))

    def _find_computing(self, action: group_pb2.MemberAction) -> SessionMember:
        member = self._members.get((GroupId(action.group_id), MemberId(action.member_id)))
        if member is None:
            raise UnknownMemberId(_NOT_ON_STREAM)
        self._door.access.check_group(member.caller, Operation.READ, member.group_id)
        return member

    def _join_id_of(self, key: MemberKey) -> int:
        member = self._members.get(key)
        return 0 if member is None else member.join_id

    def _on_left(
        self, group_id: GroupId, member_id: MemberId, join_id: int, answer: Answer
    ) -> None:
        self._in_flight -= 1
        error = answer if isinstance(answer, GroupError) else None
        self._tell(make_left(group_id, member_id, join_id, error))

    def _caller_of(self, action: group_pb2.MemberAction) -> Caller:
        member = self._members.get((GroupId(action.group_id), MemberId(action.member_id)))
        return self._stranger if member is None else member.caller

    # ------------------------------------------------------------------------------- members

    def _ask(self, member: SessionMember, ask: sm.Ask | None) -> None:
        if ask is None:
            return
        self._unwatch((member.group_id, member.member_id))
        self._in_flight += 1
        heartbeat: ConsumerGroupHeartbeat = ask.heartbeat
        self._coordinator.submit(heartbeat, partial(self._on_answer, member))

    def _on_answer(self, member: SessionMember, answer: Answer) -> None:
        # Nothing may be told of it, and yet who waits to read, or to end, must hear of it.
        is_awaited = self.is_ending or self.is_busy
        self._in_flight -= 1
        if member.phase is not Phase.GONE and self._is_open:
            assert isinstance(answer, ConsumerGroupHeartbeatResponse | GroupError)
            self._carry_out(member, member.handle_answer(answer))
        if is_awaited:
            self._wake()

    def _carry_out(self, member: SessionMember, reaction: sm.Reaction) -> None:
        key = (member.group_id, member.member_id)
        match reaction:
            case sm.Ask():
                self._ask(member, reaction)
            case sm.Tell(response):
                self._tell_assignment(member, response)
            case sm.Watch():
                self._unwatch(key)
                on_news = partial(self._on_news, member)
                on_dropped = partial(self.supersede, key)
                self._watches[key] = self._coordinator.watch(*key, on_news, self.number, on_dropped)
            case sm.Fence(error):
                self._detach(key)
                self._tell(make_fenced(*key, member.join_id, error))
            case sm.Refuse(error):
                if member.phase is Phase.GONE:
                    self._detach(key)
                self._tell(make_refused(*key, member.join_id, error))
            case _:
                assert_never(reaction)

    def _tell_assignment(
        self, member: SessionMember, response: ConsumerGroupHeartbeatResponse
    ) -> None:
        """The client counts on the session timeout that it is told: it must be promised before."""
        if not self._coordinator.promise_session(member.group_id, member.member_id):
            self._carry_out(member, sm.Fence(UnknownMemberId(_EXPIRED)))
            return
        self._tell(
            make_assignment(
                member,
                response,
                self._coordinator.image,
                self._door.ping_interval_ms,
                self._session_timeout_ms(member.group_id),
            )
        )
        self._offer(member)

    def _offer(self, member: SessionMember) -> None:
        """A member that is told of its Join, and names assignors, can be asked from then on."""
        key = (member.group_id, member.member_id)
        if member.names_assignors and key not in self._offers:
            ask = partial(self._on_asked, member)
            self._offers[key] = self._coordinator.local_assignments.offer(*key, ask)

    def _on_asked(self, member: SessionMember) -> None:
        self._tell(make_compute(member))

    def _withdraw(self, key: MemberKey) -> None:
        offer = self._offers.pop(key, None)
        if offer is not None:
            offer.withdraw()

    def _session_timeout_ms(self, group_id: GroupId) -> int:
        return self._coordinator.settings_of(group_id).group_consumer_session_timeout_ms

    def _on_news(self, member: SessionMember) -> None:
        """Called within ``watch`` too: what it leads to waits until that has returned."""
        if not self._news:
            self._loop.call_soon(self._ask_for_news)
        self._news.append(member)

    def _ask_for_news(self) -> None:
        news, self._news = self._news, []
        for member in news:
            self._ask(member, member.handle_news())

    def _detach(self, key: MemberKey) -> SessionMember | None:
        member = self._members.pop(key, None)
        if member is None:
            return None
        member.phase = Phase.GONE
        self._renewal.forget()
        self._unwatch(key)
        self._withdraw(key)
        self._door.sessions.leave(key, self)
        return member

    def _unwatch(self, key: MemberKey) -> None:
        watch = self._watches.pop(key, None)
        if watch is not None:
            watch.cancel()

    def _tell(self, update: group_pb2.MemberUpdate) -> None:
        if self._is_open:
            self._outbox.add(update)
            self._wake()


class _TooManyMembers(GroupError):
    code = ErrorCode.POLICY_VIOLATION
