"""A classic group becomes a consumer group: the first member of the new protocol converts it.

What its members are, and what each was assigned, goes over as it is at the generation as the
epoch; then the newcomer joins as it would any consumer group. All of it is one batch, and where
the newcomer is refused nothing has happened. Of a large group it is made in slices.

Source: KIP-848, "Upgrade"; Kafka's ``GroupMetadataManager.convertToConsumerGroup`` and
``ConsumerGroup.fromClassicGroup``. Row C11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coordinator.core.classic.classic_draft import GROUP
from coordinator.core.consumer.heartbeat import handle_heartbeat
from coordinator.core.consumer.heartbeat_checks import check_server_assignor
from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic_group import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator.core.state.consumer_member import JOIN_EPOCH, Member
from coordinator.core.state.conversion import (
    TOPICS_OF_ONE,
    Converted,
    in_slices,
    weigh_bytes,
    weigh_group,
    weigh_metadata,
    weigh_record,
    weigh_said,
)
from coordinator.core.state.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_user_data,
)
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.outcome import (
    ArmClassicDeadline,
    BeginClassicSessions,
    CancelClassicDeadline,
    Effect,
    NoteRebalance,
    Outcome,
    Release,
    convert,
)
from coordinator.core.state.shard import Shard, SoftState
from coordinator.core.state.steps import Steps
from model.commands import UNCHANGED, ClassicDeadline, ConsumerGroupHeartbeat, Now
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupIdNotFound, RebalanceInProgress
from model.ids import GroupId, TopicName
from model.local_assignors import (
    CLASSIC_VERSION,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.log.records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    Record,
)
from model.log.side_records import SideRecord
from model.responses import JoinGroupResponse
from translator.readiness import (
    Candidate,
    MigrationRules,
    Reason,
    compute_candidate_member,
    compute_group_reasons,
    compute_member_reasons,
    compute_migration_rules,
    describe_too_many_topics,
)
from translator.upgrade_records import compute_upgrade_records


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
    return convert(_upgrade(shard, group, command, now), weigh_group(group.members.values()))


def _upgrade(
    shard: Shard, group: ClassicGroup, command: ConsumerGroupHeartbeat, now: Now
) -> Steps[Outcome]:
    keeps_user_data = command.local_assignors is not UNCHANGED and bool(command.local_assignors)
    yield from check_upgrade(group, shard.settings_of(group.group_id), keeps_user_data)
    records = yield from compute_upgrade_records(shard, group)
    converted = yield from _compute_shard_with(shard, records)
    outcome = handle_heartbeat(converted, command, now)
    if not _has_new_epoch(outcome):
        is_known = yield from _find_whether_known(converted, group, command)
        if not is_known:
            outcome = _with_new_epoch(converted, outcome, group.group_id)
    user_data = yield from _compute_user_data(shard, group)
    yield
    upgraded = converted.consumer_groups[group.group_id]
    names = {*upgraded.subscribed_topic_names(), *_find_names(outcome)}
    return replace(
        outcome,
        records=records + outcome.records,
        side=user_data + outcome.side,
        effects=(*_compute_effects(group, command), *outcome.effects),
        releases=_compute_releases(group),
        converted=Converted(upgraded, len(records), names),
    )


def _find_names(outcome: Outcome) -> Iterator[TopicName]:
    """What the newcomer subscribes to."""
    for _, value in outcome.records:
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            yield from value.subscribed_topic_names


def _has_new_epoch(outcome: Outcome) -> bool:
    return any(isinstance(record.key, ConsumerGroupMetadataKey) for record in outcome.records)


def _find_whether_known(
    converted: Shard, classic: ClassicGroup, command: ConsumerGroupHeartbeat
) -> Steps[bool]:
    """Whether all that the members want is given, and each knows what it has.

    What the rebalance that ended here, or a leader that did not look yet, has left undone would be
    nobody's, and what a member had before it changed its subscription would stay its own. While a
    group prepares a rebalance, members may not know what they have, as after a downgrade.
    """
    group, topics = converted.consumer_groups[classic.group_id], converted.image.by_name
    names = group.subscribed_topic_names()
    there = sum(topics[name].partitions for name in names if name in topics)
    given, is_legal = 0, True
    for part in in_slices(group.members(), _weigh_member):
        for member in part:
            target = member.target or ()
            given += len(target)
            is_legal &= group.numbers.topic_indexes_of(target) <= group.subscribed_topic_indexes(
                member.metadata, converted.image
            )
        yield
    # The newcomer itself is told all, and with it whoever it takes the place of.
    is_alone = all(
        member.instance_id is not None and member.instance_id == command.instance_id
        for member in classic.members.values()
    )
    is_told = is_alone or classic.state is not ClassicGroupState.PREPARING_REBALANCE
    return is_told and is_legal and given == there


def _weigh_member(member: Member) -> int:
    return weigh_metadata(member.metadata) + len(member.target or ()) // TOPICS_OF_ONE


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
) -> Steps[None]:
    """Raises ``GroupIdNotFound``, which says why, where the group stays what it is.

    User data of an assignor is in the way, unless the newcomer brings an assignor for it.
    """
    rules = replace(compute_migration_rules(settings), keeps_user_data=keeps_user_data)
    key = rules.allows_upgrade, rules.max_size, keeps_user_data, rules.subscriptions_max
    known = group.upgrade_checks.found
    refusal = known.get(key)
    if refusal is None:
        # A heartbeat of some bytes asks for it, and members may have said very much.
        refusal = yield from _find_refusal(group, rules)
        known[key] = refusal
    if refusal:
        raise GroupIdNotFound(
            f"Group {group.group_id} is a classic group and stays one: {refusal}."
        )


def _find_refusal(group: ClassicGroup, rules: MigrationRules) -> Steps[str]:
    """What is in the way; nothing is decoded before what is cheap to see."""
    members = []
    for part in in_slices(group.members.values(), weigh_said):
        members += [compute_candidate_member(group, member) for member in part]
        yield
    candidate = Candidate(group.group_id, group.protocol_type, group.protocol_name, tuple(members))
    if found := _describe_blocking(compute_group_reasons(candidate, rules)):
        return found
    for one in members:
        if detail := describe_too_many_topics(one, rules):
            return f"{detail} (client {one.client_id})"
    for of_part in in_slices(members, lambda one: weigh_bytes(one.subscription)):
        for one in of_part:
            if found := _describe_blocking(compute_member_reasons(candidate, one, rules)):
                return found
        yield
    return ""


def _describe_blocking(reasons: Iterable[Reason]) -> str:
    for reason in reasons:
        if reason.is_blocking:
            whose = "" if reason.client_id is None else f" (client {reason.client_id})"
            return f"{reason.detail}{whose}"
    return ""


def _compute_user_data(shard: Shard, group: ClassicGroup) -> Steps[tuple[SideRecord, ...]]:
    """What the leader's assignor gave members beside partitions: theirs until the next target."""
    found: list[SideRecord] = []
    for part in in_slices(group.members.values(), weigh_said):
        found += (
            SideRecord(
                InstalledMetadataKey(shard.partition, group.group_id, member.member_id),
                InstalledMetadataValue(
                    group.generation, group.protocol_name or "", CLASSIC_VERSION, user_data
                ),
            )
            for member in part
            if (user_data := decode_user_data(member.assignment)) is not None
        )
        yield
    return tuple(found)


