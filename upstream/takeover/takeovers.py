"""The takeovers and releases of all groups, and their sentinels."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from coordinator.runtime.api import Coordinator, Reply
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.places import ListPlaces
from model.errors import CoordinatorLoadInProgress, ErrorCode
from model.ids import GroupId, InstanceId, MemberId
from model.places import Place
from model.responses.places import PlacesResponse
from upstream.cluster.cluster import Cluster
from upstream.hooks import SentinelIdentity
from upstream.relay.relay_places import JOINED
from upstream.sentinel.sentinel_sign import INSTANCE_ID, SentinelSign
from upstream.sentinel.upkeep import SentinelUpkeep
from upstream.statistics import UpstreamStatistics
from upstream.takeover.asking.on_the_way import MembersOnTheWay
from upstream.takeover.asking.other_musters import OtherMusters
from upstream.takeover.asking.passed_offsets import PassedOffsets
from upstream.takeover.dry_runs import find_obstacle_to_return, try_to_take
from upstream.takeover.group_mover import GroupMover
from upstream.takeover.group_topics import (
    compute_partitions,
    describe_here,
    find_topics_here,
)
from upstream.takeover.machine.move import MoveRules
from upstream.takeover.machine.takeover_events import (
    Asked,
    Dismissed,
    Released,
    SeatLost,
    TopicsChanged,
)
from upstream.takeover.machine.takeover_steps import Step
from upstream.takeover.move_log import MoveLog
from upstream.takeover.moving import Moving, OnStep, RelayedMembers
from upstream.takeover.offset_moves import OffsetMoves
from upstream.takeover.retries import Retries
from upstream.takeover.takeover_reports import TakeoverReport, make_report

MOVED_AT_ONCE: Final = 20
JOINED_AT_ONCE: Final = 200
SEAT_WAIT_S: Final = 5.0
TOPICS_INTERVAL_S: Final = 5.0
_TOPICS_PAUSE_S: Final = 0.005
"""Between two groups, so that thousands of them cost little."""
KNOWN_MS: Final = 600_000
KNOWN_GROUPS_MAX: Final = 10_000
"""How long, and of how many groups, those who were members here are known after they returned."""
_RESULT_SLACK_S: Final = 60.0


def compute_monotonic_ms() -> int:
    """The clock of the moves."""
    return time.monotonic_ns() // 1_000_000


class Takeovers:
    """All groups that are not only the cluster's. All calls are on the event loop.

    It implements what the fronted coordinator, the relays and the front ask for.
    """

    def __init__(
        self,
        cluster: Cluster,
        coordinator: Coordinator,
        relays: RelayedMembers,
        sign: SentinelSign,
        *,
        rules: MoveRules | None = None,
        pattern: re.Pattern[str] | None = None,
        on_step: OnStep | None = None,
        statistics: UpstreamStatistics | None = None,
        others: Collection[tuple[str, int]] = (),
        clock_ms: Callable[[], int] = compute_monotonic_ms,
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._sign = sign
        self._pattern = pattern
        self._clock_ms = clock_ms
        self._movers: dict[str, GroupMover] = {}
        self._retries = Retries(clock_ms)
        self._returned: OrderedDict[str, tuple[int, frozenset[MemberId]]] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()
        self._topics_task: asyncio.Task[None] | None = None
        passed = PassedOffsets(cluster, lambda: coordinator.image)
        self._on_the_way = MembersOnTheWay(cluster, passed, self._hear)
        self._upkeep = SentinelUpkeep(cluster, self._note_lost)
        self._others = OtherMusters(cluster, sign, self._is_moved, self._replace_dead, others)
        self._moving = Moving(
            cluster,
            coordinator,
            relays,
            sign,
            rules or MoveRules(uuid=sign.uuid),
            self._on_the_way,
            self._upkeep,
            clock_ms,
            asyncio.Semaphore(MOVED_AT_ONCE),
            asyncio.Semaphore(JOINED_AT_ONCE),
            MoveLog(statistics or UpstreamStatistics()),
        )
        if on_step is not None:
            self._moving.on_step = on_step

    # ------------------------------------------------------------------------------- start and stop

    def attach(self, submit_here: Callable[[Command, Reply], None], offsets: OffsetMoves) -> None:
        """Before ``start``: the fronted coordinator, to which commands go once their group is here,
        and the offsets. Both need the takeovers, so they come later.
        """
        self._on_the_way.submit_here = submit_here
        self._moving.offsets = offsets

    async def start(self) -> None:
        """Go on with all groups that the log has a place of, and begin to look for others."""
        response = await self._coordinator.call(ListPlaces(INTERNAL))
        assert isinstance(response, PlacesResponse)
        for group_id, place in response.places:
            self._add(group_id).start(place)
        self._upkeep.start()
        self._others.start()
        self._topics_task = asyncio.get_running_loop().create_task(self._follow_topics())

    async def stop(self) -> None:
        """End where everything stands; the sentinels stay in, so that nobody else gets in."""
        if self._topics_task is not None:
            self._topics_task.cancel()
            await asyncio.gather(self._topics_task, return_exceptions=True)
        await self._others.stop()
        await self._upkeep.stop()
        await asyncio.gather(*(mover.stop() for mover in self._movers.values()))
        self._on_the_way.close()

    def _add(self, group_id: GroupId) -> GroupMover:
        mover = self._movers[group_id] = GroupMover(group_id, self._moving, self._note_settled)
        return mover

    def _note_settled(self, mover: GroupMover) -> None:
        """A group that is the cluster's again is forgotten, but for the last failure."""
        move = mover.move
        if move.step is Step.UPSTREAM:
            self._movers.pop(move.group_id, None)
            # What came while the last events were handled.
            self._on_the_way.turn_away(move.group_id)
            if mover.departures.members:
                self._remember_members(move.group_id, mover.departures.members)
            ending = asyncio.get_running_loop().create_task(mover.stop())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        self._retries.note(move)

    def _remember_members(self, group_id: str, members: frozenset[MemberId]) -> None:
        self._returned[group_id] = (self._clock_ms() + KNOWN_MS, members)
        self._returned.move_to_end(group_id)
        if len(self._returned) > KNOWN_GROUPS_MAX:
            self._returned.popitem(last=False)

    # --------------------------------------------------------- asked by doors, relays and the front

    @property
    def on_the_way(self) -> MembersOnTheWay:
        """Where the commands of groups on their way are answered."""
        return self._on_the_way

    def find_place(self, group_id: str) -> Place:
        """The place of a group, as the log has it."""
        place = self._coordinator.place_of(GroupId(group_id))
        return Place.UPSTREAM if place is None else place.place

    def matches(self, group_id: str) -> bool:
        """Whether the group is one of those that are to be taken by their names."""
        return self._pattern is not None and self._pattern.fullmatch(group_id) is not None

    def is_asked_for(self, group_id: GroupId) -> bool:
        """Whether a take runs, though no place is noted yet."""
        mover = self._movers.get(group_id)
        return mover is not None and mover.move.place is Place.UPSTREAM

    def ask_to_take(self, group_id: str, cause: str) -> None:
        """Take a group over soon, unless that failed a short time ago."""
        if group_id not in self._movers and self._retries.may_try(group_id):
            self._begin(GroupId(group_id), Asked(cause))

    def may_take(self, group_id: str, cause: str) -> bool:
        """Whether a member that comes through a relay is a cause to take the group."""
        if cause == JOINED and not self.matches(group_id):
            return False
        return group_id in self._movers or self._retries.may_try(group_id)

    def asks_to_take(self, group_id: str, cause: str) -> bool:
        """A member comes through a relay; whether the group is taken for that."""
        if not self.may_take(group_id, cause):
            return False
        self.ask_to_take(group_id, cause)
        return group_id in self._movers

    def meets_former_member(self, group_id: str, member_id: str) -> bool:
        """Whether a group that returns, or just returned, had this member here.

        Who asks has it before it: the member is on its way to the cluster.
        """
        mover = self._movers.get(group_id)
        if mover is not None:
            mover.departures.note_gone(member_id)
            return member_id in mover.departures.members
        until_ms, members = self._returned.get(group_id, (0, frozenset()))
        return member_id in members and self._clock_ms() < until_ms

    def is_elsewhere(self, group_id: str) -> bool:
        """Whether another Muster has the group, alive or dead."""
        return self._others.has(group_id)

    def awaits_member(self, group_id: str, member_id: str) -> bool:
        """Whether a group is gathered, and this member has not been heard here.

        None is removed from the cluster's group before it has, unless it is long silent.
        """
        mover = self._movers.get(group_id)
        return (
            mover is not None
            and mover.move.step is Step.GATHERING
            and member_id not in ("", *mover.move.heard)
        )

    def note_joined(self, group_id: str, member_id: str) -> None:
        """A member joins in the cluster, or was sent there; it has this id until then."""
        mover = self._movers.get(group_id)
        if mover is not None:
            mover.departures.note_gone(member_id)

    def other_muster_of(self, group_id: str) -> tuple[str, int] | None:
        """Host and port of another Muster that has the group and lives."""
        sign = self._others.find(group_id)
        return None if sign is None else (sign.host, sign.port)

    def _is_moved(self, group_id: str) -> bool:
        return group_id in self._movers

    def _replace_dead(self, group_id: str) -> None:
        # However often a take of it was refused: nobody serves the group now.
        if group_id not in self._movers:
            self._begin(GroupId(group_id), Asked("another Muster is dead", may_replace=True))

    def _begin(self, group_id: GroupId, asked: Asked) -> GroupMover:
        mover = self._add(group_id)
        mover.start(None)
        mover.send(asked)
        return mover

    def _hear(self, group_id: str, member_id: str, generation: int) -> None:
        mover = self._movers.get(group_id)
        if mover is not None:
            mover.hear(member_id, generation)

    # ------------------------------------------------------------------------------ the sentinels

    def sentinel_of(self, group_id: GroupId) -> SentinelIdentity | None:
        """The sentinel of a group, ``None`` while it has none that the cluster knows."""
        mover = self._movers.get(group_id)
        seat = None if mover is None else mover.seat
        if seat is None:
            return None
        return SentinelIdentity(MemberId(seat.member_id), InstanceId(INSTANCE_ID), seat.generation)

    async def await_sentinel(self, group_id: GroupId) -> SentinelIdentity:
        """Wait for the sentinel. Raises ``CoordinatorLoadInProgress`` when that takes too long."""
        mover = self._movers.get(group_id)
        if mover is not None and mover.seat is None:
            try:
                async with asyncio.timeout(SEAT_WAIT_S):
                    await mover.seat_changed.wait()
            except TimeoutError:
                pass
        identity = self.sentinel_of(group_id)
        if identity is None:
            raise CoordinatorLoadInProgress("Muster is not in the cluster's group at the moment.")
        return identity

    def note_refused(self, group_id: GroupId, code: ErrorCode) -> None:
        """The cluster refused a request in the sentinel's name."""
        self._note_lost(group_id, code)

    def note_lost_answer(self, group_id: GroupId, identity: SentinelIdentity) -> None:
        """The cluster may still do what the sentinel asked: it joins again as another member."""
        if self.sentinel_of(group_id) == identity:
            self._note_lost(group_id, ErrorCode.REQUEST_TIMED_OUT)

    def _note_lost(self, group_id: str, code: ErrorCode) -> None:
        mover = self._movers.get(group_id)
        if mover is None or mover.seat is None:
            return
        if mover.move.step is Step.WAITING and code is ErrorCode.REBALANCE_IN_PROGRESS:
            return
        self._moving.log.note_loss(group_id, code)
        mover.get_up()
        mover.send(SeatLost(code))

    async def leave(self, group_id: GroupId) -> bool:
        """Make the sentinel leave an empty group that is about to be deleted in the cluster."""
        mover = self._movers.get(group_id)
        if mover is None or mover.move.step is not Step.HERE:
            return False
        mover.send(Dismissed())
        await self._await_settled(mover)
        return group_id not in self._movers

    async def _follow_topics(self) -> None:
        """The sentinel's assignment shows all partitions, for tools that look at the cluster."""
        while True:
            await asyncio.sleep(TOPICS_INTERVAL_S)
            for group_id, mover in tuple(self._movers.items()):
                if mover.move.step is Step.HERE:
                    await self._look_at_topics(GroupId(group_id), mover)
                    await asyncio.sleep(_TOPICS_PAUSE_S)

    async def _look_at_topics(self, group_id: GroupId, mover: GroupMover) -> None:
        topics = await find_topics_here(self._coordinator, group_id)
        partitions = compute_partitions(self._coordinator.image, topics)
        if partitions and partitions != mover.partitions and mover.seat is not None:
            mover.get_up()
            mover.send(TopicsChanged())

    # ------------------------------------------------------------------------------ the operators

    async def take(self, group_id: GroupId, *, dry_run: bool = False) -> TakeoverReport:
        """Take a group over, and wait until that has succeeded or failed."""
        mover = self._movers.get(group_id)
        if dry_run and mover is None:
            return await try_to_take(self._moving, group_id)
        if mover is None:
            is_dead = self._others.is_dead(group_id)
            mover = self._begin(group_id, Asked("an operator", may_replace=is_dead))
        await self._await_settled(mover)
        return make_report(mover.move)

    async def release(self, group_id: GroupId, *, dry_run: bool = False) -> TakeoverReport:
        """Give a group back, and wait until that has succeeded or failed."""
        mover = self._movers.get(group_id)
        if mover is None:
            return TakeoverReport(
                group_id, Place.UPSTREAM, Step.UPSTREAM.name, error="the group is not here"
            )
        if mover.move.place is not Place.RETURNING:
            obstacle = await find_obstacle_to_return(self._coordinator, mover.move)
            if obstacle or dry_run:
                return replace(make_report(mover.move), error=obstacle)
            group = await describe_here(self._coordinator, group_id)
            protocols = (group.protocol,) if group is not None and group.protocol else ()
            mover.send(Released("an operator", protocols))
        await self._await_settled(mover)
        return make_report(mover.move)

    def reports(self) -> Sequence[TakeoverReport]:
        """How all groups stand that are not only the cluster's, and takes that failed."""
        moves = {mover.move.group_id: mover.move for mover in self._movers.values()}
        failed = {move.group_id: move for move in self._retries.failures()}
        return [make_report(move) for _, move in sorted((failed | moves).items())]

    async def _await_settled(self, mover: GroupMover) -> bool:
        rules = self._moving.rules
        longest_s = max(rules.take_max_ms, rules.return_max_ms) / 1_000 + _RESULT_SLACK_S
        try:
            async with asyncio.timeout(longest_s):
                await mover.settled.wait()
        except TimeoutError:
            return False
        return True
