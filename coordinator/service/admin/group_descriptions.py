"""The description of a group as a message, with the topics that it names."""

from __future__ import annotations

from functools import partial

from coordinator.runtime.api import Coordinator
from coordinator.runtime.loop.slices import Steps
from coordinator.service.admin import description_messages
from coordinator.service.watch.watched_group import Describe, DescribedGroup
from coordinator.service.wire.answer_slices import SLICE, run_steps
from model.caller import Caller
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups
from model.errors import DescriptionFailed, ErrorCode, GroupError
from model.ids import GroupId, TopicName
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribeGroupsResponse,
)
from model.responses.response import Response
from muster.v1 import admin_pb2


async def describe_group(
    coordinator: Coordinator,
    caller: Caller,
    group_id: GroupId,
    encoder: description_messages.MemberEncoder | None = None,
) -> DescribedGroup:
    """Describe a group as it is now. Raises ``DescriptionFailed``; the rights are not checked.

    ``encoder`` is the one with which the group was described before, if it was.
    """
    consumer = await coordinator.call(ConsumerGroupDescribe(caller, (group_id,)))
    found = await _encode_consumer_group(consumer, encoder)
    if found is not None:
        return found
    # It may be a classic group, or a group that only has committed offsets.
    classic = await coordinator.call(DescribeGroups(caller, (group_id,)))
    return await _encode_classic_group(coordinator, consumer, classic)


def make_describe(coordinator: Coordinator, caller: Caller, group_id: GroupId) -> Describe:
    """Describes one group again and again."""
    encoder = description_messages.MemberEncoder()
    return partial(describe_group, coordinator, caller, group_id, encoder)


async def encode_description(
    coordinator: Coordinator, consumer: Response | GroupError, classic: Response | GroupError
) -> DescribedGroup:
    """The group of both answers, of which one has it. Raises ``DescriptionFailed``."""
    found = await _encode_consumer_group(consumer)
    return found or await _encode_classic_group(coordinator, consumer, classic)


async def _encode_consumer_group(
    response: Response | GroupError, encoder: description_messages.MemberEncoder | None = None
) -> DescribedGroup | None:
    """Encode a consumer group; ``None`` if it is not found."""
    assert isinstance(response, ConsumerGroupDescribeResponse)
    (group,) = response.groups
    if group.error is ErrorCode.NONE:
        encoded = await run_steps(description_messages.encode_consumer_group(group, encoder))
        return DescribedGroup(encoded, await run_steps(_find_topics(group)))
    if group.error is ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    raise DescriptionFailed(group.error_message or "", group.error)


async def _encode_classic_group(
    coordinator: Coordinator, consumer: Response | GroupError, response: Response | GroupError
) -> DescribedGroup:
    """Encode a classic group; if it is not one, raises the error from ``consumer``."""
    assert isinstance(response, DescribeGroupsResponse)
    (classic,) = response.groups
    if classic.error is ErrorCode.NONE and classic.state != "Dead":
        steps = description_messages.encode_classic_group(classic, coordinator.image)
        group = await run_steps(steps)
        return DescribedGroup(group, await run_steps(_find_topics_of_members(group)))
    assert isinstance(consumer, ConsumerGroupDescribeResponse)
    (failed,) = consumer.groups
    message = failed.error_message or ""
    if message.endswith("is not a consumer group."):
        message = f"{message[:-1]} or a classic group: it can be listed, but not described."
    raise DescriptionFailed(message, failed.error)


def _find_topics_of_members(group: admin_pb2.Group) -> Steps[frozenset[TopicName]]:
    """The topics of a classic group: its embedded protocol is decoded to names."""
    names: set[str] = set()
    left = SLICE
    for member in group.members:
        names.update(member.subscribed_topic_names)
        names.update(given.topic_name for given in member.assignment)
        left -= 1 + (len(member.subscribed_topic_names) + len(member.assignment)) // 4
        if left <= 0:
            left = SLICE
            yield
    return frozenset(map(TopicName, names))


def _find_topics(group: DescribedConsumerGroup) -> Steps[frozenset[TopicName]]:
    names: set[TopicName] = set()
    left = SLICE
    for member in group.members:
        names.update(member.subscribed_topic_names)
        for topics in (member.assignment, member.pending_revocation, member.target_assignment):
            names.update(topic.topic_name for topic in topics)
        left -= member.compute_weight()
        if left <= 0:
            left = SLICE
            yield
    # A deleted topic may have no name.
    names.discard(TopicName(""))
    return frozenset(names)
