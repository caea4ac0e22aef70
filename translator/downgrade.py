"""Downgrade: a consumer group becomes a classic group when only classic members are left.

The group epoch becomes the generation and the target the assignments, and the group rebalances at
once. Until then a member keeps the partitions that it has not revoked yet: the group may be
upgraded again before.

No member knows of the new generation. So the record names no leader, which tells a coordinator
that loads it that the group still has to rebalance.

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
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
    compute_classic_group,
    compute_group_record,
    compute_new_group,
    compute_topics_said,
)
from coordinator.core.state.classic.classic_states import ClassicEvent
from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    encode_assignment,
)
from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import NO_NUMBERS, Member
from coordinator.core.state.conversion import Converted, in_slices, weigh_bytes, weigh_metadata
from coordinator.core.state.epoch_causes import compute_member_cause
from coordinator.core.state.outcome import BeginClassicSessions, Outcome, convert
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.commands.classic import JoinProtocol
from model.configs.migration_policy import allows_downgrade
from model.ids import MemberId, TopicName
from model.log.records import ConsumerGroupMemberMetadataValue, GroupMetadataValue
from model.now import Now
from model.past.causes import CauseKind
from model.responses.response import Response
from model.value import value
from muster.assignors import embedded


@value
class Replacement:
    """A classic member that replaces a static member of the consumer protocol."""

    member_id: MemberId
    metadata: ConsumerGroupMemberMetadataValue
    replaced: Member


def is_to_downgrade(
    shard: Shard,
    group: ConsumerGroup,
    gone: Collection[MemberId],
    replacement: Replacement | None = None,
) -> bool:
    """Whether the group must be downgraded once the members in ``gone`` have left.

    They include the member that ``replacement`` replaces. A frozen group stays a consumer group:
    its clients would assign everything anew.
    """
    if group.group_id in shard.freezes:
        return False
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
    """Tombstone the consumer group, write the classic group, and begin its rebalance."""
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
    reason = "only classic members are left: the group is downgraded"
    first = min(gone, default=MemberId(""))
    member = group.member(first)
    metadata = None if member is None else member.metadata
    cause = compute_member_cause(CauseKind.MIGRATED, first, metadata, reason)
    rebalance(draft, shard.settings_of(group.group_id), ClassicEvent.GONE, (reason, cause))
    yield
    assert isinstance(record.value, GroupMetadataValue), "it is the record of a group"
    written = compute_classic_group(group.group_id, record.value, classic.subscribed_topics)
    converted = Converted(
        written, len(draft.records), _find_names(shard, group), tuple(sorted(gone))
    )
    return replace(draft.finish(response), converted=converted)


def _find_names(shard: Shard, group: ConsumerGroup) -> set[TopicName]:
    """The names of the existing topics of the group's partitions."""
    by_id = shard.image.by_id
    return {by_id[topic_id].name for topic_id in group.numbers.topics if topic_id in by_id}


def _compute_classic_group(
    shard: Shard,
    group: ConsumerGroup,
    gone: Collection[MemberId],
    now: Now,
    replacement: Replacement | None,
) -> Steps[ClassicGroup]:
    """The classic group before its rebalance: Stable, with the group epoch as its generation."""
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
    """The slots whose partitions others may get: ``NOBODY`` and the removed members.

    The partitions of a replaced member go to its replacement.
    """
    kept = None if replacement is None else replacement.replaced.member_id
    left = (group.member(member_id) for member_id in gone if member_id != kept)
    return frozenset({NOBODY, *(member.slot for member in left if member is not None)})


def _compute_assigned(
    shard: Shard, group: ConsumerGroup, member: Member, free: Collection[int]
) -> list[embedded.TopicPartitions]:
    """The partitions for the member in the assignment of the classic group.

    They are those of its target that no other member owns, and those that it owns itself. Only
    existing topics, sorted by name.
    """
    by_id = shard.image.by_id
    owner = group.owner
    numbers = {number for number in member.target or NO_NUMBERS if owner[number] in free}
    numbers.update(member.assigned, member.pending_revocation)
    given = [
        embedded.TopicPartitions(topic.name, each.partitions)
        for each in group.numbers.topic_partitions(sorted(numbers))
        if (topic := by_id.get(each.topic_id)) is not None
    ]
    return sorted(given, key=lambda each: each.topic)
