"""Writes the ledger of rebalances: why a group got a new epoch, and how that went on.

An entry is written with the records of its epoch, and again when the members have converged. New
epochs of one write are one entry. The ledger is no state of the groups: nothing is replayed from
it, and what goes on is forgotten by a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import (
    ArmRebalanceTimeout,
    CancelRebalanceTimeout,
    NoteEpochCauses,
    NoteRebalance,
    Outcome,
)
from coordinator.core.state.shard import Shard
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.ledger.begin_times import BeginTimes
from coordinator.runtime.ledger.generation_moves import compute_generation_moves
from coordinator.runtime.ledger.going_on import GoingOn, find_client_id
from coordinator.runtime.ledger.silence import GONE, compute_silence_ms
from coordinator.runtime.loop.stats import Stats
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline, JoinGroup
from model.commands.consumer import ConsumerGroupHeartbeat, ReconcileMember
from model.ids import GroupId
from model.past.rebalances import HeldUp, HeldUpBy, Rebalance
from storage.causes_codec import encode_causes_key, encode_rebalance
from storage.log_store import Change

_FIRST_EPOCH: Final = 1
"""A group is made with this epoch; its first members give it the next one."""
_OF_MEMBERS: Final = (ConsumerGroupHeartbeat, ReconcileMember)


class RebalanceLedger:
    """Follows the rebalances that go on, and makes their entries."""

    def __init__(
        self,
        clock: SteadyClock,
        liveness: Liveness,
        stats: Stats,
        shard_of: Callable[[GroupId], Shard],
        find_last_ms: Callable[[GroupId], int | None],
    ) -> None:
        self._clock = clock
        self._liveness = liveness
        self._stats = stats
        self._shard_of = shard_of
        self.going_on: dict[GroupId, GoingOn] = {}
        """The rebalances that go on, by group."""
        self._touched: dict[GroupId, None] = {}
        self._unwritten: dict[bytes, bytes] = {}
        self._silence_ms: int | None = None
        self._classic: ClassicGroup | None = None
        self._begin_times = BeginTimes(clock, find_last_ms)

    # ------------------------------------------------------------------ what outcomes tell

    def before(self, shard: Shard, command: object, outcome: Outcome) -> None:
        """Note what is forgotten with a member: how long it was silent, that it did not join."""
        self._silence_ms = self._classic = None
        if isinstance(command, ExpireClassicDeadline):
            self._note_late(shard, command)
        for effect in outcome.effects:
            if type(effect) is NoteEpochCauses:
                cause = effect.causes[0] if effect.causes else None
            elif type(effect) is NoteRebalance:
                cause = effect.cause
                self._classic = shard.classic_group(effect.group_id)
            else:
                continue
            if cause is not None and cause.kind in GONE:
                now_ms = self._clock.monotonic_ms()
                self._silence_ms = compute_silence_ms(
                    self._liveness, shard, effect.group_id, cause, command, now_ms
                )

    def _note_late(self, shard: Shard, command: ExpireClassicDeadline) -> None:
        going = self.going_on.get(command.group_id)
        group = shard.classic_group(command.group_id)
        if going is not None and group is not None and command.deadline is ClassicDeadline.JOIN:
            going.note_late(group, self._clock.monotonic_ms())

    def note(self, effect: NoteEpochCauses) -> None:
        """A consumer group gets a new epoch."""
        if not effect.causes:
            return
        group_id = effect.group_id
        known = self.going_on.get(group_id)
        if known is None or known.entry is not None or known.is_classic:
            cause = effect.causes[0]
            if self._silence_ms is not None:
                cause = replace(cause, heartbeat_age_ms=self._silence_ms)
            now = self._clock.now()
            group = self._shard_of(group_id).consumer_groups.get(group_id)
            epoch_before = 0 if group is None else max(group.group_epoch - 1, 0)
            is_first = epoch_before <= _FIRST_EPOCH
            began_ms = self._begin_times.compute(group_id, now.wall_ms, is_first=is_first)
            going = GoingOn(cause, now.monotonic_ms, began_ms)
            going.epoch_before = epoch_before
            if known is not None:
                going.go_on_from(known, group)
            self.going_on[group_id] = known = going
        known.causes += effect.count
        self._touched[group_id] = None

    def note_classic(self, effect: NoteRebalance) -> None:
        """A classic group begins a rebalance; one that had a generation is in the ledger."""
        if effect.cause is not None:
            known = self.going_on.get(effect.group_id)
            if known is not None and known.is_classic and known.has_joined:
                self._put(effect.group_id, known.make_classic_entry(effect.generation))
            self._stats.classic_rebalance_causes[effect.cause.kind.value] += 1
            cause = replace(effect.cause, heartbeat_age_ms=self._silence_ms)
            now = self._clock.now()
            is_first = effect.generation == 0
            began_ms = self._begin_times.compute(effect.group_id, now.wall_ms, is_first=is_first)
            going = GoingOn(cause, now.monotonic_ms, began_ms, is_classic=True, causes=1)
            going.generation = effect.generation
            going.assigned = self._classic
            if known is not None:
                if known.is_classic and known.assigned is not None:
                    # The members have lost what it assigned, and nobody has assigned since.
                    going.assigned = known.assigned
                going.unsettled_wall_ms = known.unsettled_wall_ms
            self.going_on[effect.group_id] = going

    def note_asked(self, effect: ArmRebalanceTimeout) -> None:
        """A member is asked to give partitions up."""
        going = self.going_on.get(effect.group_id)
        if going is not None:
            going.asked.setdefault(effect.member_id, self._clock.monotonic_ms())

    def note_revoked(self, effect: CancelRebalanceTimeout) -> None:
        """A member has given the partitions up."""
        going = self.going_on.get(effect.group_id)
        if going is not None:
            going.note_revoked(effect.member_id, self._clock.monotonic_ms())

    def observe(self, shard: Shard, group_id: GroupId, command: object, outcome: Outcome) -> None:
        """Look at the group after each outcome: has it changed, and who has changed it?"""
        going = self.going_on[group_id]
        if outcome.classic is not None:
            self._observe_classic(going, outcome.classic, command, bool(outcome.records))
            return
        if not outcome.records:
            return
        group = shard.consumer_groups.get(group_id)
        if group is None:
            self._forget_if_gone(shard, group_id)
            return
        if group.group_epoch == group.target_epoch != going.target_epoch:
            going.look(group)
        if isinstance(command, _OF_MEMBERS):
            going.heard = command.member_id
        self._touched[group_id] = None

    def _observe_classic(
        self, going: GoingOn, group: ClassicGroup, command: object, is_written: bool
    ) -> None:
        """The generation has begun, or its record says that it is complete."""
        if not going.is_classic:
            return
        now_ms = self._clock.monotonic_ms()
        if group.generation != going.generation and not going.has_joined:
            going.has_joined = True
            joined = command.member_id if isinstance(command, JoinGroup) else None
            if not going.held_up:
                going.held(group, joined, HeldUpBy.JOINING, now_ms - going.began_ms)
            going.began_ms = now_ms
        is_over = group.state in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY)
        if not (is_written and is_over):
            return
        if group.members:
            going.held(group, group.leader, HeldUpBy.ASSIGNING, now_ms - going.began_ms)
        converged_ms = max(self._clock.now().wall_ms, going.began_wall_ms)
        entry = going.make_classic_entry(
            group.generation, converged_ms, _compute_moved(going, group)
        )
        self._count("classic", going, entry)
        self._put(group.group_id, entry)
        del self.going_on[group.group_id]

    def _forget_if_gone(self, shard: Shard, group_id: GroupId) -> None:
        """A group that is deleted rebalances no more."""
        if shard.classic_group(group_id) is None:
            del self.going_on[group_id]

    def find_current(self, shard: Shard, group_id: GroupId) -> Rebalance | None:
        """The rebalance of the group that goes on, with whom the others wait for now."""
        going = self.going_on.get(group_id)
        if going is None:
            return None
        now_ms = self._clock.monotonic_ms()
        if going.is_classic:
            classic = shard.classic_group(group_id)
            return None if classic is None else going.compute_classic_current(classic, now_ms)
        group = shard.consumer_groups.get(group_id)
        if group is None or going.entry is None:
            return None
        return replace(going.entry, held_up=going.compute_awaited(group, now_ms))

    # -------------------------------------------------------------------------- writing

    def compute_changes(self) -> Sequence[Change]:
        """The entries that the next write has to have."""
        for group_id in self._touched:
            self._settle(group_id)
        self._touched.clear()
        return tuple(self._unwritten.items())

    def note_written(self) -> None:
        """What ``compute_changes`` returned is written."""
        self._stats.ledger_entries += len(self._unwritten)
        self._unwritten.clear()

    def _put(self, group_id: GroupId, entry: Rebalance) -> None:
        key = encode_causes_key(group_id, entry.at_ms, entry.epoch)
        self._unwritten[key] = encode_rebalance(entry)

    def _settle(self, group_id: GroupId) -> None:
        going = self.going_on.get(group_id)
        if going is None or going.is_classic:
            return
        group = self._shard_of(group_id).consumer_groups.get(group_id)
        if group is None:
            del self.going_on[group_id]
            return
        if going.heard is not None:
            going.last, going.heard = (going.heard, self._clock.monotonic_ms()), None
        before, is_over = going.entry, going.has_converged(group)
        if before is not None and before.moved == going.moved and not is_over:
            return
        if is_over:
            del self.going_on[group_id]
        going.entry = self._make_entry(going, group, is_over)
        if is_over:
            self._count("consumer", going, going.entry)
        self._put(group_id, going.entry)

    def _count(self, group_type: str, going: GoingOn, entry: Rebalance) -> None:
        """All members have what they get: how long had it been otherwise?"""
        assert entry.converged_ms is not None
        took_s = (entry.converged_ms - going.unsettled_wall_ms) / 1_000
        self._stats.rebalance_seconds[group_type].add(took_s)

    def _make_entry(self, going: GoingOn, group: ConsumerGroup, is_over: bool) -> Rebalance:
        before, epoch = going.entry, group.group_epoch
        held_up: tuple[HeldUp, ...] = ()
        if is_over:
            held_up = tuple(
                HeldUp(member_id, find_client_id(group, member_id), by, took_ms)
                for member_id, by, took_ms in going.compute_held_up()
            )
        return Rebalance(
            going.began_wall_ms,
            going.epoch_before,
            epoch if before is None else before.epoch,
            False,
            going.cause,
            going.causes,
            going.moved,
            max(self._clock.now().wall_ms, going.began_wall_ms) if is_over else None,
            held_up,
        )


def _compute_moved(going: GoingOn, group: ClassicGroup) -> int | None:
    """How many partitions the leader has moved; ``None`` if nobody knows who had them before."""
    is_known = going.assigned is not None or going.generation == 0
    return compute_generation_moves(going.assigned, group) if group.members and is_known else None