def _compute_shard_with(shard: Shard, records: Iterable[Record]) -> Steps[Shard]:
    """A shard of the converted group alone, in which the newcomer is looked at."""
    soft = SoftState(topic_hashes=shard.soft.topic_hashes)
    converted = Shard(shard.partition, shard.settings, shard.image, shard.group_settings, soft)
    for part in in_slices(records, weigh_record):
        for record in part:
            replay(converted, record)
        yield
    return converted


def _compute_effects(group: ClassicGroup, command: ConsumerGroupHeartbeat) -> list[Effect]:
    """The deadlines of the rebalance end; each session begins anew."""
    group_id: GroupId = group.group_id
    effects: list[Effect] = [
        CancelClassicDeadline(group_id, ClassicDeadline.JOIN, GROUP),
        CancelClassicDeadline(group_id, ClassicDeadline.SYNC, GROUP),
    ]
    effects += (
        CancelClassicDeadline(group_id, ClassicDeadline.SESSION, member_id)
        for member_id in sorted(group.pending_members)
    )
    effects.append(compute_sessions(group))
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


def compute_sessions(group: ClassicGroup) -> BeginClassicSessions:
    """Each member of a group that changes its type is taken to have been heard from."""
    sessions = [(each.member_id, each.session_timeout_ms) for each in group.members.values()]
    return BeginClassicSessions(group.group_id, tuple(sessions))


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
