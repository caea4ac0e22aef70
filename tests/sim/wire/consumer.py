"""A member of the consumer protocol (KIP-848), in the manners of several clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from coordinator.core.state.consumer.consumer_member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from model.errors import ErrorCode
from model.ids import TopicId
from tests.sim.checkers.violations import check
from tests.sim.wire.frames import HEARTBEAT, make_row, row_type
from tests.sim.wire.member import LOADING, RETRY_MS, Habits, Member
from tests.support.shadow import Place

if TYPE_CHECKING:
    from tests.sim.wire.world import WireWorld

VERSION = 1
REFUSED_RETRY_MS = 1_000
LINGER_MS = 500
BUSY_MS = (2_000, 3_000, 3_500)
"""Within the shortest rebalance timeout."""


@dataclass(frozen=True)
class ConsumerHabits:
    """``says_all_again``: after a connection was lost, as Java's client does."""

    says_all_again: bool
    always_says_owned: bool
    says_all: float
    """How often it says all for no reason."""
    leaves_for_good: bool
    """A static member that stops says -1, not -2."""


@dataclass(frozen=True, slots=True)
class Said:
    """A heartbeat that was sent. ``owned`` is ``None`` where it says nothing of that."""

    number: int
    sent_ms: int
    epoch: int
    owned: frozenset[Place] | None
    topics: tuple[str, ...] | None


