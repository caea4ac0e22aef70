"""What wire and session clients have in common: ownership, the lease, commits, crash and pause."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.core.state.consumer.consumer_member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from tests.sim.checkers.violations import check
from tests.sim.pausing import Pausing
from tests.support.members import Member
from tests.support.shadow import Place

if TYPE_CHECKING:
    from tests.sim.world import World

CALLER = Caller("User:sim", "sim", "/127.0.0.1")


@dataclass(frozen=True)
class Habits:
    """How a client behaves, by its seed."""

    rebalance_timeout_ms: int
    revoke_ms: int
    commit_every_ms: int
    assignor: str | None
    never_acknowledges: bool


def choose_habits(rng: random.Random, never_acknowledges: bool) -> Habits:
    return Habits(
        rebalance_timeout_ms=rng.choice((4_000, 8_000, 15_000)),
        revoke_ms=rng.choice((0, 0, 50, 1_500)),
        commit_every_ms=rng.choice((700, 2_000, 5_000)),
        assignor=rng.choice((None, None, "uniform", "range")),
        never_acknowledges=never_acknowledges,
    )


class Client(Member, Pausing):
    """A member. It believes that it owns ``owned`` while its lease lasts and nobody fenced it.

    What is right is decided by the world and by ``tests.sim.checkers``, not by ``Member``.
    """

    caller = CALLER

    def __init__(
        self, world: World, group: str, name: str, names: tuple[str, ...], habits: Habits
    ) -> None:
        Member.__init__(self, GroupId(group), MemberId(name))
        Pausing.__init__(self, world.time)
        self.world = world
        self.random = world.random
        self.names = tuple(TopicName(topic) for topic in names)
        self.habits = habits
        self._renamed = 0
        self._is_for_a_while = False
        self.lease_until_ms = -1
        self.is_removed = False
        """The server removed it, and it has not joined again, but it cannot know yet."""
        self.is_out = False
        self.is_revoking = False
        self._incarnation = 0

    def start(self) -> None:
        """Join, and do what members do."""
        raise NotImplementedError

    def leave(self, returns_after_ms: int | None) -> None:
        """Give up everything and go; come back after that time, or never."""
        raise NotImplementedError

    def change_names(self, names: tuple[str, ...]) -> None:
        """Subscribe to other topics."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------- its time

    def later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call, unless it is dead by then; after the pause if it is paused then."""
        self.world.time.call_later_ms(delay_ms, lambda: self.run(callback))

    def crash(self) -> None:
        """The process is gone, without a word."""
        self.is_dead = True
        self.owned.clear()

    # ------------------------------------------------------------------------------- ownership

    @property
    def believes(self) -> bool:
        """Whether it acts as the owner of what it owns."""
        is_member = not self.is_dead and not self.is_removed and self.epoch > self.no_epoch
        return is_member and self.world.time.now_ms < self.lease_until_ms

    def extend_lease(self, sent_ms: int) -> None:
        """The server has heard what was sent then."""
        lease_ms = self.world.settings.group_consumer_session_timeout_ms
        self.lease_until_ms = max(self.lease_until_ms, sent_ms + lease_ms)

    def gain(self, places: set[Place]) -> None:
        """It owns these from now on. S2: nobody else believes so.

        Who was removed for not giving up what it should is fenced when it says what it has.
        """
        if self.is_removed:
            self.owned |= places
            return
        owners = self.world.owners
        for place in sorted(places):
            other = owners.get((self.group_id, place))
            if other is not None and other is not self and place in other.owned:
                check(
                    not other.believes,
                    "S2",
                    f"{self.group_id}: {place} is {other.member_id}'s at {other.epoch} and "
                    f"{self.member_id}'s at {self.epoch}",
                )
            owners[self.group_id, place] = self
        self.owned |= places

    def abandon(self) -> None:
        """It is no member any more: all is lost, at once."""
        self.forget()
        self.lease_until_ms = -1
        self.is_revoking = False
        self._incarnation += 1

    def abandon_if_expired(self) -> bool:
        """By its own clock."""
        if self.epoch == self.no_epoch or self.world.time.now_ms < self.lease_until_ms:
            return False
        self.abandon()
        return True

    def note_epoch(self, epoch: int) -> None:
        """S5: an incarnation never sees its epoch decrease."""
        check(epoch >= self.epoch, "S5", f"{self.member_id} at {self.epoch} was told {epoch}")
        self.epoch = epoch

    def can_gain(self) -> bool:
        """Whether nothing on its way says that it owns less than it is about to."""
        raise NotImplementedError

    def reconcile(self) -> bool:
        """One step towards what it was told; whether it has something to acknowledge."""
        if self.told is None or self.is_revoking:
            return False
        revoked = self.owned - self.told
        if revoked:
            self._begin_revoke(revoked)
            return False
        added = self.told - self.owned
        if not added or not self.can_gain():
            return False
        self.gain(set(added))
        return True

    def _begin_revoke(self, revoked: set[Place]) -> None:
        self.is_revoking = True
        if self.habits.never_acknowledges and self.world.faults.is_on("unacknowledged revocation"):
            self.world.faults.note("unacknowledged revocation")
            return
        incarnation = self._incarnation

        def finish() -> None:
            if incarnation == self._incarnation:
                self.is_revoking = False
                self.owned -= revoked
                self.revoked()

        self.later(self.habits.revoke_ms, finish)

    def resume_revoking(self) -> None:
        """A client that did not acknowledge comes to its senses."""
        if self.is_revoking and self.told is not None:
            self.is_revoking = False
            self._incarnation += 1
            self.owned &= self.told
            self.revoked()

    def revoked(self) -> None:
        """The application has given up what it had to."""
        raise NotImplementedError

    def choose_leave(self, returns: bool) -> None:
        """A static member that returns leaves for a while; another may, or go for good."""
        is_static = self.instance_id is not None
        self._is_for_a_while = is_static and (returns or self.random.random() < 0.7)

    def leave_command(self) -> ConsumerGroupLeave:
        """With epoch -2 for a while, with -1 for good."""
        epoch = STATIC_LEAVE_EPOCH if self._is_for_a_while else LEAVE_EPOCH
        return self.compose_leave(epoch)

    def return_by_a_name(self) -> None:
        """A static member may come back as another process does: with a new member id."""
        if self.instance_id is not None and self.random.random() < 0.6:
            self._renamed += 1
            name = f"{self.member_id.partition('+')[0]}+{self._renamed}"
            self.world.rename(self, MemberId(name))

    # -------------------------------------------------------------------------------- requests

    def full_heartbeat(self) -> ConsumerGroupHeartbeat:
        """All that there is to say: a join at epoch 0."""
        return self.compose_full(
            self.names,
            timeout_ms=self.habits.rebalance_timeout_ms,
            assignor=self.habits.assignor,
        )

    def compute_commit(self) -> OffsetCommit | None:
        """A commit of some of what it owns, at offsets that no other commit has."""
        known = [place for place in sorted(self.owned) if place[0] in self.world.topic_names]
        if not known or not self.believes:
            return None
        chosen = self.random.sample(known, min(len(known), self.random.randint(1, 3)))
        topics = tuple(
            TopicOffsets(
                self.world.topic_names[topic_id],
                topic_id,
                make_offset_columns([(partition, self.world.next_offset(), -1, "")]),
            )
            for topic_id, partition in chosen
        )
        return OffsetCommit(
            CALLER, self.group_id, self.member_id, self.epoch, topics, self.instance_id
        )
