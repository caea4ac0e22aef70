"""What a conversion asks of the people who run a group: the plan, and the way back by hand.

The plan of a classic group is what ``translator.upgrade`` would refuse, what needs care, and
what changes in each client's settings. The way back by hand makes a consumer group without members
of the consumer protocol a classic group, whatever the policy is.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.groups.group_description import CLASSIC, CONSUMER, EMPTY
from coordinator.core.groups.group_tombstones import compute_consumer_group_tombstones
from coordinator.core.state.classic_group import (
    ClassicGroup,
    compute_group_record,
    compute_new_group,
)
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.conversion import in_slices, weigh_bytes, weigh_said
from coordinator.core.state.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.commands import ConvertToClassicGroup, Now
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupIdNotFound, GroupMaxSizeReached, NonEmptyGroup
from model.ids import GroupId, InstanceId, MemberId
from model.log.records import Record
from model.responses import (
    ClientChange,
    Done,
    MigrationPlan,
    MigrationReason,
    PlannedMember,
)
from translator.downgrade import compute_downgrade
from translator.readiness import (
    Candidate,
    CandidateMember,
    Reason,
    compute_candidate_member,
    compute_member_reasons,
    compute_migration_rules,
    compute_reasons_of_group,
    compute_verdict,
)

NAMED_MAX = 3
_SAME_ASSIGNOR = ("range",)


def compute_migration_plan(shard: Shard, group_id: GroupId) -> Steps[MigrationPlan]:
    """What becomes of the group when the first member of the consumer protocol joins it.

    In slices of members; it is of the group as it was at the first. A consumer group has nothing
    in its way. Raises ``GroupIdNotFound`` where there is no group, or one of another type.
    """
    settings = shard.settings_of(group_id)
    consumer = shard.consumer_groups.get(group_id)
    if consumer is not None:
        head = Candidate(group_id, CONSUMER, None, ())
        return (yield from _compute_plan(settings, head, CONSUMER, consumer.state().value))
    _check_is_classic(shard, group_id)
    classic = shard.classic_group(group_id)
    if classic is None:
        head = Candidate(group_id, None, None, ())
        return (yield from _compute_plan(settings, head, CLASSIC, EMPTY))
    candidate = yield from _compute_candidate(classic)
    return (yield from _compute_plan(settings, candidate, CLASSIC, classic.state.value))


def _compute_candidate(group: ClassicGroup) -> Steps[Candidate]:
    members: list[CandidateMember] = []
    for part in in_slices(group.members.values(), weigh_said):
        members += (compute_candidate_member(group, member) for member in part)
        yield
    return Candidate(group.group_id, group.protocol_type, group.protocol_name, tuple(members))


def _check_is_classic(shard: Shard, group_id: GroupId) -> None:
    if not shard.has_other_group(group_id):
        raise GroupIdNotFound(f"Group {group_id} not found.")
    if group_id in shard.foreign_groups:
        raise GroupIdNotFound(f"Group {group_id} is neither a classic nor a consumer group.")


def _compute_plan(
    settings: CoordinatorSettings, candidate: Candidate, group_type: str, state: str
) -> Steps[MigrationPlan]:
    rules = compute_migration_rules(settings)
    of_group = tuple(compute_reasons_of_group(candidate, rules))
    reasons = list(of_group)
    planned: list[PlannedMember] = []
    for part in in_slices(candidate.members, _weigh):
        for member in part:
            own = tuple(compute_member_reasons(candidate, member, rules))
            reasons += own
            planned.append(_plan_member(settings, candidate, member, of_group, own))
        yield
    return MigrationPlan(
        GroupId(candidate.group_id),
        group_type,
        state,
        candidate.protocol_type or "",
        candidate.protocol_name or "",
        settings.group_consumer_migration_policy,
        compute_verdict(reasons).value,
        tuple(_as_reason(reason) for reason in of_group),
        tuple(planned),
    )


def _weigh(member: CandidateMember) -> int:
    """What it says is decoded."""
    return weigh_bytes(member.subscription) + weigh_bytes(member.assignment)


def _plan_member(
    settings: CoordinatorSettings,
    group: Candidate,
    member: CandidateMember,
    of_group: tuple[Reason, ...],
    own: tuple[Reason, ...],
) -> PlannedMember:
    """What is in the way of the group is in the way of each member."""
    return PlannedMember(
        MemberId(member.member_id),
        None if member.instance_id is None else InstanceId(member.instance_id),
        member.client_id,
        compute_verdict(of_group + own).value,
        tuple(_as_reason(reason) for reason in own),
        compute_client_changes(settings, group.protocol_name, member.instance_id),
    )


def _as_reason(reason: Reason) -> MigrationReason:
    return MigrationReason(reason.hindrance.value, reason.detail, reason.is_blocking)


def compute_client_changes(
    settings: CoordinatorSettings, strategy: str | None, instance_id: str | None
) -> tuple[ClientChange, ...]:
    """Settings of Kafka's clients: what comes or has to stay, what goes (``None``), and why."""
    offered = settings.group_consumer_assignors
    assignor = strategy if strategy in _SAME_ASSIGNOR and strategy in offered else offered[0]
    session_ms = settings.group_consumer_session_timeout_ms
    heartbeat_ms = settings.group_consumer_heartbeat_interval_ms
    changes = [
        ClientChange("group.protocol", "consumer", "the client speaks the consumer protocol"),
        ClientChange("group.remote.assignor", assignor, "the server assigns"),
        ClientChange(
            "partition.assignment.strategy", None, "the assignors of clients are not asked any more"
        ),
        ClientChange(
            "session.timeout.ms",
            None,
            f"consumer.session.timeout.ms of the group takes its place: {session_ms}",
        ),
        ClientChange(
            "heartbeat.interval.ms",
            None,
            f"consumer.heartbeat.interval.ms of the group takes its place: {heartbeat_ms}",
        ),
    ]
    if instance_id is not None:
        changes.append(
            ClientChange(
                "group.instance.id",
                instance_id,
                f"it stays: the instance keeps its partitions if it is back within {session_ms} ms",
            )
        )
    return tuple(changes)


