"""What moves between two assignments of a group; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from coordinator.core.state.consumer.consumer_member import Member
from model.ids import InstanceId, MemberId, TopicId
from model.topics import TopicImage
from model.what_if import Load, Move

Owners: TypeAlias = dict[tuple[TopicId, int], MemberId]

Described: TypeAlias = dict[MemberId, tuple[InstanceId | None, str]]
"""The instance id and the client id of each member."""


def describe_members(members: Iterable[Member]) -> Described:
    """The instance id and the client id of these members."""
    return {member.member_id: _describe(member) for member in members}


def _describe(member: Member) -> tuple[InstanceId | None, str]:
    metadata = member.metadata
    return (None, "") if metadata is None else (metadata.instance_id, metadata.client_id)


def compute_moves(image: TopicImage, before: Owners, after: Owners) -> tuple[Move, ...]:
    """The partitions that have another owner, by topic and partition."""
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


def compute_loads(
    old: Described, new: Described, before: Owners, after: Owners
) -> tuple[Load, ...]:
    """How many partitions each member has, by member id."""
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
