"""The changes of a question, carried out on a copy of the group by its handlers and assignor.

All changes come together, before the target of the new group epoch is computed. Then all members
heartbeat in turn, round by round, and do as they are told, until nothing moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from coordinator.core.consumer.heartbeat import handle_heartbeat, handle_reconcile_member
from coordinator.core.consumer.leave_grace import compute_reservation, is_to_reserve
from coordinator.core.consumer.refresh import handle_refresh_assignor, handle_refresh_topics
from coordinator.core.consumer.removal import WhyRemoved, compute_removal
from coordinator.core.groups.group_freeze import handle_resume_group
from coordinator.core.replay.freeze_records import replay_group_freeze
from coordinator.core.replay.group_records import replay
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, regex_of
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member
from coordinator.core.state.group_epochs import compute_epoch_bump
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.frozen_target import compute_frozen_target
from coordinator.core.target.target_assignment import (
    InstallTarget,
    TargetProblem,
    compute_install,
    find_target_problem,
)
from coordinator.core.target.target_install import handle_install_target
from coordinator.core.target.target_steps import ContinueMoves, handle_continue_moves
from coordinator.core.whatif.question import compute_new_member_ids, find_named_member
from model.caller import INTERNAL, Caller
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
)
from model.commands.freezes import ResumeGroup
from model.configs.assignor_configs import PARTITIONS_MAX
from model.ids import MemberId, TopicName
from model.now import Now
from model.past.causes import CauseKind
from model.responses.response import Done
from model.topics import compute_image_with
from model.what_if import WhatIf
from muster.assignors.registry import Assignors
from muster.assignors.rules import compute_assignment

EPOCHS_MAX: Final = 1_000
"""The most steps of a move budget that are computed."""
HEARTBEATS_MAX: Final = 300_000
"""The most heartbeats that are computed, each in some 30 µs."""
MOST_STALLS: Final = 3
"""After this many steps in a row without fewer moves left, a group stops stepping."""
NEW_REBALANCE_TIMEOUT_MS: Final = 300_000
LEFT: Final = WhyRemoved(CauseKind.MEMBER_LEFT)


@dataclass(frozen=True, slots=True)
class _Newcomer:
    """What a new member says: as most members do."""

    names: tuple[TopicName, ...] = ()
    regex: str = ""
    client_id: str = ""


@dataclass(slots=True)
class ChangedCopy:
    """One question, on a copy that is its own.

    ``classic`` are the members that use the classic protocol in the real group.
    """

    shard: Shard
    question: WhatIf
    assignors: Assignors
    now: Now
    classic: frozenset[MemberId] = frozenset()
    epochs: int = 0
    rounds: int = 0
    is_complete: bool = True
    _heartbeats: int = 0
    _last: InstallTarget | None = None
    _least_left: int = PARTITIONS_MAX
    _stalls: int = field(default=0)

    @property
    def group(self) -> ConsumerGroup:
        """The group as it has become so far."""
        return self.shard.consumer_groups[self.question.group_id]

    def steps(self) -> Iterator[None]:
        """Carry the changes out, then reconcile; a pause after each piece of work."""
        joins = self._change()
        yield
        self._compute_target()
        yield
        for join in joins:
            self._replay(handle_reconcile_member(self.shard, join, self.now))
            yield
        yield from self._reconcile()
        while self.is_complete and self._continue_moves():
            yield from self._reconcile()

    def _replay(self, outcome: Outcome) -> bool:
        for record in outcome.records:
            replay(self.shard, record)
        return bool(outcome.records)

    # --------------------------------------------------------------------------------- changes

    def _change(self) -> list[ReconcileMember]:
        """All changes; returns what is left to do of the joins once there is a target."""
        usual, taken = _compute_usual(self.group), frozenset(self.group.entries)
        if self.question.resumes and self.question.group_id in self.shard.freezes:
            self._resume()
        if self.question.protocol is not None:
            self._begin_epoch()
        self._grow_topics()
        self._change_configs()
        gone = {member.member_id: member for member in self._find_removed()}
        leaving = [member for member in gone.values() if not self._reserves(member)]
        self._remove(leaving)
        for member_id in gone.keys() - {member.member_id for member in leaving}:
            member = self.group.entries[member_id]
            self._replay(compute_reservation(self.shard, self.group, member, Done()))
        new = compute_new_member_ids(self.question.group_id, self.question.add, taken)
        joins = [self._join(member_id, usual) for member_id in new]
        # The grace period of those that nobody has replaced ends.
        left = (self.group.member(member_id) for member_id in gone)
        self._remove([member for member in left if member is not None and member.is_reserved])
        return joins

    def _begin_epoch(self) -> None:
        """A converted group keeps its assignment until a member changes: here all have."""
        shard, group = self.shard, self.group
        names = group.subscribed_topic_names()
        records = compute_epoch_bump(shard, group, group.group_id, names)
        self._replay(Outcome(records=tuple(records)))

    def _resume(self) -> None:
        resume = ResumeGroup(INTERNAL, self.question.group_id)
        outcome = handle_resume_group(self.shard, resume)
        self._replay(outcome)
        for record in outcome.side:
            replay_group_freeze(self.shard, record)

    def _grow_topics(self) -> None:
        shard, group = self.shard, self.group
        for name, partitions in self.question.partitions:
            grown = replace(shard.image.by_name[name], partitions=partitions)
            shard.image = compute_image_with(shard.image, grown)
        self._replay(handle_refresh_topics(shard, RefreshTopics(INTERNAL, group.group_id)))

    def _change_configs(self) -> None:
        question, shard = self.question, self.shard
        before = changed = shard.settings
        configs = before.assignor_configs
        if question.assignor is not None:
            changed = replace(changed, group_consumer_assignors=(question.assignor,))
        if question.weights is not None:
            changed = replace(changed, assignor_configs=replace(configs, weights=question.weights))
        shard.settings = changed
        refresh = RefreshAssignor(
            INTERNAL, question.group_id, before.group_consumer_assignors, configs
        )
        self._replay(handle_refresh_assignor(shard, refresh))

    def _find_removed(self) -> list[Member]:
        return [find_named_member(self.group, name) for name in self.question.remove]

    def _reserves(self, member: Member) -> bool:
        """Whether its partitions await a newcomer; in the copy no member is a classic one."""
        is_classic = member.member_id in self.classic
        return not is_classic and is_to_reserve(self.shard, self.group, member)

    def _remove(self, members: list[Member]) -> None:
        if members:
            records, _ = compute_removal(self.shard, self.group, members, LEFT)
            self._replay(Outcome(records=records))

    def _join(self, member_id: MemberId, usual: _Newcomer) -> ReconcileMember:
        group_id = self.question.group_id
        command = ConsumerGroupHeartbeat(
            Caller("", usual.client_id, ""),
            group_id,
            member_id,
            JOIN_EPOCH,
            rebalance_timeout_ms=NEW_REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=usual.names,
            subscribed_topic_regex=usual.regex,
            owned=(),
        )
        outcome = handle_heartbeat(self.shard, command, self.now)
        self._replay(outcome)
        assert isinstance(outcome.then, ReconcileMember)
        return outcome.then

    # --------------------------------------------------------------------------- reconciliation

    def _compute_target(self) -> None:
        problem = find_target_problem(self.shard, self.question.group_id)
        if problem is None:
            return
        self._last = self._assign(problem)
        self._replay(handle_install_target(self.shard, self._last, self.now))
        self.epochs += 1

    def _assign(self, problem: TargetProblem) -> InstallTarget:
        if problem.is_frozen:
            return compute_frozen_target(problem)
        found = compute_assignment(self.assignors[problem.assignor], problem.problem, problem.rules)
        return compute_install(problem, found.target, found.moves_left)

    def _continue_moves(self) -> bool:
        """Begin the next step of a move budget, as the server does; whether there is one."""
        before = self._last
        if before is None or not before.moves_left or not len(before.changed):
            return False
        self._least_left = min(self._least_left, before.moves_left)
        if self.epochs >= EPOCHS_MAX:
            self.is_complete = False
            return False
        step = handle_continue_moves(self.shard, ContinueMoves(self.question.group_id))
        if not self._replay(step):
            return False
        self._compute_target()
        assert self._last is not None
        self._stalls = 0 if self._last.moves_left < self._least_left else self._stalls + 1
        return self._stalls < MOST_STALLS

    def _reconcile(self) -> Iterator[None]:
        """Rounds of heartbeats until one changes nothing."""
        has_changed = True
        while has_changed:
            has_changed = False
            for member in list(self.group.members()):
                if self._has_to_hear(member):
                    has_changed |= self._heartbeat(member)
                    yield
            self.rounds += has_changed
            if self._heartbeats > HEARTBEATS_MAX:
                self.is_complete = False
                return
            yield

    def _has_to_hear(self, member: Member) -> bool:
        """Whether a heartbeat may change anything: members that are away send none."""
        is_away = member.member_epoch == STATIC_LEAVE_EPOCH
        return not is_away and not member.is_reconciled_to(self.group.group_epoch)

    def _heartbeat(self, member: Member) -> bool:
        self._heartbeats += 1
        metadata = member.metadata
        assert metadata is not None
        command = ConsumerGroupHeartbeat(
            Caller("", metadata.client_id, metadata.client_host),
            self.question.group_id,
            member.member_id,
            member.member_epoch,
            owned=self.group.numbers.topic_partitions(member.assigned),
        )
        return self._replay(handle_heartbeat(self.shard, command, self.now))


def _compute_usual(group: ConsumerGroup) -> _Newcomer:
    """What most members say, in doubt what the first does; nothing without any."""
    counts = Counter(
        _Newcomer(
            member.metadata.subscribed_topic_names,
            regex_of(member.metadata),
            member.metadata.client_id,
        )
        for member in group.members()
        if member.metadata is not None
    )
    return max(counts, key=lambda each: counts[each]) if counts else _Newcomer()
