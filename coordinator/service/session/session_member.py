"""One member on one session: when to send a heartbeat, and what to send to the client; pure.

A heartbeat is in flight (ASKING), or an assignment was sent and is not acknowledged yet (TOLD), or
the member waits for a pending change (WATCHING):

    Join, pending change, Acknowledge -> ASKING -> an answer with a change -> TOLD
                                                -> an answer without one   -> WATCHING
    Acknowledge that the core does not wait for                            -> WATCHING

The core waits for an acknowledgement only if partitions had to be revoked. Otherwise no heartbeat
follows the acknowledgement, which halves the work when every member of a group gets a new epoch.

While an assignment is unacknowledged no heartbeat is sent for the member. So the core is never
more than one epoch ahead of the client, which is as much as it tolerates from a member that was
disconnected. And no heartbeat omits a partition from the owned ones while its assignment is still
on its way to the client: the core would take it for revoked and assign it to another member (S2).
For the same reason only an acknowledgement of the latest assignment counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from coordinator.service.wire.error_statuses import FENCING, RETRIABLE
from model.caller import Caller
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, Unchanged
from model.errors import GroupError
from model.ids import GroupId, MemberId, TopicName
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse

Owned: TypeAlias = tuple[TopicPartitions, ...] | None
"""The partitions that a member claims to own; ``None`` while it still reconciles."""


class Phase(Enum):
    ASKING = "asking"
    TOLD = "told"
    WATCHING = "watching"
    GONE = "gone"


class Ask(NamedTuple):
    """Submit this heartbeat."""

    heartbeat: ConsumerGroupHeartbeat


class Tell(NamedTuple):
    """Send this answer to the client."""

    response: ConsumerGroupHeartbeatResponse


class Watch(NamedTuple):
    """Wait for a pending change."""


class Fence(NamedTuple):
    """Send the client the error that fences the member, and forget the member."""

    error: GroupError


class Refuse(NamedTuple):
    """Send the client an error; the member is forgotten if it is ``GONE`` now."""

    error: GroupError


Reaction: TypeAlias = Ask | Tell | Watch | Fence | Refuse


class Joining(NamedTuple):
    """A Join that waits for the heartbeat in flight."""

    join_id: int
    heartbeat: ConsumerGroupHeartbeat


class Acknowledgement(NamedTuple):
    """An Acknowledge that waits for the heartbeat in flight."""

    member_epoch: int
    owned: Owned


@dataclass(slots=True, eq=False)
class SessionMember:
    """A member and its phase; ``member_epoch`` and ``owned`` are those last acknowledged.

    ``is_awaited``: the core waits for the owned partitions once the member has reconciled.
    ``names_assignors``: it can be asked to compute. ``subscribed``: the topic names of its Join.
    """

    group_id: GroupId
    member_id: MemberId
    caller: Caller
    join_id: int = 0
    member_epoch: int = 0
    owned: Owned = ()
    assignment_id: int = 0
    told_epoch: int = 0
    is_awaited: bool = False
    phase: Phase = Phase.TOLD
    is_joining: bool = False
    names_assignors: bool = False
    subscribed: tuple[TopicName, ...] = ()
    waiting: Joining | Acknowledgement | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the last Join was answered: the client relies on being renewed from then on."""
        return not self.is_joining and not isinstance(self.waiting, Joining)

    def handle_join(self, join_id: int, heartbeat: ConsumerGroupHeartbeat) -> Ask | None:
        """The client joins or resumes the member. The full answer supersedes all pending ones."""
        if self.phase is Phase.ASKING:
            self.waiting = Joining(join_id, heartbeat)
            return None
        return self._join(join_id, heartbeat)

    def handle_acknowledge(
        self, assignment_id: int, member_epoch: int, owned: Owned
    ) -> Ask | Watch | None:
        """The client reports its progress with an assignment."""
        if assignment_id != self.assignment_id or isinstance(self.waiting, Joining):
            return None
        if self.phase is Phase.ASKING:
            self.waiting = Acknowledgement(member_epoch, owned)
            return None
        return self._acknowledge(Acknowledgement(member_epoch, owned))

    def handle_change(self) -> Ask | None:
        """A change is pending: the answer to a heartbeat would carry it."""
        if self.phase is not Phase.WATCHING:
            return None
        return self._ask_as(Acknowledgement(self.member_epoch, self.owned))

    def handle_answer(self, answer: ConsumerGroupHeartbeatResponse | GroupError) -> Reaction:
        """The heartbeat in flight was answered."""
        waiting, self.waiting = self.waiting, None
        if isinstance(waiting, Joining):
            return self._join(*waiting)
        if isinstance(answer, GroupError):
            return self._fail(answer)
        if answer.has_changes or self.is_joining:
            # A waiting acknowledgement is of an older assignment: the client will acknowledge this.
            self.phase = Phase.TOLD
            self.is_joining = False
            self.assignment_id += 1
            self.told_epoch = answer.member_epoch
            self.is_awaited = not answer.parkable
            return Tell(answer)
        if waiting is not None:
            return self._acknowledge(waiting)
        self.phase = Phase.WATCHING
        return Watch()

    def _join(self, join_id: int, heartbeat: ConsumerGroupHeartbeat) -> Ask:
        self.phase = Phase.ASKING
        self.is_joining = True
        self.join_id = join_id
        self.caller = heartbeat.caller
        self.member_epoch = heartbeat.member_epoch
        self.owned = heartbeat.owned
        if not isinstance(heartbeat.subscribed_topic_names, Unchanged):
            self.subscribed = heartbeat.subscribed_topic_names or ()
        self.names_assignors = heartbeat.client_assignors not in (UNCHANGED, ())
        return Ask(heartbeat)

    def _acknowledge(self, report: Acknowledgement) -> Ask | Watch:
        is_awaited = self.is_awaited and report.owned is not None
        if is_awaited or report.member_epoch != self.told_epoch:
            return self._ask_as(report)
        self.phase = Phase.WATCHING
        self.member_epoch, self.owned = report
        return Watch()

    def _ask_as(self, report: Acknowledgement) -> Ask:
        self.phase = Phase.ASKING
        self.member_epoch, self.owned = report
        return Ask(
            ConsumerGroupHeartbeat(
                self.caller, self.group_id, self.member_id, self.member_epoch, owned=self.owned
            )
        )

    def _fail(self, error: GroupError) -> Fence | Refuse:
        """A joined member stays if the error is retriable: the client acknowledges again."""
        if self.member_epoch > 0 and error.code in FENCING:
            self.phase = Phase.GONE
            return Fence(error)
        passes = error.code in RETRIABLE and not self.is_joining
        self.phase = Phase.TOLD if passes else Phase.GONE
        self.is_awaited = True
        return Refuse(error)
