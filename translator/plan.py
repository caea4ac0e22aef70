"""Migration for operators: the plan of an upgrade, and the manual downgrade.

The plan of a classic group lists what ``translator.upgrade`` would refuse, what needs attention,
and the changes of each client's configuration; that of a consumer group is the way back
(``translator.way_back``). The manual downgrade converts a consumer group
without consumer-protocol members to a classic group, regardless of the migration policy.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.groups.group_description import CLASSIC, EMPTY
from coordinator.core.groups.group_tombstones import compute_consumer_group_tombstones
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    compute_group_record,
    compute_new_group,
)
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.conversion import in_slices, weigh_bytes, weigh_said
from coordinator.core.state.freezes import check_not_frozen
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.commands.groups import ConvertToClassicGroup
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupIdNotFound, GroupMaxSizeReached, NonEmptyGroup
from model.ids import GroupId, InstanceId, MemberId
from model.log.records import Record
from model.now import Now
from model.responses.migration import ClientChange, MigrationPlan, MigrationReason, PlannedMember
from model.responses.response import Done
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
from translator.way_back import compute_way_back

NAMED_MAX = 3
_SAME_ASSIGNOR = ("range",)


def compute_migration_plan(shard: Shard, group_id: GroupId) -> Steps[MigrationPlan]:
    """The plan for the upgrade of the group, or for its way back, in slices of members.

    It describes the group as of the first slice. Raises ``GroupIdNotFound`` if there is no group,
    or it is neither classic nor consumer.
    """
    consumer = shard.consumer_groups.get(group_id)
    if consumer is not None:
        return (yield from compute_way_back(shard, consumer))
    settings = shard.settings_of(group_id)
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
    """The weight of a member: its subscription and assignment are decoded."""
    return weigh_bytes(member.subscription) + weigh_bytes(member.assignment)


def _plan_member(
    settings: CoordinatorSettings,
    group: Candidate,
    member: CandidateMember,
    of_group: tuple[Reason, ...],
    own: tuple[Reason, ...],
) -> PlannedMember:
    """The plan of a member; the reasons of its group count for its verdict as well."""
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
    """The changes of a client's configuration: set or keep a value, or remove it (``None``)."""
    offered = settings.group_consumer_assignors
    assignor = strategy if strategy in _SAME_ASSIGNOR and strategy in offered else offered[0]
    session_ms = settings.group_consumer_session_timeout_ms
    heartbeat_ms = settings.group_consumer_heartbeat_interval_ms
    changes = [
        ClientChange("group.protocol", "consumer", "the client uses the consumer protocol"),
        ClientChange("group.remote.assignor", assignor, "the server computes the assignment"),
        ClientChange(
            "partition.assignment.strategy", None, "classic client assignors are not used any more"
        ),
        ClientChange(
            "session.timeout.ms",
            None,
            f"consumer.session.timeout.ms of the group applies: {session_ms}",
        ),
        ClientChange(
            "heartbeat.interval.ms",
            None,
            f"consumer.heartbeat.interval.ms of the group applies: {heartbeat_ms}",
        ),
    ]
    if instance_id is not None:
        changes.append(
            ClientChange(
                "group.instance.id",
                instance_id,
                f"unchanged: the member keeps its partitions if it returns within {session_ms} ms",
            )
        )
    return tuple(changes)


# -------------------------------------------------------------------------- manual downgrade


def handle_convert_to_classic(shard: Shard, command: ConvertToClassicGroup, now: Now) -> Outcome:
    """Convert a consumer group to a classic group, which keeps its offsets, in one batch.

    An empty group becomes an Empty classic group with the group epoch as its generation. A group
    of classic members only is downgraded as if its last consumer-protocol member had left. For a
    classic group nothing happens. Raises ``GroupIdNotFound`` if there is no group or it has another
    type, ``FreezeRefused`` if it is frozen, ``NonEmptyGroup`` if members use the consumer protocol,
    and ``GroupMaxSizeReached`` if it has more members than a classic group may have.
    """
    group_id = command.group_id
    group = shard.consumer_groups.get(group_id)
    if group is None:
        _check_is_classic(shard, group_id)
        return Outcome(response=Done())
    check_not_frozen(shard, group_id)
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
    """Raise an error unless the group has classic members only, and not too many."""
    speakers = [member for member in group.members() if member.classic is None]
    if speakers:
        named = ", ".join(member.member_id for member in speakers[:NAMED_MAX])
        if len(speakers) > NAMED_MAX:
            named += ", ..."
        raise NonEmptyGroup(
            f"{len(speakers)} members of group {group.group_id} use the consumer protocol: stop "
            f"them first ({named})."
        )
    if group.member_count > max_size:
        raise GroupMaxSizeReached(
            f"Group {group.group_id} has {group.member_count} members; a classic group may have at "
            f"most {max_size}."
        )
