"""A cluster, a Muster in front of it and consumers, from one seed, on virtual time.

While there are faults, answers to Muster get lost, Muster dies at any action and starts again, the
cluster's coordinator moves, the sentinel is evicted, and strangers come and go. Then all that ends
and everything must come to rest.

Checked at all times: at most one of cluster and Muster has assigned partitions; an accepted commit
is never below what was committed before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from model.errors import ErrorCode
from model.places import Place
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.cluster_values import STABLE
from tests.sim.upstream.move_driver import GROUP, MoveDriver
from tests.sim.upstream.muster_group import PARTITIONS, MusterGroup
from tests.sim.upstream.sim_client import SimClient
from upstream.takeover.machine.takeover_actions import (
    Action,
    Admit,
    Adopt,
    BeginReturn,
    CountMembers,
    Describe,
    EndWaits,
    GiveUp,
    Join,
    LeaveSeat,
    RemoveMembers,
    Sync,
    TurnAway,
)
from upstream.takeover.machine.takeover_events import Asked, Event, Released, SeatLost, StillHere
from upstream.takeover.machine.takeover_steps import Step

TICK_MS = 50
FAULTS_MS = 120_000
REST_MS = 120_000
_ASKING = (Describe, Join, Sync, RemoveMembers, LeaveSeat)


class Killed(Exception):
    """Muster dies here."""


@dataclass(frozen=True)
class Faults:
    """How likely each is, per action or per tick."""

    lost: float = 0.0
    killed: float = 0.0
    moved: float = 0.0
    evicted: float = 0.0
    strangers: float = 0.0
    paused: float = 0.0


class SimMuster(MoveDriver):
    """The machine with the group that is here, and faults at each action."""

    world: TakeoverWorld
    leaving: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def note_gone(self, member_id: str) -> None:
        """A member of the group that returns joins in the cluster."""
        if member_id in self.leaving:
            self.gone |= {member_id}

    def on_members(self, action: Action) -> None:
        match action:
            case EndWaits():
                self.world.end_waits()
            case Admit() | TurnAway():
                self.world.release_held()
            case _:
                raise AssertionError(action)

    def _perform(self, action: Action) -> list[Event]:
        if self.world.random.random() < self.world.faults.killed:
            if self.world.random.random() < 0.5:
                super()._perform(action)
            raise Killed
        if isinstance(action, CountMembers):
            return [StillHere(self._count())]
        return super()._perform(action)

    def _count(self) -> int:
        here = self.world.here
        if not here.is_moving and here.heard_ms.keys() - self.gone:
            # Who had joined here just before was given partitions once more.
            self.leaving |= here.heard_ms.keys()
            here.begin_rebalance(self.model.now_ms)
        left = len(here.heard_ms.keys() & (self.leaving - self.gone))
        coming = len(self.gone) - len(self.model.group(GROUP).members) + 1
        return left or max(coming, 0) * (not self._is_late())

    def _is_late(self) -> bool:
        return self.model.now_ms - self.move.since_ms > 30_000

    def _write(self, action: Action) -> list[Event]:
        here, now_ms = self.world.here, self.model.now_ms
        written = super()._write(action)
        match action:
            case Adopt() if not here.heard_ms:
                here.adopt((each.member_id for each in action.members), action.generation, now_ms)
            case BeginReturn():
                self.leaving, self.gone = frozenset(here.heard_ms), frozenset()
                here.begin_rebalance(now_ms)
            case GiveUp():
                here.clear()
            case _:
                pass
        self.world.trace.append(f"{now_ms} {type(action).__name__} {self.place.value}")
        return written


class TakeoverWorld:
    """``run`` raises ``AssertionError`` for a seed that fails; ``trace`` is what happened."""

    def __init__(self, seed: int, *, make_muster: Callable[..., SimMuster] = SimMuster) -> None:
        self.random = random.Random(seed)
        draw = self.random.choice
        self.faults = Faults(
            draw((0.0, 0.05, 0.3)),
            draw((0.0, 0.02)),
            draw((0.0, 0.001)),
            draw((0.0, 0.0, 0.001)),
            draw((0.0, 0.0, 0.002)),
            draw((0.0, 0.02)),
        )
        self.model = ClusterModel(initial_delay_ms=draw((0, 3_000)))
        self.model.answers_removed_syncs = draw((False, True))
        self.here = MusterGroup()
        self.make_muster = make_muster
        self.muster = self._make(Place.UPSTREAM, 0)
        self.clients = [SimClient(self, f"client{n}") for n in range(self.random.randrange(1, 5))]
        self.strangers: list[SimClient] = []
        self.held: list[SimClient] = []
        self.queue: list[Callable[[], None]] = []
        self.starts_at_ms: int | None = None
        self.trace: list[str] = []
        self.evicted_until_ms = 0
        self.steps: set[Step] = set()

    def _make(self, place: Place, noted_generation: int) -> SimMuster:
        muster = self.make_muster(self.model, place=place)
        muster.world = self
        muster.noted_generation = noted_generation
        muster.lose = self._lose
        return muster

    # -------------------------------------------------------------------------------- for clients

    @property
    def now_ms(self) -> int:
        return self.model.now_ms

    @property
    def is_up(self) -> bool:
        return self.starts_at_ms is None

    @property
    def place(self) -> Place:
        return self.muster.place

    def later(self, call: Callable[[], None]) -> None:
        """Not within what the cluster does at the moment."""
        self.queue.append(call)

    def hold(self, client: SimClient) -> None:
        """The client's JoinGroup waits until the group is here, or is not."""
        self.held.append(client)

    def release_held(self) -> None:
        """They ask again."""
        held, self.held = self.held, []
        for client in held:
            client.waits_until_ms = 0

    def end_waits(self) -> None:
        """All that wait in the cluster through a relay are told NOT_COORDINATOR."""
        for client in self.clients:
            if client.at == "cluster":
                client.forget_coordinator()

    def commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: dict[tuple[str, int], int],
    ) -> ErrorCode:
        """Commit in the cluster; what is accepted never goes back."""
        before = dict(self.model.group(GROUP).offsets)
        code = self.model.commit(GROUP, member_id, instance_id, generation, offsets)
        if code is ErrorCode.NONE:
            back = {spot: to for spot, to in offsets.items() if to < before.get(spot, 0)}
            assert not back, f"offsets go back: {back} after {before}"
        return code

    def fetch(self, partition: int) -> int:
        """The committed offset."""
        assert partition < PARTITIONS
        return self.model.group(GROUP).offsets.get(("orders", partition), 0)

    def note_refused(self, code: ErrorCode) -> None:
        """A commit under the seat was refused."""
        if self.muster.seat is not None:
            self.muster.seat = None
            self._send(SeatLost(code))

    # -------------------------------------------------------------------------------- the run

    def run(self) -> None:
        """Faults, then rest."""
        while self.now_ms < FAULTS_MS:
            self._tick()
        self.faults = Faults()
        self.strangers.clear()
        while self.now_ms < FAULTS_MS + REST_MS:
            self._tick()
        self._check_rest()

    def _lose(self, action: Action) -> str:
        if isinstance(action, _ASKING) and self.random.random() < self.faults.lost:
            return self.random.choice(("before", "after"))
        return ""

    def _tick(self) -> None:
        try:
            if self.is_up:
                self.muster.pass_time(TICK_MS)
                self._upkeep()
            else:
                self.model.advance(self.now_ms + TICK_MS)
            self._drain()
            self._act()
        except Killed:
            self._kill()
        self._drain()
        self.steps.add(self.muster.move.step)
        self.check_one_place()

    def _drain(self) -> None:
        while self.queue:
            self.queue.pop(0)()

    def _act(self) -> None:
        if self.is_up:
            self.here.pass_time(self.now_ms)
        for client in self.random.sample([*self.clients, *self.strangers], k=self._count):
            client.act()
        self._disturb()
        if self.now_ms > FAULTS_MS:
            return
        if self.random.random() < 0.003:
            self._send(Asked("an operator"))
        if self.random.random() < 0.002:
            self._send(Released("an operator", ("range",)))

    @property
    def _count(self) -> int:
        return len(self.clients) + len(self.strangers)

    def _send(self, event: Event) -> None:
        is_taken = self.muster.move.step is Step.UPSTREAM
        if isinstance(event, Asked) and not is_taken:
            return
        self.muster.send(event)

    def _upkeep(self) -> None:
        seat = self.muster.seat
        if seat is None or self.random.random() > 0.01:
            return
        code = self.model.heartbeat(GROUP, seat.member_id, "muster", seat.generation)
        if code is ErrorCode.REBALANCE_IN_PROGRESS and self.muster.move.step is Step.WAITING:
            return
        if code is not ErrorCode.NONE:
            self.note_refused(code)

    def _disturb(self) -> None:
        faults, draw = self.faults, self.random.random
        if draw() < faults.moved:
            self.model.move_coordinator(GROUP)
            self.evicted_until_ms = self.now_ms + 20_000
        if draw() < faults.evicted:
            self.model.leave(GROUP, [("", "muster")])
            self.evicted_until_ms = self.now_ms + 20_000
        if draw() < faults.strangers:
            if self.strangers:
                self.strangers.clear()
            else:
                self.strangers.append(SimClient(self, "stranger", is_stranger=True))

    def _kill(self) -> None:
        """Memory is gone; the relays' connections too."""
        if self.is_up:
            self.trace.append(f"{self.now_ms} killed at {self.muster.move.step.name}")
        self.muster = self._make(self.muster.place, self.muster.noted_generation)
        self.held.clear()
        for client in self.clients:
            client.forget_coordinator()
        down_ms = self.random.randrange(100, 5_000)
        self.starts_at_ms = self.now_ms + down_ms
        self.model.advance(self.starts_at_ms)
        self.starts_at_ms = None
        self.here.restart(self.now_ms)
        try:
            self.muster.start()
        except Killed:
            self._kill()

    # -------------------------------------------------------------------------------- the checks

    def check_one_place(self) -> None:
        """Only one of them has assigned. Right after an eviction both may, for a moment."""
        group = self.model.group(GROUP)
        there = [
            each.member_id
            for each in group.members.values()
            if each.instance_id != "muster" and each.assignment and group.state == STABLE
        ]
        # Whoever has gone to the cluster is a member here until its session ends.
        believing = {
            client.member_id
            for client in self.clients
            if client.owned and client.owned_from == "muster"
        }
        here = [name for name in self.here.assigned if name in believing]
        if there and here and self.now_ms > self.evicted_until_ms:
            raise AssertionError(f"two places: {there} there, {here} here")

    def _check_rest(self) -> None:
        step = self.muster.move.step
        assert step in (Step.UPSTREAM, Step.HERE), f"it does not come to rest: {step}"
        owners: dict[int, list[str]] = {}
        for client in self.clients:
            for partition in client.owned:
                owners.setdefault(partition, []).append(client.name)
        assert len(owners) == PARTITIONS, f"not all partitions have an owner: {owners}"
        assert all(len(names) == 1 for names in owners.values()), f"two owners: {owners}"
