"""A member of the classic protocol that does only what it is told.

It joins again when a heartbeat or a sync tells it so, when it subscribes to something else, when
as a leader it sees that topics have changed, and as a cooperative one when it has given something
up. Nothing else makes it join: that faults have stopped it cannot know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from model.errors import ErrorCode
from model.ids import MemberId
from muster.assignors import classic
from muster.assignors.embedded import decode_assignment, decode_subscription
from tests.sim.checkers.violations import check
from tests.sim.wire.frames import BEAT, JOIN, LEAVE, SYNC, make_row, row_type
from tests.sim.wire.member import LOADING, RETRY_MS, Habits, Member
from tests.support.shadow import Place

if TYPE_CHECKING:
    from tests.sim.wire.world import WireWorld

Phase = Literal["idle", "thinks", "joins", "syncs"]
COOPERATIVE = "cooperative-sticky"
EAGER_PROTOCOLS = (("range", COOPERATIVE), (COOPERATIVE, "range"))
REFUSED_RETRY_MS = 1_000
LINGER_MS = 800
BEAT_VERSION = 4
LEAVE_VERSION = 4


@dataclass(frozen=True)
class ClassicHabits:
    """``resets_on_sync``: a sync that is refused for a rebalance makes it forget its generation.

    ``leaves_at_once``: it says that it leaves while its join is not answered yet.
    """

    is_cooperative: bool
    protocols: tuple[str, ...]
    metadata_version: int
    join_version: int
    sync_version: int
    beat_every_ms: int
    think_ms: int
    resets_on_sync: bool
    join_patience_ms: int
    joins_again_on_the_same: bool
    """A join that is not answered in time is sent again on the same connection."""


@dataclass(frozen=True, slots=True, eq=False)
class Beat:
    """A heartbeat that was sent."""

    member_id: MemberId
    generation: int
    sent_ms: int


class Classic(Member):
    """One request of the rebalance at a time, heartbeats beside it. Its epoch is a generation."""

    # Generation 0 is one: of an instance whose predecessor in an upgraded group may still read.
    no_epoch = -1

    knows_names_only = True

    def __init__(
        self,
        world: WireWorld,
        name: str,
        group: str,
        topics: tuple[str, ...],
        instance: str | None,
        habits: Habits,
        classic_habits: ClassicHabits,
    ) -> None:
        super().__init__(world, name, group, topics, instance, habits)
        self.classic = classic_habits
        self._id: MemberId | None = None
        self._step = 0
        """The step of the rebalance that is under way; whatever is of another means nothing."""
        self._phase: Phase = "idle"
        self._wants_join = False
        self._has_joined_twice = False
        self._joined_topics: tuple[str, ...] = ()
        self._leads: dict[str, int] | None = None
        self._watched: tuple[str, ...] = ()
        self._protocol: str | None = None
        self._beat: Beat | None = None
        """The heartbeat that is not answered yet."""

    def start(self) -> None:
        self._join()
        self.later(self.classic.beat_every_ms, self._keep_alive)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self._join_again(0)

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing to do but to heartbeat."""
        return self.epoch > self.no_epoch and self._phase == "idle" and not self._wants_join

    @property
    def _is_joining(self) -> bool:
        return self._phase == "joins"

    # ----------------------------------------------------------------------------------- steps

    def _begin(self, phase: Phase) -> int:
        self._step += 1
        self._phase = phase
        return self._step

    def _later_step(self, delay_ms: float, step: Any) -> None:
        """Do it then, unless something else has begun meanwhile."""
        number = self._begin("thinks")
        self.later(delay_ms, lambda: step() if number == self._step else None)

    def _lose(self, keeps_id: bool) -> None:
        """It is of another generation than it thought, or no member at all."""
        self.owned.clear()
        self.epoch = self.no_epoch
        self.lease_until_ms = float("-inf")
        self._leads = None
        if not keeps_id:
            self._id = None
            self.is_settled_member = False

    def _join_again(self, delay_ms: float) -> None:
        self._wants_join = True
        if self._phase == "idle":
            self._later_step(delay_ms, self._join)

    # ----------------------------------------------------------------------------------- joining

    def _join(self) -> None:
        if self.is_leaving:
            return
        link = self.connection()
        if link is None:
            self._later_step(RETRY_MS, self._join)
            return
        if self.has_expired():
            self._lose(keeps_id=True)
        self._wants_join = False
        self._leads = None
        self._joined_topics = self.topics
        if self.classic.is_cooperative:
            names = self.world.topic_names
            self.owned = {place for place in self.owned if names[place[0]] in self.topics}
        else:
            self.owned.clear()
        step = self._begin("joins")
        metadata = self._metadata()
        row = row_type(JOIN, self.classic.join_version, "protocols")
        said_id, claimed = self._id, frozenset(self.owned)
        self.world.note("join", self.name, self.epoch, len(claimed))
        link.ask(
            JOIN,
            self.classic.join_version,
            lambda answer, at_ms: self.run(partial(self._joined, step, at_ms, answer)),
            lambda: said_id is not None and said_id == self._id and claimed == self.owned,
            group_id=self.group,
            session_timeout=self.habits.session_ms,
            rebalance_timeout=self.habits.rebalance_ms,
            member_id=self._id or "",
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=tuple(
                make_row(row, name=n, metadata=metadata) for n in self.classic.protocols
            ),
        )
        # Without an id each request is another member, which the others wait for.
        patience_ms = self.classic.join_patience_ms if self._id is not None else 20_000
        self.later(patience_ms, partial(self._join_timed_out, step))
        self.maybe_break()

    def _metadata(self) -> bytes:
        owned: dict[str, list[int]] = {}
        for topic_id, number in sorted(self.owned):
            owned.setdefault(str(self.world.topic_names[topic_id]), []).append(number)
        generation = self.epoch if self.classic.is_cooperative else self.no_epoch
        member = classic.Member(
            self.name, self.topics, self.instance, owned=owned, generation=generation
        )
        name = self.classic.protocols[0]
        return classic.encode_member_metadata(name, member, self.classic.metadata_version)

    def _join_timed_out(self, step: int) -> None:
        if step != self._step or self.is_leaving:
            return
        if not self.classic.joins_again_on_the_same or self._has_joined_twice:
            self.drop_connection()
        self._has_joined_twice = True
        self._join()

    def _joined(self, step: int, at_ms: int, answer: Any) -> None:
        if step != self._step or self.is_leaving:
            return
        self._has_joined_twice = False
        code = ErrorCode(answer.error_code)
        self.world.note("joined", self.name, code.name, answer.generation_id)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._take_id(answer.member_id)
            self._join()
            return
        if code is not ErrorCode.NONE:
            self._refused(code, is_sync=False)
            return
        self._take_id(answer.member_id)
        self.is_refused = False
        self.epoch = answer.generation_id
        self._protocol = answer.protocol_name
        self.heard_ms = at_ms
        self.extend_lease(at_ms)
        assignments: dict[str, bytes] = {}
        if answer.leader == self._id:
            assignments = self._lead(answer)
        delay_ms = self.random.choice((0, 0, 0, 50, 600))
        self._later_step(delay_ms, partial(self._sync, assignments))

    def _take_id(self, member_id: str) -> None:
        if member_id != self._id:
            self._id = self.member_id = MemberId(member_id)
            self.is_removed = False
            self.is_settled_member = False
            self._take_instance()
            self.world.of_member[self.group, self._id] = self

    def _take_instance(self) -> None:
        """It is its instance now, whichever process was; of two that fight the last to join."""
        if self.instance is None:
            return
        for other in self.world.members:
            if other.instance == self.instance and other.group == self.group:
                other.is_replaced = other is not self and (other.is_replaced or other.is_live)

    def _lead(self, answer: Any) -> dict[str, bytes]:
        """What a leader does, if it may."""
        joined = [
            classic.JoinedMember(each.member_id, each.group_instance_id, each.metadata)
            for each in answer.members
        ]
        topics = {topic for each in joined for topic in _topics_of(each.metadata)}
        self._watched = tuple(sorted(topics)) or self.topics
        self._leads = self.world.partitions_of(self._watched)
        if getattr(answer, "skip_assignment", False) or not joined:
            return {}
        return classic.compute_assignment_bytes(answer.protocol_name, joined, self._leads)

    # ----------------------------------------------------------------------------------- syncing

    def _sync(self, assignments: dict[str, bytes]) -> None:
        if self.is_leaving:
            return
        link = self.connection()
        if link is None:
            self._later_step(RETRY_MS, partial(self._sync, assignments))
            return
        step = self._begin("syncs")
        row = row_type(SYNC, self.classic.sync_version, "assignments")
        link.ask(
            SYNC,
            self.classic.sync_version,
            lambda answer, at_ms: self.run(partial(self._synced, step, at_ms, answer)),
            lambda: True,
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self._id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=self._protocol,
            assignments=tuple(
                make_row(row, member_id=member_id, assignment=given)
                for member_id, given in assignments.items()
            ),
        )
        self.later(self.habits.patience_ms + 3_000, partial(self._sync_timed_out, step))
        self.maybe_break()

    def _sync_timed_out(self, step: int) -> None:
        if step == self._step and not self.is_leaving:
            self.drop_connection()
            self._join()

    def _synced(self, step: int, at_ms: int, answer: Any) -> None:
        if step != self._step or self.is_leaving:
            return
        code = ErrorCode(answer.error_code)
        self.world.note("synced", self.name, code.name, len(answer.assignment))
        if code is not ErrorCode.NONE:
            self._refused(code, is_sync=True)
            return
        self.heard_ms = at_ms
        self.is_settled_member = True
        self.extend_lease(at_ms)
        self._begin("idle")
        if self.has_expired():
            self._lose(keeps_id=True)
            self._join_again(0)
            return
        given = self._places(answer.assignment)
        revoked = self.owned - given
        if not revoked:
            self.calm_ms = at_ms
        self.gain(given - self.owned)
        if revoked:
            # KIP-429: what it was not given again it gives up, and joins again to say so.
            self._wants_join = True
            self._later_step(self.habits.revoke_ms, partial(self._give_up, revoked))
        elif self._wants_join or self.topics != self._joined_topics:
            self._join_again(0)

    def _give_up(self, revoked: set[Place]) -> None:
        self.owned -= revoked
        self._join()

    def _places(self, assignment: bytes) -> set[Place]:
        if not assignment:
            return set()
        found: set[Place] = set()
        for topic in decode_assignment(assignment).partitions:
            topic_id = self.world.topic_id(topic.topic)
            if topic_id is not None:
                found.update((topic_id, number) for number in topic.partitions)
        return found

    # ----------------------------------------------------------------------------------- refusals

    def _refused(self, code: ErrorCode, is_sync: bool) -> None:
        match code:
            case ErrorCode.REBALANCE_IN_PROGRESS:
                if is_sync and self.classic.resets_on_sync:
                    self._lose(keeps_id=True)
                self._later_step(RETRY_MS, self._join)
            case ErrorCode.ILLEGAL_GENERATION:
                self._lose(keeps_id=True)
                self._later_step(RETRY_MS, self._join)
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.world.judge.check_removal(self, code.name)
                self._lose(keeps_id=False)
                self._later_step(RETRY_MS, self._join)
            case ErrorCode.FENCED_INSTANCE_ID:
                self.die()
            case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                self._lose(keeps_id=False)
                self.is_refused = True
                self._later_step(REFUSED_RETRY_MS, self._join)
            case _:
                check(code in LOADING, "L2", f"{self} was answered {code.name}")
                self._later_step(RETRY_MS, self._join)

    def reconnected(self) -> None:
        """What it asked is not answered any more: it asks again."""
        if self.is_leaving:
            return
        self._beat = None
        if self._phase in ("joins", "syncs"):
            self._join()

    # ------------------------------------------------------------------------------ heartbeats

    def _keep_alive(self) -> None:
        self.later(self.classic.beat_every_ms, self._keep_alive)
        if self.is_leaving or self._id is None or self.epoch == self.no_epoch or self._is_joining:
            return
        if self.has_expired():
            self._lose(keeps_id=True)
            self._join_again(0)
            return
        if self._leads is not None and self._leads != self.world.partitions_of(self._watched):
            self._join_again(0)
            return
        now_ms = self.world.time.now_ms
        if self._beat is not None:
            if now_ms - self._beat.sent_ms < self.habits.patience_ms:
                return
            self.drop_connection()
            self.reconnected()
        link = self.connection()
        if link is None or self._is_joining:
            return
        beat = self._beat = Beat(self._id, self.epoch, now_ms)
        link.ask(
            BEAT,
            BEAT_VERSION,
            lambda answer, _: self.run(partial(self._heard, beat, ErrorCode(answer.error_code))),
            lambda: True,
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self._id,
            group_instance_id=self.instance,
        )
        self.maybe_break()

    def _heard(self, beat: Beat, code: ErrorCode) -> None:
        """The answer to a heartbeat; one of another generation says nothing of this one."""
        if self._beat is beat:
            self._beat = None
        if (beat.member_id, beat.generation) != (self._id, self.epoch) or self.is_leaving:
            return
        self.world.note("alive", self.name, code.name)
        match code:
            case ErrorCode.NONE:
                self.heard_ms = max(self.heard_ms, beat.sent_ms)
                self.calm_ms = max(self.calm_ms, beat.sent_ms)
                self.extend_lease(beat.sent_ms)
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.heard_ms = max(self.heard_ms, beat.sent_ms)
                self.extend_lease(beat.sent_ms)
                self._join_again(self.classic.think_ms)
            case _ if not self._is_joining:
                self._refused(code, is_sync=False)
            case _:
                pass

    # ---------------------------------------------------------------------------------- leaving

    def stop(self) -> None:
        """A dynamic member says so, on its connection, also while it waits for its join."""
        if self.is_leaving or self.is_dead:
            return
        self.is_leaving = True
        self.owned.clear()
        link = self.open_link
        if self.instance is None and self._id is not None and link is not None:
            row = row_type(LEAVE, LEAVE_VERSION, "members")
            link.ask(
                LEAVE,
                LEAVE_VERSION,
                lambda answer, _: None,
                None,
                group_id=self.group,
                members=(make_row(row, member_id=self._id, group_instance_id=None),),
            )
        self.later(LINGER_MS, self.die)

    # ---------------------------------------------------------------------------------- commits

    def commit_fields(self) -> tuple[int, dict[str, Any]]:
        return 8, {
            "generation_id_or_member_epoch": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }


def _topics_of(metadata: bytes) -> tuple[str, ...]:
    return tuple(decode_subscription(metadata).topics)
