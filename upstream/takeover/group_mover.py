"""The shell of one group's machine: its events come in a queue, its actions are carried out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

from model.caller import INTERNAL
from model.commands.places import (
    GiveGroupUp,
    NotePlace,
)
from model.errors import GroupError
from model.ids import GroupId
from model.places import GroupPlace, Place
from upstream.cluster.cluster import ClusterUnreachable
from upstream.sentinel.sentinel_seat import Seat
from upstream.sentinel.sentinel_sign import encode_signed_assignment
from upstream.takeover.adoptions import make_adoption
from upstream.takeover.asking.cluster_group import ClusterGroup
from upstream.takeover.departures import Departures
from upstream.takeover.group_topics import (
    compute_partitions,
    compute_topics,
    find_topics_here,
)
from upstream.takeover.machine import takeover_actions as actions
from upstream.takeover.machine.move import NEVER_MS, Move
from upstream.takeover.machine.takeover_events import (
    Ask,
    Asked,
    Described,
    Event,
    Heard,
    JoinAnswered,
    LeaveAnswered,
    MemberTimes,
    Refused,
    Released,
    StillHere,
    SyncAnswered,
    TimePassed,
    Unanswered,
    Written,
)
from upstream.takeover.machine.takeover_machine import Moved, begin_move, handle_event
from upstream.takeover.machine.takeover_steps import Step
from upstream.takeover.moving import Moving

log = structlog.get_logger("muster.upstream")

_SETTLED: Final = frozenset({Step.UPSTREAM, Step.HERE})
_WITHOUT_TURN: Final = _SETTLED | {Step.WAITING}
_NO_PLACE: Final = GroupPlace(Place.UPSTREAM, 0)
_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0


class GroupMover:
    """Moves one group. ``seat`` is the sentinel's, ``None`` while nothing may be sent under it."""

    def __init__(
        self, group_id: GroupId, moving: Moving, on_settled: Callable[[GroupMover], None]
    ) -> None:
        self._group_id = group_id
        self._on_settled = on_settled
        self._has_turn = False
        self._moving = moving
        self._cluster_group = ClusterGroup(moving.cluster, group_id)
        self._events: deque[Event] = deque()
        self._woken = asyncio.Event()
        self._join: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.move = Move(group_id=group_id)
        self.seat: Seat | None = None
        self.seat_changed = asyncio.Event()
        self.settled = asyncio.Event()
        self.partitions: tuple[tuple[str, int], ...] = ()
        self.departures = Departures(group_id, moving, self._cluster_group)

    # ------------------------------------------------------------------------------- the outside

    def start(self, place: GroupPlace | None) -> None:
        """Begin, where the log says that the group is."""
        first = None if place is None else self._begin(place)
        self._task = asyncio.get_running_loop().create_task(self._run(first))

    async def stop(self) -> None:
        """End where it stands; the sentinel stays in."""
        tasks = [task for task in (self._task, self._join) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._cluster_group.close_link()

    def send(self, event: Event) -> None:
        """An event from outside."""
        self.settled.clear()
        self._put(event)

    def hear(self, member_id: str, generation: int) -> None:
        """A member was heard here; only the first time matters, and a higher generation."""
        if self.move.hear(member_id, generation) is not self.move:
            self._put(Heard(member_id, generation))

    # ------------------------------------------------------------------------------- the machine

    async def _run(self, first: Moved | None) -> None:
        pause_s = _PAUSE_S
        while True:
            try:
                await self._follow(first)
            except Exception:
                # Members must not wait for ever: the log's place and the cluster say what to do.
                log.exception("group_move_failed", group=self._group_id, step=self.move.step.name)
            finally:
                self._end_turn()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
            self._events.clear()
            place = self._moving.coordinator.place_of(self._group_id) or _NO_PLACE
            first = self._begin(place)

    def _begin(self, place: GroupPlace) -> Moved:
        now_ms, rules = self._moving.clock_ms(), self._moving.rules
        return begin_move(self._group_id, place.place, place.generation, now_ms, rules)

    async def _follow(self, first: Moved | None) -> None:
        if first is not None:
            await self._apply(first)
        self._note_settled()
        while True:
            event = await self._next_event()
            if isinstance(event, Asked | Released) and not self._has_turn:
                await self._moving.turns.acquire()
                self._has_turn = True
            now_ms = self._moving.clock_ms()
            await self._apply(handle_event(self.move, event, now_ms, self._moving.rules))
            self._note_settled()

    def _note_settled(self) -> None:
        if self.move.step in _WITHOUT_TURN:
            self._end_turn()
        if self.move.step in _SETTLED and not self._events:
            self.settled.set()
            self._on_settled(self)

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._moving.turns.release()

    async def _next_event(self) -> Event:
        while not self._events:
            self._woken.clear()
            left_ms = self.move.deadline_ms - self._moving.clock_ms()
            if left_ms <= 0:
                return TimePassed()
            is_bounded = self.move.deadline_ms < NEVER_MS
            try:
                async with asyncio.timeout(left_ms / 1_000 if is_bounded else None):
                    await self._woken.wait()
            except TimeoutError:
                continue
        return self._events.popleft()

    def _put(self, event: Event) -> None:
        self._events.append(event)
        self._woken.set()

    async def _apply(self, moved: Moved) -> None:
        before = self.move
        self.move, todo = moved
        if self.move.step is not before.step:
            self._moving.log.note_step(before, self.move)
            await self._moving.on_step(self.move.step.name.lower(), self._group_id)
        for action in todo:
            event = await self._perform(action)
            if event is not None:
                self._put(event)

    # ------------------------------------------------------------------------------- the actions

    async def _perform(self, action: actions.Action) -> Event | None:
        match action:
            case actions.Join():
                self._begin_join(action)
            case actions.CloseJoin():
                self._close_join()
            case actions.EndWaits():
                self._moving.relays.end_waits(self._group_id)
            case actions.Admit():
                self._moving.on_the_way.admit(self._group_id)
            case actions.TurnAway():
                self._moving.on_the_way.turn_away(self._group_id)
            case actions.TakeSeat():
                self._take_seat(action.seat)
            case actions.GetUp():
                self.get_up()
            case actions.CountMembers():
                return StillHere(await self.departures.count())
            case actions.NotePlace() | actions.Adopt() | actions.BeginReturn() | actions.GiveUp():
                return await self._write(action)
            case _:
                return await self._ask(action)
        return None

    async def _ask(self, action: actions.Action) -> Event:
        asked = Ask.DESCRIBE
        try:
            match action:
                case actions.Describe():
                    return await self._describe()
                case actions.Sync():
                    asked = Ask.SYNC
                    assignment = await self._make_assignment()
                    return SyncAnswered(await self._cluster_group.sync(action.seat, assignment))
                case actions.RemoveMembers():
                    asked = Ask.LEAVE
                    await self._moving.on_the_way.hold_commits(self._group_id)
                    return LeaveAnswered(await self._cluster_group.remove(action.members))
                case actions.LeaveSeat():
                    asked = Ask.LEAVE
                    return await self._leave(action)
                case _:
                    raise AssertionError(action)
        except ClusterUnreachable as cause:
            log.debug("cluster_silent", group=self._group_id, asked=asked, cause=str(cause))
            return Unanswered(asked)

    async def _leave(self, action: actions.LeaveSeat) -> Event:
        """The sentinel leaves a group that returns once nothing is committed under it any more."""
        if self.move.step is Step.LEAVING and self._moving.offsets is not None:
            try:
                await self._moving.offsets.carry_back(self._group_id)
            except GroupError as error:
                log.warning("offsets_not_carried", group=self._group_id, cause=error.message)
                return Unanswered(Ask.LEAVE)
        return LeaveAnswered(await self._cluster_group.leave(action.member_id))

    async def _describe(self) -> Described:
        view = await self._cluster_group.describe()
        if self.move.step is Step.GATHERING and view.others:
            self._moving.on_the_way.pass_again(self._group_id)
        seen = self._moving.relays.members_of(self._group_id)
        known = {
            member_id: MemberTimes(
                each.session_timeout_ms, each.rebalance_timeout_ms, each.led_generation
            )
            for member_id, each in seen.items()
        }
        known.update(self._moving.on_the_way.find_times(self._group_id))
        return Described(view, known)

    async def _make_assignment(self) -> bytes:
        if self.move.place is Place.TAKING:
            topics = compute_topics(member.metadata for member in self.move.members)
        else:
            topics = await find_topics_here(self._moving.coordinator, self._group_id)
        self.partitions = compute_partitions(self._moving.coordinator.image, topics)
        return encode_signed_assignment(self._moving.sign, self.partitions)

    def _begin_join(self, action: actions.Join) -> None:
        self._close_join()
        self._join = asyncio.get_running_loop().create_task(self._run_join(action))

    async def _run_join(self, action: actions.Join) -> None:
        event: JoinAnswered | Unanswered
        try:
            if action.protocols:
                event = await self._cluster_group.join(action)
            else:
                # Each has a connection: after a start thousands of groups want their seat.
                async with self._moving.joins:
                    event = await self._cluster_group.join(action)
        except ClusterUnreachable as cause:
            log.debug("cluster_silent", group=self._group_id, asked=Ask.JOIN, cause=str(cause))
            event = Unanswered(Ask.JOIN)
        self._put(event)

    def _close_join(self) -> None:
        """After this the answer of the JoinGroup that waits is no event any more."""
        join, self._join = self._join, None
        if join is not None:
            join.cancel()
            late = (JoinAnswered, Unanswered)
            self._events = deque(each for each in self._events if not isinstance(each, late))
        self._cluster_group.close_link()

    def _take_seat(self, seat: Seat) -> None:
        self.seat = seat
        self._moving.upkeep.keep(self._group_id, seat)
        self.seat_changed.set()
        self._moving.log.note_seat(self._group_id, seat)
        if self._moving.offsets is not None:
            self._moving.offsets.reopen(self._group_id)

    def get_up(self) -> None:
        """Nothing is sent under the seat any more."""
        self.seat = None
        self.seat_changed.clear()
        self._moving.upkeep.drop(self._group_id)

    async def _write(self, action: actions.Action) -> Event:
        try:
            await self._submit(action)
        except GroupError as error:
            return Refused(error.message or error.code.name)
        return Written()

    async def _submit(self, action: actions.Action) -> None:
        coordinator, group_id = self._moving.coordinator, self._group_id
        match action:
            case actions.NotePlace():
                await coordinator.call(NotePlace(INTERNAL, group_id, action.place))
            case actions.Adopt():
                if self._moving.offsets is not None:
                    await self._moving.offsets.carry_here(group_id)
                await coordinator.call(make_adoption(self.move, action))
            case actions.BeginReturn():
                if self.seat is not None:
                    # After a restart it must not join again to learn its generation.
                    place, generation = self.move.place, self.seat.generation
                    await coordinator.call(NotePlace(INTERNAL, group_id, place, generation))
                await self.departures.begin()
            case actions.GiveUp():
                await coordinator.call(GiveGroupUp(INTERNAL, group_id))
