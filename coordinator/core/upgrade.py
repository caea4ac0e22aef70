"""A classic group becomes a consumer group: the first member of the new protocol converts it.

What its members are, and what each was assigned, goes over as it is at the generation as the
epoch; then the newcomer joins as it would any consumer group. All of it is one batch, and where
the newcomer is refused nothing has happened.

Source: KIP-848, "Upgrade"; Kafka's ``GroupMetadataManager.convertToConsumerGroup`` and
``ConsumerGroup.fromClassicGroup``. Row C11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from coordinator.core.classic_draft import GROUP
from coordinator.core.classic_group import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator.core.consumer_group import JOIN_EPOCH
from coordinator.core.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_subscription,
    decode_user_data,
)
from coordinator.core.heartbeat import (
    check_server_assignor,
    compute_epoch_bump,
    compute_target_effect,
    handle_heartbeat,
)
from coordinator.core.metadata_hash import compute_metadata_hash
from coordinator.core.migration_readiness import (
    MigrationRules,
    Reason,
    compute_candidate,
    compute_group_reasons,
    compute_migration_readiness,
    compute_migration_rules,
    describe_too_many_topics,
    subscription_of,
)
from coordinator.core.outcome import (
    ArmClassicDeadline,
    CancelClassicDeadline,
    Effect,
    NoteRebalance,
    Outcome,
    Release,
)
from coordinator.core.replay import replay
from coordinator.core.shard import Shard
from coordinator.core.upgrade_holdings import Holding, compute_holdings
from model.commands import UNCHANGED, ClassicDeadline, ConsumerGroupHeartbeat, Now
from model.errors import GroupIdNotFound, RebalanceInProgress
from model.ids import GroupId
from model.local_assignors import (
    CLASSIC_VERSION,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.records import (
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
    SideRecord,
    TopicPartitions,
)
from model.responses import JoinGroupResponse
from model.settings import CoordinatorSettings


def find_group_to_upgrade(shard: Shard, command: ConsumerGroupHeartbeat) -> ClassicGroup | None:
    """The classic group with members that a heartbeat would convert; ``None`` for any other."""
    group_id = command.group_id
    if (
        command.member_epoch != JOIN_EPOCH
        or group_id in shard.consumer_groups
        or group_id in shard.foreign_groups
    ):
        return None
    group = shard.classic_group(group_id)
    return group if group is not None and group.members else None


def handle_upgrade(
    shard: Shard, group: ClassicGroup, command: ConsumerGroupHeartbeat, now: Now
) -> Outcome:
    """Convert the group, and let the newcomer join it. Raises what either is refused with."""
    check_server_assignor(shard, command)
    keeps_user_data = command.local_assignors is not UNCHANGED and bool(command.local_assignors)
    check_upgrade(group, shard.settings_of(group.group_id), keeps_user_data)
    records = compute_upgrade_records(shard, group)
    converted = _compute_shard_with(shard, records)
    outcome = handle_heartbeat(converted, command, now)
    if not _has_new_epoch(outcome) and not _is_known(converted, group, command):
        outcome = _with_new_epoch(converted, outcome, group.group_id)
    return replace(
        outcome,
        records=records + outcome.records,
        side=_compute_user_data(shard, group) + outcome.side,
        effects=(*_compute_effects(group, command), *outcome.effects),
        releases=_compute_releases(group),
    )


def _has_new_epoch(outcome: Outcome) -> bool:
    return any(isinstance(record.key, ConsumerGroupMetadataKey) for record in outcome.records)


def _is_known(converted: Shard, classic: ClassicGroup, command: ConsumerGroupHeartbeat) -> bool:
    """Whether all that the members want is given, and each knows what it has.

    What the rebalance that ended here, or a leader that did not look yet, has left undone would be
    nobody's, and what a member had before it changed its subscription would stay its own. While a
    group prepares a rebalance, members may not know what they have, as after a downgrade.
    """
    group, topics = converted.consumer_groups[classic.group_id], converted.image.by_name
    names = group.subscribed_topic_names()
    there = sum(topics[name].partitions for name in names if name in topics)
    given = sum(len(member.target or ()) for member in group.members())
    is_legal = all(
        group.numbers.topic_indexes_of(member.target or ())
        <= group.subscribed_topic_indexes(member.metadata, converted.image)
        for member in group.members()
    )
    # The newcomer itself is told all, and with it whoever it takes the place of.
    is_alone = all(
        member.instance_id is not None and member.instance_id == command.instance_id
        for member in classic.members.values()
    )
    is_told = is_alone or classic.state is not ClassicGroupState.PREPARING_REBALANCE
    return is_told and is_legal and given == there


def _with_new_epoch(converted: Shard, outcome: Outcome, group_id: GroupId) -> Outcome:
    """The group gets a target also if the newcomer, which names no topics, changes nothing.

    And whoever does not know what it has asks for it.
    """
    group = converted.consumer_groups[group_id]
    names = group.subscribed_topic_names()
    return replace(
        outcome,
        records=(*outcome.records, *compute_epoch_bump(converted, group, group_id, names)),
        effects=(*outcome.effects, compute_target_effect(converted, group, group_id)),
    )


def check_upgrade(
    group: ClassicGroup, settings: CoordinatorSettings, keeps_user_data: bool = False
) -> None:
    """Raises ``GroupIdNotFound``, which says why, where the group stays what it is.

    User data of an assignor is in the way, unless the newcomer brings an assignor for it.
    """
    rules = replace(compute_migration_rules(settings), keeps_user_data=keeps_user_data)
    key = rules.allows_upgrade, rules.max_size, keeps_user_data, rules.subscriptions_max
    refusal = group.upgrade_checks.get(key)
    if refusal is None:
        # A heartbeat of some bytes asks for it, and members may have said very much.
        refusal = group.upgrade_checks[key] = _find_refusal(group, rules)
    if refusal:
        raise GroupIdNotFound(
            f"Group {group.group_id} is a classic group and stays one: {refusal}."
        )


def _find_refusal(group: ClassicGroup, rules: MigrationRules) -> str:
    """What is in the way; nothing is decoded before what is cheap to see."""
    candidate = compute_candidate(group)
    if not (found := _describe_blocking(compute_group_reasons(candidate, rules))):
        for member in candidate.members:
            if detail := describe_too_many_topics(member, rules):
                return f"{detail} (client {member.client_id})"
        found = _describe_blocking(compute_migration_readiness(candidate, rules).reasons)
    return found


def _describe_blocking(reasons: Iterable[Reason]) -> str:
    for reason in reasons:
        if reason.is_blocking:
            whose = "" if reason.client_id is None else f" (client {reason.client_id})"
            return f"{reason.detail}{whose}"
    return ""


def compute_upgrade_records(shard: Shard, group: ClassicGroup) -> tuple[Record, ...]:
    """The end of the classic group and the whole of the consumer group, in Kafka's order."""
    # A group that fills for the first time is of generation 0, and epoch 0 is that of who joins.
    group_id, epoch = group.group_id, max(group.generation, 1)
    held = compute_holdings(group, shard.image)
    said = {member.member_id: _compute_metadata(group, member) for member in group.members.values()}
    names = {name for metadata in said.values() for name in metadata.subscribed_topic_names}
    metadata_hash = compute_metadata_hash(names, shard.image, shard.topic_hashes)
    members = list(group.members)
    return (
        Record(GroupMetadataKey(group_id), None),
        *(Record(ConsumerGroupMemberMetadataKey(group_id, own), said[own]) for own in members),
        Record(
            ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash)
        ),
        *(
            Record(
                ConsumerGroupTargetAssignmentMemberKey(group_id, own),
                ConsumerGroupTargetAssignmentMemberValue(held[own].assigned),
            )
            for own in members
        ),
        Record(
            ConsumerGroupTargetAssignmentMetadataKey(group_id),
            ConsumerGroupTargetAssignmentMetadataValue(epoch),
        ),
        *(
            Record(
                ConsumerGroupCurrentMemberAssignmentKey(group_id, own),
                _compute_current(epoch, held[own]),
            )
            for own in members
        ),
    )