class Consumer(Member):
    """One heartbeat at a time; the next when its interval has passed since it sent the last."""

    def __init__(
        self,
        world: WireWorld,
        name: str,
        group: str,
        topics: tuple[str, ...],
        instance: str | None,
        habits: Habits,
        consumer: ConsumerHabits,
    ) -> None:
        super().__init__(world, name, group, topics, instance, habits)
        self.consumer = consumer
        self.goes_for_good = consumer.leaves_for_good
        self.is_busy = False
        """It is slow with what it is to give up next."""
        self.interval_ms = 0
        """What it was told last."""
        self._number = 0
        self._said: Said | None = None
        self._told: frozenset[Place] | None = None
        self._is_revoking = False
        self._finish: Callable[[], None] | None = None
        """Ends what it is giving up."""
        self._is_dirty = False
        self._is_doubtful = False
        """A request that said what it owned was given up."""
        self._needs_full = True
        self._known_topics: tuple[str, ...] = ()
        self._timer = 0
        self._incarnation = 0

    def start(self) -> None:
        self._beat()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self._beat_after(0)

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing to do but to heartbeat."""
        return self.epoch > 0 and not self._is_dirty and self._told in (None, self.owned)

    @property
    def acknowledged_topics(self) -> tuple[str, ...] | None:
        """What it was last answered to have subscribed to; ``None`` while that is under way."""
        is_said = self._said is not None and self._said.topics is not None
        return None if is_said or self.epoch == 0 else self._known_topics or None

    # ------------------------------------------------------------------------------- heartbeats

    def _beat_after(self, delay_ms: float) -> None:
        self._timer += 1
        timer = self._timer

        def beat() -> None:
            if timer == self._timer:
                self._beat()

        self.later(delay_ms, beat)

    def _beat(self) -> None:
        if self._said is not None or self.is_leaving:
            return
        link = self.connection()
        if link is None:
            self._beat_after(RETRY_MS)
            return
        if self.has_expired():
            self._abandon()
        full = self._needs_full or self.epoch == 0 or self.random.random() < self.consumer.says_all
        says_owned = full or self._is_dirty or self.consumer.always_says_owned
        says_topics = full or self.topics != self._known_topics
        self._number += 1
        said = self._said = Said(
            self._number,
            self.world.time.now_ms,
            self.epoch,
            frozenset(self.owned) if says_owned else None,
            self.topics if says_topics else None,
        )
        self.world.note("beat", self.name, said.epoch, int(full))
        link.ask(
            HEARTBEAT,
            VERSION,
            lambda answer, _: self.run(partial(self._answered, said, answer)),
            partial(self._is_true, said),
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance,
            rebalance_timeout=self.habits.rebalance_ms if full else -1,
            subscribed_topic_names=said.topics,
            topic_partitions=None if said.owned is None else _rows(said.owned),
        )
        self.later(self.habits.patience_ms, partial(self._timed_out, said))
        self.maybe_break()

    def _is_true(self, said: Said) -> bool:
        """Whether old bytes still say what is so, and what the server may hear of it."""
        if said.epoch == 0 and (self.epoch > 0 or self.is_leaving):
            return False
        if said.topics is not None and said.topics != self.topics:
            return False
        if said.owned is None:
            return True
        return said.owned >= self.owned | self.world.held_by(self.group, self.member_id)

    def _timed_out(self, said: Said) -> None:
        if self._said is said:
            self.drop_connection()
            self._given_up()
            self._beat_after(0)

    def _given_up(self) -> None:
        said, self._said = self._said, None
        if said is not None:
            self._is_doubtful |= said.owned is not None
            self._needs_full |= self.consumer.says_all_again
            if said.topics is not None:
                self._known_topics = ()
            if said.epoch == 0:
                self._needs_full = True

    def reconnected(self) -> None:
        """As soon as it can, for what it asked is not answered any more."""
        if self.is_leaving:
            return
        had_asked = self._said is not None
        self._given_up()
        self._needs_full |= self.consumer.says_all_again
        if had_asked:
            self._beat_after(0)

    def _answered(self, said: Said, answer: Any) -> None:
        if self._said is not said:
            return
        self._said = None
        self._is_doubtful = False
        code = ErrorCode(answer.error_code)
        given = None if answer.assignment is None else len(answer.assignment.topic_partitions)
        self.world.note("answer", self.name, code.name, answer.member_epoch, given)
        if code is not ErrorCode.NONE:
            self._refused(code)
            return
        if answer.member_epoch < self.epoch:
            check(False, "S5", f"{self} was told {answer.member_epoch}")
        self.epoch = answer.member_epoch
        self.heard_ms = said.sent_ms
        self.interval_ms = answer.heartbeat_interval
        self.is_settled_member = True
        self._needs_full = False
        if said.topics is not None:
            self._known_topics = said.topics
        if said.owned is not None and said.owned == self.owned:
            self._is_dirty = False
        self.extend_lease(said.sent_ms)
        if self.has_expired():
            self._abandon()
            self._beat_after(RETRY_MS)
            return
        if answer.assignment is not None:
            self._told = frozenset(
                (TopicId(topic.topic_id), number)
                for topic in answer.assignment.topic_partitions
                for number in topic.partitions
            )
        if self._told is None or (self.owned <= self._told and not self._is_dirty):
            # What it has given up since this heartbeat was sent, the server still waits for.
            self.calm_ms = said.sent_ms
        self._reconcile()
        if self._is_dirty or self.topics != self._known_topics:
            self._beat_after(0)
        else:
            passed_ms = (self.world.time.now_ms - said.sent_ms) * 1.0
            self._beat_after(max(answer.heartbeat_interval - passed_ms, 0))

    def _refused(self, code: ErrorCode) -> None:
        wait_ms = RETRY_MS
        match code:
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_MEMBER_EPOCH:
                if code is ErrorCode.UNKNOWN_MEMBER_ID:
                    self.world.judge.check_removal(self, code.name)
                self._abandon()
            case ErrorCode.UNRELEASED_INSTANCE_ID:
                wait_ms = REFUSED_RETRY_MS
            case ErrorCode.FENCED_INSTANCE_ID | ErrorCode.GROUP_ID_NOT_FOUND:
                if code is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch > 0:
                    self.world.judge.check_removal(self, code.name)
                self.die()
                return
            case _:
                check(code in LOADING, "L2", f"{self} was answered {code.name}")
        self._needs_full = True
        self._beat_after(wait_ms)

    def _abandon(self) -> None:
        """It is no member any more: all is lost, at once."""
        self.owned.clear()
        self._told = None
        self.epoch = 0
        self.lease_until_ms = float("-inf")
        self.is_settled_member = False
        self._is_revoking = self._is_dirty = False
        self._incarnation += 1

    # ----------------------------------------------------------------------------- assignments

    def _reconcile(self) -> None:
        """One step towards what it was told."""
        if self._told is None or self._is_revoking:
            return
        revoked = self.owned - self._told
        if revoked:
            self._revoke(revoked)
            return
        added = self._told - self.owned
        may_gain = not self._is_doubtful and (self._said is None or self._said.owned is None)
        if added and may_gain:
            self.gain(set(added))
            self._is_dirty = True

    def _revoke(self, revoked: set[Place]) -> None:
        self._is_revoking = True
        incarnation = self._incarnation
        delay_ms = self.habits.revoke_ms
        if self.is_busy:
            self.world.faults.note("slow to revoke")
            self.is_busy = False
            delay_ms = self.random.choice(BUSY_MS)
        elif self.world.faults.strikes("slow to revoke"):
            longest_ms = 2 * self.habits.rebalance_ms
            delay_ms = self.random.choice((800, 1_500, 2_500, 2_500, longest_ms))

        def finish() -> None:
            is_current = incarnation == self._incarnation and self._finish is finish
            if is_current and not self.is_leaving:
                self._finish = None
                self._is_revoking = False
                self.owned -= revoked
                self._is_dirty = True
                self._reconcile()
                self._beat_after(0)

        self._finish = finish
        self.later(delay_ms, finish)

    def hurry(self) -> None:
        """It is busy no more."""
        if self._finish is not None and not self.is_dead:
            self.run(self._finish)

    # ---------------------------------------------------------------------------------- leaving

    def stop(self) -> None:
        """It gives up all that it has, says so once and goes."""
        if self.is_leaving or self.is_dead:
            return
        was_member = self.epoch > 0 or self._said is not None
        for_a_while = self.instance is not None and not self.goes_for_good
        self.is_leaving = True
        self._abandon()
        link = self.connection()
        if was_member and link is not None:
            link.ask(
                HEARTBEAT,
                VERSION,
                lambda answer, _: self.run(self.die),
                None,
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=STATIC_LEAVE_EPOCH if for_a_while else LEAVE_EPOCH,
                instance_id=self.instance,
                rebalance_timeout=-1,
                subscribed_topic_names=None,
                topic_partitions=None,
            )
        self.later(LINGER_MS, self.die)

    # ---------------------------------------------------------------------------------- commits

    def commit_fields(self) -> tuple[int, dict[str, Any]]:
        return 9, {
            "generation_id_or_member_epoch": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }


def _rows(owned: frozenset[Place]) -> tuple[Any, ...]:
    """What it owns, as a request says it."""
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, number in sorted(owned):
        by_topic.setdefault(topic_id, []).append(number)
    row = row_type(HEARTBEAT, VERSION, "topic_partitions")
    return tuple(
        make_row(row, topic_id=topic_id, partitions=tuple(numbers))
        for topic_id, numbers in by_topic.items()
    )
