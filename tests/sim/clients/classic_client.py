"""A member of the classic protocol: eager or cooperative, dynamic or static, a leader or not.

It joins, asks for its assignment, says that it is alive, and joins again when it is told to, as
Kafka's clients do: one that is eager gives up everything before it joins, a cooperative one
(KIP-429) what the assignment lacks once it has it, and then joins again. In a consumer group it
does the same: that it speaks another protocol than others there it cannot know.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from coordinator.runtime.api import Answer
from model.commands.classic import (
    AssignmentFailure,
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.commands.command import Command
from model.commands.consumer import LeaveGroup, LeavingMember
from model.commands.offsets import OffsetCommit
from model.errors import ErrorCode, GroupError, MemberIdRequired
from model.ids import MemberId, TopicName
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from muster.assignors import classic
from muster.assignors.embedded import MalformedProtocolError
from tests.sim.checkers.violations import check
from tests.sim.clients.client import CALLER, Client, Habits
from tests.sim.cluster.network import Way
from tests.support.shadow import Place

if TYPE_CHECKING:
    from tests.sim.world import World

COOPERATIVE = "cooperative-sticky"
"""What every member can follow, so that they have one protocol in common."""
EAGER_PROTOCOLS = (("range", COOPERATIVE), (COOPERATIVE, "range"), ("roundrobin", COOPERATIVE))
NONSENSE = b"\x00\x01no subscription"

REQUEST_TIMEOUT_MS = 2_000
RETRY_MS = 100
REFUSED_RETRY_MS = 2_000
REFRESH_MS = 3_000
LEAVE_RETRIES = 3


@dataclass(frozen=True)
class ClassicHabits:
    """What a classic member is, by its seed."""

    is_cooperative: bool
    version: int
    """Of what it says of its subscription."""
    protocols: tuple[str, ...]
    session_timeout_ms: int
    requires_member_id: bool
    may_skip_assignment: bool
    patience_ms: int
    """How long it waits for the answer to a join before it asks again."""
    talks_nonsense: bool


def choose_classic_habits(rng: random.Random, talks_nonsense: bool) -> ClassicHabits:
    is_cooperative = rng.random() < 0.5
    requires_member_id = rng.random() < 0.8
    return ClassicHabits(
        is_cooperative,
        rng.choice((1, 2, 3, 3)) if is_cooperative else rng.choice((0, 1, 3, 3)),
        (COOPERATIVE,) if is_cooperative else rng.choice(EAGER_PROTOCOLS),
        rng.choice((6_000, 10_000, 20_000)),
        requires_member_id=requires_member_id,
        may_skip_assignment=rng.random() < 0.6,
        # Without an id each request is another member, which the others wait for.
        patience_ms=rng.choice((3_000, 8_000, 20_000)) if requires_member_id else 20_000,
        talks_nonsense=talks_nonsense,
    )


class ClassicClient(Client):
    """One request of the rebalance at a time, heartbeats beside it. Its epoch is a generation."""

    # Generation 0 is one: of an instance whose predecessor in an upgraded group may still read.
    no_epoch = -1

    def __init__(
        self,
        world: World,
        group: str,
        name: str,
        names: tuple[str, ...],
        habits: Habits,
        classic_habits: ClassicHabits,
    ) -> None:
        super().__init__(world, group, name, names, habits)
        self.classic = classic_habits
        self.name = name
        self.is_settled = False
        """Whether it has its assignment, and nothing to do."""
        self.is_passed_over = False
        """An instance for which a generation has begun without it, which it cannot know yet."""
        self._id: MemberId | None = None
        self._to_server = Way(world.network, "message lost")
        self._to_client = Way(world.network, "response lost")
        self._request = 0
        self._asked = 0
        """The request that it waits for: a join, a sync or its leaving; 0 for none."""
        self._is_asking_to_join = False
        self._wants_join = False
        self._said_names: tuple[TopicName, ...] = ()
        self._synced_generation = self.no_epoch
        self._revoking: set[Place] = set()
        self._leads: dict[str, int] | None = None
        """Of a leader: the partitions of its group's topics, as it assigned them."""
        self._leaves_left = 0
        self._returns_after_ms: int | None = None

    def start(self) -> None:
        self._join()
        self._keep_alive()
        self.later(self.habits.commit_every_ms, self._commit)
        self.later(REFRESH_MS, self._refresh)

    def change_names(self, names: tuple[str, ...]) -> None:
        self.names = tuple(TopicName(name) for name in names)
        self.join_again()

    @property
    def believes(self) -> bool:
        return not self.is_passed_over and super().believes

    # -------------------------------------------------------------------------------- requests

    def _send(self, command: Command, receive: Callable[[int, Answer], None]) -> int:
        self._request += 1
        request = self._request
        is_known = not isinstance(command, JoinGroup) or command.member_id is not None

        def send(answer: Answer) -> None:
            arrive = partial(receive, request, answer)
            self._to_client.carry(lambda: self.world.deliver_to(self, arrive, answer))

        def deliver() -> None:
            # Whoever has no id yet is another member with each request.
            times = 2 if is_known and self.world.faults.strikes("message duplicated") else 1
            self.world.deliver(self, command, send, times)

        self._to_server.carry(deliver)
        return request

    def _ask(self, command: Command, timeout_ms: int) -> None:
        self._is_asking_to_join = isinstance(command, JoinGroup)
        request = self._asked = self._send(command, self._receive)
        self.later(timeout_ms, partial(self._timed_out, request))

    def _timed_out(self, request: int) -> None:
        if request == self._asked:
            self._asked = 0
            if self.is_out:
                self._send_leave()
            else:
                self._join()

    def _receive(self, request: int, answer: Answer) -> None:
        """An answer to what it waits for; any other means nothing."""
        if request != self._asked:
            return
        self._asked = 0
        if self.is_out:
            self._left()
            return
        match answer:
            case JoinGroupResponse():
                self._joined(answer)
            case SyncGroupResponse():
                self._assigned(answer)
            case GroupError():
                self._refused(answer)
            case _:
                raise AssertionError(f"{answer} to a join or sync")

    def _refused(self, error: GroupError) -> None:
        code = error.code
        retry_ms = RETRY_MS
        if isinstance(error, MemberIdRequired):
            self._take_id(MemberId(error.member_id))
            if self.world.faults.strikes("pending member dies"):
                if self.random.random() < 0.5:
                    self.leave(None)
                else:
                    self.world.on_died(self)
                return
            retry_ms = 0
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            # Its instance is another process now; Kafka's clients give up too.
            self.crash()
            return
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._forget(keeps_id=code is ErrorCode.ILLEGAL_GENERATION)
        elif code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
            self._forget(keeps_id=False)
            retry_ms = REFUSED_RETRY_MS
        self._wants_join = True
        self.later(retry_ms, self._join_if_wanted)

    def _take_id(self, member_id: MemberId) -> None:
        self._id = member_id
        if member_id != self.member_id:
            self.is_passed_over = False
            self.world.rename(self, member_id)

    def _forget(self, keeps_id: bool) -> None:
        """It is of another generation than it thought, or no member at all."""
        self.abandon()
        if not keeps_id:
            self._id = None

    def abandon(self) -> None:
        super().abandon()
        self.is_settled = False
        self._leads = None
        self._revoking = set()
        self._synced_generation = self.no_epoch

    # --------------------------------------------------------------------------------- joining

    def join_again(self) -> None:
        """As soon as what it waits for has come."""
        self._wants_join = True
        self._join_if_wanted()

    def _join_if_wanted(self) -> None:
        if self._wants_join:
            self._join()

    def _join(self) -> None:
        if self._asked or self.is_out or self.is_revoking:
            return
        self.abandon_if_expired()
        self.is_settled = False
        if self.owned and not self.classic.is_cooperative:
            self._give_up(set(self.owned))
            return
        self._wants_join = False
        self._said_names = self.names
        habits = self.classic
        command = JoinGroup(
            CALLER,
            self.group_id,
            self._id,
            self.world.make_member_id(self.name),
            habits.session_timeout_ms,
            self.habits.rebalance_timeout_ms,
            "consumer",
            tuple(JoinProtocol(name, self._metadata(name)) for name in habits.protocols),
            self.instance_id,
            habits.requires_member_id,
            habits.may_skip_assignment,
        )
        self._ask(command, habits.patience_ms)

    def _metadata(self, protocol: str) -> bytes:
        """What it says for a protocol: its topics, and what it owns since when."""
        if self.classic.talks_nonsense and self.world.faults.is_on("nonsense said"):
            self.world.faults.note("nonsense said")
            return NONSENSE
        owned: dict[str, list[int]] = {}
        for name, partition in sorted(self._named(self.owned)):
            owned.setdefault(name, []).append(partition)
        # Who owns nothing need not say since when, so that it always says the same.
        generation = self.epoch if self.classic.is_cooperative else self.no_epoch
        member = classic.Member(
            self.member_id, self.names, self.instance_id, owned=owned, generation=generation
        )
        return classic.encode_member_metadata(protocol, member, self.classic.version)

    def _named(self, places: set[Place]) -> set[tuple[str, int]]:
        names = self.world.topic_names
        return {(names[topic_id], partition) for topic_id, partition in places}

    def extend_lease(self, sent_ms: int) -> None:
        self.lease_until_ms = max(self.lease_until_ms, sent_ms + self.classic.session_timeout_ms)

    def _joined(self, answer: JoinGroupResponse) -> None:
        self._take_id(answer.member_id)
        self.epoch = answer.generation
        self.extend_lease(self.world.classic.answered_ms(answer))
        is_leader = answer.leader == answer.member_id
        may_die = is_leader or self.random.random() < 0.3
        if may_die and self.world.faults.strikes("member dies before its sync"):
            self.world.on_died(self)
            return
        self._leads = None
        failure = None
        assignments: tuple[MemberAssignment, ...] = ()
        if is_leader:
            try:
                assignments = self._assign(answer)
            except MalformedProtocolError as error:
                failure = AssignmentFailure(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
            if self.world.faults.strikes("leader fails"):
                failure = AssignmentFailure(ErrorCode.UNKNOWN_SERVER_ERROR, "it cannot assign")
        command = SyncGroup(
            CALLER,
            self.group_id,
            answer.member_id,
            answer.generation,
            () if failure is not None else assignments,
            self.instance_id,
            answer.protocol_type,
            answer.protocol_name,
            failure,
        )
        self._ask(command, self.classic.patience_ms)

    def _assign(self, answer: JoinGroupResponse) -> tuple[MemberAssignment, ...]:
        """What a leader does, if it may."""
        image = self.world.runtime.image.by_name
        counts = {str(name): topic.partitions for name, topic in image.items()}
        self._leads = counts
        if answer.skip_assignment:
            return ()
        assert answer.protocol_name is not None, "a leader is told the protocol"
        joined = [
            classic.JoinedMember(each.member_id, each.instance_id, each.metadata)
            for each in answer.members
        ]
        given = classic.compute_assignment_bytes(answer.protocol_name, joined, counts)
        return tuple(
            MemberAssignment(MemberId(member_id), assignment)
            for member_id, assignment in given.items()
        )

    def _refresh(self) -> None:
        """A leader looks whether topics have changed."""
        self.later(REFRESH_MS, self._refresh)
        if self.is_out or not self.world.is_up:
            return
        if self.leads_what_has_changed:
            self._leads = None
            self.join_again()

    @property
    def leads_what_has_changed(self) -> bool:
        """Whether it leads, and topics are not what they were when it assigned them."""
        image = self.world.runtime.image.by_name
        counts = {str(name): topic.partitions for name, topic in image.items()}
        return self._leads is not None and self._leads != counts

    # ------------------------------------------------------------------------------ assignments

    def _assigned(self, answer: SyncGroupResponse) -> None:
        given = set(self.world.classic.meaning(answer))
        if self.epoch == self.no_epoch:
            # Its lease has ended while it waited for this, and with it the generation.
            self._join()
            return
        before = self._synced_generation
        check(self.epoch >= before, "S5", f"{self.member_id} at {before} has {self.epoch}")
        self._synced_generation = self.epoch
        self.extend_lease(self.world.classic.answered_ms(answer))
        if self.abandon_if_expired():
            # It stood still since then, and the answer is as old.
            self._join()
            return
        given_names = self._named(given)
        names = self.world.topic_names
        revoked = {place for place in self.owned if (names[place[0]], place[1]) not in given_names}
        # A topic that is made anew has its name, and to clients of names it is the same.
        self.owned &= given | revoked
        self.is_settled = True
        self.gain(given - self.owned)
        if revoked:
            self._wants_join = True
            self._give_up(revoked)
        elif self._wants_join or self.names != self._said_names:
            self._join()

    def _give_up(self, revoked: set[Place]) -> None:
        self._revoking = revoked
        self.is_settled = False
        self._begin_revoke(revoked)

    def resume_revoking(self) -> None:
        if self.is_revoking:
            self.is_revoking = False
            self._incarnation += 1
            self.owned -= self._revoking
            self.revoked()

    def revoked(self) -> None:
        self._revoking = set()
        self._wants_join = True
        self._join_if_wanted()

    def can_gain(self) -> bool:
        return True

    # ------------------------------------------------------------------------------ heartbeats

    def _keep_alive(self) -> None:
        self.later(self.world.settings.group_consumer_heartbeat_interval_ms, self._keep_alive)
        is_member = self._id is not None and self.epoch > self.no_epoch
        if self.is_out or not is_member or (self._asked and self._is_asking_to_join):
            return
        if self.abandon_if_expired():
            self.join_again()
            return
        assert self._id is not None
        command = ClassicHeartbeat(CALLER, self.group_id, self._id, self.epoch, self.instance_id)
        said = (self._id, self.epoch, self._incarnation, self.world.time.now_ms)
        self._send(command, lambda _, answer: self._heard(said, answer))

    def _heard(self, said: tuple[MemberId, int, int, int], answer: Answer) -> None:
        """The answer to a heartbeat; one of another generation says nothing of this one."""
        member_id, generation, incarnation, sent_ms = said
        if (member_id, generation, incarnation) != (self._id, self.epoch, self._incarnation):
            return
        if self.is_out:
            return
        code = answer.code if isinstance(answer, GroupError) else ErrorCode.NONE
        match code:
            case ErrorCode.NONE | ErrorCode.REBALANCE_IN_PROGRESS:
                self.extend_lease(sent_ms)
                if self.abandon_if_expired() or code is not ErrorCode.NONE:
                    self._join_unless_busy()
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                self._forget(keeps_id=code is ErrorCode.ILLEGAL_GENERATION)
                self._asked = 0
                self._join()
            case ErrorCode.FENCED_INSTANCE_ID:
                self.crash()
            case _:
                pass

    def _join_unless_busy(self) -> None:
        """Who is joining, or asks for its assignment, hears by that what has become of it."""
        if not self._asked:
            self.join_again()

    # ---------------------------------------------------------------------------------- leaving

    def leave(self, returns_after_ms: int | None) -> None:
        """A static member that comes back does not say that it goes, nor do all others."""
        if self.is_out:
            return
        member_id, self._id = self._id, None
        self.abandon()
        self.is_out = True
        self._asked = 0
        self._wants_join = False
        self._returns_after_ms = returns_after_ms
        says_so = self.instance_id is None or (
            returns_after_ms is None and self.random.random() < 0.5
        )
        self._leaves_left = LEAVE_RETRIES if says_so and member_id is not None else 0
        self._leaving = LeavingMember(member_id, self.instance_id)
        self._send_leave()

    def _send_leave(self) -> None:
        if self._leaves_left == 0:
            self._left()
            return
        self._leaves_left -= 1
        command = LeaveGroup(CALLER, self.group_id, (self._leaving,))
        self._ask(command, REQUEST_TIMEOUT_MS)

    def _left(self) -> None:
        if self._returns_after_ms is not None:
            self.later(self._returns_after_ms, self._return)

    def _return(self) -> None:
        if self.world.faults.is_healed:
            return
        self.is_out = False
        self._join()

    # ---------------------------------------------------------------------------------- commits

    def _commit(self) -> None:
        self.later(self.habits.commit_every_ms, self._commit)
        command = None if self.is_out else self.compute_commit()
        if command is not None:
            deliver = partial(self.world.deliver, self, command, lambda _: None)
            self._to_server.carry(deliver)

    def compute_commit(self) -> OffsetCommit | None:
        command = super().compute_commit()
        if command is None:
            return None
        return OffsetCommit(
            CALLER,
            self.group_id,
            self.member_id,
            self.epoch,
            command.topics,
            self.instance_id,
            by_consumer_protocol=False,
        )