def _compute_metadata(
    group: ClassicGroup, member: ClassicMember
) -> ConsumerGroupMemberMetadataValue:
    subscription = decode_subscription(subscription_of(group, member))
    assert subscription is not None, "it was checked that it can be read"
    protocols = tuple(ClassicProtocol(each.name, each.metadata) for each in member.protocols)
    return ConsumerGroupMemberMetadataValue(
        member.instance_id,
        subscription.rack,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
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


def _compute_user_data(shard: Shard, group: ClassicGroup) -> tuple[SideRecord, ...]:
    """What the leader's assignor gave members beside partitions: theirs until the next target."""
    return tuple(
        SideRecord(
            InstalledMetadataKey(shard.partition, group.group_id, member.member_id),
            InstalledMetadataValue(
                group.generation, group.protocol_name or "", CLASSIC_VERSION, user_data
            ),
        )
        for member in group.members.values()
        if (user_data := decode_user_data(member.assignment)) is not None
    )


def _compute_shard_with(shard: Shard, records: Iterable[Record]) -> Shard:
    """A shard of the converted group alone, in which the newcomer is looked at."""
    converted = Shard(shard.partition, shard.settings, shard.image, shard.group_settings)
    converted.topic_hashes = shard.topic_hashes
    for record in records:
        replay(converted, record)
    return converted


def _compute_effects(group: ClassicGroup, command: ConsumerGroupHeartbeat) -> list[Effect]:
    """The deadlines of the rebalance end; each session begins anew."""
    group_id: GroupId = group.group_id
    session = ClassicDeadline.SESSION
    effects: list[Effect] = [
        CancelClassicDeadline(group_id, ClassicDeadline.JOIN, GROUP),
        CancelClassicDeadline(group_id, ClassicDeadline.SYNC, GROUP),
    ]
    effects += (
        CancelClassicDeadline(group_id, session, member_id)
        for member_id in sorted(group.pending_members)
    )
    effects += (
        ArmClassicDeadline(group_id, session, member.member_id, member.session_timeout_ms)
        for member in group.members.values()
    )
    reason = f"member {command.member_id} joins by the consumer protocol: the group is upgraded"
    effects += (
        ArmClassicDeadline(
            group_id, ClassicDeadline.SYNC, member.member_id, member.rebalance_timeout_ms
        )
        for member in group.members.values()
        if member.awaits_id
    )
    effects.append(NoteRebalance(group_id, group.generation, reason))
    return effects


def _compute_releases(group: ClassicGroup) -> tuple[Release, ...]:
    """Row J9: who waits for the rebalance joins again, as a member of the consumer group.

    Who does not know its id has joined it: the error does not name the id, and its client would
    come as another member.
    """
    error = RebalanceInProgress("The group is a consumer group now.")
    return tuple(
        Release(
            member.member_id,
            member.awaits,
            _compute_join_answer(group, member) if member.awaits_id else error,
        )
        for member in group.members.values()
        if member.awaits is not None
    )


def _compute_join_answer(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    name = member.protocols[0].name
    return JoinGroupResponse(
        member.member_id, max(group.generation, 1), PROTOCOL_TYPE, name, leader=None
    )
