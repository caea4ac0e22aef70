"""The way of a group to the consumer protocol and back, as it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.views.tables import ROWS_MAX, Table, make_table
from muster.v1 import admin_pb2
from wording.groups import render_group_state, render_partitions, render_type
from wording.migrations import (
    ROLLED_BACK,
    count_moving,
    find_consumer_members,
    find_left,
    is_consumer,
    render_change,
    render_protocol,
    render_verdict,
)


@dataclass(frozen=True, slots=True)
class Reason:
    """What is in the way, or needs care; ``word`` is BLOCKED or WARN."""

    word: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """A line of a client's configuration, and why."""

    text: str
    reason: str
    is_removal: bool


@dataclass(frozen=True, slots=True)
class PlannedClient:
    """A member before its client is restarted, and what to change in that."""

    member_id: str
    instance_id: str
    client_id: str
    verdict: str
    reasons: Sequence[Reason]
    config: Sequence[ConfigLine]


@dataclass(frozen=True, slots=True)
class PlanView:
    """Whether a group is ready; ``more`` clients are not listed."""

    verdict: str
    state: str
    strategy: str
    policy: str
    reasons: Sequence[Reason]
    clients: Sequence[PlannedClient]
    more: int


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far a group is. ``goal`` is the protocol that it goes to."""

    goal: str
    state: str
    policy: str
    consumer_members: int
    classic_members: int
    left: int
    moving: int
    members: Table

    @property
    def count(self) -> int:
        """All members."""
        return self.consumer_members + self.classic_members

    @property
    def is_done(self) -> bool:
        """Nothing is left to restart or to move."""
        return not self.left and not self.moving


@dataclass(frozen=True, slots=True)
class MigrationView:
    """A plan: of a classic group, or of the way back of a consumer group, with its progress."""

    group_id: str
    plan: PlanView
    progress: ProgressView | None


def compute_migration_view(
    plan: admin_pb2.PlanMigrationResponse, group: admin_pb2.Group
) -> MigrationView:
    """What is shown of a group."""
    if is_consumer(group):
        progress = _compute_progress(group, plan.policy)
        return MigrationView(group.group_id, _compute_plan(plan), progress)
    return MigrationView(plan.group_id, _compute_plan(plan), None)


def _compute_plan(plan: admin_pb2.PlanMigrationResponse) -> PlanView:
    return PlanView(
        render_verdict(plan.verdict),
        render_group_state(plan.state),
        plan.protocol,
        plan.policy,
        _make_reasons(plan.reasons),
        [_make_client(member) for member in plan.members[:ROWS_MAX]],
        max(len(plan.members) - ROWS_MAX, 0),
    )


def _make_reasons(reasons: Iterable[admin_pb2.MigrationReason]) -> list[Reason]:
    return [
        Reason("BLOCKED" if reason.is_blocking else "WARN", reason.kind, reason.detail)
        for reason in reasons
    ]


def _make_client(member: admin_pb2.PlannedMember) -> PlannedClient:
    return PlannedClient(
        member.member_id,
        member.instance_id,
        member.client_id,
        render_verdict(member.verdict),
        _make_reasons(member.reasons),
        [
            ConfigLine(render_change(change), change.reason, not change.HasField("value"))
            for change in member.changes
        ],
    )


def _compute_progress(group: admin_pb2.Group, policy: str) -> ProgressView:
    left = find_left(group, policy)
    consumers = len(find_consumer_members(group))
    left_ids = {member.member_id for member in left}
    moving = {member.member_id: count_moving(member) for member in group.members}
    state = f"{render_type(group.group_type)}, {render_group_state(group.state)}"
    return ProgressView(
        "classic" if policy == ROLLED_BACK else "consumer",
        state,
        policy,
        consumers,
        len(group.members) - consumers,
        len(left),
        sum(moving.values()),
        make_table(
            "members",
            "Members, those to restart first",
            ("Client id", "Protocol", "To restart", "#To move", "Member", "Instance id", "Has"),
            (
                (
                    member.client_id,
                    render_protocol(member.protocol),
                    "yes" if member.member_id in left_ids else "no",
                    moving[member.member_id],
                    member.member_id,
                    member.instance_id,
                    render_partitions(member.assignment),
                )
                for member in sorted(group.members, key=lambda m: m.member_id not in left_ids)
            ),
            len(group.members),
        ),
    )


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A group in the list: how far it is, and whether it can go the other way.

    ``is_between``: some members are to be restarted, and some have been. ``verdict`` is empty if
    the visitor may not see the plan, or there is none.
    """

    group_id: str
    group_type: str
    state: str
    members: int
    progress: str
    is_between: bool
    way: str
    verdict: str
    reasons: str


def compute_candidate_row(
    group: admin_pb2.GroupSummary, plan: admin_pb2.PlanMigrationResponse | None
) -> CandidateRow:
    """A row; without a plan there is no more than the group to be seen."""
    is_back = group.group_type == admin_pb2.GROUP_TYPE_CONSUMER
    kinds: list[str] = []
    progress, is_between = "", False
    if plan is not None:
        kinds = [reason.kind for reason in plan.reasons]
        kinds += [reason.kind for member in plan.members for reason in member.reasons]
        progress, is_between = _describe_progress(group, plan)
    return CandidateRow(
        group.group_id,
        render_type(group.group_type),
        render_group_state(group.state),
        group.members,
        progress,
        is_between,
        "back to classic" if is_back else "to consumer",
        "" if plan is None else render_verdict(plan.verdict),
        ", ".join(dict.fromkeys(kinds)),
    )


def _describe_progress(
    group: admin_pb2.GroupSummary, plan: admin_pb2.PlanMigrationResponse
) -> tuple[str, bool]:
    """How many members have been restarted, and whether others have not."""
    count, goal = 0, "consumer"
    if plan.group_type == admin_pb2.GROUP_TYPE_CONSUMER:
        count = len(plan.members)
    if plan.policy == ROLLED_BACK:
        count, goal = group.members - count, "classic"
    # A member may have come or gone between the two answers.
    count = min(max(count, 0), group.members)
    if not group.members:
        return "no members", False
    text = f"{count} of {group.members} use the {goal} protocol"
    is_between = plan.group_type == admin_pb2.GROUP_TYPE_CONSUMER and count < group.members
    return text, is_between
