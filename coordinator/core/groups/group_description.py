"""List and describe groups."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from coordinator.core.client_assignors.selection import compute_selected_assignor
from coordinator.core.groups.waits import compute_waits
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
)
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import NO_NUMBERS, Member
from coordinator.core.state.consumer.partition_numbers import PartitionNumbers
from coordinator.core.state.shard import Shard
from model.errors import ErrorCode
from model.ids import GroupId, MemberId
from model.log.records import ConsumerGroupMemberMetadataValue, MemberState
from model.places import is_here
from model.responses.groups import (
    DescribedClassicGroup,
    DescribedClassicMember,
    DescribedConsumerGroup,
    DescribedMember,
    DescribedWait,
    ListedGroup,
    NamedTopicPartitions,
)
from model.topics import TopicImage

CONSUMER = "consumer"
CLASSIC = "classic"
EMPTY = "Empty"
DEAD = "Dead"


class WaitTimes(NamedTuple):
    """What tells how long members wait: the wall clock, and how long an owner may still take."""

    now_ms: int
    left_ms_of: Callable[[MemberId], int | None]


def list_groups(shard: Shard) -> Iterator[ListedGroup]:
    """All groups of a shard. A group that only has offsets is classic, Empty, without protocol."""
    consumers, foreign = shard.consumer_groups, shard.foreign_groups
    classic = shard.all_classic_groups()
    for group_id, group in consumers.items():
        freeze = shard.freezes.get(group_id)
        yield ListedGroup(
            group_id,
            CONSUMER,
            group.state().value,
            CONSUMER,
            group.member_count,
            group.group_epoch,
            0 if freeze is None else freeze.since_ms,
        )
    for group_id, other in foreign.items():
        if group_id not in consumers:
            kind = other.group_type
            yield ListedGroup(
                group_id, kind, other.state(), kind, len(other.members), other.group_epoch
            )
    for group_id, known in classic.items():
        if group_id not in consumers and group_id not in foreign:
            yield ListedGroup(
                group_id,
                known.protocol_type or "",
                known.state.value,
                CLASSIC,
                len(known.members),
                known.generation,
            )
    for group_id in shard.offset_groups | shard.open_transactions.group_ids():
        if group_id not in consumers and group_id not in foreign and group_id not in classic:
            yield ListedGroup(group_id, "", EMPTY, CLASSIC, 0, 0)


def describe_consumer_group(shard: Shard, group_id: GroupId) -> DescribedConsumerGroup:
    """Describe a consumer group; GROUP_ID_NOT_FOUND if it is missing or of another type."""
    group, members = begin_description(shard, group_id)
    return replace(group, members=tuple(members))


def begin_description(
    shard: Shard, group_id: GroupId, times: WaitTimes | None = None
) -> tuple[DescribedConsumerGroup, Iterator[DescribedMember]]:
    """``describe_consumer_group`` in two parts: the group without members, and the members.

    The members are described lazily, but as of now: the values of a member are replaced when they
    change, never modified. Without ``times``, as for the past, no wait has a length.
    """
    group = shard.consumer_groups.get(group_id)
    if group is None:
        message = (
            f"Group {group_id} is not a consumer group."
            if shard.has_other_group(group_id)
            else f"Group {group_id} not found."
        )
        failed = compute_failed_description(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)
        return failed, iter(())
    described = DescribedConsumerGroup(
        group_id,
        ErrorCode.NONE,
        None,
        state=group.state().value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=compute_selected_assignor(shard, group),
        freeze=shard.freezes.get(group_id),
    )
    states = [_take_state(member) for member in group.members()]
    image, numbers = shard.image, group.numbers
    # The tokens alone are modified.
    tokens = group.token_of[:] if shard.next_token else None
    waits, since_ms = compute_waits(group), group.assignment_timestamp

    def describe(state: _MemberState) -> DescribedMember:
        found = tuple(
            _describe_wait(owner_id, _named(image, numbers, held), since_ms, times)
            for owner_id, held in waits.of(state.slot)
        )
        return _describe_member(image, numbers, state, tokens, found)

    return described, map(describe, states)


def _describe_wait(
    owner_id: MemberId,
    partitions: tuple[NamedTopicPartitions, ...],
    since_ms: int,
    times: WaitTimes | None,
) -> DescribedWait:
    if times is None:
        return DescribedWait(owner_id, partitions, None, None)
    # A log of an older Kafka has no time of the target.
    waited_ms = max(0, times.now_ms - since_ms) if since_ms > 0 else None
    return DescribedWait(owner_id, partitions, waited_ms, times.left_ms_of(owner_id))


def describe_members(
    shard: Shard, group: ConsumerGroup, members: Iterable[Member]
) -> tuple[DescribedMember, ...]:
    """Describe some members, without tokens and waits."""
    return tuple(
        _describe_member(shard.image, group.numbers, _take_state(member), None, ())
        for member in members
    )


def compute_failed_description(
    group_id: GroupId, error: ErrorCode, message: str
) -> DescribedConsumerGroup:
    """The description of a group that cannot be described."""
    return DescribedConsumerGroup(group_id, error, message)


class _MemberState(NamedTuple):
    """A snapshot of a member: its values are replaced when they change, never modified."""

    slot: int
    member_id: MemberId
    member_epoch: int
    state: MemberState
    metadata: ConsumerGroupMemberMetadataValue | None
    assigned: Sequence[int]
    pending_revocation: Sequence[int]
    target: Sequence[int] | None


def _take_state(member: Member) -> _MemberState:
    return _MemberState(
        member.slot,
        member.member_id,
        member.member_epoch,
        member.state,
        member.metadata,
        member.assigned,
        member.pending_revocation,
        member.target,
    )


def _describe_member(
    image: TopicImage,
    partitions: PartitionNumbers,
    member: _MemberState,
    tokens: array[int] | None,
    waits: tuple[DescribedWait, ...],
) -> DescribedMember:
    def name(
        numbers: Sequence[int], tokens: array[int] | None = None
    ) -> tuple[NamedTopicPartitions, ...]:
        return _named(image, partitions, numbers, tokens)

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
        assignment=name(member.assigned, tokens),
        pending_revocation=name(member.pending_revocation),
        target_assignment=name(member.target or NO_NUMBERS),
        state=member.state.name,
        member_type=int(metadata is None or metadata.classic_member_metadata is None),
        waits=waits,
    )


def _named(
    image: TopicImage,
    partitions: PartitionNumbers,
    numbers: Sequence[int],
    tokens: array[int] | None = None,
) -> tuple[NamedTopicPartitions, ...]:
    """The partitions with topic names; those of deleted topics are left out.

    ``tokens`` are those of all numbers, ``None`` if they are not to be shown.
    """
    named = partitions.topic_partitions(numbers)
    shown = ((),) * len(named) if tokens is None else partitions.tokens_of(numbers, tokens)
    found = []
    for topic_partitions, own in zip(named, shown, strict=True):
        topic = image.by_id.get(topic_partitions.topic_id)
        if topic is not None:
            found.append(
                NamedTopicPartitions(topic.topic_id, topic.name, topic_partitions.partitions, own)
            )
    return tuple(found)


def describe_classic_group(shard: Shard, group_id: GroupId) -> DescribedClassicGroup:
    """Describe a classic group; Dead, with GROUP_ID_NOT_FOUND, if there is none.

    Row O16 of tests/scenarios/README.md.
    """
    if group_id in shard.consumer_groups or group_id in shard.foreign_groups:
        message = f"Group {group_id} is not a classic group."
        return compute_failed_classic_description(group_id, message)
    group = shard.classic_group(group_id)
    if group is not None:
        return _describe_known(group)
    if shard.has_simple_group(group_id) or is_here(shard.places.get(group_id)):
        # The offsets of a group that is here may be in the cluster.
        return DescribedClassicGroup(group_id, ErrorCode.NONE, None, EMPTY, "", "")
    return compute_failed_classic_description(group_id, f"Group {group_id} not found.")


def compute_failed_classic_description(
    group_id: GroupId,
    message: str,
    error: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND,
    state: str = DEAD,
) -> DescribedClassicGroup:
    """The description of a group that cannot be described; one that is not found is Dead."""
    return DescribedClassicGroup(group_id, error, message, state, "", "")


def _describe_known(group: ClassicGroup) -> DescribedClassicGroup:
    """Describe the group; as in Kafka, with protocol and metadata only when it is Stable."""
    is_stable = group.state is ClassicGroupState.STABLE
    members = group.members.values()
    return DescribedClassicGroup(
        group.group_id,
        ErrorCode.NONE,
        None,
        group.state.value,
        group.protocol_type or "",
        (group.protocol_name or "") if is_stable else "",
        group.generation,
        tuple(describe_classic_member(member, is_stable) for member in members),
    )


def describe_classic_member(member: ClassicMember, is_stable: bool) -> DescribedClassicMember:
    return DescribedClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.metadata if is_stable else b"",
        member.assignment,
    )
