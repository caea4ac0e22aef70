"""Causes of new group epochs, from what the core knows when it bumps one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.outcome import NoteEpochCauses
from model.commands.consumer import LeavingMember
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.records import ConsumerGroupMemberMetadataValue
from model.past.causes import Cause, CauseKind
from model.topics import TopicImage

CAUSES_MAX: Final = 5
"""Members that leave with one request may be very many: so many of them are named."""
REASON_MAX_CHARS: Final = 255
"""Clients provide the reason."""
ADMIN_CLIENT_REASON: Final = "member was removed by an admin"
"""What Kafka's AdminClient says, if it is not told what to say (KIP-800)."""


def compute_member_cause(
    kind: CauseKind,
    member_id: MemberId,
    metadata: ConsumerGroupMemberMetadataValue | None,
    reason: str | None = None,
) -> Cause:
    """The cause that a member is."""
    if metadata is None:
        return Cause(kind, member_id, reason=cut_reason(reason))
    return Cause(
        kind,
        member_id,
        metadata.client_id,
        metadata.client_host,
        metadata.instance_id,
        cut_reason(reason),
    )


def note_change(
    group_id: GroupId,
    member_id: MemberId,
    member: Member | None,
    updated: ConsumerGroupMemberMetadataValue,
    is_subscription: bool,
) -> NoteEpochCauses:
    """The cause that a member is who joins, or changes its subscription or its own assignors."""
    if member is None:
        kind = CauseKind.MEMBER_JOINED
    else:
        kind = CauseKind.SUBSCRIPTION_CHANGED if is_subscription else CauseKind.ASSIGNOR_CHANGED
    return NoteEpochCauses(group_id, (compute_member_cause(kind, member_id, updated),))


def compute_leave_kind(leaving: LeavingMember) -> CauseKind:
    """Who makes a member leave: itself, or an administrator where that can be told.

    A member knows its id, and an AdminClient says what it does unless it is given other words.
    """
    is_removed = leaving.by_administrator or leaving.member_id is None
    if is_removed or leaving.reason == ADMIN_CLIENT_REASON:
        return CauseKind.ADMINISTRATOR
    return CauseKind.MEMBER_LEFT


def note_departures(
    group_id: GroupId, kind: CauseKind, members: Iterable[tuple[Member, str | None]], count: int
) -> NoteEpochCauses:
    """The causes that members are who leave together, each with its reason."""
    named = [
        compute_member_cause(kind, member.member_id, member.metadata, reason)
        for (member, reason), _ in zip(members, range(CAUSES_MAX), strict=False)
    ]
    return NoteEpochCauses(group_id, tuple(named), count)


def compute_topic_cause(
    group: ConsumerGroup,
    image: TopicImage,
    names: Iterable[TopicName],
    changed: TopicName | None = None,
) -> Cause:
    """How the subscribed topics differ from those that the last target was computed for.

    ``changed`` is the topic that the group is refreshed for: nothing else names a deleted one.
    """
    there = {}
    for name in sorted(names):
        topic = image.by_name.get(name)
        if topic is None:
            continue
        there[topic.topic_id] = name
        known = group.numbers.partitions(topic.topic_id)
        if not known:
            return Cause(CauseKind.TOPIC_CREATED, topic_name=name)
        if known < topic.partitions:
            return Cause(CauseKind.PARTITIONS_ADDED, topic_name=name)
    gone = (topic_id for topic_id in group.numbers.topics if topic_id not in there)
    if any(_is_in_target(group, topic_id) for topic_id in gone):
        if changed is None or changed in image.by_name:
            return Cause(CauseKind.TOPIC_DELETED)
        return Cause(CauseKind.TOPIC_DELETED, topic_name=changed)
    return Cause(CauseKind.RACKS_CHANGED)


def _is_in_target(group: ConsumerGroup, topic_id: TopicId) -> bool:
    """Whether the last target has partitions of the topic. Members may keep others for a while."""
    return any(
        number != NOBODY
        for each in group.numbers.ranges(topic_id)
        for number in group.target[each.base : each.base + each.size]
    )


def cut_reason(reason: str | None) -> str:
    """What a client said, truncated."""
    reason = reason or ""
    return reason if len(reason) <= REASON_MAX_CHARS else f"{reason[:REASON_MAX_CHARS]}..."
