"""What members of both protocols have in common: a clock, connections, a lease, what they own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from model.errors import ErrorCode
from model.ids import GroupId, MemberId
from tests.sim.pausing import Pausing
from tests.sim.wire.clock import TRUST, ClientClock
from tests.sim.wire.links import Link
from tests.support.shadow import Place

if TYPE_CHECKING:
    from tests.sim.wire.world import WireWorld

RETRY_MS = 100
LOADING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(frozen=True)
class Habits:
    """How a client behaves, by its seed."""

    session_ms: int
    rebalance_ms: int
    revoke_ms: int
    commit_every_ms: int
    patience_ms: int
    """How long it waits for an answer that does not wait for others."""
    reconnect_ms: int
    pipelines: bool
    """It commits for other groups by the connection of its membership."""
    has_data_connection: bool
    """It commits by another connection than it heartbeats by."""


class Member(Pausing):
    """An application. It believes that it owns ``owned`` while its lease lasts by its clock.

    It is no ``tests.support.members.Member``, which speaks in commands: it has the bytes of the
    wire alone, and its own clock, so that the judge compares the server with what a client can
    know.
    """

    knows_names_only = False
    no_epoch = 0
    """The epoch of who is no member."""

    def __init__(
        self,
        world: WireWorld,
        name: str,
        group: str,
        topics: tuple[str, ...],
        instance: str | None,
        habits: Habits,
    ) -> None:
        super().__init__(world.time)
        self.world = world
        self.random: random.Random = world.random
        self.clock = ClientClock(world.time, world.random)
        self.name = name
        self.group = GroupId(group)
        self.member_id = MemberId(name)
        self.topics = topics
        self.instance = instance
        self.habits = habits
        self.owned: set[Place] = set()
        self.epoch = self.no_epoch
        self.is_leaving = False
        self.is_removed = False
        """By a deadline, which it cannot know yet."""
        self.is_replaced = False
        """Another process is its instance by now, which it cannot know yet."""
        self.is_refused = False
        """By its group, for what it is: an administrator has to see to that."""
        self.is_settled_member = False
        """The server has it on disk."""
        self.lease_until_ms = float("-inf")
        self.heard_ms = self.calm_ms = 0
        self._link: Link | None = None
        self._data_link: Link | None = None
        self._may_connect_ms = 0
        self.later(habits.commit_every_ms, self._commit)

    def __str__(self) -> str:
        places = sorted((topic.decode().strip("_0"), number) for topic, number in self.owned)
        kind = type(self).__name__ + ("" if self.instance is None else f" {self.instance}")
        return f"{self.member_id} ({kind}) at {self.epoch} with {places}"

    @property
    def session_ms(self) -> int:
        return self.habits.session_ms

    @property
    def rebalance_ms(self) -> int:
        return self.habits.rebalance_ms

    # -------------------------------------------------------------------------------- its time

    def later(self, delay_ms: float, callback: Callable[[], None]) -> None:
        """Call when so much has passed by its clock, unless it is dead by then."""
        self.world.time.call_later_ms(self.clock.to_world_ms(delay_ms), partial(self.run, callback))

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing to do but to heartbeat."""
        raise NotImplementedError

    @property
    def acknowledged_topics(self) -> tuple[str, ...] | None:
        """What the server must have it subscribe to; ``None`` where that cannot be said."""
        return None

    @property
    def is_live(self) -> bool:
        """Whether its application wants to read."""
        return not (self.is_dead or self.is_leaving or self.is_replaced or self.is_refused)

    def die(self) -> None:
        """The process is gone without a word; its machine closes its connections."""
        self.is_dead = True
        self.owned.clear()
        for link in (self._link, self._data_link):
            if link is not None:
                link.close()

    def start(self) -> None:
        """Join, and do what members do."""
        raise NotImplementedError

    def stop(self) -> None:
        """Leave as a process does that is stopped."""
        raise NotImplementedError

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------- ownership

    @property
    def believes(self) -> bool:
        """Whether it acts as the owner of what it owns, and may."""
        return (
            not (self.is_dead or self.is_leaving or self.is_removed or self.is_replaced)
            and self.epoch > self.no_epoch
            and self.clock.now_ms() < self.lease_until_ms
        )

    def extend_lease(self, heard_world_ms: float) -> None:
        """The server has heard what was sent then. It trusts its clock for most of the session."""
        until_ms = self.clock.at(heard_world_ms) + TRUST * self.habits.session_ms
        self.lease_until_ms = max(self.lease_until_ms, until_ms)

    def has_expired(self) -> bool:
        """By its own clock."""
        return self.epoch > self.no_epoch and self.clock.now_ms() >= self.lease_until_ms

    def gain(self, places: set[Place]) -> None:
        """It owns these from now on."""
        self.world.judge.gain(self, places)
        self.owned |= places
        self.world.history.fetch(self, places)

    # ----------------------------------------------------------------------------- connections

    def reconnected(self) -> None:
        """A connection was lost and there is another: what was asked is not answered any more."""
        raise NotImplementedError

    def connection(self) -> Link | None:
        """The one of its membership; ``None`` while it must not connect again yet."""
        if self._link is not None and self._link.is_open:
            return self._link
        if self.world.time.now_ms < self._may_connect_ms:
            return None
        self._link = Link(self.world, self.name, self._link_lost)
        return self._link

    def _link_lost(self) -> None:
        if self.is_dead:
            return
        wait_ms = self.habits.reconnect_ms if self.world.is_up else RETRY_MS
        self._may_connect_ms = self.world.time.now_ms + wait_ms
        self.world.time.call_later_ms(wait_ms, partial(self.run, self.reconnected))

    def drop_connection(self) -> None:
        """It waited for long enough."""
        if self._link is not None:
            self._link.give_up()
        self._link = None

    def data_connection(self) -> Link | None:
        """For commits and fetches."""
        if not self.habits.has_data_connection:
            return self._link if self._link is not None and self._link.is_open else None
        if self._data_link is None or not self._data_link.is_open:
            if not self.world.is_up:
                return None
            self._data_link = Link(self.world, f"{self.name}-data", lambda: None)
        return self._data_link

    @property
    def waiting_link(self) -> Link | None:
        """Its connection, if an answer is awaited there."""
        link = self._link
        return link if link is not None and link.is_open and link.waits else None

    @property
    def open_link(self) -> Link | None:
        link = self._link
        return link if link is not None and link.is_open else None

    def maybe_break(self) -> None:
        """Something was just sent: connections break then."""
        link, faults = self._link, self.world.faults
        if link is None or not link.is_open:
            return
        if faults.strikes("half-open connection"):
            link.break_half_open()
        elif faults.is_on("connection cut") and (
            self.random.random() < faults.probability["connection cut"]
        ):
            link.cut()
        elif faults.is_on("answer lost") and (
            self.random.random() < faults.probability["answer lost"]
        ):
            link.go_silent()

    # ---------------------------------------------------------------------------------- commits

    def commit_fields(self) -> tuple[int, dict[str, Any]]:
        """Version and fields of a commit as a member."""
        raise NotImplementedError

    def _commit(self) -> None:
        if self.is_leaving and not self.habits.pipelines:
            return
        self.later(self.habits.commit_every_ms, self._commit)
        link = self.data_connection()
        if link is None or not self.world.is_up:
            return
        if self.habits.pipelines:
            self.world.history.commit_simple(link)
        if self.believes and self.owned:
            place = self.random.choice(sorted(self.owned))
            self.world.history.commit(self, link, place)
