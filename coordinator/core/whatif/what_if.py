"""What a change would do to a consumer group: the answer, from a copy that is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.consumer_member import STATIC_LEAVE_EPOCH, Member
from coordinator.core.target.target_assignment import compute_preferred_assignor
from coordinator.core.whatif.changed_copy import ChangedCopy
from model.ids import InstanceId, MemberId, TopicId
from model.topics import TopicImage
from model.what_if import Load, Move, WhatIfAnswer

Owners: TypeAlias = dict[tuple[TopicId, int], MemberId]


def find_classic(group: ConsumerGroup) -> frozenset[MemberId]:
    """The members that use the classic protocol."""
    if not group.classic_member_count:
        return frozenset()
    return frozenset(member.member_id for member in group.members() if member.classic is not None)


def compute_answer(copy: ChangedCopy) -> Iterator[WhatIfAnswer | None]:
    """Change the copy, with ``None`` after each piece of work; the answer comes last."""
    before, described = _compute_owners(copy.group), _describe_members(copy.group)
    for _ in copy.steps():
        yield None
    group = copy.group
    after = _compute_owners(group)
    yield WhatIfAnswer(
        group.group_id,
        compute_preferred_assignor(copy.shard, group),
        _compute_moves(copy.shard.image, before, after),
        _compute_loads(described, _describe_members(group), before, after),
        copy.epochs,
        copy.rounds,
        _find_awaited(group),
        copy.is_complete,
    )


_Described: TypeAlias = dict[MemberId, tuple[InstanceId | None, str]]
"""The instance id and the client id of each member."""


def _describe_members(group: ConsumerGroup) -> _Described:
    return {member.member_id: _describe(member) for member in group.members()}


def _describe(member: Member) -> tuple[InstanceId | None, str]:
    metadata = member.metadata
    return (None, "") if metadata is None else (metadata.instance_id, metadata.client_id)


def _compute_owners(group: ConsumerGroup) -> Owners:
    """Who owns each partition, revocations pending included."""
    found: Owners = {}
    for member in group.members():
        held = sorted([*member.assigned, *member.pending_revocation])
        for topic in group.numbers.topic_partitions(held):
            for partition in topic.partitions:
                found[topic.topic_id, partition] = member.member_id
    return found


def _compute_moves(image: TopicImage, before: Owners, after: Owners) -> tuple[Move, ...]:
    by_id = image.by_id
    places = sorted(
        (by_id[topic_id].name, partition, topic_id)
        for topic_id, partition in before.keys() | after.keys()
        if topic_id in by_id
    )
    moves = []
    for name, partition, topic_id in places:
        source, destination = before.get((topic_id, partition)), after.get((topic_id, partition))
        if source != destination:
            moves.append(Move(name, partition, source, destination))
    return tuple(moves)


def _compute_loads(
    old: _Described, new: _Described, before: Owners, after: Owners
) -> tuple[Load, ...]:
    had, has = Counter(before.values()), Counter(after.values())
    described = {**old, **new}
    return tuple(
        Load(
            each,
            *described[each],
            had[each] if each in old else None,
            has[each] if each in new else None,
        )
        for each in sorted(described)
    )


def _find_awaited(group: ConsumerGroup) -> tuple[MemberId, ...]:
    """The members that are away and have partitions that the target gives to others."""
    return tuple(
        member.member_id
        for member in group.members()
        if member.member_epoch == STATIC_LEAVE_EPOCH
        and set(member.assigned) - set(member.target or ())
    )
