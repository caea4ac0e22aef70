"""The partitions that a sentinel assigns to itself: those of the topics that the group reads."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.runtime.api import Coordinator
from model.caller import INTERNAL
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, TopicName
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedClassicGroup,
    DescribeGroupsResponse,
)
from model.topics import TopicImage
from muster.assignors.embedded import MalformedProtocolError, decode_subscribed_topics


async def find_topics_here(coordinator: Coordinator, group_id: GroupId) -> frozenset[str]:
    """The topics of a group that is here, of whatever type; none if nobody is in it."""
    classic = await describe_here(coordinator, group_id)
    if classic is not None:
        return compute_topics(member.metadata for member in classic.members)
    try:
        response = await coordinator.call(ConsumerGroupDescribe(INTERNAL, (group_id,)))
    except GroupError:
        return frozenset()
    assert isinstance(response, ConsumerGroupDescribeResponse)
    group = response.groups[0]
    if group.error is not ErrorCode.NONE:
        return frozenset()
    named = {str(name) for member in group.members for name in member.subscribed_topic_names}
    # Topics that match a regular expression show in what is assigned.
    assigned = (row for member in group.members for row in member.target_assignment)
    return frozenset(named | {str(row.topic_name) for row in assigned})


async def describe_here(
    coordinator: Coordinator, group_id: GroupId
) -> DescribedClassicGroup | None:
    """A classic group that is here; ``None`` if there is none."""
    try:
        response = await coordinator.call(DescribeGroups(INTERNAL, (group_id,)))
    except GroupError:
        return None
    assert isinstance(response, DescribeGroupsResponse)
    group = response.groups[0]
    return group if group.error is ErrorCode.NONE and group.members else None


def compute_topics(metadata: Iterable[bytes]) -> frozenset[str]:
    """The topics of subscriptions; one that cannot be read has none."""
    topics: set[str] = set()
    for data in metadata:
        try:
            topics.update(decode_subscribed_topics(data))
        except MalformedProtocolError:
            continue
    return frozenset(topics)


def compute_partitions(image: TopicImage, topics: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """All partitions of these topics, sorted; a topic that does not exist has none."""
    known = ((name, image.by_name.get(TopicName(name))) for name in sorted(topics))
    return tuple(
        (name, number)
        for name, topic in known
        if topic is not None
        for number in range(topic.partitions)
    )
