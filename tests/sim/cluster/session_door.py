"""The server's side of session streams: the real ``SessionMember``, one member a stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, assert_never

from coordinator.runtime.api import Answer, Watch
from coordinator.service.session import session_member as sm
from coordinator.service.session.session_member import Phase, SessionMember
from coordinator.service.wire.error_statuses import RETRIABLE
from model.caller import Caller
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import FencedMemberEpoch, GroupError, UnknownMemberId
from model.ids import GroupId, MemberId
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.sim.checkers.observed import ObservedRuntime
from tests.sim.cluster.door import WireDoor
from tests.sim.cluster.process import ServerProcess

Key = tuple[GroupId, MemberId]


class Join(NamedTuple):
    join_id: int
    heartbeat: ConsumerGroupHeartbeat


class Acknowledge(NamedTuple):
    assignment_id: int
    member_epoch: int
    owned: tuple[TopicPartitions, ...] | None


class Leave(NamedTuple):
    command: Command


class Commit(NamedTuple):
    command: Command


class Pong(NamedTuple):
    pass


Action = Join | Acknowledge | Leave | Commit | Pong


class Update(NamedTuple):
    """One message to the client. ``kind``: assignment, fenced, refused, left or nothing."""

    kind: str
    renewed_sequence: int
    join_id: int = 0
    assignment_id: int = 0
    answer: Any = None


class Sessions:
    """Which stream speaks for which member, in one process."""

    def __init__(
        self,
        process: ServerProcess,
        runtime: ObservedRuntime,
        door: WireDoor,
    ) -> None:
        self.process = process
        self.runtime = runtime
        self.door = door
        self.speakers: dict[Key, Stream] = {}


class Stream:
    """The server's end of one stream."""

    def __init__(self, sessions: Sessions, key: Key, send: Callable[[Update], None]) -> None:
        self._sessions = sessions
        self._key = key
        self._send = send
        self._member: SessionMember | None = None
        self._watch: Watch | None = None
        self._renewed_sequence = 0

    def receive(self, sequence: int, action: Action) -> None:
        """A message of the client."""
        self._renew(sequence)
        match action:
            case Join(join_id, heartbeat):
                self._join(join_id, heartbeat)
            case Acknowledge():
                if self._member is None:
                    self._tell("fenced", answer=UnknownMemberId("not on this stream"))
                    return
                reaction = self._member.handle_acknowledge(*action)
                if reaction is not None:
                    self._carry_out(self._member, reaction)
            case Leave(command):
                self._detach()
                self._sessions.door.submit(self, command, self._left)
            case Commit(command):
                self._sessions.door.submit(self, command, lambda _: None)
            case Pong():
                self._tell("nothing")

    def _renew(self, sequence: int) -> None:
        self._renewed_sequence = sequence
        member = self._member
        if member is None or self._sessions.runtime.touch(*self._key):
            return
        if member.phase is not Phase.ASKING:
            self._carry_out(member, sm.Fence(UnknownMemberId("the session has expired")))

    def _join(self, join_id: int, heartbeat: ConsumerGroupHeartbeat) -> None:
        member = self._member
        if member is None:
            older = self._sessions.speakers.get(self._key)
            if older is not None:
                older.supersede()
            caller: Caller = heartbeat.caller
            member = self._member = SessionMember(*self._key, caller)
            self._sessions.speakers[self._key] = self
        self._ask(member, member.handle_join(join_id, heartbeat))

    def supersede(self) -> None:
        """A newer stream speaks for the member."""
        self._detach()

    def _ask(self, member: SessionMember, ask: sm.Ask | None) -> None:
        if ask is None:
            return
        self._unwatch()
        answered = partial(self._answered, member)
        self._sessions.door.submit(self, ask.heartbeat, answered, may_park=False)

    def _answered(self, member: SessionMember, answer: Answer) -> None:
        if member.phase is Phase.GONE:
            return
        assert isinstance(answer, ConsumerGroupHeartbeatResponse | GroupError)
        self._carry_out(member, member.handle_answer(answer))

    def _carry_out(self, member: SessionMember, reaction: sm.Reaction) -> None:
        match reaction:
            case sm.Ask():
                self._ask(member, reaction)
            case sm.Tell(response):
                self._tell("assignment", member, response)
            case sm.Watch():
                self._unwatch()
                on_change = partial(self._on_change, member)
                self._watch = self._sessions.runtime.watch(
                    *self._key, on_change, on_dropped=partial(self._on_dropped, member)
                )
            case sm.Fence(error):
                self._detach()
                self._tell("fenced", member, error)
            case sm.Refuse(error):
                if member.phase is Phase.GONE:
                    self._detach()
                kind = "refused" if error.code in RETRIABLE else "fenced"
                self._tell(kind, member, error)
            case _:
                assert_never(reaction)

    def _on_dropped(self, member: SessionMember) -> None:
        """The member is heard by other means, perhaps late: its client is told, and joins again."""
        self._detach()
        self._tell("fenced", member, FencedMemberEpoch("another connection speaks for it"))

    def _on_change(self, member: SessionMember) -> None:
        self._sessions.process.call_soon(lambda: self._ask(member, member.handle_change()))

    def _left(self, answer: Answer) -> None:
        self._tell("left", answer=answer)

    def _detach(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            member.phase = Phase.GONE
        self._unwatch()
        if self._sessions.speakers.get(self._key) is self:
            del self._sessions.speakers[self._key]

    def _unwatch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()

    def _tell(self, kind: str, member: SessionMember | None = None, answer: Any = None) -> None:
        join_id = 0 if member is None else member.join_id
        assignment_id = 0 if member is None else member.assignment_id
        self._send(Update(kind, self._renewed_sequence, join_id, assignment_id, answer))
