"""A consumer group becomes a classic group: the last member of the new protocol goes.

Only members of the classic protocol are left. The group goes over with its epoch as the
generation and its target as the assignments, and rebalances at once. What a member has not given up
yet is its own until that rebalance: the group may be upgraded again before.

Its members were told none of that. The record names no leader, and whoever loads it knows by that
that the group still has to rebalance.

Source: KIP-848, "Downgrade"; Kafka's ``GroupMetadataManager.convertToClassicGroup`` and
``ClassicGroup.fromConsumerGroup``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.classic.classic_rebalance import compute_protocol, rebalance
from coordinator.core.client_assignors.declaration import compute_user_data
from coordinator.core.groups.group_tombstones import compute_tombstones_in_slices
from coordinator.core.state.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
    compute_classic_group,
    compute_group_record,
    compute_new_group,
    compute_topics_said,
)
from coordinator.core.state.classic_states import ClassicEvent
from coordinator.core.state.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer_member import NO_NUMBERS, Member
from coordinator.core.state.conversion import Converted, in_slices, weigh_bytes, weigh_metadata
from coordinator.core.state.embedded_protocol import (
    PROTOCOL_TYPE,
    encode_assignment,
)
from coordinator.core.state.outcome import BeginClassicSessions, Outcome, convert
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.commands import JoinProtocol, Now
from model.configs.migration_policy import allows_downgrade
from model.ids import MemberId, TopicName
from model.log.records import ConsumerGroupMemberMetadataValue, GroupMetadataValue
from model.responses import Response
from model.value import value
from muster.assignors import embedded


@value
class Replacement:
    """A classic member that takes the place of a static member of the consumer protocol."""

    member_id: MemberId
    metadata: ConsumerGroupMemberMetadataValue
    replaced: Member


def is_to_downgrade(
    shard: Shard,
    group: ConsumerGroup,
    gone: Collection[MemberId],
    replacement: Replacement | None = None,
) -> bool:
    """Whether the group becomes a classic group once these members are gone.

    Those whom a replacement takes the place of are among them.
    """
    settings = shard.settings_of(group.group_id)
    left = group.member_count - len(gone) + (replacement is not None)
    if not allows_downgrade(settings.group_consumer_migration_policy) or left <= 0:
        return False
    speakers = group.member_count - group.classic_member_count
    going = [member for member_id in gone if (member := group.member(member_id)) is not None]
    return (
        speakers == sum(member.classic is None for member in going)
        and left <= settings.group_max_size
    )


def compute_downgrade(
    shard: Shard,
    group: ConsumerGroup,
    gone: Collection[MemberId],
    now: Now,
    response: Response | None,
    replacement: Replacement | None = None,
) -> Outcome:
    """The end of the consumer group and the classic group, which rebalances."""
    steps = _downgrade(shard, group, gone, now, response, replacement)
    weight = sum(weigh_metadata(member.metadata) for member in group.members())
    return convert(steps, weight)


def _downgrade(
    shard: Shard,
    group: ConsumerGroup,
    gone: Collection[MemberId],
    now: Now,
    response: Response | None,
    replacement: Replacement | None,
) -> Steps[Outcome]:
    classic = yield from _compute_classic_group(shard, group, gone, now, replacement)
    draft = ClassicDraft(classic, now)
    draft.records += yield from compute_tombstones_in_slices(group)
    record = compute_group_record(replace(classic, leader=None))
    draft.records.append(record)
    yield
    sessions = [(each.member_id, each.session_timeout_ms) for each in classic.members.values()]
    draft.effects.append(BeginClassicSessions(group.group_id, tuple(sessions)))
    yield
    reason = "only members of the classic protocol are left: the group is downgraded"
    rebalance(draft, shard.settings_of(group.group_id), ClassicEvent.GONE, reason)
    yield
    assert isinstance(record.value, GroupMetadataValue), "it is the record of a group"
    written = compute_classic_group(group.group_id, record.value, classic.subscribed_topics)
    converted = Converted(
        written, len(draft.records), _find_names(shard, group), tuple(sorted(gone))
    )
    return replace(draft.finish(response), converted=converted)


def _find_names(shard: Shard, group: ConsumerGroup) -> set[TopicName]:
    """Of the topics of which members have partitions."""
    by_id = shard.image.by_id
    return {by_id[topic_id].name for topic_id in group.numbers.topics if topic_id in by_id}


def _compute_classic_group(
    shard: Shard,
    group: ConsumerGroup,
    gone: Collection[MemberId],
    now: Now,
    replacement: Replacement | None,
) -> Steps[ClassicGroup]:
    """The group as it was: Stable, at the group epoch."""
    draft = ClassicDraft(compute_new_group(group.group_id, now.wall_ms), now)
    staying = [
        (member.member_id, member.metadata, member)
        for member in group.members()
        if member.member_id not in gone and member.metadata is not None
    ]
    if replacement is not None:
        staying.append((replacement.member_id, replacement.metadata, replacement.replaced))
    for part in in_slices(staying, lambda one: weigh_metadata(one[1])):
        for member_id, metadata, _ in part:
            draft.add(_compute_member(member_id, metadata), PROTOCOL_TYPE)
        yield
    draft.state = ClassicGroupState.STABLE
    draft.generation = group.group_epoch
    name = draft.protocol_name = compute_protocol(draft)
    free = _compute_free_slots(group, gone, replacement)
    for part in in_slices(staying, lambda one: weigh_metadata(one[1])):
        for member_id, _, holder in part:
            member = draft.members[member_id]
            said = member.metadata_for(name)
            assigned = _compute_assigned(shard, group, holder, free)
            given = encode_assignment(assigned, said, compute_user_data(group, holder))
            draft.put(replace(member, metadata=said, assignment=given))
        yield
    draft.subscribed_topics = yield from _compute_subscribed_topics(draft)
    return draft.value()


def _compute_subscribed_topics(draft: ClassicDraft) -> Steps[frozenset[TopicName] | None]:
    topics: set[TopicName] = set()
    said_by_all = {each.metadata for each in draft.members.values()}
    for part in in_slices(said_by_all, weigh_bytes):
        said = compute_topics_said(part)
        if said is None:
            return None
        topics |= said
        yield
    return frozenset(topics)


def _compute_member(
    member_id: MemberId, metadata: ConsumerGroupMemberMetadataValue
) -> ClassicMember:
    classic = metadata.classic_member_metadata
    assert classic is not None, "only classic members are left"
    return ClassicMember(
        member_id,
        metadata.instance_id,
        metadata.client_id,
        metadata.client_host,
        metadata.rebalance_timeout_ms,
        classic.session_timeout_ms,
        b"",
        b"",
        tuple(JoinProtocol(each.name, each.metadata) for each in classic.supported_protocols),
    )


def _compute_free_slots(
    group: ConsumerGroup, gone: Collection[MemberId], replacement: Replacement | None
) -> frozenset[int]:
    """Who holds what others may have: nobody, and those that are gone.

    What a replaced member holds is its replacement's.
    """
    kept = None if replacement is None else replacement.replaced.member_id
    left = (group.member(member_id) for member_id in gone if member_id != kept)
    return frozenset({NOBODY, *(member.slot for member in left if member is not None)})


def _compute_assigned(
    shard: Shard, group: ConsumerGroup, member: Member, free: Collection[int]
) -> list[embedded.TopicPartitions]:
    """What the target gives the member and nobody else still has, and what itself still has.

    Of topics that are there, by name.
    """
    by_id = shard.image.by_id
    holder = group.holder
    numbers = {number for number in member.target or NO_NUMBERS if holder[number] in free}
    numbers.update(member.assigned, member.pending_revocation)
    given = [
        embedded.TopicPartitions(topic.name, each.partitions)
        for each in group.numbers.topic_partitions(sorted(numbers))
        if (topic := by_id.get(each.topic_id)) is not None
    ]
    return sorted(given, key=lambda each: each.topic)
