"""What a change would do to a consumer group: the answer, from a copy that is changed."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from coordinator.core.target.target_assignment import compute_preferred_assignor
from coordinator.core.whatif.answer import (
    Owners,
    compute_loads,
    compute_moves,
    describe_members,
)
from coordinator.core.whatif.changed_copy import ChangedCopy
from coordinator.core.whatif.classic_copy import compute_classic_answer
from coordinator.core.whatif.question import CLASSIC
from model.ids import MemberId
from model.what_if import WhatIfAnswer


def find_classic(group: ConsumerGroup) -> frozenset[MemberId]:
    """The members that use the classic protocol."""
    if not group.classic_member_count:
        return frozenset()
    return frozenset(member.member_id for member in group.members() if member.classic is not None)


def compute_answer(copy: ChangedCopy) -> Iterator[WhatIfAnswer | None]:
    """Change the copy, with ``None`` after each piece of work; the answer comes last."""
    if copy.question.protocol == CLASSIC:
        yield from compute_classic_answer(copy.shard, copy.question)
        return
    before, described = _compute_owners(copy.group), describe_members(copy.group.members())
    for _ in copy.steps():
        yield None
    group = copy.group
    after = _compute_owners(group)
    yield WhatIfAnswer(
        group.group_id,
        compute_preferred_assignor(copy.shard, group),
        compute_moves(copy.shard.image, before, after),
        compute_loads(described, describe_members(group.members()), before, after),
        copy.epochs,
        copy.rounds,
        _find_awaited(group),
        copy.is_complete,
    )


def _compute_owners(group: ConsumerGroup) -> Owners:
    """Who owns each partition, revocations pending included."""
    found: Owners = {}
    for member in group.members():
        held = sorted([*member.assigned, *member.pending_revocation])
        for topic in group.numbers.topic_partitions(held):
            for partition in topic.partitions:
                found[topic.topic_id, partition] = member.member_id
    return found


def _find_awaited(group: ConsumerGroup) -> tuple[MemberId, ...]:
    """The members that are away and have partitions that the target gives to others."""
    return tuple(
        member.member_id
        for member in group.members()
        if member.member_epoch == STATIC_LEAVE_EPOCH
        and set(member.assigned) - set(member.target or ())
    )
