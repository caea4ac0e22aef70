"""A rebalance that goes on: what is known of it so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from coordinator.core.state.classic.classic_group import ClassicGroup, Phase
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH, Member
from model.ids import MemberId
from model.past.causes import Cause
from model.past.rebalances import HeldUp, HeldUpBy, Rebalance

HELD_UP_MAX: Final = 3
"""So many of the members are named that the others waited for."""


@dataclass(slots=True)
class GoingOn:
    """One rebalance. Times are monotonic but for ``began_wall_ms``.

    ``heard`` is the last member that did its part since the last write, ``last`` the one before
    that write, and when.

    ``asked`` says since when members are asked to give partitions up. ``waiting`` are the members
    that may not have converged: each is looked at until it has, so that all looks together cost
    what one walk over the members does. ``assigned`` is a classic group at its last assignments.
    """

    # More than 15 attributes: those of consumer groups, and those of classic ones.

    cause: Cause
    began_ms: int
    began_wall_ms: int
    is_classic: bool = False
    causes: int = 0
    epoch_before: int = 0
    entry: Rebalance | None = None
    target_epoch: int = -1
    moved: int | None = None
    asked: dict[MemberId, int] = field(default_factory=dict)
    revoked: list[tuple[int, MemberId]] = field(default_factory=list)
    heard: MemberId | None = None
    last: tuple[MemberId, int] | None = None
    waiting: Iterator[Member] | None = None
    witness: Member | None = None
    generation: int = 0
    assigned: ClassicGroup | None = None
    has_joined: bool = False
    held_up: list[HeldUp] = field(default_factory=list)
    unsettled_wall_ms: int = -1
    """Since when the group has not converged: earlier, if rebalances overtake each other."""

    def __post_init__(self) -> None:
        self.unsettled_wall_ms = self.began_wall_ms

    def look(self, group: ConsumerGroup) -> None:
        """Count what a new target moves, which is that of the group's epoch."""
        self.target_epoch = group.target_epoch
        target, owner = np.array(group.target, np.int32), np.array(group.owner, np.int32)
        self.moved = int(np.count_nonzero(target != owner))
        self.waiting = iter(tuple(group.entries.values()))
        self.witness = next(self.waiting, None)

    def has_converged(self, group: ConsumerGroup) -> bool:
        """Whether all members have what the target gives them."""
        if group.member_count == 0:
            return True
        if self.waiting is None or self.target_epoch != group.group_epoch:
            return False
        while self.witness is not None:
            witness = self.witness
            is_there = group.entries.get(witness.member_id) is witness and witness.is_member
            if is_there and not witness.is_reconciled_to(self.target_epoch):
                return False
            self.witness = next(self.waiting, None)
        return True

    def go_on_from(self, before: GoingOn, group: ConsumerGroup | None) -> None:
        """Take over who is asked by the epoch before, without those that are gone."""
        self.unsettled_wall_ms = before.unsettled_wall_ms
        self.asked = before.asked
        if group is not None and len(self.asked) > group.member_count:
            for member_id in [each for each in self.asked if not _is_there(group, each)]:
                del self.asked[member_id]

    def note_revoked(self, member_id: MemberId, now_ms: int) -> None:
        """The member gave partitions up; the slowest are kept."""
        since_ms = self.asked.pop(member_id, None)
        if since_ms is not None:
            slowest = sorted([*self.revoked, (now_ms - since_ms, member_id)], reverse=True)
            self.revoked = slowest[:HELD_UP_MAX]

    def compute_held_up(self) -> Iterator[tuple[MemberId, HeldUpBy, int]]:
        """Whom the others waited for: who gave partitions up, else who acknowledged last."""
        for took_ms, member_id in self.revoked:
            yield member_id, HeldUpBy.REVOKING, took_ms
        if not self.revoked and self.last is not None:
            member_id, at_ms = self.last
            if at_ms > self.began_ms:
                yield member_id, HeldUpBy.ACKNOWLEDGING, at_ms - self.began_ms

    def held(
        self, group: ClassicGroup, member_id: MemberId | None, by: HeldUpBy, took_ms: int
    ) -> None:
        """A member of a classic group was the last to do its part."""
        member = None if member_id is None else group.members.get(member_id)
        if member is not None:
            self.held_up.append(HeldUp(member.member_id, member.client_id, by, took_ms))

    def compute_awaited(self, group: ConsumerGroup, now_ms: int) -> tuple[HeldUp, ...]:
        """Whom a consumer group waits for: who has to give partitions up, else who has to ask."""
        revoking = (each for each in self.asked.items() if _is_there(group, each[0]))
        asked: list[tuple[MemberId, HeldUpBy, int]] = [
            (member_id, HeldUpBy.REVOKING, at_ms)
            for member_id, at_ms in islice(revoking, HELD_UP_MAX)
        ]
        if not asked and self.witness is not None:
            asked = [(self.witness.member_id, HeldUpBy.ACKNOWLEDGING, self.began_ms)]
        return tuple(
            HeldUp(member_id, find_client_id(group, member_id), by, now_ms - at_ms)
            for member_id, by, at_ms in asked
        )

    def compute_classic_current(self, group: ClassicGroup, now_ms: int) -> Rebalance:
        """The rebalance of a classic group so far: who has not joined, or has to assign."""
        took_ms = now_ms - self.began_ms
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            leader = None if group.leader is None else group.members.get(group.leader)
            awaited, by = [leader] if leader is not None else [], HeldUpBy.ASSIGNING
        else:
            late = (each for each in group.members.values() if each.awaits is not Phase.JOIN)
            awaited, by = list(islice(late, HELD_UP_MAX)), HeldUpBy.JOINING
        held_up = (HeldUp(each.member_id, each.client_id, by, took_ms) for each in awaited)
        entry = self.make_classic_entry(max(group.generation, self.generation + 1))
        return replace(entry, held_up=tuple(held_up))

    def note_late(self, group: ClassicGroup, now_ms: int) -> None:
        """The join phase ends without these: the others have waited until now."""
        late = (each for each in group.members.values() if each.awaits is not Phase.JOIN)
        self.held_up = [
            HeldUp(each.member_id, each.client_id, HeldUpBy.JOINING, now_ms - self.began_ms)
            for each in islice(late, HELD_UP_MAX)
        ]

    def make_classic_entry(
        self, generation: int, converged_ms: int | None = None, moved: int | None = None
    ) -> Rebalance:
        """The entry of a rebalance that led to the generation of a classic group."""
        return Rebalance(
            self.began_wall_ms,
            self.generation,
            generation,
            True,
            self.cause,
            self.causes,
            moved,
            converged_ms,
            tuple(sorted(self.held_up, key=lambda each: -each.took_ms)),
        )


def find_client_id(group: ConsumerGroup, member_id: MemberId) -> str:
    """The client id of a member; "" if it is gone."""
    member = group.member(member_id)
    return "" if member is None or member.metadata is None else member.metadata.client_id


def _is_there(group: ConsumerGroup, member_id: MemberId) -> bool:
    """Whether the member is in the group, and not away."""
    member = group.member(member_id)
    return member is not None and member.member_epoch != STATIC_LEAVE_EPOCH
