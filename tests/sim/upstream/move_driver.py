"""A group's machine against the simulated cluster: carries out its actions in virtual time.

It is the shell without a network and without a log: ``place`` is what the log has. A fault is drawn
for each action: its answer is lost, before or after the cluster has handled it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from model.errors import ErrorCode
from model.places import Place
from muster.assignors.embedded import make_subscription
from muster.assignors.embedded.consumer_protocol import encode_subscription
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.cluster_values import NEVER_MS, STABLE, Joined, Synced
from upstream.sentinel.sentinel_seat import Seat
from upstream.sentinel.sentinel_sign import (
    INSTANCE_ID,
    PROTOCOL_NAME,
    SentinelSign,
    encode_signed_assignment,
)
from upstream.takeover.machine.group_view import GroupView, ViewedMember
from upstream.takeover.machine.move import Move, MoveRules
from upstream.takeover.machine.takeover_actions import (
    Action,
    Admit,
    Adopt,
    BeginReturn,
    CloseJoin,
    CountMembers,
    Describe,
    EndWaits,
    GetUp,
    GiveUp,
    Join,
    LeaveSeat,
    NotePlace,
    RemoveMembers,
    Sync,
    TakeSeat,
    TurnAway,
)
from upstream.takeover.machine.takeover_events import (
    Ask,
    Described,
    Event,
    JoinAnswered,
    LeaveAnswered,
    MemberTimes,
    Refused,
    StillHere,
    SyncAnswered,
    TimePassed,
    Unanswered,
    Written,
)
from upstream.takeover.machine.takeover_machine import Moved, begin_move, handle_event
from upstream.takeover.machine.takeover_steps import Step

EMPTY_SUBSCRIPTION = encode_subscription(make_subscription(()), 0)
GROUP = "orders"
JOIN_TIMEOUT_MS = 30_000


def make_view(model: ClusterModel, group_id: str) -> GroupView:
    """The group as DescribeGroups would show it."""
    group = model.group(group_id)
    stable = group.state == STABLE
    return GroupView(
        ErrorCode.NONE,
        group.state,
        group.protocol_type,
        group.protocol if stable else "",
        tuple(
            ViewedMember(
                each.member_id,
                each.instance_id,
                each.client_id,
                "/127.0.0.1",
                each.protocols.get(group.protocol, b"") if stable else b"",
                each.assignment if stable else b"",
            )
            for each in group.members.values()
        ),
    )


@dataclass
class MoveDriver:
    """One Muster and one group. ``known`` and ``here`` are for the test to fill."""

    model: ClusterModel
    uuid: str = "uuid-1"
    group_id: str = GROUP
    place: Place = Place.UPSTREAM
    known: dict[str, MemberTimes] = field(default_factory=dict)
    here: set[str] = field(default_factory=set)
    refusal: str = ""
    lose: Callable[[Action], str] = lambda action: ""
    done: list[Action] = field(default_factory=list)
    adopted: Adopt | None = None
    seat: Seat | None = None
    noted_generation: int = 0
    events: deque[Event] = field(default_factory=deque)
    joins: int = 0
    join_ends_ms: int = NEVER_MS

    OWN_PROTOCOLS: ClassVar[dict[str, bytes]] = {PROTOCOL_NAME: b""}

    def __post_init__(self) -> None:
        self.rules = MoveRules(uuid=self.uuid)
        self.move = Move(group_id=self.group_id)

    def start(self) -> None:
        """Start again with the place that the log has; what was in memory is gone."""
        self.events.clear()
        self.joins += 1
        self.seat = None
        self.move = Move(group_id=self.group_id)
        if self.place is not Place.UPSTREAM:
            now_ms = self.model.now_ms
            first = begin_move(self.group_id, self.place, self.noted_generation, now_ms, self.rules)
            self._apply(first)
            self._run()

    def is_at(self, step: Step) -> bool:
        """Whether the move is at this step."""
        return self.move.step is step

    def has_place(self, place: Place) -> bool:
        """Whether the log has this place."""
        return self.place is place

    def send(self, *events: Event) -> None:
        """Let events happen, and all that follows at once."""
        self.events += events
        self._run()

    def pass_time(self, ms: int) -> None:
        """Let time pass, in steps to each deadline."""
        end_ms = self.model.now_ms + ms
        while True:
            own_ms = min(self.move.deadline_ms, self.join_ends_ms)
            due_ms = min(own_ms, self.model.next_deadline_ms())
            if due_ms > end_ms:
                break
            self.model.advance(max(due_ms, self.model.now_ms))
            if self.join_ends_ms <= self.model.now_ms:
                self.joins += 1
                self.join_ends_ms = NEVER_MS
                self.events.append(Unanswered(Ask.JOIN))
            if self.move.deadline_ms <= self.model.now_ms:
                self.events.append(TimePassed())
            self._run()
        self.model.advance(end_ms)
        self._run()

    def _run(self) -> None:
        for _ in range(10_000):
            if not self.events:
                return
            event = self.events.popleft()
            self._apply(handle_event(self.move, event, self.model.now_ms, self.rules))
        raise AssertionError(f"{self.move.step} turns in circles")

    def _apply(self, moved: Moved) -> None:
        self.move, actions = moved
        for action in actions:
            self.done.append(action)
            lost = self.lose(action)
            if lost == "before":
                self.events.append(Unanswered(_ASKS[type(action)]))
                continue
            queued = len(self.events)
            events = self._perform(action)
            if lost == "after":
                if isinstance(action, Join):
                    self.joins += 1
                    self.join_ends_ms = NEVER_MS
                self.events = deque([*self.events][:queued])
                events = [Unanswered(_ASKS[type(action)])]
            self.events += events

    def _perform(self, action: Action) -> list[Event]:
        match action:
            case Describe():
                return [Described(make_view(self.model, self.group_id), dict(self.known))]
            case Join():
                self._join(action)
            case Sync():
                self._sync(action)
            case RemoveMembers():
                return self._leave([(each.member_id, each.instance_id) for each in action.members])
            case LeaveSeat():
                return self._leave([(action.member_id, INSTANCE_ID)])
            case CloseJoin():
                self.joins += 1
                self.join_ends_ms = NEVER_MS
            case CountMembers():
                return [StillHere(len(self.here))]
            case TakeSeat():
                self.seat = action.seat
            case GetUp():
                self.seat = None
            case EndWaits() | Admit() | TurnAway():
                self.on_members(action)
            case _:
                return self._write(action)
        return []

    def on_members(self, action: Action) -> None:
        """Something is to be told to the members."""

    def _write(self, action: Action) -> list[Event]:
        match action:
            case NotePlace():
                self.place = action.place
            case Adopt():
                self.place, self.adopted = Place.MUSTER, action
                self.here = {each.member_id for each in action.members}
            case BeginReturn() if self.refusal:
                return [Refused(self.refusal)]
            case BeginReturn():
                self.place = Place.RETURNING
                if self.seat is not None:
                    self.noted_generation = self.seat.generation
            case GiveUp():
                self.place = Place.UPSTREAM
                self.here.clear()
            case _:
                raise AssertionError(action)
        return [Written()]

    def _join(self, action: Join) -> None:
        self.joins += 1
        turn = self.joins
        self.join_ends_ms = self.model.now_ms + JOIN_TIMEOUT_MS

        def on_joined(joined: Joined) -> None:
            if turn != self.joins:
                return
            self.join_ends_ms = NEVER_MS
            others = {name for name, _ in joined.members} - {joined.member_id}
            assigns = joined.leader == joined.member_id and not joined.skip_assignment
            if joined.leader != joined.member_id and joined.protocol != PROTOCOL_NAME:
                others.add(joined.leader)
            self.events.append(
                JoinAnswered(joined.code, joined.member_id, joined.generation, len(others), assigns)
            )

        protocols = dict.fromkeys(action.protocols, EMPTY_SUBSCRIPTION) or self.OWN_PROTOCOLS
        self.model.join(
            self.group_id,
            action.member_id,
            INSTANCE_ID,
            "muster",
            protocols,
            on_joined,
            action.session_timeout_ms,
            action.rebalance_timeout_ms,
        )

    def _sync(self, action: Sync) -> None:
        def on_synced(synced: Synced) -> None:
            self.events.append(SyncAnswered(synced.code))

        sign = SentinelSign(self.uuid, "localhost", 9092)
        assignment = encode_signed_assignment(sign, [("orders", 0)])
        self.model.sync(
            self.group_id,
            action.seat.member_id,
            INSTANCE_ID,
            action.seat.generation,
            {action.seat.member_id: assignment},
            on_synced,
        )

    def _leave(self, identities: list[tuple[str, str | None]]) -> list[Event]:
        codes = self.model.leave(self.group_id, identities)
        gone = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
        bad = [code for code in codes if code not in gone]
        return [LeaveAnswered(bad[0] if bad else ErrorCode.NONE)]


_ASKS: dict[type[Action], Ask] = {
    Describe: Ask.DESCRIBE,
    Join: Ask.JOIN,
    Sync: Ask.SYNC,
    RemoveMembers: Ask.LEAVE,
    LeaveSeat: Ask.LEAVE,
}
