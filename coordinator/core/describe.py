"""What the coordinator shows of its groups: list and describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator.core.consumer_group import NO_NUMBERS, ConsumerGroup, Member
from coordinator.core.shard import Shard
from coordinator.core.target import compute_preferred_assignor
from model.errors import ErrorCode
from model.ids import GroupId
from model.responses import (
    DescribedClassicGroup,
    DescribedConsumerGroup,
    DescribedMember,
    ListedGroup,
    NamedTopicPartitions,
)

CONSUMER = "consumer"
CLASSIC = "classic"
EMPTY = "Empty"
DEAD = "Dead"


def list_groups(shard: Shard) -> Iterator[ListedGroup]:
    """All groups of a shard. Groups that only have offsets are classic, Empty, of no protocol."""
    for group_id, group in shard.consumer_groups.items():
        yield ListedGroup(
            group_id, CONSUMER, group.state().value, CONSUMER, group.member_count, group.group_epoch
        )
    for group_id, value in shard.classic_groups.items():
        state = "Stable" if value.members else EMPTY
        yield ListedGroup(
            group_id, value.protocol_type, state, CLASSIC, len(value.members), value.generation
        )
    for group_id in shard.offset_groups:
        if group_id not in shard.consumer_groups and group_id not in shard.classic_groups:
            yield ListedGroup(group_id, "", EMPTY, CLASSIC, 0, 0)


def describe_consumer_group(shard: Shard, group_id: GroupId) -> DescribedConsumerGroup:
    """One consumer group, or GROUP_ID_NOT_FOUND for an absent one or one of another type."""
    group = shard.consumer_groups.get(group_id)
    if group is None:
        other = group_id in shard.classic_groups or group_id in shard.offset_groups
        message = (
            f"Group {group_id} is not a consumer group."
            if other
            else f"Group {group_id} not found."
        )
        return compute_failed_description(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)
    return DescribedConsumerGroup(
        group_id,
        ErrorCode.NONE,
        None,
        group.state().value,
        group.group_epoch,
        group.target_epoch,
        compute_preferred_assignor(shard, group),
        tuple(_describe_member(shard, group, member) for member in group.members()),
    )


def compute_failed_description(
    group_id: GroupId, error: ErrorCode, message: str
) -> DescribedConsumerGroup:
    """The entry for a group that cannot be described."""
    return DescribedConsumerGroup(group_id, error, message, "", 0, 0, "", ())


def _describe_member(shard: Shard, group: ConsumerGroup, member: Member) -> DescribedMember:
    metadata = member.metadata
    return DescribedMember(
        member_id=member.member_id,
        instance_id=metadata.instance_id if metadata is not None else None,
        rack_id=metadata.rack_id if metadata is not None else None,
        member_epoch=member.member_epoch,
        client_id=metadata.client_id if metadata is not None else "",
        client_host=metadata.client_host if metadata is not None else "",
        subscribed_topic_names=metadata.subscribed_topic_names if metadata is not None else (),
        subscribed_topic_regex=metadata.subscribed_topic_regex if metadata is not None else None,
        assignment=_named(shard, group, member.assigned),
        pending_revocation=_named(shard, group, member.pending_revocation),
        target_assignment=_named(shard, group, member.target or NO_NUMBERS),
        state=member.state.name,
        member_type=int(metadata is None or metadata.classic_member_metadata is None),
    )


def _named(
    shard: Shard, group: ConsumerGroup, numbers: Iterable[int]
) -> tuple[NamedTopicPartitions, ...]:
    """Partitions of topics that exist, with their names."""
    found = []
    for topic_partitions in group.numbers.topic_partitions(numbers):
        topic = shard.image.by_id.get(topic_partitions.topic_id)
        if topic is not None:
            found.append(
                NamedTopicPartitions(topic.topic_id, topic.name, topic_partitions.partitions)
            )
    return tuple(found)


def describe_classic_group(shard: Shard, group_id: GroupId) -> DescribedClassicGroup:
    """A classic group; Dead with GROUP_ID_NOT_FOUND where there is none (row O16)."""
    value = shard.classic_groups.get(group_id)
    if value is not None:
        state = "Stable" if value.members else EMPTY
        return DescribedClassicGroup(
            group_id, ErrorCode.NONE, None, state, value.protocol_type, value.protocol or ""
        )
    if group_id in shard.consumer_groups:
        message = f"Group {group_id} is not a classic group."
    elif group_id in shard.offset_groups:
        return DescribedClassicGroup(group_id, ErrorCode.NONE, None, EMPTY, "", "")
    else:
        message = f"Group {group_id} not found."
    return DescribedClassicGroup(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message, DEAD, "", "")
