"""Upgrade: the first consumer-protocol member that joins a classic group converts it.

Members and assignments are kept, and the generation becomes the group epoch; then the new member
joins as in any consumer group. All of it is one batch, and nothing happens if the new member is
refused. A large group is converted in slices.

Source: KIP-848, "Upgrade"; Kafka's ``GroupMetadataManager.convertToConsumerGroup`` and
``ConsumerGroup.fromClassicGroup``. Row C11 (tests/scenarios/README.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coordinator.core.classic.classic_draft import GROUP
from coordinator.core.consumer.heartbeat import handle_heartbeat
from coordinator.core.consumer.heartbeat_checks import check_server_assignor
from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
)
from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_user_data,
)
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, Member
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
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.outcome import (
    ArmClassicDeadline,
    BeginClassicSessions,
    CancelClassicDeadline,
    Effect,
    NoteEpochCauses,
    NoteRebalance,
    Outcome,
    Release,
    convert,
)
from coordinator.core.state.shard import Shard, SoftState
from coordinator.core.state.steps import Steps
from model.client_assignors import (
    CLASSIC_VERSION,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.commands.classic import ClassicDeadline
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupIdNotFound, RebalanceInProgress
from model.ids import GroupId, TopicName
from model.log.records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    Record,
)
from model.log.side_records import SideRecord
from model.now import Now
from model.past.causes import Cause, CauseKind
from model.responses.classic import JoinGroupResponse
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
    """Convert the group, and add the new member. Raises the errors of both steps."""
    check_server_assignor(shard, command)
    return convert(_upgrade(shard, group, command, now), weigh_group(group.members.values()))


def _upgrade(
    shard: Shard, group: ClassicGroup, command: ConsumerGroupHeartbeat, now: Now
) -> Steps[Outcome]:
    keeps_user_data = command.client_assignors is not UNCHANGED and bool(command.client_assignors)
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


def compute_converted(shard: Shard, group: ClassicGroup) -> Steps[Shard]:
    """A shard with the consumer group that the group would become. Raises as ``check_upgrade``."""
    yield from check_upgrade(group, shard.settings_of(group.group_id))
    records = yield from compute_upgrade_records(shard, group)
    return (yield from _compute_shard_with(shard, records))


def _find_names(outcome: Outcome) -> Iterator[TopicName]:
    """The topics that the new member subscribes to."""
    for _, value in outcome.records:
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            yield from value.subscribed_topic_names


def _has_new_epoch(outcome: Outcome) -> bool:
    return any(isinstance(record.key, ConsumerGroupMetadataKey) for record in outcome.records)


def _find_whether_known(
    converted: Shard, classic: ClassicGroup, command: ConsumerGroupHeartbeat
) -> Steps[bool]:
    """Whether the assignments are complete and legal, and every member knows its own.

    If not, the upgrade needs a new group epoch. The classic group may have left partitions
    unassigned (an interrupted rebalance, or a leader that has not noticed new topics), or assigned
    to a member that has changed its subscription. In PreparingRebalance members may not know their
    assignment, as after a downgrade.
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
    # The new member gets its full assignment, so a member that it replaces need not know it.
    is_alone = all(
        member.instance_id is not None and member.instance_id == command.instance_id
        for member in classic.members.values()
    )
    is_told = is_alone or classic.state is not ClassicGroupState.PREPARING_REBALANCE
    return is_told and is_legal and given == there


def _weigh_member(member: Member) -> int:
    return weigh_metadata(member.metadata) + len(member.target or ()) // TOPICS_OF_ONE


def _with_new_epoch(converted: Shard, outcome: Outcome, group_id: GroupId) -> Outcome:
    """Bump the group epoch although the new member, which subscribes to no topics, does not.

    So the group gets a target, and members that do not know their assignment fetch it.
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
    """Raise ``GroupIdNotFound``, with the reason, if the group cannot be upgraded.

    With ``keeps_user_data`` user data in assignments is accepted: the new member has a client-side
    assignor for it.
    """
    rules = replace(compute_migration_rules(settings), keeps_user_data=keeps_user_data)
    key = rules.allows_upgrade, rules.max_size, keeps_user_data, rules.subscriptions_max
    known = group.upgrade_checks.found
    refusal = known.get(key)
    if refusal is None:
        # Cached: a small heartbeat triggers the check, and the members' metadata may be large.
        refusal = yield from _find_refusal(group, rules)
        known[key] = refusal
    if refusal:
        raise GroupIdNotFound(
            f"Group {group.group_id} is a classic group and cannot be upgraded: {refusal}."
        )


def _find_refusal(group: ClassicGroup, rules: MigrationRules) -> Steps[str]:
    """The first reason that prevents the upgrade, or ""; the cheap checks come first."""
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
    """Side records of the assignments' user data, which members keep until the next target."""
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
    """A scratch shard with the converted group only, in which the new member joins."""
    soft = SoftState(topic_hashes=shard.soft.topic_hashes)
    converted = Shard(shard.partition, shard.settings, shard.image, shard.group_settings, soft)
    for part in in_slices(records, weigh_record):
        for record in part:
            replay(converted, record)
        yield
    return converted


def _compute_effects(group: ClassicGroup, command: ConsumerGroupHeartbeat) -> list[Effect]:
    """Cancel the deadlines of the rebalance, and restart all sessions.

    Members that get their member id by this upgrade have a deadline for SyncGroup.
    """
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
    reason = f"member {command.member_id} joins with the consumer protocol: the group is upgraded"
    effects += (
        ArmClassicDeadline(
            group_id, ClassicDeadline.SYNC, member.member_id, member.rebalance_timeout_ms
        )
        for member in group.members.values()
        if member.awaits_id
    )
    effects.append(NoteRebalance(group_id, group.generation, reason))
    caller = command.caller
    cause = Cause(CauseKind.MIGRATED, command.member_id, caller.client_id, caller.client_host)
    effects.append(NoteEpochCauses(group_id, (cause,)))
    return effects


def compute_sessions(group: ClassicGroup) -> BeginClassicSessions:
    """Restart the sessions of all members of a converted group."""
    sessions = [(each.member_id, each.session_timeout_ms) for each in group.members.values()]
    return BeginClassicSessions(group.group_id, tuple(sessions))


def _compute_releases(group: ClassicGroup) -> tuple[Release, ...]:
    """Answer the parked requests (row J9): REBALANCE_IN_PROGRESS, so that the members rejoin.

    A member that does not know its member id gets a successful response instead: the error would
    not carry the id, and its client would join as another member.
    """
    error = RebalanceInProgress("The group was upgraded to a consumer group: rejoin it.")
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