# ------------------------------------------------------------------------------ the way back


def handle_convert_to_classic(shard: Shard, command: ConvertToClassicGroup, now: Now) -> Outcome:
    """Make a consumer group a classic group that keeps its offsets, in one batch.

    Without members it is as a classic group that its last member has left, at the epoch as its
    generation; with classic members alone it is the downgrade that the last one of the others would
    bring. A classic group stays one. Raises ``GroupIdNotFound`` where there is no group or one of
    another type, ``NonEmptyGroup`` where members speak the consumer protocol, and
    ``GroupMaxSizeReached`` where a classic group may not have so many.
    """
    group_id = command.group_id
    group = shard.consumer_groups.get(group_id)
    if group is None:
        _check_is_classic(shard, group_id)
        return Outcome(response=Done())
    check_convert_to_classic(group, shard.settings_of(group_id).group_max_size)
    if command.validate_only:
        return Outcome(response=Done())
    if not group.member_count:
        records = [*compute_consumer_group_tombstones(group), _compute_empty_record(group, now)]
        return Outcome(records=tuple(records), response=Done())
    return compute_downgrade(shard, group, (), now, Done())


def _compute_empty_record(group: ConsumerGroup, now: Now) -> Record:
    empty = compute_new_group(group.group_id, now.wall_ms)
    return compute_group_record(
        replace(empty, generation=group.group_epoch, protocol_type=PROTOCOL_TYPE)
    )


def check_convert_to_classic(group: ConsumerGroup, max_size: int) -> None:
    """Whether classic members alone are in the group, and not too many."""
    speakers = [member for member in group.members() if member.classic is None]
    if speakers:
        named = ", ".join(member.member_id for member in speakers[:NAMED_MAX])
        if len(speakers) > NAMED_MAX:
            named += ", ..."
        raise NonEmptyGroup(
            f"{len(speakers)} members of group {group.group_id} speak the consumer protocol: stop "
            f"them first ({named})."
        )
    if group.member_count > max_size:
        raise GroupMaxSizeReached(
            f"Group {group.group_id} has {group.member_count} members, and a classic group may "
            f"have {max_size}."
        )
