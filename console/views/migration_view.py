"""The way of a group to the consumer protocol and back, as it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.views.tables import Table, make_table
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
    """A member before the conversion, and what to change in its client."""

    member_id: str
    instance_id: str
    client_id: str
    verdict: str
    reasons: Sequence[Reason]
    config: Sequence[ConfigLine]


@dataclass(frozen=True, slots=True)
class PlanView:
    """Whether a group is ready. ``is_of_clients``: it has members that decide."""

    verdict: str
    state: str
    strategy: str
    policy: str
    reasons: Sequence[Reason]
    clients: Sequence[PlannedClient]


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
    """A plan of a classic group, or the progress of one that is on its way."""

    group_id: str
    plan: PlanView | None
    progress: ProgressView | None


def compute_migration_view(
    plan: admin_pb2.PlanMigrationResponse, group: admin_pb2.Group
) -> MigrationView:
    """What is shown of a group."""
    if is_consumer(group):
        return MigrationView(group.group_id, None, _compute_progress(group, plan.policy))
    return MigrationView(plan.group_id, _compute_plan(plan), None)


def _compute_plan(plan: admin_pb2.PlanMigrationResponse) -> PlanView:
    return PlanView(
        render_verdict(plan.verdict),
        render_group_state(plan.state),
        plan.protocol,
        plan.policy,
        _make_reasons(plan.reasons),
        [_make_client(member) for member in plan.members],
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
    """A classic group in the list of candidates."""

    group_id: str
    state: str
    members: int
    verdict: str
    reasons: str


def compute_candidate_row(
    group: admin_pb2.GroupSummary, plan: admin_pb2.PlanMigrationResponse | None
) -> CandidateRow:
    """A row; without a plan the visitor may not see it."""
    kinds: list[str] = []
    if plan is not None:
        kinds = [reason.kind for reason in plan.reasons]
        kinds += [reason.kind for member in plan.members for reason in member.reasons]
    return CandidateRow(
        group.group_id,
        render_group_state(group.state),
        group.members,
        "" if plan is None else render_verdict(plan.verdict),
        ", ".join(dict.fromkeys(kinds)),
    )
