"""The records of an upgrade: they end the classic group and create the consumer group."""

from __future__ import annotations

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicMember
from coordinator.core.state.conversion import (
    in_slices,
    weigh_said,
)
from coordinator.core.state.metadata_hash import compute_metadata_hash
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.ids import TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    MemberState,
    Record,
    TopicPartitions,
)
from muster.assignors import embedded
from translator.mapping import compute_topic_names
from translator.upgrade_holdings import Holding, compute_holdings, read_subscriptions


def compute_upgrade_records(shard: Shard, group: ClassicGroup) -> Steps[tuple[Record, ...]]:
    """The tombstone of the classic group, then the consumer group's records, in Kafka's order."""
    # During its first rebalance a group has generation 0, but member epoch 0 is that of a join.
    group_id, epoch = group.group_id, max(group.generation, 1)
    said = yield from read_subscriptions(group)
    held = yield from compute_holdings(group, shard.image, said)
    metadata: list[Record] = []
    targets: list[Record] = []
    current: list[Record] = []
    names: set[TopicName] = set()
    for part in in_slices(group.members.values(), weigh_said):
        for member in part:
            own, holding = member.member_id, held[member.member_id]
            value = _compute_metadata(member, said[own])
            names.update(value.subscribed_topic_names)
            metadata.append(Record(ConsumerGroupMemberMetadataKey(group_id, own), value))
            target = ConsumerGroupTargetAssignmentMemberValue(holding.assigned)
            targets.append(Record(ConsumerGroupTargetAssignmentMemberKey(group_id, own), target))
            has = _compute_current(epoch, holding)
            current.append(Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, own), has))
        yield
    metadata_hash = compute_metadata_hash(names, shard.image, shard.soft.topic_hashes)
    return (
        Record(GroupMetadataKey(group_id), None),
        *metadata,
        Record(
            ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash)
        ),
        *targets,
        Record(
            ConsumerGroupTargetAssignmentMetadataKey(group_id),
            ConsumerGroupTargetAssignmentMetadataValue(epoch),
        ),
        *current,
    )


def _compute_metadata(
    member: ClassicMember, subscription: embedded.Subscription
) -> ConsumerGroupMemberMetadataValue:
    protocols = tuple(ClassicProtocol(each.name, each.metadata) for each in member.protocols)
    return ConsumerGroupMemberMetadataValue(
        member.instance_id,
        subscription.rack,
        member.client_id,
        member.client_host,
        compute_topic_names(subscription),
        "",
        member.rebalance_timeout_ms,
        None,
        ClassicMemberMetadata(member.session_timeout_ms, protocols),
    )


def _compute_current(epoch: int, holding: Holding) -> ConsumerGroupCurrentMemberAssignmentValue:
    state = MemberState.UNREVOKED_PARTITIONS if holding.pending else MemberState.STABLE
    return ConsumerGroupCurrentMemberAssignmentValue(
        epoch,
        epoch,
        int(state),
        _compute_epochs(epoch, holding.assigned),
        _compute_epochs(epoch, holding.pending),
    )


def _compute_epochs(
    epoch: int, held: tuple[TopicPartitions, ...]
) -> tuple[AssignedTopicPartitions, ...]:
    return tuple(
        AssignedTopicPartitions(each.topic_id, each.partitions, (epoch,) * len(each.partitions))
        for each in held
    )
